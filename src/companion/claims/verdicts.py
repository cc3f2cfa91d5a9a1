"""This run's values beside the paper's, and what may be said about them.

The rules, which are the same for every chapter:

1. Only a run on the paper's own models (a *paper-scale* profile) can earn ``reproduced``. It does
   when the paper's value lies inside this run's interval (or the two intervals overlap, where the
   paper gives one) and the claim's direction, if it has one, holds too.
2. A direction holds when the interval of the difference lies wholly on the claimed side of zero.
   The interval is the paired one of this run where the chapter gives it; otherwise the most
   cautious one that the two separate intervals allow. If it includes zero, there is no clear
   difference, and the claim is ``not reproduced``.
3. ``near`` holds when the whole interval of the difference lies within the row's tolerance. A wide
   interval therefore shows nothing: a claim of *no difference* has to be shown, too.
4. A value without a direction is a fact about the paper's models. A lab run cannot measure it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from companion.claims.table import Claim, Relation, load_claims, unknown
from companion.prose import number


class Verdict(StrEnum):
    """What this run says about a claim."""

    REPRODUCED = "reproduced"
    SAME_DIRECTION = "same direction"
    NOT_REPRODUCED = "not reproduced"
    NOT_MEASURED = "not measured in this profile"


@dataclass(frozen=True)
class Measured:
    """A value of this run.

    Args:
        value: the estimate, in the claim's own unit.
        low: lower end of its 95% interval; equal to ``value`` for an exact count.
        high: upper end.
        n: what it was measured on: a number of problems, or words such as
            ``"100 problems x 320 samples"``.
        difference: 95% interval of this value minus the one that the claim is compared with,
            paired over problems, where the chapter has it.

    Raises:
        ValueError: for a value that is not finite, an interval the wrong way round, or no n.
    """

    value: float
    low: float
    high: float
    n: int | str
    difference: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        ends = (self.value, self.low, self.high, *(self.difference or ()))
        if not all(math.isfinite(end) for end in ends):
            raise ValueError(f"value and interval have to be finite, such as 0.25; got {ends}")
        if self.low > self.high:
            raise ValueError(f"low: at most high ({self.high}); got {self.low}")
        if self.difference is not None and self.difference[0] > self.difference[1]:
            raise ValueError(f"difference: (low, high) in this order; got {self.difference}")
        if not self.n or (isinstance(self.n, int) and self.n < 1):
            raise ValueError(f"n: what the value was measured on, such as 100; got {self.n!r}")


@dataclass(frozen=True)
class Checked:
    """A claim with this run's value, the verdict and the reason for it in one sentence.

    ``compared`` is the claim's other row and ``compared_measured`` this run's value of it;
    ``notebook`` is the file name of the executed notebook, once the book has collected it.
    """

    claim: Claim
    measured: Measured | None
    compared: Claim | None
    compared_measured: Measured | None
    verdict: Verdict
    reason: str
    paper_scale: bool = False
    notebook: str = ""


def check(
    claims: Iterable[Claim],
    measured: Mapping[str, Measured | None],
    *,
    paper_scale: bool = False,
) -> list[Checked]:
    """Every claim with its verdict, in the given order; none is left out.

    Args:
        claims: those of a chapter, from :func:`companion.claims.load_claims`.
        measured: this run's values by the claim's identifier; a missing one or None was not
            measured. May hold rows of other chapters that a claim is compared with.
        paper_scale: whether the run used the paper's own models.

    Raises:
        ValueError: for an identifier that belongs neither to the claims nor to a row that they
            are compared with, with the nearest one that does.
    """
    claims = tuple(claims)
    rows = {claim.id: claim for claim in (*load_claims(), *claims)}
    compared = {claim.compared_with for claim in claims if claim.compared_with is not None}
    known = tuple(dict.fromkeys((*(claim.id for claim in claims), *sorted(compared))))
    for identifier in measured:
        if identifier not in known:
            raise ValueError(f"measured: {unknown(identifier, known)}")
    checked = []
    for claim in claims:
        own = measured.get(claim.id)
        other = measured.get(claim.compared_with) if claim.compared_with is not None else None
        verdict, reason = _verdict(claim, own, other, paper_scale)
        other_row = rows[claim.compared_with] if claim.compared_with is not None else None
        checked.append(Checked(claim, own, other_row, other, verdict, reason, paper_scale))
    return checked


def _verdict(
    claim: Claim, own: Measured | None, other: Measured | None, paper_scale: bool
) -> tuple[Verdict, str]:
    if own is None:
        return Verdict.NOT_MEASURED, "This run did not measure it."
    gap = difference(claim, own, other)
    if claim.relation is not Relation.NONE and gap is None:
        return Verdict.NOT_MEASURED, f"This run did not measure {claim.compared_with}."
    if claim.relation is Relation.NONE and not paper_scale:
        return (
            Verdict.NOT_MEASURED,
            "A value without a direction: only the paper's own models can measure it.",
        )
    holds, reason = (True, "") if gap is None else _direction(claim, gap)
    if not holds:
        return Verdict.NOT_REPRODUCED, reason
    if paper_scale:
        agrees, comparison = _agrees(claim, own)
        if agrees:
            return Verdict.REPRODUCED, comparison
        if claim.relation is Relation.NONE:
            return Verdict.NOT_REPRODUCED, comparison
        return Verdict.SAME_DIRECTION, f"{reason} {comparison}"
    return Verdict.SAME_DIRECTION, f"{reason} The lab's model can only earn the direction."


def difference(claim: Claim, own: Measured, other: Measured | None) -> tuple[float, float] | None:
    """Interval of this run's value minus the one it is compared with, or None without one."""
    if claim.reference is not None:
        return own.low - claim.reference, own.high - claim.reference
    if own.difference is not None and claim.compared_with is not None:
        return own.difference
    if other is not None:
        return own.low - other.high, own.high - other.low
    return None


def _direction(claim: Claim, gap: tuple[float, float]) -> tuple[bool, str]:
    low, high = gap
    interval = f"[{number(float(low))}, {number(float(high))}]"
    if claim.relation is Relation.NEAR:
        tolerance = claim.tolerance or 0.0
        within = f"within {number(tolerance)} of it"
        if -tolerance <= low and high <= tolerance:
            return True, f"The difference {interval} stays {within}."
        return False, f"The difference {interval} does not stay {within}."
    if low <= 0 <= high:
        return False, f"No clear difference: its interval {interval} includes zero."
    upwards = claim.relation in {Relation.RISES, Relation.ABOVE}
    if (low > 0) == upwards:
        return True, f"The difference {interval} has the claimed sign."
    return False, f"The opposite direction: the difference is {interval}."


def _agrees(claim: Claim, own: Measured) -> tuple[bool, str]:
    if claim.value is None:
        return False, "The paper gives no number."
    low, high = claim.interval or (claim.value, claim.value)
    if low <= own.high and own.low <= high:
        return True, "The paper's value agrees with this run's interval."
    return False, "The paper's value lies outside this run's interval."
