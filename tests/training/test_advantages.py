import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.training.advantages import EPSILON, group_normalised


def test_one_right_of_n_by_hand():
    # One right of four: mean 1/4, population deviation sqrt(3)/4, so sqrt(3) and -1/sqrt(3).
    found = group_normalised([[0, 1, 0, 0]])
    assert found == pytest.approx(np.array([[-1, 3, -1, -1]]) / math.sqrt(3), rel=1e-5)
    # Of any n: sqrt(n - 1) for the right one.
    for n in (2, 16, 320):
        [[first, *rest]] = group_normalised([[1] + [0] * (n - 1)])
        assert first == pytest.approx(math.sqrt(n - 1), rel=1e-4)
        assert rest == pytest.approx([-1 / math.sqrt(n - 1)] * (n - 1), rel=1e-4)


def test_the_deviation_is_that_of_the_population():
    # Of (0, 2): deviation 1, not sqrt(2).
    assert group_normalised([[0, 2]]).tolist() == [[-1 / (1 + EPSILON), 1 / (1 + EPSILON)]]


def test_groups_are_apart():
    together = group_normalised([[0, 1, 0], [5, 5, 8], [1, 1, 1]])
    for row, rewards in zip(together, [[0, 1, 0], [5, 5, 8], [1, 1, 1]], strict=True):
        assert row.tolist() == group_normalised([rewards])[0].tolist()
    assert together[2].tolist() == [0, 0, 0]


@pytest.mark.parametrize("reward", [0, 1, -3, 0.1, 1 / 3, 1e100, 1e-300])
@pytest.mark.parametrize("n", [2, 3, 7, 16])
def test_equal_rewards_teach_nothing(reward, n):
    assert group_normalised([[reward] * n]).tolist() == [[0.0] * n]


def test_a_sample_without_a_score_takes_no_part():
    nan = math.nan
    [[missing, *rest]] = group_normalised([[nan, 1, 0, 1]])
    assert missing == 0
    assert rest == group_normalised([[1, 0, 1]])[0].tolist()
    # One scored sample, or none, leaves nothing to compare.
    assert group_normalised([[nan, 1], [nan, nan]]).tolist() == [[0, 0], [0, 0]]
    assert group_normalised([[nan, 0.1, 0.1, 0.1]]).tolist() == [[0] * 4]


@pytest.mark.parametrize(
    ("rewards", "shape"),
    [
        ([[1.0]], r"\(1, 1\)"),
        ([[1.0], [0.0]], r"\(2, 1\)"),
        ([1.0, 0.0], r"\(2,\)"),
        (1.0, r"\(\)"),
    ],
)
def test_a_group_of_one_is_refused(rewards, shape):
    with pytest.raises(
        ValueError, match=rf"^group_size: a group needs 2 samples or more, such as 16; .* {shape}"
    ):
        group_normalised(rewards)


groups = st.integers(2, 9).flatmap(
    lambda n: st.lists(
        st.lists(st.floats(-100, 100) | st.just(math.nan), min_size=n, max_size=n), min_size=1
    )
)


@given(groups)
def test_advantages_are_finite_centred_and_in_the_order_of_the_rewards(rewards):
    found = group_normalised(rewards)
    assert np.isfinite(found).all()
    assert found.sum(1) == pytest.approx(np.zeros(len(rewards)), abs=1e-6)
    assert (found**2).mean(1).max() <= 1 + 1e-9
    for row, advantages in zip(rewards, found, strict=True):
        scored = [(r, a) for r, a in zip(row, advantages, strict=True) if not math.isnan(r)]
        for (r1, a1), (r2, a2) in zip(sorted(scored), sorted(scored)[1:], strict=False):
            assert a1 <= a2
            assert (r1 == r2) <= (a1 == a2)


@given(groups, st.floats(0.5, 20), st.floats(-50, 50))
def test_scale_and_offset_of_the_reward_do_not_matter(rewards, scale, offset):
    values = np.round(np.array(rewards), 1)  # differences far above the small constant
    found = group_normalised(values)
    assert group_normalised(values * scale + offset) == pytest.approx(found, abs=1e-3)
