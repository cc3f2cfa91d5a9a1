"""Intervals: a value, its bounds and how much it rests on."""

from dataclasses import dataclass
from typing import Literal

from scipy.special import betainccinv, betaincinv

from companion.measures._checks import confidence_level, whole_number

Side = Literal["both", "upper", "lower"]


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Args:
        value: the estimate.
        low: lower bound, NaN where it is not defined.
        high: upper bound, NaN where it is not defined.
        n: problems (bootstrap) or trials (Clopper–Pearson) that the value rests on.
        level: nominal probability that such an interval contains the truth, such as 0.95.
        method: how it was made, in words.
        missing: problems without a value, which are not in n.
    """

    value: float
    low: float
    high: float
    n: int
    level: float
    method: str
    missing: int = 0

    def __str__(self) -> str:
        missing = f", {self.missing} missing" if self.missing else ""
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] (n = {self.n}{missing})"


def clopper_pearson(
    successes: int, trials: int, *, level: float = 0.95, side: Side = "both"
) -> Interval:
    """Exact binomial interval for a probability from independent trials (Clopper–Pearson 1934).

    Zero successes give an upper bound: 0 of 512 is below 0.0058 one-sided, 0.0072 two-sided.
    ``side="upper"`` puts all of 1 - level above (low = 0), ``"lower"`` all of it below (high = 1).

    Raises:
        ValueError: for no trials, successes outside 0 to trials, an impossible level or side.
    """
    confidence_level(level)
    trials = whole_number("trials", trials, at_least=1)
    successes = whole_number("successes", successes, at_least=0)
    if successes > trials:
        raise ValueError(f"successes: at most trials = {trials}; got {successes}")
    if side not in {"both", "upper", "lower"}:
        raise ValueError(f'side: "both", "upper" or "lower"; got {side!r}')

    tail = (1 - level) / 2 if side == "both" else 1 - level
    failures = trials - successes
    low, high = 0.0, 1.0
    if successes > 0 and side != "upper":
        low = float(betaincinv(successes, failures + 1, tail))
    if failures > 0 and side != "lower":
        high = float(betainccinv(successes + 1, failures, tail))
    sides = "two-sided" if side == "both" else f"one-sided {side}"
    return Interval(successes / trials, low, high, trials, level, f"Clopper–Pearson {sides}")
