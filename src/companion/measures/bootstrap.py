"""The bootstrap over problems, vectorised.

Every statistic of the book is a ratio of sums over problems: a mean is the sum of the values over
the sum of ones, a paired difference the mean of the differences, a relative change the sum late
over the sum early, a mean of clustered rows the sum of rows over their number. So one resampling
of problems serves them all, and what belongs to one problem always moves together.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from companion.measures._checks import confidence_level, whole_number
from companion.measures.intervals import Interval
from companion.measures.outcomes import (
    FloatArray,
    IntArray,
    mean_by_problem,
    owners,
    sum_by_problem,
)

ENTRIES_AT_ONCE = 2**21  # resampled problems held in memory together: about 50 MB
ROUNDING = 1e-12  # of the largest resample: what adding in another order may change


@dataclass(frozen=True)
class Bootstrap:
    """Settings of a bootstrap over problems, and the intervals that it gives.

    NaN marks a problem without a value: it is left out and counted in ``Interval.missing``.
    Degenerate cases: no problem gives NaN for value and bounds; one problem gives its value and
    NaN bounds, because nothing says how problems differ; problems that are all equal give bounds
    equal to the value (for counts of zero use Clopper–Pearson instead).

    The same seed and number of problems resample the same problems, whatever is measured.

    Args:
        seed: of the resampling, any whole number from 0.
        level: nominal probability that the interval contains the truth.
        method: ``"bca"``, corrected for bias and skewness (Efron 1987), or ``"percentile"``.
        draws: resamples.

    Raises:
        ValueError: for a setting outside these.
    """

    seed: int
    level: float = 0.95
    method: Literal["bca", "percentile"] = "bca"
    draws: int = 10_000

    def __post_init__(self) -> None:
        whole_number("seed", self.seed, at_least=0)
        confidence_level(self.level)
        whole_number("draws", self.draws, at_least=1)
        if self.method not in {"bca", "percentile"}:
            raise ValueError(f'method: "bca" or "percentile"; got {self.method!r}')

    def mean(self, values: ArrayLike) -> Interval:
        """Interval of the mean over problems of (problems,) values."""
        values = _per_problem("values", values)
        return self.ratio(values, np.ones(values.size))

    def difference(self, before: ArrayLike, after: ArrayLike) -> Interval:
        """Interval of the mean of after - before, paired: both arms keep the same problems.

        A problem without a value in either arm is missing.
        """
        before, after = _per_problem("before", before), _per_problem("after", after)
        _check_paired("after", after, "before", before)
        return self.mean(after - before)

    def pooled(self, values: ArrayLike, problem_of: IntArray, problems: int) -> Interval:
        """Interval of the mean over all rows, clustered by problem (ratio of sums).

        Every row weighs the same, so a problem with more rows weighs more.

        Args:
            values: (rows,) of all problems together, none NaN.
            problem_of: (rows,) index of the problem of each row.
            problems: how many problems; those without rows are missing.
        """
        rows = _rows(values, problem_of, problems)
        return self.ratio(sum_by_problem(*rows), np.bincount(rows[1], minlength=problems))

    def mean_of_means(self, values: ArrayLike, problem_of: IntArray, problems: int) -> Interval:
        """Interval of the mean over problems of the mean of their rows, clustered by problem.

        Every problem weighs the same. Arguments as for :meth:`pooled`.
        """
        return self.mean(mean_by_problem(*_rows(values, problem_of, problems)))

    def ratio(self, numerator: ArrayLike, denominator: ArrayLike) -> Interval:
        """Interval of sum(numerator) / sum(denominator) over problems, paired.

        A problem that is zero in both, or NaN in either, says nothing about the ratio and is
        missing. A bound is not finite where too many resamples have a denominator of zero.

        Args:
            numerator: (problems,)
            denominator: (problems,)

        Raises:
            ValueError: for unequal lengths or infinite values.
        """
        above = _per_problem("numerator", numerator)
        below = _per_problem("denominator", denominator)
        _check_paired("denominator", below, "numerator", above)
        missing = np.isnan(above + below) | ((above == 0) & (below == 0))
        above, below = above[~missing], below[~missing]
        value, low, high = np.nan, np.nan, np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            if above.size > 0:
                value = float(above.sum() / below.sum())
            if above.size > 1 and np.isfinite(value):
                low, high = self._bounds(value, above, below)
        method = f"{self.method} bootstrap over problems, {self.draws} draws"
        return Interval(value, low, high, above.size, self.level, method, int(missing.sum()))

    def _bounds(self, value: float, above: FloatArray, below: FloatArray) -> tuple[float, float]:
        resampled = self._resampled_ratios(above, below)
        if _tied(value, resampled).all():
            return value, value
        tails = np.array([(1 - self.level) / 2, (1 + self.level) / 2])
        if self.method == "bca":
            leave_one_out = (above.sum() - above) / (below.sum() - below)
            tails = _bca_tails(tails, value, resampled, leave_one_out)
        if np.isnan(tails).any():
            return np.nan, np.nan
        low, high = np.quantile(resampled, tails)
        return float(low), float(high)

    def _resampled_ratios(self, above: FloatArray, below: FloatArray) -> FloatArray:
        """(draws,) the ratio of sums in every resample, whatever the size of the chunks."""
        generator = np.random.default_rng(self.seed)
        chunk = max(1, ENTRIES_AT_ONCE // above.size)
        ratios = np.empty(self.draws)
        for start in range(0, self.draws, chunk):
            part = ratios[start : start + chunk]
            problems = generator.integers(0, above.size, size=(part.size, above.size))
            part[:] = above[problems].sum(axis=1) / below[problems].sum(axis=1)
        return ratios


def _bca_tails(
    tails: FloatArray, value: float, resampled: FloatArray, leave_one_out: FloatArray
) -> FloatArray:
    """The percentiles that replace ``tails`` after correction for bias and skewness."""
    tied = _tied(value, resampled)
    bias = ndtri((~tied & (resampled < value)).mean() + tied.mean() / 2)
    influence = leave_one_out.mean() - leave_one_out
    acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    normal = bias + ndtri(tails)
    return np.asarray(ndtr(bias + normal / (1 - acceleration * normal)))


def _tied(value: float, resampled: FloatArray) -> NDArray[np.bool_]:
    """(draws,) which equal the value but for rounding, on which no bound should depend."""
    largest = np.abs(resampled[np.isfinite(resampled)]).max(initial=0)
    return np.asarray(np.abs(resampled - value) <= ROUNDING * largest)


def _per_problem(name: str, values: ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or np.isinf(array).any():
        raise ValueError(
            f"{name}: one finite number for each problem, NaN where one is missing; "
            f"got shape {array.shape}{', with infinite ones' if np.isinf(array).any() else ''}"
        )
    return array


def _check_paired(name: str, values: FloatArray, other_name: str, other: FloatArray) -> None:
    if values.size != other.size:
        raise ValueError(
            f"{name}: the same problems as {other_name} ({other.size}); got {values.size}"
        )


def _rows(
    values: ArrayLike, problem_of: IntArray, problems: int
) -> tuple[FloatArray, IntArray, int]:
    rows = np.asarray(values, dtype=np.float64)
    problem_of = owners(rows, problem_of, problems)
    if np.isnan(rows).any():
        raise ValueError("values: every row has a number; leave rows without one out; got NaN")
    return rows, problem_of, problems
