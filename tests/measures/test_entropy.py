from collections import Counter
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.measures import MISS, Counts, Exact, entropy, miller_madow_entropy


def test_hand_worked_entropies_in_nats():
    exact = Exact.of([[0.5, 0.5], [1.0], [0.5, 0.25, 0.25]])
    assert entropy(exact) == pytest.approx([log(2), 0, 1.5 * log(2)])
    assert entropy(Counts.of([[2, 2, 0]], n=4)) == pytest.approx([log(2)])


def test_hand_worked_miller_madow_correction():
    # Three entrances seen in 8 hits: (3 - 1) / (2 * 8) nats more than the plug-in.
    counts = Counts.of([[4, 2, 2, 0]], n=8)
    assert miller_madow_entropy(counts) == pytest.approx([1.5 * log(2) + 0.125])


def test_samples_without_an_entrance_are_outside_the_distribution():
    assert entropy(Counts.of([[3, 3]], n=100)) == pytest.approx([log(2)])
    assert miller_madow_entropy(Counts.of([[3, 3]], n=100)) == pytest.approx([log(2) + 1 / 12])
    assert entropy(Exact.of([[0.01, 0.01]])) == pytest.approx([log(2)])


def test_nothing_hit_is_missing():
    for outcomes in (Exact.of([[0.0], []]), Counts.of([[0], []], n=8)):
        assert np.isnan(entropy(outcomes)).all()
        assert np.isnan(miller_madow_entropy(outcomes)).all()


def test_certainty_is_plain_zero():
    assert not np.signbit(entropy(Exact.of([[1.0, 0.0]]))).any()


def test_exact_probabilities_need_no_correction():
    exact = Exact.of([[0.1, 0.7]])
    assert miller_madow_entropy(exact).tolist() == entropy(exact).tolist()


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(any))
def test_entropy_of_counts_is_that_of_the_list_of_labels(counts):
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    expected = -sum(
        count / len(labels) * log(count / len(labels)) for count in Counter(labels).values()
    )
    value = entropy(Counts.of([counts], n=300))[0]
    assert value == pytest.approx(expected, abs=1e-12)
    assert 0 <= value <= log(len(counts)) + 1e-12


def test_the_correction_removes_most_of_the_bias():
    """Over every sequence of 8 samples, weighed by its probability."""
    probabilities = [0.6, 0.4]
    n = 8
    plug_in = corrected = 0.0
    for labels in product(range(2), repeat=n):
        chance = np.prod([probabilities[label] for label in labels])
        counts = Counts.from_samples([labels], leaves=[2], n=n)
        plug_in += chance * entropy(counts)[0]
        corrected += chance * miller_madow_entropy(counts)[0]
    truth = entropy(Exact.of([probabilities]))[0]
    assert plug_in < truth
    assert abs(corrected - truth) < abs(plug_in - truth) / 4


def test_misses_do_not_become_an_entrance():
    samples = [0, 1, MISS, MISS]
    assert entropy(Counts.from_samples([samples], [2], 4)) == pytest.approx([log(2)])
