from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.measures import MISS, Counts, Exact, coverage, family_coverage, pass_at_k


def test_hand_worked_exact_coverage():
    # Two leaves of 0.5 and 0.25 with two samples: (0.75 + 0.4375) / 2.
    assert coverage(Exact.of([[0.5, 0.25]]), 2) == pytest.approx([0.59375])


def test_all_samples_drawn_coverage_is_the_share_of_leaves_seen():
    assert coverage(Counts.of([[310, 1, 0, 0], [0]], n=320), 320).tolist() == [0.5, 0.0]


def test_exact_coverage_is_the_expected_share_over_every_sequence_of_samples():
    probabilities = {0: 0.5, 1: 0.2, MISS: 0.3}
    expected = 0.0
    for samples in product(probabilities, repeat=4):
        chance = np.prod([probabilities[sample] for sample in samples])
        expected += chance * len(set(samples) - {MISS}) / 2
    assert coverage(Exact.of([[0.5, 0.2]]), 4) == pytest.approx([expected])


@given(st.lists(st.integers(MISS, 2), min_size=1, max_size=7), st.data())
def test_estimated_coverage_is_the_mean_over_all_subsets_of_the_samples(samples, data):
    n = len(samples)
    k = data.draw(st.integers(1, n))
    subsets = list(combinations(samples, k))
    expected = np.mean([len(set(subset) - {MISS}) / 3 for subset in subsets])
    counts = Counts.from_samples([samples], leaves=[3], n=n)
    assert coverage(counts, k) == pytest.approx([expected], abs=1e-12)


def test_a_problem_without_leaves_is_missing_not_zero():
    for outcomes in (Exact.of([[0.5], []]), Counts.of([[8], []], n=8)):
        values = coverage(outcomes, 1)
        assert np.isnan(values).tolist() == [False, True]


def test_family_coverage_counts_the_families_of_right_samples():
    # Two leaves behind the first entrance, one behind the second; both hits are behind the first.
    entrance_of_leaf = {0: 0, 1: 0, 2: 1, MISS: MISS}
    samples = [0, 1, MISS, MISS]
    families = Counts.from_samples([[entrance_of_leaf[leaf] for leaf in samples]], [2], n=4)
    leaves = Counts.from_samples([samples], [3], n=4)
    assert family_coverage(families, 4).tolist() == [0.5]
    assert coverage(leaves, 4) == pytest.approx([2 / 3])


@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=5), st.integers(1, 500))
def test_coverage_grows_with_k_and_never_exceeds_pass_at_k(leaves, k):
    exact = Exact.of([leaves])
    assert 0 <= coverage(exact, k)[0] <= coverage(exact, k + 1)[0] <= 1
    assert coverage(exact, k)[0] <= pass_at_k(exact, k)[0] + 1e-12


def test_one_call_serves_every_problem():
    generator = np.random.default_rng(5)
    per_problem = [generator.random(size) / 10 for size in (3, 1, 0, 7)]
    together = coverage(Exact.of(per_problem), 20)
    alone = [coverage(Exact.of([leaves]), 20)[0] for leaves in per_problem]
    assert together == pytest.approx(alone, nan_ok=True)


def test_counts_refuse_a_k_above_their_samples():
    with pytest.raises(ValueError, match=r"^k:"):
        coverage(Counts.of([[0]], n=64), 320)
