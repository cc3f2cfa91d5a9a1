from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.measures import (
    MISS,
    Counts,
    Exact,
    average,
    full_turnover,
    leaf_turnover,
    problem_turnover,
    survivors,
)

# Problem 0 keeps one leaf of two and gains one; 1 swaps its only leaf; 2 is lost; 3 is gained;
# 4 is never solved; 5 has no leaf.
EARLY = Counts.of([[3, 1, 0], [2, 0], [1], [0], [0], []], n=4)
LATE = Counts.of([[1, 0, 3], [0, 4], [0], [4], [0], []], n=4)
TWO_LEAVES = Counts.of([[1, 1]], n=4)


def test_hand_worked_survivor_sets():
    sets = survivors(EARLY, LATE)
    assert np.flatnonzero(sets.both).tolist() == [0, 1]
    assert np.flatnonzero(sets.lost).tolist() == [2]
    assert np.flatnonzero(sets.gained).tolist() == [3]


def test_hand_worked_leaf_turnover():
    leaves = leaf_turnover(EARLY, LATE, k=4)
    assert leaves.early.tolist() == [2, 1, 1, 0, 0, 0]
    assert leaves.late.tolist() == [2, 1, 0, 1, 0, 0]
    assert leaves.retained.tolist() == [1, 0, 0, 0, 0, 0]
    assert leaves.lost.tolist() == [1, 1, 1, 0, 0, 0]
    assert leaves.gained.tolist() == [1, 1, 0, 1, 0, 0]
    assert leaves.retention == pytest.approx([0.5, 0, 0, np.nan, np.nan, np.nan], nan_ok=True)
    mean = average(leaves.retention)
    assert (mean.value, mean.problems, mean.missing) == (pytest.approx(1 / 6), 3, 3)
    assert leaves.pooled_retention == pytest.approx(1 / 4)


def test_hand_worked_problem_turnover():
    problems = problem_turnover(EARLY, LATE, k=4)
    assert problems.early == pytest.approx([1, 1, 1, 0, 0, np.nan], nan_ok=True)
    assert problems.retained == pytest.approx([1, 1, 0, 0, 0, np.nan], nan_ok=True)
    assert problems.pooled_retention == pytest.approx(2 / 3)


def test_full_turnover_is_solved_both_times_without_a_common_leaf():
    assert full_turnover(EARLY, LATE).tolist() == [False, True, False, False, False, False]


def test_hand_worked_exact_turnover():
    early, late = Exact.of([[0.5, 0.5]]), Exact.of([[0.5, 0.0]])
    leaves = leaf_turnover(early, late, k=1)
    assert (leaves.early[0], leaves.retained[0], leaves.retention[0]) == (1.0, 0.25, 0.25)
    assert problem_turnover(early, late, k=1).pooled_retention == pytest.approx(0.5)


def test_exact_turnover_is_the_mean_over_every_pair_of_sample_sequences():
    early_chance = {0: 0.5, 1: 0.2, MISS: 0.3}
    late_chance = {0: 0.1, 1: 0.8, MISS: 0.1}
    n = 3
    expected = np.zeros(3)
    solved = np.zeros(2)
    for early in product(early_chance, repeat=n):
        for late in product(late_chance, repeat=n):
            chance = np.prod([early_chance[s] for s in early] + [late_chance[s] for s in late])
            first, second = set(early) - {MISS}, set(late) - {MISS}
            expected += chance * np.array([len(first), len(second), len(first & second)])
            solved += chance * np.array([bool(first), bool(first) and bool(second)])
    exact = Exact.of([[0.5, 0.2]]), Exact.of([[0.1, 0.8]])
    leaves = leaf_turnover(*exact, k=n)
    assert [leaves.early[0], leaves.late[0], leaves.retained[0]] == pytest.approx(expected)
    problems = problem_turnover(*exact, k=n)
    assert [problems.early[0], problems.retained[0]] == pytest.approx(solved)


hits = st.lists(
    st.lists(st.tuples(st.booleans(), st.booleans()), max_size=5), min_size=1, max_size=8
)


@given(hits)
def test_turnover_of_samples_is_set_arithmetic(problems):
    """Every seen leaf has one hit, so n = 5 samples suffice."""
    early = Counts.of([[int(leaf[0]) for leaf in problem] for problem in problems], n=5)
    late = Counts.of([[int(leaf[1]) for leaf in problem] for problem in problems], n=5)
    leaves = leaf_turnover(early, late, k=5)
    sets = survivors(early, late)
    turned = full_turnover(early, late)
    for index, problem in enumerate(problems):
        first = {number for number, leaf in enumerate(problem) if leaf[0]}
        second = {number for number, leaf in enumerate(problem) if leaf[1]}
        assert leaves.retained[index] == len(first & second)
        assert leaves.lost[index] == len(first - second)
        assert leaves.gained[index] == len(second - first)
        assert sets.both[index] == (bool(first) and bool(second))
        assert sets.lost[index] == (bool(first) and not second)
        assert sets.gained[index] == (bool(second) and not first)
        assert turned[index] == (bool(first) and bool(second) and not first & second)


def test_nothing_found_early_is_missing():
    nothing = Counts.of([[0, 0]], n=4)
    leaves = leaf_turnover(nothing, TWO_LEAVES, k=4)
    assert np.isnan(leaves.retention).all()
    assert np.isnan(leaves.pooled_retention)


@pytest.mark.parametrize("measure", [survivors, full_turnover])
def test_different_numbers_of_samples_are_refused(measure):
    with pytest.raises(ValueError, match=r"^late: as many samples as early, n = 4; got 2048"):
        measure(TWO_LEAVES, Counts.of([[1, 1]], n=2048))


@pytest.mark.parametrize("measure", [leaf_turnover, problem_turnover])
def test_different_problems_are_refused(measure):
    with pytest.raises(ValueError, match=r"^late: the same problems"):
        measure(Exact.of([[0.5], [0.5]]), Exact.of([[0.5]]), k=1)


def test_different_leaves_are_refused():
    with pytest.raises(ValueError, match=r"^late: the same leaves"):
        leaf_turnover(Exact.of([[0.5], [0.5]]), Exact.of([[0.5, 0.1], [0.5]]), k=1)
