from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.measures import MISS, Counts, Exact, average, coverage, pass_at_k


def test_one_list_for_each_problem_becomes_flat_rows():
    counts = Counts.of([[3, 0], [], [5]], n=8)
    assert counts.counts.tolist() == [3, 0, 5]
    assert counts.problem_of.tolist() == [0, 0, 2]
    assert (counts.problems, counts.n) == (3, 8)


def test_a_matrix_with_one_row_for_each_problem_is_accepted():
    assert Exact.of(np.array([[0.1, 0.2], [0.3, 0.4]])).problem_of.tolist() == [0, 0, 1, 1]


def test_samples_are_counted_leaf_by_leaf_and_misses_stay_in_n():
    counts = Counts.from_samples([[0, 2, MISS, 2], [MISS] * 4], leaves=[3, 2], n=4)
    assert counts.counts.tolist() == [1, 0, 2, 0, 0]
    assert counts.n == 4


def test_no_sample_is_collapsed_before_the_metric():
    """Public case B13: only sample 5 of 8 is right."""
    hits = np.full((1, 8), MISS)
    hits[0, 5] = 0
    counts = Counts.from_samples(hits, leaves=[1], n=8)
    assert pass_at_k(counts, 8).tolist() == [1.0]
    assert pass_at_k(counts, 1).tolist() == [0.125]


def test_unparseable_samples_count_as_wrong():
    """Public case B49: 60 of 64 samples are unparseable and the other 4 are right."""
    counts = Counts.from_samples([[0] * 4 + [MISS] * 60], leaves=[1], n=64)
    assert pass_at_k(counts, 1)[0] == pytest.approx(4 / 64)
    assert pass_at_k(counts, 8)[0] == pytest.approx(1 - comb(60, 8) / comb(64, 8))


@pytest.mark.parametrize("left", [4, 63, 65])
def test_samples_that_were_filtered_or_added_are_refused(left):
    with pytest.raises(ValueError, match="64 samples were planned"):
        Counts.from_samples([[MISS] * 64, [0] * left], leaves=[1, 1], n=64)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Counts.of([[1]], n=0), "n:"),
        (lambda: Counts.of([[1]], n=8.0), "n:"),
        (lambda: Counts.of([[1]], n=True), "n:"),
        (lambda: Counts.of([[1], [2]], n=np.array([8, 16])), "n:"),
        (lambda: Counts.of([[-1]], n=8), "counts:"),
        (lambda: Counts.of([[9]], n=8), "counts:"),
        (lambda: Counts.of([[5, 4]], n=8), "counts:"),
        (lambda: Counts.of([[1.0]], n=8), "counts:"),
        (lambda: Counts.of([[True]], n=8), "counts:"),
        (lambda: Counts.of([3, 5], n=8), "per_problem:"),
        (lambda: Counts(np.array([1, 2]), np.array([0]), 1, 8), "problem_of:"),
        (lambda: Counts(np.array([1]), np.array([1]), 1, 8), "problem_of:"),
        (lambda: Counts(np.array([1]), np.array([0]), -1, 8), "problems:"),
        (lambda: Exact.of([[-0.1]]), "probabilities:"),
        (lambda: Exact.of([[float("nan")]]), "probabilities:"),
        (lambda: Exact.of([[0.6, 0.5]]), "probabilities:"),
        (lambda: Counts.from_samples([[0]], leaves=[1, 1], n=1), "leaves:"),
        (lambda: Counts.from_samples([[1]], leaves=[1], n=1), "hits:"),
        (lambda: Counts.from_samples([[-2]], leaves=[1], n=1), "hits:"),
        (lambda: Counts.from_samples([[0]], leaves=[0], n=1), "hits:"),
    ],
)
def test_impossible_outcomes_are_refused_by_name(make, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        make()


def test_a_sum_a_rounding_error_above_one_is_certainty():
    assert pass_at_k(Exact.of([[0.5, 0.5 + 1e-7]]), 3).tolist() == [1.0]
    assert coverage(Exact.of([[1 + 1e-7]]), 3).tolist() == [1.0]


def test_the_average_says_how_many_problems_it_leaves_out():
    result = average([0.5, float("nan"), 1.0])
    assert (result.value, result.problems, result.missing) == (0.75, 2, 1)


def test_the_average_of_no_problem_is_missing():
    result = average([float("nan")])
    assert np.isnan(result.value)
    assert (result.problems, result.missing) == (0, 1)


@given(
    st.lists(st.lists(st.floats(0, 0.1), max_size=5), max_size=6),
    st.integers(1, 400),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter(per_problem, k, random):
    exact = Exact.of(per_problem)
    order = list(range(exact.problem_of.size))
    random.shuffle(order)
    order = np.array(order, dtype=int)
    shuffled = Exact(exact.probabilities[order], exact.problem_of[order], exact.problems)
    for measure in (coverage, pass_at_k):
        assert measure(shuffled, k) == pytest.approx(measure(exact, k), nan_ok=True)
