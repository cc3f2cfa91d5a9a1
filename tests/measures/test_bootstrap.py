import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from companion.measures import Bootstrap, bootstrap

# Binary fractions, so that sums are exact and another order of adding cannot break a tie.
VALUES = np.array([0.0, 0.125, 0.125, 0.25, 0.375, 0.5, 0.5, 0.875, 1.0, 4.0])
OTHER = np.array([0.25, 0.25, 0.125, 1.0, 0.75, 0.75, 0.5, 1.25, 0.875, 3.0])


def bounds(interval):
    return interval.low, interval.high


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_mean_equals_scipys(method, level):
    ours = Bootstrap(seed=3, level=level, method=method).mean(VALUES)
    theirs = stats.bootstrap(
        (VALUES,),
        np.mean,
        n_resamples=10_000,
        confidence_level=level,
        method=method,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert ours.value == VALUES.mean()
    assert bounds(ours) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_ratio_equals_scipys_paired_bootstrap(method):
    ours = Bootstrap(seed=3, method=method).ratio(VALUES, OTHER)
    theirs = stats.bootstrap(
        (VALUES, OTHER),
        lambda above, below, axis: above.sum(axis=axis) / below.sum(axis=axis),
        paired=True,
        n_resamples=10_000,
        method=method,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert ours.value == VALUES.sum() / OTHER.sum()
    assert bounds(ours) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def quantiles_of_every_resample(above, below):
    """The 80% percentile bounds over all resamples of a few problems, listed one by one."""
    every = [
        above[list(resample)].sum() / below[list(resample)].sum()
        for resample in product(range(above.size), repeat=above.size)
    ]
    return np.quantile(every, [0.1, 0.9], method="inverted_cdf")


def test_percentiles_are_those_of_the_complete_set_of_resamples():
    values = np.array([0.0, 1.0, 5.0])
    ours = Bootstrap(seed=1, level=0.8, method="percentile").mean(values)
    assert bounds(ours) == pytest.approx(quantiles_of_every_resample(values, np.ones(3)))


def test_a_paired_difference_keeps_the_problems_of_both_arms_together():
    """Arms that differ by a constant have no uncertainty, however far the problems spread."""
    ours = Bootstrap(seed=0).difference(VALUES, VALUES + 0.25)
    assert (ours.value, ours.low, ours.high) == pytest.approx((0.25, 0.25, 0.25))


def test_a_paired_ratio_keeps_the_problems_of_both_arms_together():
    ours = Bootstrap(seed=0).ratio(0.4 * OTHER, OTHER)
    assert (ours.value, ours.low, ours.high) == pytest.approx((0.4, 0.4, 0.4))


def test_the_difference_is_after_minus_before():
    assert Bootstrap(seed=0).difference([0.1, 0.2], [0.4, 0.3]).value == pytest.approx(0.2)


ROWS = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
PROBLEM_OF = np.array([0, 0, 0, 0, 1, 3])


def test_pooled_rows_weigh_alike_and_means_of_means_weigh_problems_alike():
    settings = Bootstrap(seed=0)
    pooled = settings.pooled(ROWS, PROBLEM_OF, problems=4)
    assert (pooled.value, pooled.n, pooled.missing) == (pytest.approx(4 / 6), 3, 1)
    means = settings.mean_of_means(ROWS, PROBLEM_OF, problems=4)
    assert (means.value, means.n, means.missing) == (pytest.approx(1.75 / 3), 3, 1)


def test_copies_of_a_row_do_not_narrow_a_clustered_interval():
    """Fifty equal rows of a problem know no more than one."""
    problem_of = np.repeat(np.arange(VALUES.size), 50)
    rows = VALUES[problem_of]
    settings = Bootstrap(seed=4)
    once = settings.mean(VALUES)
    for clustered in (settings.pooled, settings.mean_of_means):
        repeated = clustered(rows, problem_of, problems=VALUES.size)
        assert bounds(repeated) == pytest.approx(bounds(once))
        assert repeated.n == VALUES.size


def test_rows_of_a_problem_are_resampled_together():
    rows = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    problem_of = np.array([0, 1, 1, 1, 2])
    ours = Bootstrap(seed=1, level=0.8, method="percentile").pooled(rows, problem_of, problems=3)
    expected = quantiles_of_every_resample(np.array([1.0, 2.0, 0.0]), np.array([1, 3, 1]))
    assert bounds(ours) == pytest.approx(expected)


def test_missing_problems_are_left_out_and_counted():
    nan = float("nan")
    settings = Bootstrap(seed=2)
    assert settings.mean([*VALUES, nan, nan]) == replace(settings.mean(VALUES), missing=2)
    paired = settings.difference([0.1, nan, 0.3, 0.2], [0.2, 0.5, nan, 0.6])
    assert (paired.value, paired.n, paired.missing) == (pytest.approx(0.25), 2, 2)


def test_a_problem_that_is_zero_in_both_says_nothing_about_a_ratio():
    """Retention: problems with nothing found early are missing; with a gain only they are not."""
    ours = Bootstrap(seed=2).ratio([1.0, 0.0, 0.0, 2.0], [1.0, 1.0, 0.0, 0.0])
    assert (ours.value, ours.n, ours.missing) == (pytest.approx(1.5), 3, 1)


def test_no_problem_has_neither_value_nor_bounds():
    for values in ([], [float("nan")]):
        ours = Bootstrap(seed=0).mean(values)
        assert np.isnan([ours.value, ours.low, ours.high]).all()
        assert (ours.n, ours.missing) == (0, len(values))


def test_one_problem_has_a_value_and_no_bounds():
    ours = Bootstrap(seed=0).mean([0.3])
    assert ours.value == 0.3
    assert np.isnan([ours.low, ours.high]).all()


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_equal_problems_have_bounds_equal_to_the_value(method):
    ours = Bootstrap(seed=0, method=method).mean([0.1] * 7)
    assert (ours.low, ours.high) == (ours.value, ours.value)


@pytest.mark.filterwarnings("error")
def test_a_ratio_without_a_denominator_has_no_bounds():
    ours = Bootstrap(seed=0).ratio([1.0, 2.0], [0.0, 0.0])
    assert np.isinf(ours.value)
    assert np.isnan([ours.low, ours.high]).all()


@pytest.mark.filterwarnings("error")
def test_a_rare_resample_without_a_denominator_does_not_spoil_the_bounds():
    """(7/8)^8, a third of the resamples, miss the only denominator; then the upper bound goes."""
    rare = Bootstrap(seed=0, method="percentile").ratio(np.ones(8), [1.0, *[0.0] * 7])
    assert np.isfinite(rare.low)
    assert not np.isfinite(rare.high)
    most = Bootstrap(seed=0, method="percentile").ratio(np.ones(8), [*[1.0] * 5, 0, 0, 0])
    assert np.isfinite([most.low, most.high]).all()


@pytest.mark.parametrize(
    "tenths", [[0.1, 0.1, 0.2, 0.3, 0.3, 0.6, 0.7], [-0.3, -0.3, -0.1, 0.1, 0.2, 0.4]]
)
def test_rounding_does_not_decide_the_bias(tenths):
    """Tenths do not add up exactly; the same values times ten do."""
    tenths = np.array(tenths)
    ours = Bootstrap(seed=4).mean(tenths)
    exact = Bootstrap(seed=4).mean(np.round(10 * tenths))
    assert bounds(ours) == pytest.approx((exact.low / 10, exact.high / 10), rel=1e-9)


def test_the_seed_decides_the_interval():
    assert Bootstrap(seed=1).mean(VALUES) == Bootstrap(seed=1).mean(VALUES)
    assert bounds(Bootstrap(seed=1).mean(VALUES)) != bounds(Bootstrap(seed=2).mean(VALUES))


@pytest.mark.parametrize("entries", [1, 7, 64, 12_345])
def test_the_size_of_the_chunks_changes_no_bit(monkeypatch, entries):
    whole = Bootstrap(seed=6, draws=999).ratio(VALUES, OTHER)
    monkeypatch.setattr(bootstrap, "ENTRIES_AT_ONCE", entries)
    assert Bootstrap(seed=6, draws=999).ratio(VALUES, OTHER) == whole


def test_memory_stays_bounded_for_many_problems():
    """2,000 draws of 20,000 problems at once would hold more than 900 MB."""
    values = np.random.default_rng(0).random(20_000)
    tracemalloc.start()
    Bootstrap(seed=0, draws=2_000).mean(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_contain_the_truth_about_as_often_as_they_say(method):
    """Nominal 95% on 600 worlds of 40 exponential values (mean 1): skewed, so a little under."""
    worlds = np.random.default_rng(11).exponential(size=(600, 40))
    intervals = [
        Bootstrap(seed=index, method=method, draws=500).mean(world)
        for index, world in enumerate(worlds)
    ]
    share = np.mean([interval.low <= 1 <= interval.high for interval in intervals])
    assert 0.89 < share < 0.97


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=30),
    st.floats(-5, 5),
    st.sampled_from([0.25, 4.0]),
    st.integers(0, 9),
)
def test_bounds_enclose_resampled_means_and_follow_shift_and_scale(values, shift, scale, seed):
    values = np.array(values)
    settings = Bootstrap(seed=seed, method="percentile", draws=300)
    plain = settings.mean(values)
    assert values.min() - 1e-12 <= plain.low <= plain.high <= values.max() + 1e-12
    moved = settings.mean(values * scale + shift)
    assert bounds(moved) == pytest.approx(
        (plain.low * scale + shift, plain.high * scale + shift), abs=1e-9
    )


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"seed": -1}, "seed:"),
        ({"seed": None}, "seed:"),
        ({"seed": 0, "level": 1.0}, "level:"),
        ({"seed": 0, "draws": 0}, "draws:"),
        ({"seed": 0, "method": "BCa"}, "method:"),
    ],
)
def test_impossible_settings_are_refused_by_name(settings, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        Bootstrap(**settings)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda b: b.mean([[0.1, 0.2]]), "values:"),
        (lambda b: b.mean([0.1, float("inf")]), "values:"),
        (lambda b: b.difference([0.1, 0.2], [0.1]), "after:"),
        (lambda b: b.ratio([0.1, 0.2], [0.1]), "denominator:"),
        (lambda b: b.pooled([0.1, float("nan")], np.array([0, 0]), 1), "values:"),
        (lambda b: b.pooled([0.1, 0.2], np.array([0]), 1), "problem_of:"),
        (lambda b: b.mean_of_means([0.1], np.array([1]), 1), "problem_of:"),
    ],
)
def test_impossible_values_are_refused_by_name(call, named):
    with pytest.raises(ValueError, match=f"^{named}"):
        call(Bootstrap(seed=0))
