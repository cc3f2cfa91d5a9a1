"""Unseen mass: the probability that the next sample hits a leaf that no sample has hit yet."""

import numpy as np

from companion.measures._checks import whole_number
from companion.measures.outcomes import (
    Counts,
    Exact,
    FloatArray,
    missing_without_rows,
    sum_by_problem,
)


def good_turing_unseen_mass(leaves: Counts) -> FloatArray:
    """(problems,) leaves seen exactly once / n: the Good–Turing estimate (Good 1953).

    Its expectation is :func:`expected_unseen_mass` after n - 1 samples. n counts every sample,
    wrong ones too, so the estimate is a share of all draws and not of the right ones.

    Edge cases: 0 where no leaf was seen once, which does not prove that none is left (no right
    sample at all also gives 0: bound it with Clopper–Pearson); 1 where every sample hit a leaf of
    its own; above 0 even where all leaves are seen, because it does not know how many exist.
    NaN for a problem without leaves.
    """
    once = sum_by_problem(leaves.counts == 1, leaves.problem_of, leaves.problems)
    return missing_without_rows(once / leaves.n, leaves.problem_of)


def expected_unseen_mass(leaves: Exact, n: int) -> FloatArray:
    """(problems,) ``sum of p (1 - p)^n``: the expected unseen mass after n samples.

    NaN for a problem without leaves.

    Raises:
        ValueError: for n below 0 or not whole.
    """
    n = whole_number("n", n, at_least=0)
    p = leaves.probabilities
    unseen = sum_by_problem(p * np.power(1 - p, n), leaves.problem_of, leaves.problems)
    return missing_without_rows(unseen, leaves.problem_of)
