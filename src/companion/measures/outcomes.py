"""What a sample can hit, known exactly or counted: the one door into every measure.

A problem has *leaves* (its distinct solutions), *families* (its entrances) or simply one event,
"solved". A sample hits one of them or none. :class:`Exact` holds the probability of each,
:class:`Counts` how many of n samples hit each. The rows of all problems stand in one flat array,
and ``problem_of`` says whose each row is, so every measure is vectorised over problems.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from companion.measures._checks import whole_number, whole_numbers

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MISS = -1  # the label of a sample that hits nothing: wrong, unparseable or cut off
ROUNDING = 1e-5  # probabilities scored in single precision may add up to a little more than one


@dataclass(frozen=True, eq=False)
class Exact:
    """The probability that one sample hits each leaf (or family, or "solved").

    Args:
        probabilities: (leaves,) of all problems together.
        problem_of: (leaves,) index of the problem that each belongs to, 0 to problems - 1.
        problems: how many problems there are, those without a leaf included.

    Raises:
        ValueError: for a probability below 0 or not a number, or a problem whose sum exceeds 1.
    """

    probabilities: FloatArray
    problem_of: IntArray
    problems: int

    def __post_init__(self) -> None:
        probabilities = np.asarray(self.probabilities, dtype=np.float64)
        problem_of = owners(probabilities, self.problem_of, self.problems)
        if not (probabilities >= 0).all():
            raise ValueError("probabilities: each is 0 to 1; got one that is negative or NaN")
        total = sum_by_problem(probabilities, problem_of, self.problems).max(initial=0)
        if total > 1 + ROUNDING:
            raise ValueError(f"probabilities: those of one problem sum to at most 1; got {total}")
        object.__setattr__(self, "probabilities", np.minimum(probabilities, 1))
        object.__setattr__(self, "problem_of", problem_of)

    @classmethod
    def of(cls, per_problem: Sequence[ArrayLike] | NDArray[Any]) -> Self:
        """From one list for each problem, such as ``[[0.1, 0.2], [0.3], []]``."""
        return cls(*_flat(per_problem), len(per_problem))

    @property
    def weights(self) -> FloatArray:
        """(leaves,) how often each is hit, up to a factor: here the probabilities."""
        return self.probabilities


@dataclass(frozen=True, eq=False)
class Counts:
    """How many of the n samples of a problem hit each leaf (or family, or "solved").

    ``n`` is the number of samples that the plan asked for, the same for every problem. Samples
    that hit nothing are in no count but stay in n: leaving them out would measure the policy
    on its well-formed answers only.

    Args:
        counts: (leaves,) of all problems together.
        problem_of: (leaves,) index of the problem that each belongs to, 0 to problems - 1.
        problems: how many problems there are, those without a leaf included.
        n: samples drawn for each problem.

    Raises:
        ValueError: for counts that are not whole numbers from 0 to n, a problem whose counts sum
            to more than n, or an n that differs between problems.
    """

    counts: IntArray
    problem_of: IntArray
    problems: int
    n: int

    def __post_init__(self) -> None:
        n = whole_number("n", self.n, at_least=1)
        counts = whole_numbers("counts", self.counts, at_most=n)
        problem_of = owners(counts, self.problem_of, self.problems)
        total = sum_by_problem(counts, problem_of, self.problems).max(initial=0)
        if total > n:
            raise ValueError(
                f"counts: a sample hits at most one leaf, so those of one problem sum to at most "
                f"n = {n}; got {total:.0f}"
            )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "problem_of", problem_of)
        object.__setattr__(self, "n", n)

    @classmethod
    def of(cls, per_problem: Sequence[ArrayLike] | NDArray[Any], n: int) -> Self:
        """From one list for each problem, such as ``[[3, 0], [5], []]``."""
        return cls(*_flat(per_problem), len(per_problem), n)

    @classmethod
    def from_samples(cls, hits: Sequence[ArrayLike], leaves: Sequence[int], n: int) -> Self:
        """From the samples themselves.

        Args:
            hits: for each problem, (n,) which of its leaves each sample hit, or ``MISS``.
            leaves: for each problem, how many leaves it has.
            n: samples that the plan asked for.

        Raises:
            ValueError: for a problem with more or fewer than n samples, or an unknown leaf.
        """
        if len(hits) != len(leaves):
            raise ValueError(
                f"leaves: one number for each of {len(hits)} problems; got {len(leaves)}"
            )
        return cls.of([_count(hit, size, n) for hit, size in zip(hits, leaves, strict=True)], n)

    @property
    def weights(self) -> FloatArray:
        """(leaves,) how often each is hit, up to a factor: here the counts."""
        return self.counts.astype(np.float64)


Outcomes = Exact | Counts


@dataclass(frozen=True)
class Average:
    """A mean over ``problems`` problems; ``missing`` more had no value (NaN) and are not in it."""

    value: float
    problems: int
    missing: int


def average(values: ArrayLike) -> Average:
    """The mean over problems of (problems,) values; NaN marks a problem without one.

    The value is NaN where no problem has one.
    """
    values = np.asarray(values, dtype=np.float64)
    present = values[~np.isnan(values)]
    value = float(present.mean()) if present.size else float("nan")
    return Average(value, present.size, values.size - present.size)


def owners(values: FloatArray | IntArray, problem_of: ArrayLike, problems: int) -> IntArray:
    """``problem_of`` as an int array; raises ValueError unless it names a problem for each row."""
    problems = whole_number("problems", problems, at_least=0)
    checked = whole_numbers("problem_of", problem_of, at_most=problems - 1)
    if values.ndim != 1 or checked.shape != values.shape:
        raise ValueError(
            f"problem_of: one problem for each row of a flat array; got shape {checked.shape} "
            f"for {values.shape}"
        )
    return checked


def sum_by_problem(values: ArrayLike, problem_of: IntArray, problems: int) -> FloatArray:
    """(problems,) the sum of each problem's rows; 0 for a problem without rows."""
    weights = np.asarray(values, dtype=np.float64)
    return np.asarray(np.bincount(problem_of, weights, problems), dtype=np.float64)


