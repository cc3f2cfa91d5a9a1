"""The table of claims below a chapter, and the scoreboard that collects all of them.

A chapter's table is an output of its executed notebook: HTML for the reader, and the same rows as
JSON for the scoreboard, which thus reports what the chapters said. The JSON is metadata of the
output under :data:`MIME_TYPE`; as one more representation beside the HTML it would be an unknown
type to the book's build, which warns of those for good reason.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from companion.claims.table import Claim, Relation, load_claims, unknown
from companion.claims.verdicts import Checked, Measured, Verdict, check, difference
from companion.prose import number, plural

if TYPE_CHECKING:
    import pandas as pd

MIME_TYPE = "application/vnd.companion.claims+json"
LAB_NOTE = (
    "This run did not use the paper's own models. It can earn the direction of a claim, "
    "never “reproduced”."
)
# The symbols differ in shape, so that colour is never the only sign.
SYMBOLS = {
    Verdict.REPRODUCED: "●",
    Verdict.SAME_DIRECTION: "◐",
    Verdict.NOT_REPRODUCED: "○",
    Verdict.NOT_MEASURED: "–",
}
HEADINGS = ("Claim", "The paper", "This run", "Verdict")
TITLES = {"trade-off": "The trade-off", "sft-contrast": "SFT contrast"}
ALIGNED = 'style="text-align: left; vertical-align: top"'  # JupyterLab sets tables to the right
GAIN_OR_LOSS = {Relation.RISES, Relation.FALLS}


def as_frame(checked: Iterable[Checked]) -> "pd.DataFrame":
    """One row a claim: the paper's value, interval and n, this run's, and the verdict."""
    import pandas as pd

    return pd.DataFrame([_record(row) for row in checked])


def show(checked: Sequence[Checked]) -> None:
    """Show the table below the cell, and leave its rows for the scoreboard in the notebook."""
    from IPython.display import display

    bundle = {
        "text/html": as_html(checked),
        "text/plain": _as_text(checked),
    }
    rows = {MIME_TYPE: {"rows": [_payload(row) for row in checked]}}
    display(bundle, raw=True, metadata=rows)  # type: ignore[no-untyped-call]


def as_html(checked: Iterable[Checked]) -> str:
    """The table as HTML, all text escaped.

    A value without a direction of its own stands in the row that compares with it, and gets a
    row only when it was judged.
    """
    checked = list(checked)
    body = "".join(_html_row(row) for row in _with_a_row_of_their_own(checked))
    head = "".join(f'<th scope="col" {ALIGNED}>{heading}</th>' for heading in HEADINGS)
    in_lab = any(row.measured is not None and not row.paper_scale for row in checked)
    note = f'<p class="claims-note">{escape(LAB_NOTE)}</p>' if in_lab else ""
    return (
        '<div class="claims" style="overflow-x: auto">'
        f'<table class="claims-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"{note}</div>"
    )


def collect(notebooks: Iterable[Path]) -> list[Checked]:
    """Every claim of the paper with the verdict that the executed notebooks hold.

    Claims that no notebook checked come back as ``not measured in this profile``.

    Raises:
        ValueError: for a file that is not a notebook, a damaged table of claims, or a claim that
            two notebooks checked.
    """
    claims = {claim.id: claim for claim in load_claims()}
    found: dict[str, Checked] = {}
    for notebook in notebooks:
        for payload in _payloads(notebook):
            row = _checked(payload, claims, notebook)
            if row.claim.id in found:
                first = found[row.claim.id].notebook
                raise ValueError(
                    f"notebooks: {first} and {notebook.name} both check {row.claim.id}; "
                    "a claim belongs to one chapter"
                )
            found[row.claim.id] = row
    unmeasured = {row.claim.id: row for row in check(claims.values(), {})}
    return [found.get(identifier, unmeasured[identifier]) for identifier in claims]


def write_scoreboard(path: Path, checked: Iterable[Checked]) -> None:
    """Write the MyST fragment that the scoreboard page includes: counts, then every table.

    Args:
        path: the file to write; its folder is made.
        checked: from :func:`collect`.
    """
    chapters: dict[str, list[Checked]] = {}
    for row in checked:
        chapters.setdefault(row.claim.chapter, []).append(row)
    sections = [_summary(chapters)]
    for chapter, rows in chapters.items():
        table = as_html(rows)
        if all(row.measured is None for row in rows):
            table = f"<details><summary>The paper's values</summary>{table}</details>"
        raw = f"```{{raw}} html\n{table}\n```"
        sections.append(f"## {_title(chapter)}\n\n{_source(rows)}\n\n{raw}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(sections) + "\n", encoding="utf-8")


def _with_a_row_of_their_own(checked: Sequence[Checked]) -> list[Checked]:
    compared = {row.claim.compared_with for row in checked}
    return [
        row
        for row in checked
        if row.claim.id not in compared
        or row.claim.relation is not Relation.NONE
        or row.verdict is not Verdict.NOT_MEASURED
    ]


def _record(row: Checked) -> dict[str, Any]:
    claim, own, other = row.claim, row.measured, row.compared_measured
    paper_low, paper_high = claim.interval or (None, None)
    gap = difference(claim, own, other) if own is not None else None
    gap_low, gap_high = gap or (None, None)
    return {
        "id": claim.id,
        "quantity": claim.quantity,
        "setting": claim.setting,
        "direction": claim.direction,
        "paper": claim.value,
        "paper_low": paper_low,
        "paper_high": paper_high,
        "paper_n": claim.n,
        "paper_compared": row.compared.value if row.compared else claim.reference,
        "value": own.value if own else None,
        "low": own.low if own else None,
        "high": own.high if own else None,
        "n": str(own.n) if own else "",
        "compared_value": other.value if other else claim.reference,
        "difference_low": gap_low,
        "difference_high": gap_high,
        "verdict": str(row.verdict),
        "reason": row.reason,
    }


def _html_row(row: Checked) -> str:
    claim = row.claim
    state = row.verdict.name.lower().replace("_", "-")
    setting = "; ".join(filter(None, (claim.setting, claim.direction)))
    reason = f"<br>{escape(row.reason)}" if row.measured is not None else ""
    cells = (
        f"<strong>{escape(claim.quantity)}</strong><br>{escape(setting)}"
        f'<br><code class="claims-id">{escape(claim.id)}</code>',
        _paper_cell(row),
        _run_cell(row),
        f'<span class="claims-verdict">{SYMBOLS[row.verdict]} {escape(row.verdict)}</span>{reason}',
    )
    pairs = zip(HEADINGS, cells, strict=True)
    columns = "".join(
        f'<td data-label="{heading}" {ALIGNED}>{cell}</td>' for heading, cell in pairs
    )
    return f'<tr id="claim-{escape(claim.id)}" class="claims-{state}">{columns}</tr>'


def _paper_cell(row: Checked) -> str:
    claim = row.claim
    if claim.value is None:
        return "in words only"
    value = _minus(claim.written)
    if claim.interval is not None:
        low, high = (number(end) for end in claim.interval)
        value += f" [{low}, {high}]"
    if row.compared is not None and row.compared.value is not None:
        value = _beside(claim, _minus(row.compared.written), value)
    n = f'<br><span class="claims-n">{escape(_times(claim.n))}</span>' if claim.n else ""
    return value + n


def _run_cell(row: Checked) -> str:
    own, other = row.measured, row.compared_measured
    if own is None:
        return "–"
    value = _estimate(own)
    if other is not None:
        value = _beside(row.claim, _estimate(other), value)
    n = plural(own.n, "problem") if isinstance(own.n, int) else _times(own.n)
    return f'{value}<br><span class="claims-n">{escape(n)}</span>'


def _beside(claim: Claim, other: str, own: str) -> str:
    return f"{other} → {own}" if claim.relation in GAIN_OR_LOSS else f"{own}, against {other}"


def _estimate(measured: Measured) -> str:
    return f"{number(measured.value)} [{number(measured.low)}, {number(measured.high)}]"


def _minus(written: str) -> str:
    return escape(written.replace("-", "−"))


def _times(n: str) -> str:
    return n.replace(" x ", " × ")


def _as_text(checked: Iterable[Checked]) -> str:
    return "\n".join(f"{SYMBOLS[row.verdict]} {row.claim.id}: {row.verdict}" for row in checked)


def _payload(row: Checked) -> dict[str, Any]:
    return {
        "id": row.claim.id,
        "measured": asdict(row.measured) if row.measured else None,
        "compared_measured": asdict(row.compared_measured) if row.compared_measured else None,
        "verdict": str(row.verdict),
        "reason": row.reason,
        "paper_scale": row.paper_scale,
    }


def _payloads(notebook: Path) -> list[dict[str, Any]]:
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        tables = [output.get("metadata", {}).get(MIME_TYPE) for output in outputs]
        return [row for table in tables if table is not None for row in table["rows"]]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(
            f"notebooks: {notebook.name} is not an executed notebook or its claims are damaged; "
            "run the chapter again"
        ) from None


def _checked(payload: Mapping[str, Any], claims: Mapping[str, Claim], notebook: Path) -> Checked:
    try:
        identifier = payload["id"]
        if identifier not in claims:
            raise ValueError(unknown(identifier, tuple(claims)))
        claim = claims[identifier]
        return Checked(
            claim=claim,
            measured=_measured(payload["measured"]),
            compared=claims[claim.compared_with] if claim.compared_with else None,
            compared_measured=_measured(payload["compared_measured"]),
            verdict=Verdict(payload["verdict"]),
            reason=payload["reason"],
            paper_scale=payload["paper_scale"],
            notebook=notebook.name,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"notebooks: the claims in {notebook.name} are damaged or of another version "
            f"({error}); run the chapter again"
        ) from None


def _measured(payload: Mapping[str, Any] | None) -> Measured | None:
    if payload is None:
        return None
    gap = payload["difference"]
    return Measured(**{**payload, "difference": None if gap is None else (gap[0], gap[1])})


def _summary(chapters: Mapping[str, Sequence[Checked]]) -> str:
    heads = " | ".join(
        f"{SYMBOLS[verdict]} {verdict.removesuffix(' in this profile')}" for verdict in Verdict
    )
    lines = [f"| Chapter | {heads} |", "|:--|" + "--:|" * len(Verdict)]
    for chapter, rows in chapters.items():
        counted = [row.verdict for row in _with_a_row_of_their_own(rows)]
        counts = " | ".join(str(counted.count(verdict)) for verdict in Verdict)
        lines.append(f"| {_title(chapter)} | {counts} |")
    return "\n".join(lines)


def _source(rows: Sequence[Checked]) -> str:
    notebooks = sorted({row.notebook for row in rows if row.notebook})
    if not notebooks:
        return "No chapter of this copy of the book measures these claims."
    links = ", ".join(f"[{name.removesuffix('.ipynb')}](chapters/{name})" for name in notebooks)
    return f"Checked in {links}."


def _title(chapter: str) -> str:
    return TITLES.get(chapter) or chapter.replace("-", " ").capitalize()
