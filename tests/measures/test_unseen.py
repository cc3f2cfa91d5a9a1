from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.measures import (
    MISS,
    Counts,
    Exact,
    expected_unseen_mass,
    good_turing_unseen_mass,
)


def test_hand_worked_unseen_mass():
    counts = Counts.of([[1, 1, 3, 0], [5, 2], [1, 1, 1], [0, 0]], n=10)
    assert good_turing_unseen_mass(counts) == pytest.approx([0.2, 0, 0.3, 0])
    exact = Exact.of([[0.5, 0.25]])
    assert expected_unseen_mass(exact, 1) == pytest.approx([0.5 * 0.5 + 0.25 * 0.75])


def test_edges():
    assert good_turing_unseen_mass(Counts.of([[1, 1, 1]], n=3)).tolist() == [1.0]
    assert good_turing_unseen_mass(Counts.of([[1], [0]], n=1)).tolist() == [1.0, 0.0]
    assert expected_unseen_mass(Exact.of([[0.5, 0.25], [1.0]]), 0).tolist() == [0.75, 1.0]
    assert expected_unseen_mass(Exact.of([[1.0]]), 1).tolist() == [0.0]


def test_a_problem_without_leaves_is_missing():
    assert np.isnan(good_turing_unseen_mass(Counts.of([[]], n=4))).all()
    assert np.isnan(expected_unseen_mass(Exact.of([[]]), 4)).all()


def test_expected_unseen_mass_is_the_mean_over_every_sequence_of_samples():
    chances = {0: 0.5, 1: 0.2, MISS: 0.3}
    expected = 0.0
    for samples in product(chances, repeat=4):
        unseen = sum(chances[leaf] for leaf in {0, 1} - set(samples))
        expected += np.prod([chances[sample] for sample in samples]) * unseen
    assert expected_unseen_mass(Exact.of([[0.5, 0.2]]), 4) == pytest.approx([expected])


@given(st.floats(0, 0.5), st.floats(0, 0.5), st.integers(1, 5))
def test_good_turing_is_unbiased_for_one_sample_less(first, second, n):
    chances = {0: first, 1: second, MISS: 1 - first - second}
    mean = 0.0
    for samples in product(chances, repeat=n):
        counts = Counts.from_samples([samples], leaves=[2], n=n)
        chance = np.prod([chances[sample] for sample in samples])
        mean += chance * good_turing_unseen_mass(counts)[0]
    truth = expected_unseen_mass(Exact.of([[first, second]]), n - 1)
    assert mean == pytest.approx(truth[0], abs=1e-12)


@pytest.mark.parametrize("n", [-1, 1.5, True])
def test_impossible_numbers_of_samples_are_refused(n):
    with pytest.raises(ValueError, match=r"^n:"):
        expected_unseen_mass(Exact.of([[0.5]]), n)
