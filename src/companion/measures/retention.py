"""Retention: what an early checkpoint found that a late one still finds.

Leaves and problems are asked the same question. With r = pass@k, the early and the late samples
are drawn apart, so something is found both times with probability ``r_early * r_late``. From
counts at k = n every r is 0 or 1 and the products count what was seen both times.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from companion.measures.outcomes import Counts, FloatArray, Outcomes, sum_by_problem
from companion.measures.pass_at_k import pass_at_k, reached

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Survivors:
    """(problems,) masks: solved at ``both`` checkpoints, only early (``lost``), only late."""

    both: BoolArray
    lost: BoolArray
    gained: BoolArray


@dataclass(frozen=True, eq=False)
class Turnover:
    """(problems,) expected numbers found early, found late, and found both times (retained)."""

    early: FloatArray
    late: FloatArray
    retained: FloatArray

    @property
    def lost(self) -> FloatArray:
        """(problems,) found early and not late."""
        return self.early - self.retained

    @property
    def gained(self) -> FloatArray:
        """(problems,) found late and not early."""
        return self.late - self.retained

    @property
    def retention(self) -> FloatArray:
        """(problems,) retained / early, NaN where nothing is found early."""
        return _ratio(self.retained, self.early)

    @property
    def pooled_retention(self) -> float:
        """Sum of retained / sum of early over all problems that have both, NaN if that is 0 / 0.

        A ratio of expectations, which the ratio from samples approaches with more problems: the
        figure to compare between the two. The paper's leaf retention is the mean of
        :attr:`retention` over problems; from samples it leaves out the problems with nothing
        found early, while exact probabilities give every problem a little, so the two differ.
        """
        present = ~np.isnan(self.early + self.retained)
        return float(_ratio(self.retained[present].sum(), self.early[present].sum()))


def survivors(early: Counts, late: Counts) -> Survivors:
    """Which problems have at least one right sample early, late, or both times.

    Raises:
        ValueError: for different problems or a different n, which would favour one checkpoint.
    """
    _check_same_plan(early, late)
    early_solved = sum_by_problem(early.counts, early.problem_of, early.problems) > 0
    late_solved = sum_by_problem(late.counts, late.problem_of, late.problems) > 0
    return Survivors(
        both=early_solved & late_solved,
        lost=early_solved & ~late_solved,
        gained=~early_solved & late_solved,
    )


def leaf_turnover(early: Outcomes, late: Outcomes, k: int) -> Turnover:
    """Expected numbers of leaves of each problem found with k samples early, late, both times.

    Raises:
        ValueError: if early and late do not list the same leaves, or for a k that pass@k refuses.
    """
    _check_same_leaves(early, late)
    found_early, found_late = reached(early, k), reached(late, k)
    rows = early.problem_of, early.problems
    return Turnover(
        early=sum_by_problem(found_early, *rows),
        late=sum_by_problem(found_late, *rows),
        retained=sum_by_problem(found_early * found_late, *rows),
    )


def problem_turnover(early: Outcomes, late: Outcomes, k: int) -> Turnover:
    """The probability that each problem is solved with k samples early, late, both times.

    Problem retention is the ``pooled_retention`` of the result: the share of early-solved
    problems that are solved late. NaN entries are problems without leaves.

    Raises:
        ValueError: for different numbers of problems, or a k that pass@k refuses.
    """
    _check_same_problems(early, late)
    solved_early, solved_late = pass_at_k(early, k), pass_at_k(late, k)
    return Turnover(early=solved_early, late=solved_late, retained=solved_early * solved_late)


def full_turnover(early: Counts, late: Counts) -> BoolArray:
    """(problems,) solved both times without one early leaf among the late ones.

    Raises:
        ValueError: if early and late do not list the same leaves, or for a different n.
    """
    _check_same_leaves(early, late)
    _check_same_plan(early, late)
    leaves = leaf_turnover(early, late, k=early.n)
    return np.asarray((leaves.early > 0) & (leaves.late > 0) & (leaves.retained == 0))


def _ratio(retained: FloatArray, early: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing was found early
        return np.asarray(retained / early)


def _check_same_problems(early: Outcomes, late: Outcomes) -> None:
    if early.problems != late.problems:
        raise ValueError(
            f"late: the same problems as early ({early.problems}); got {late.problems}"
        )


def _check_same_leaves(early: Outcomes, late: Outcomes) -> None:
    _check_same_problems(early, late)
    if not np.array_equal(early.problem_of, late.problem_of):
        raise ValueError("late: the same leaves in the same order as early; got a different list")


def _check_same_plan(early: Counts, late: Counts) -> None:
    _check_same_problems(early, late)
    if early.n != late.n:
        raise ValueError(f"late: as many samples as early, n = {early.n}; got {late.n}")
