"""The formulas of the book, in numpy: pass@k, coverage, entropy, retention, unseen mass, intervals.

A measure takes :class:`Exact` probabilities or :class:`Counts` of samples and returns one number
for each problem, NaN where a problem has none. :class:`Bootstrap` turns those into an
:class:`Interval` over problems.
"""

from companion.measures.bootstrap import Bootstrap
from companion.measures.coverage import coverage, family_coverage
from companion.measures.entropy import entropy, miller_madow_entropy
from companion.measures.intervals import Interval, clopper_pearson
from companion.measures.outcomes import MISS, Average, Counts, Exact, Outcomes, average
from companion.measures.pass_at_k import exact_pass_at_k, pass_at_k, reached, unbiased_pass_at_k
from companion.measures.retention import (
    Survivors,
    Turnover,
    full_turnover,
    leaf_turnover,
    problem_turnover,
    survivors,
)
from companion.measures.unseen import expected_unseen_mass, good_turing_unseen_mass

__all__ = [
    "MISS",
    "Average",
    "Bootstrap",
    "Counts",
    "Exact",
    "Interval",
    "Outcomes",
    "Survivors",
    "Turnover",
    "average",
    "clopper_pearson",
    "coverage",
    "entropy",
    "exact_pass_at_k",
    "expected_unseen_mass",
    "family_coverage",
    "full_turnover",
    "good_turing_unseen_mass",
    "leaf_turnover",
    "miller_madow_entropy",
    "pass_at_k",
    "problem_turnover",
    "reached",
    "survivors",
    "unbiased_pass_at_k",
]
