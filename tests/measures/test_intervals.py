from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from companion.measures import Interval, clopper_pearson


def test_published_bounds_for_zero_of_512():
    """The paper's bound on the access of an absent family is one-sided."""
    assert clopper_pearson(0, 512, side="upper").high == pytest.approx(0.0058, abs=5e-5)
    assert clopper_pearson(0, 512).high == pytest.approx(0.0072, abs=5e-5)


def test_zero_and_all_successes_have_closed_forms():
    none = clopper_pearson(0, 20)
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 20))
    every = clopper_pearson(20, 20, side="lower", level=0.9)
    assert (every.value, every.high) == (1, 1)
    assert every.low == pytest.approx(0.1 ** (1 / 20))


@given(st.integers(1, 60), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
def test_each_bound_leaves_its_tail_of_the_binomial(trials, data, level):
    successes = data.draw(st.integers(0, trials))
    tail = (1 - level) / 2

    def at_least(p):
        return sum(
            comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(successes, trials + 1)
        )

    def at_most(p):
        return sum(comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(successes + 1))

    interval = clopper_pearson(successes, trials, level=level)
    if successes > 0:
        assert at_least(interval.low) == pytest.approx(tail)
    if successes < trials:
        assert at_most(interval.high) == pytest.approx(tail)


@pytest.mark.parametrize(
    ("side", "alternative"), [("both", "two-sided"), ("upper", "less"), ("lower", "greater")]
)
def test_agreement_with_scipy(side, alternative):
    ours = clopper_pearson(3, 17, side=side)
    theirs = stats.binomtest(3, 17, alternative=alternative).proportion_ci(0.95, method="exact")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_it_covers_at_least_its_level_for_every_probability():
    trials = 25
    intervals = [clopper_pearson(x, trials) for x in range(trials + 1)]
    for p in np.linspace(0.01, 0.99, 50):
        chance = stats.binom.pmf(np.arange(trials + 1), trials, p)
        covers = [interval.low <= p <= interval.high for interval in intervals]
        assert chance @ covers >= 0.95


@pytest.mark.parametrize(
    ("successes", "trials", "settings", "named"),
    [
        (0, 0, {}, "trials:"),
        (1, 2.0, {}, "trials:"),
        (-1, 5, {}, "successes:"),
        (6, 5, {}, "successes:"),
        (0.5, 5, {}, "successes:"),
        (1, 5, {"level": 95}, "level:"),
        (1, 5, {"level": float("nan")}, "level:"),
        (1, 5, {"side": "two-sided"}, "side:"),
    ],
)
def test_impossible_questions_are_refused_by_name(successes, trials, settings, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        clopper_pearson(successes, trials, **settings)


def test_an_interval_prints_what_it_rests_on():
    assert str(Interval(0.25, 0.125, 0.5, 58, 0.95, "bca")) == "0.250 [0.125, 0.500] (n = 58)"
    with_missing = Interval(0.25, 0.125, 0.5, 58, 0.95, "bca", missing=2)
    assert str(with_missing) == "0.250 [0.125, 0.500] (n = 58, 2 missing)"
