"""The paper's own figures, one row a claim, read from ``paper_values.csv``.

The values are the paper's (arXiv 2608.29188) as two public summaries quote them: ``review``, a
structured review with its tables, and ``essay``, an article on it. ``context.*`` rows quote
arXiv 2608.00220. ``direction`` keeps the claim in words; ``relation`` and ``compared_with`` say
the same so that a program can check it. ``relation`` is ``none`` for a value without a direction,
and for words (``high``, ``flat``) whose rule is left to the chapter that will measure them.

``tolerance`` belongs to ``near``. For ``tradeoff.lost.recovered``, a share, it is 0.15: the paper's
own 0 of 33 problems has a Clopper-Pearson upper bound of 0.106.
"""

import csv
import difflib
import io
import math
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

COLUMNS = (
    "id",
    "chapter",
    "quantity",
    "setting",
    "value",
    "ci_low",
    "ci_high",
    "n",
    "direction",
    "relation",
    "compared_with",
    "tolerance",
    "source",
)


class Relation(StrEnum):
    """How a value stands to the row, or to the plain number, that it is compared with."""

    RISES = "rises"
    FALLS = "falls"
    ABOVE = "above"
    BELOW = "below"
    NEAR = "near"
    NONE = "none"


@dataclass(frozen=True)
class Claim:
    """One figure of the paper.

    Args:
        id: identifier, such as ``tradeoff.grpo.coverage.late``.
        chapter: the chapter of this book that measures it.
        quantity: what was measured, with its unit.
        setting: on which checkpoint of which model.
        written: the value with the digits of the source, or empty when it is stated in words only.
        value: ``written`` as a number, or None.
        interval: the paper's 95% interval, or None.
        n: what the paper measured it on, in words.
        direction: the claim in words; empty for a value that another row is compared with.
        relation: the claim as a rule.
        compared_with: the identifier of another row, or None when ``reference`` is the number.
        reference: the plain number that the value is compared with, or None.
        tolerance: for ``near``, how far from the reference still counts, in the quantity's unit.
        source: which summary quotes it.
    """

    id: str
    chapter: str
    quantity: str
    setting: str
    written: str
    value: float | None
    interval: tuple[float, float] | None
    n: str
    direction: str
    relation: Relation
    compared_with: str | None
    reference: float | None
    tolerance: float | None
    source: str


def load_claims(chapter: str | None = None, *, path: Path | None = None) -> tuple[Claim, ...]:
    """Every claim, or those of one chapter, in the order of the file.

    Args:
        chapter: such as ``trade-off``.
        path: another file of the same form; by default the one in the package.

    Raises:
        ValueError: for a chapter without claims, or a damaged file (with the line).
    """
    source = files(__package__) / "paper_values.csv" if path is None else path
    name = source.name
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{name}: the file is damaged, it is not UTF-8 text") from None
    claims = _parse(text, name)
    if chapter is None:
        return claims
    chapters = tuple(dict.fromkeys(claim.chapter for claim in claims))
    if chapter not in chapters:
        raise ValueError(f"chapter: {unknown(chapter, chapters)}")
    return tuple(claim for claim in claims if claim.chapter == chapter)


def unknown(name: str, known: tuple[str, ...]) -> str:
    """``'x' is not known; did you mean 'y'?``: the end of a message on a misspelt name."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"one of {', '.join(known)}"
    return f"{name!r} is not known; {hint}"


def _parse(text: str, name: str) -> tuple[Claim, ...]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    claims: dict[str, Claim] = {}
    try:
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"the columns have to be {', '.join(COLUMNS)}")
        for row in reader:
            claim = _claim(row)
            if claim.id in claims:
                raise ValueError(f"the identifier {claim.id!r} occurs twice")
            claims[claim.id] = claim
    except csv.Error as error:
        raise ValueError(f"{name}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{name}, line {reader.line_num}: {error}") from None
    if not claims:
        raise ValueError(f"{name}: the file has no claims")
    for claim in claims.values():
        if claim.compared_with == claim.id:
            raise ValueError(f"{name}: {claim.id} is compared with itself")
        if claim.compared_with is not None and claim.compared_with not in claims:
            problem = unknown(claim.compared_with, tuple(claims))
            raise ValueError(f"{name}: {claim.id} is compared with a missing row: {problem}")
    return tuple(claims.values())


def _claim(row: dict[str, str]) -> Claim:
    if None in row or None in row.values():
        raise ValueError(f"a row has {len(COLUMNS)} fields")
    for column in ("id", "chapter", "quantity", "source"):
        if not row[column].strip():
            raise ValueError(f"{column} is empty")
    if row["relation"] not in set(Relation):
        raise ValueError(f"relation: {unknown(row['relation'], tuple(map(str, Relation)))}")
    relation = Relation(row["relation"])
    compared_with, reference = _comparison(relation, row["compared_with"])
    tolerance = _number("tolerance", row["tolerance"])
    if (relation is Relation.NEAR) != (tolerance is not None and tolerance > 0):
        raise ValueError("tolerance: a positive number for the relation 'near', else empty")
    value = _number("value", row["value"])
    return Claim(
        id=row["id"],
        chapter=row["chapter"],
        quantity=row["quantity"],
        setting=row["setting"],
        written=row["value"],
        value=value,
        interval=_interval(value, row),
        n=row["n"],
        direction=row["direction"],
        relation=relation,
        compared_with=compared_with,
        reference=reference,
        tolerance=tolerance,
        source=row["source"],
    )


def _comparison(relation: Relation, text: str) -> tuple[str | None, float | None]:
    if (relation is Relation.NONE) != (text == ""):
        raise ValueError("compared_with: a row's id or a number, and empty for the relation 'none'")
    if text[:1].isalpha() or not text:
        return text or None, None
    return None, _number("compared_with", text)


def _interval(value: float | None, row: dict[str, str]) -> tuple[float, float] | None:
    low, high = (_number(column, row[column]) for column in ("ci_low", "ci_high"))
    if low is None and high is None:
        return None
    if low is None or high is None or value is None or not low <= value <= high:
        raise ValueError("ci_low and ci_high: both or neither, with the value between them")
    return low, high


def _number(column: str, text: str) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{column}: a finite number such as 0.25 is needed; got {text!r}")
    return number
