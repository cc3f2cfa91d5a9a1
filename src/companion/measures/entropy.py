"""Entropy: how evenly a policy spreads over the entrances of a problem, in nats."""

import numpy as np
from scipy.special import entr

from companion.measures.outcomes import Exact, FloatArray, Outcomes, sum_by_problem


def entropy(outcomes: Outcomes) -> FloatArray:
    """(problems,) Shannon entropy in nats, ``-sum of q log q`` (from counts: the plug-in).

    q is the share among the outcomes listed: samples that hit none of them are left out, so the
    value says how the policy chooses *given* that it chooses one of them. Counts give too small
    a value on average; see :func:`miller_madow_entropy`.

    NaN for a problem where nothing was hit.
    """
    total = sum_by_problem(outcomes.weights, outcomes.problem_of, outcomes.problems)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing was hit: NaN, as promised
        share = outcomes.weights / total[outcomes.problem_of]
    nats = sum_by_problem(entr(share), outcomes.problem_of, outcomes.problems)
    return np.where(total > 0, nats, np.nan)


def miller_madow_entropy(outcomes: Outcomes) -> FloatArray:
    """(problems,) plug-in entropy plus ``(m - 1) / 2N`` nats, the first-order bias (Miller 1955).

    m outcomes were seen among the N samples that hit any. Exact probabilities have no sampling
    bias and come back unchanged. The corrected value can exceed the logarithm of the number of
    outcomes. NaN for a problem where nothing was hit.
    """
    plug_in = entropy(outcomes)
    if isinstance(outcomes, Exact):
        return plug_in
    seen = sum_by_problem(outcomes.counts > 0, outcomes.problem_of, outcomes.problems)
    hits = sum_by_problem(outcomes.counts, outcomes.problem_of, outcomes.problems)
    return np.asarray(plug_in + (seen - 1) / (2 * np.maximum(hits, 1)))
