from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.measures import (
    Counts,
    Exact,
    exact_pass_at_k,
    pass_at_k,
    reached,
    unbiased_pass_at_k,
)


def test_hand_worked_estimates():
    # 4 samples, 1 right: 3 of the 6 pairs contain it. 2 right: 5 of 6. 3 right: every pair.
    assert unbiased_pass_at_k(4, [0, 1, 2, 3, 4], 2) == pytest.approx([0, 1 / 2, 5 / 6, 1, 1])


@pytest.mark.parametrize("n", range(1, 8))
def test_the_estimate_is_the_share_of_subsets_with_a_right_sample(n):
    for c, k in product(range(n + 1), range(1, n + 1)):
        subsets = list(combinations(range(n), k))
        with_a_right_one = sum(any(sample < c for sample in subset) for subset in subsets)
        expected = with_a_right_one / len(subsets)
        assert unbiased_pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-15)


@given(st.integers(1, 5000), st.data())
def test_the_estimate_is_accurate_for_thousands_of_samples(n, data):
    k = data.draw(st.integers(1, n))
    c = data.draw(st.integers(0, n))
    exact = 1 - Fraction(comb(n - c, k), comb(n, k))
    assert unbiased_pass_at_k(n, [c], k)[0] == pytest.approx(float(exact), rel=1e-11, abs=0)


@given(st.integers(1, 7), st.data(), st.floats(0, 1))
def test_the_estimate_is_unbiased(n, data, p):
    k = data.draw(st.integers(1, n))
    c = np.arange(n + 1)
    binomial = np.array([comb(n, right) * p**right * (1 - p) ** (n - right) for right in c])
    mean = binomial @ unbiased_pass_at_k(n, c, k)
    assert mean == pytest.approx(float(exact_pass_at_k(p, k)), abs=1e-12)


def test_hand_worked_exact_values():
    assert exact_pass_at_k([0, 0.5, 1], 2) == pytest.approx([0, 0.75, 1])


def test_tiny_probabilities_keep_their_digits():
    assert float(exact_pass_at_k(1e-18, 1000)) == pytest.approx(1e-15, rel=1e-12, abs=0)


def test_no_chance_is_plain_zero():
    """Never -0.0, which a table would print as "-0.000"."""
    assert not np.signbit(exact_pass_at_k(0.0, 3))
    assert not np.signbit(unbiased_pass_at_k(3, [0], 3)).any()


@given(st.floats(0, 1), st.integers(1, 50))
def test_exact_pass_at_k_agrees_with_the_formula_and_grows(p, k):
    value = float(exact_pass_at_k(p, k))
    assert value == pytest.approx(1 - (1 - p) ** k, abs=1e-12)
    assert 0 <= value <= float(exact_pass_at_k(p, k + 1)) <= 1


@pytest.mark.parametrize(("n", "c", "k"), [(2, 0, 5), (99, 0, 100), (16, [0, 3, 16], 32)])
def test_fewer_samples_than_k_is_refused_and_never_one(n, c, k):
    """Public case B11."""
    with pytest.raises(ValueError, match=f"^k: at most the number of samples, n = {n}"):
        unbiased_pass_at_k(n, c, k)


def test_one_problem_with_fewer_samples_among_others_is_refused():
    """Public case B11: n = 16 among problems with n = 64, k = 32."""
    with pytest.raises(ValueError, match=r"^n: one whole number"):
        unbiased_pass_at_k(np.array([64, 16, 64]), np.array([1, 0, 2]), 32)


@pytest.mark.parametrize(
    ("n", "c", "k", "named"),
    [
        (4, [5], 2, "c:"),
        (4, [-1], 2, "c:"),
        (4, [1.0], 2, "c:"),
        (4, [True], 2, "c:"),
        (4, ["1"], 2, "c:"),
        (4, [1], 0, "k:"),
        (4, [1], -1, "k:"),
        (4, [1], 2.0, "k:"),
        (4, [1], True, "k:"),
        (0, [0], 1, "n:"),
        (4.0, [1], 1, "n:"),
    ],
)
def test_impossible_estimates_are_refused_by_name(n, c, k, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        unbiased_pass_at_k(n, c, k)


@pytest.mark.parametrize(
    ("p", "k", "named"), [(-0.1, 1, "p:"), (1.1, 1, "p:"), (float("nan"), 1, "p:"), (0.5, 0, "k:")]
)
def test_impossible_probabilities_are_refused_by_name(p, k, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        exact_pass_at_k(p, k)


def test_a_problem_is_solved_through_any_of_its_leaves():
    exact = Exact.of([[0.1, 0.3], [0.5]])
    assert pass_at_k(exact, 2) == pytest.approx([1 - 0.6**2, 0.75])
    assert reached(exact, 2) == pytest.approx([1 - 0.9**2, 1 - 0.7**2, 0.75])
    counts = Counts.of([[1, 1], [1]], n=4)
    assert pass_at_k(counts, 2) == pytest.approx([5 / 6, 1 / 2])
    assert reached(counts, 2) == pytest.approx([1 / 2, 1 / 2, 1 / 2])


def test_a_problem_without_leaves_is_missing():
    for outcomes in (Exact.of([[], [0.5]]), Counts.of([[], [4]], n=8)):
        assert pass_at_k(outcomes, 1) == pytest.approx([np.nan, 0.5], nan_ok=True)


def test_counts_refuse_a_k_above_their_samples():
    with pytest.raises(ValueError, match=r"^k:"):
        pass_at_k(Counts.of([[0]], n=16), 32)
