"""pass@k: the probability that at least one of k samples is right."""

import numpy as np
from numpy.typing import ArrayLike

from companion.measures._checks import whole_number, whole_numbers
from companion.measures.outcomes import (
    Exact,
    FloatArray,
    Outcomes,
    missing_without_rows,
    sum_by_problem,
)


def exact_pass_at_k(p: ArrayLike, k: int) -> FloatArray:
    """``1 - (1 - p)^k`` for success probabilities p of any shape.

    Raises:
        ValueError: for k below 1 or not whole, or a p outside 0 to 1.
    """
    k = whole_number("k", k, at_least=1)
    p = np.asarray(p, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p: probabilities, each 0 to 1; got one outside or NaN")
    with np.errstate(divide="ignore"):  # log1p(-1) is -inf, and 1 - exp(-inf) is 1
        return np.asarray(-np.expm1(k * np.log1p(-p)))


def unbiased_pass_at_k(n: int, c: ArrayLike, k: int) -> FloatArray:
    """``1 - C(n - c, k) / C(n, k)``: the share of all k-subsets of n samples with a right one.

    The estimator of arXiv 2107.03374, unbiased for ``1 - (1 - p)^k`` when n samples are
    independent. It is undefined for k > n, where the textbook code returns 1.

    Args:
        n: samples of every problem.
        c: right samples, of any shape.
        k: at most n.

    Raises:
        ValueError: for n or k below 1 or k above n, a c outside 0 to n, or any not whole.
    """
    n = whole_number("n", n, at_least=1)
    k = whole_number("k", k, at_least=1)
    c = whole_numbers("c", c, at_most=n)
    if k > n:
        raise ValueError(f"k: at most the number of samples, n = {n}; got {k}")
    # The c-th right sample multiplies the chance of k wrong ones by 1 - k / (n - c + 1); with
    # more than n - k right it is zero. All terms have one sign, so the sum of logs is accurate.
    log_all_wrong = np.full(n + 1, -np.inf)
    log_all_wrong[0] = 0
    log_all_wrong[1 : n - k + 1] = np.cumsum(np.log1p(-k / np.arange(n, k, -1)))
    return np.asarray((0.0 - np.expm1(log_all_wrong))[c])


def reached(outcomes: Outcomes, k: int) -> FloatArray:
    """(leaves,) the probability that at least one of k samples hits each leaf: its own pass@k.

    At k = n counts give 1 for a leaf that was seen and 0 for one that was not.

    Raises:
        ValueError: for k below 1 or not whole, or above the n of the counts.
    """
    if isinstance(outcomes, Exact):
        return exact_pass_at_k(outcomes.probabilities, k)
    return unbiased_pass_at_k(outcomes.n, outcomes.counts, k)


def pass_at_k(outcomes: Outcomes, k: int) -> FloatArray:
    """(problems,) pass@k of each problem; a sample is right if it hits any of its leaves.

    NaN for a problem without leaves: it cannot be solved, and says nothing about the policy.

    Raises:
        ValueError: for k below 1 or not whole, or above the n of the counts.
    """
    total = sum_by_problem(outcomes.weights, outcomes.problem_of, outcomes.problems)
    if isinstance(outcomes, Exact):
        solved = exact_pass_at_k(np.minimum(total, 1), k)
    else:
        solved = unbiased_pass_at_k(outcomes.n, total.astype(np.int64), k)
    return missing_without_rows(solved, outcomes.problem_of)
