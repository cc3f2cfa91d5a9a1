"""Coverage: how much of a problem's solution space k samples reach."""

from companion.measures.outcomes import FloatArray, Outcomes, mean_by_problem
from companion.measures.pass_at_k import reached


def coverage(leaves: Outcomes, k: int) -> FloatArray:
    """(problems,) solution coverage at k: the mean over a problem's leaves of their pass@k.

    It is the expected share of the solution space among k samples. From counts at k = n it is
    the share of the leaves that were seen (paper, section on the trade-off).

    NaN for a problem without leaves (the reference code counts it as 0).

    Raises:
        ValueError: for k below 1 or not whole, or above the n of the counts.
    """
    return mean_by_problem(reached(leaves, k), leaves.problem_of, leaves.problems)


def family_coverage(families: Outcomes, k: int) -> FloatArray:
    """(problems,) the share of a problem's feasible families that k samples *solve* through.

    A family is hit by a sample that begins with its entrance and is right; a wrong answer opens
    no door (the reference code counts wrong answers too). NaN for a problem without families.

    Raises:
        ValueError: for k below 1 or not whole, or above the n of the counts.
    """
    return coverage(families, k)