def mean_by_problem(values: ArrayLike, problem_of: IntArray, problems: int) -> FloatArray:
    """(problems,) the mean of each problem's rows; NaN for a problem without rows."""
    sizes = np.bincount(problem_of, minlength=problems)
    means = sum_by_problem(values, problem_of, problems) / np.maximum(sizes, 1)
    return missing_without_rows(means, problem_of)


def missing_without_rows(values: FloatArray, problem_of: IntArray) -> FloatArray:
    """(problems,) values with NaN for every problem that has no row."""
    return np.where(np.bincount(problem_of, minlength=values.size) > 0, values, np.nan)


def _flat(
    per_problem: Sequence[ArrayLike] | NDArray[Any],
) -> tuple[NDArray[Any], IntArray]:
    arrays = [np.asarray(values) for values in per_problem]
    if any(array.ndim != 1 for array in arrays):
        raise ValueError("per_problem: one list for each problem, such as [[3, 0], [5], []]")
    problem_of = np.repeat(np.arange(len(arrays)), [array.size for array in arrays])
    # An empty list is an array of floats to numpy, and would turn its neighbours' counts to floats.
    filled = [array for array in arrays if array.size]
    return (np.concatenate(filled) if filled else np.empty(0)), problem_of


def _count(hit: ArrayLike, leaves: int, n: int) -> IntArray:
    labels = np.asarray(hit)
    if labels.shape != (n,):
        raise ValueError(
            f"hits: {n} samples were planned for each problem and each has its entry, "
            f"{MISS} where it hit nothing; got shape {labels.shape}"
        )
    found = whole_numbers("hits", labels[labels != MISS], at_most=leaves - 1)
    return np.bincount(found, minlength=leaves)
