import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from companion.policies.decoding import HEAD, ROUNDING, Decoding, log_probabilities

NEVER = -math.inf


def probabilities(logits, temperature=1.0, top_p=1.0):
    """What is drawn, as a plain list of probabilities."""
    decoding = Decoding(temperature, top_p, max_tokens=1)
    return log_probabilities(torch.as_tensor(logits), decoding).exp().numpy()


def oracle(logits, temperature, top_p):
    """One row, token by token: the likeliest first, of equals the lowest id."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    p = np.exp(scaled - scaled.max())
    p /= p.sum()
    kept, reached = [], 0.0
    for token in sorted(range(len(p)), key=lambda token: (-p[token], token)):
        if reached >= top_p:
            break
        kept.append(token)
        reached += p[token]
    result = np.zeros(len(p))
    result[kept] = p[kept] / p[kept].sum()
    return result


LOGS = np.log(np.array([0.1, 0.4, 0.2, 0.3], dtype=np.float32))


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [
        (0.05, [0, 1, 0, 0]),
        (0.39, [0, 1, 0, 0]),
        (0.41, [0, 4 / 7, 0, 3 / 7]),
        (0.69, [0, 4 / 7, 0, 3 / 7]),
        (0.71, [0, 4 / 9, 2 / 9, 3 / 9]),
        (0.91, [0.1, 0.4, 0.2, 0.3]),
        (1.0, [0.1, 0.4, 0.2, 0.3]),
    ],
)
def test_hand_worked_nuclei(top_p, kept):
    assert probabilities(LOGS, top_p=top_p) == pytest.approx(kept, abs=1e-6)


@pytest.mark.parametrize(
    ("p", "top_p", "kept"),
    [
        ([1 / 4] * 4, 0.5, 2),
        ([1 / 2, 1 / 4, 1 / 8, 1 / 8], 0.75, 2),
        ([0.4, 0.3, 0.2, 0.1], 0.9, 3),
        ([0.7, 0.2, 0.1], 0.7, 1),
        ([1 / 500] * 500, 0.9, 450),
        ([1 / 4] * 4 + [0] * 50, 0.5, 2),
    ],
)
def test_a_set_that_reaches_top_p_exactly_is_enough(p, top_p, kept):
    """Whatever rounding makes of the logarithms."""
    with np.errstate(divide="ignore"):
        found = probabilities(np.log(np.array(p, dtype=np.float32)), top_p=top_p)
    assert np.flatnonzero(found).tolist() == list(range(kept))


def test_temperature_comes_before_the_nucleus():
    # At temperature 1/2 the probabilities 4 : 3 : 2 : 1 become 16 : 9 : 4 : 1, so that a nucleus
    # of 0.8 is the first two; taken before the temperature it would be the first three.
    assert probabilities(LOGS, 0.5, 0.8) == pytest.approx([0, 16 / 25, 0, 9 / 25], abs=1e-6)
    # A high temperature widens the nucleus: 2 : sqrt(3) : sqrt(2) : 1, of which three reach 0.8.
    widened = np.sqrt([4, 3, 2]) / np.sqrt([4, 3, 2]).sum()
    expected = [0, widened[0], widened[2], widened[1]]
    assert probabilities(LOGS, 2.0, 0.8) == pytest.approx(expected, abs=1e-6)


def test_top_p_one_is_the_whole_softmax():
    logits = torch.tensor([[3.0, -60.0, 1.0]])
    expected = torch.log_softmax(logits / 0.7, -1)
    assert torch.equal(log_probabilities(logits, Decoding(0.7, 1.0, 1)), expected)
    assert expected.min() > NEVER


@pytest.mark.parametrize("vocabulary", [1, 3, HEAD, HEAD + 1, 527])
@pytest.mark.parametrize("top_p", [1e-300, 1e-9])
def test_top_p_near_zero_is_exactly_the_likeliest_token(vocabulary, top_p):
    logits = np.random.default_rng(vocabulary).normal(size=(50, vocabulary)).astype(np.float32)
    found = log_probabilities(torch.as_tensor(logits), Decoding(1.0, top_p, 1)).numpy()
    expected = np.full_like(logits, NEVER)
    np.put_along_axis(expected, logits.argmax(-1, keepdims=True), 0.0, -1)
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(expected))
    assert np.exp(found).max(-1) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("size", [4, HEAD, HEAD + 1, 60])
def test_of_equally_likely_tokens_the_lowest_ids_are_kept(size):
    for kept in range(1, size + 1):
        # Halfway through the last token that is needed.
        found = probabilities(np.zeros(size, dtype=np.float32), top_p=(kept - 0.5) / size)
        expected = np.where(np.arange(size) < kept, 1 / kept, 0)
        assert found == pytest.approx(expected, abs=1e-6)


def test_a_tie_at_the_edge_of_the_nucleus_is_cut_by_id():
    # 0.4, then four times 0.15; ids 6, 2, 11, 9 stand for the equal ones.
    p = np.full(12, 1e-12, dtype=np.float64)
    p[4] = 0.4
    p[[2, 6, 9, 11]] = 0.15
    logits = np.log(p).astype(np.float32)
    for kept, top_p in ((0, 0.39), (1, 0.5), (2, 0.65), (3, 0.8), (4, 0.95)):
        found = np.flatnonzero(probabilities(logits, top_p=top_p))
        assert found.tolist() == sorted([4, *[2, 6, 9, 11][:kept]])


def test_temperature_zero_is_the_likeliest_token_and_of_equals_the_lowest_id():
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0], [-9.0, -8.0, -7.0, -6.0]])
    for top_p in (1.0, 0.5):
        found = log_probabilities(logits, Decoding(0.0, top_p, 1))
        assert found.tolist() == [
            [NEVER, 0.0, NEVER, NEVER],
            [0.0, NEVER, NEVER, NEVER],
            [NEVER, NEVER, NEVER, 0.0],
        ]


def test_the_smallest_temperature_is_finite_and_all_but_greedy():
    logits = torch.tensor([[90.0, 90.1, -90.0], [-1e4, 1e4, 0.0]])
    found = log_probabilities(logits, Decoding(1e-6, 0.9, 1))
    assert found.exp().tolist() == [[0, 1, 0], [0, 1, 0]]


@given(
    # Eighths are either exactly equal or far enough apart for single precision.
    arrays(
        np.float32,
        st.tuples(st.integers(1, 3), st.integers(1, 4 * HEAD)),
        elements=st.integers(-160, 160).map(lambda eighths: eighths / 8) | st.just(0.0),
    ),
    st.floats(0.1, 3),
    st.floats(0.001, 1),
)
@settings(max_examples=200)
def test_every_row_is_that_of_a_plain_sort(logits, temperature, top_p):
    found = probabilities(logits, temperature, top_p)
    for row, logit in zip(found, logits, strict=True):
        # This close to the threshold, one token more or fewer is right as well.
        either = [oracle(logit, temperature, top_p - slack) for slack in (0, 2 * ROUNDING)]
        assert any(np.allclose(row, p, atol=2e-6) for p in either), (row, either)


@pytest.mark.parametrize("top_p", [0.3, 0.9, 0.999])
def test_nuclei_inside_and_beyond_the_head_in_one_batch(top_p):
    # From one token that has all the probability to 500 that share it evenly.
    random = np.random.default_rng(0).normal(size=(40, 500))
    logits = (random * np.linspace(0, 12, 40)[:, None]).astype(np.float32)
    found = probabilities(logits, top_p=top_p)
    sizes = (found > 0).sum(-1)
    assert sizes.min() < HEAD < sizes.max()
    for row, logit in zip(found, logits, strict=True):
        assert row == pytest.approx(oracle(logit, 1.0, top_p - ROUNDING), abs=1e-6)


def test_shapes_and_half_precision():
    logits = torch.randn(2, 3, 20, generator=torch.Generator().manual_seed(0))
    decoding = Decoding(0.7, 0.9, 1)
    found = log_probabilities(logits, decoding)
    assert found.shape == logits.shape
    for i in range(2):
        assert torch.equal(found[i], log_probabilities(logits[i], decoding))
    half = log_probabilities(logits.half(), decoding)
    assert half.dtype == torch.float32
    assert torch.equal(half, log_probabilities(logits.half().float(), decoding))


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("temperature", [-0.1, 1e-7, 1e-40, math.nan, math.inf, -math.inf]),
        ("top_p", [0, 0.0, -0.5, 1.0001, 90, math.nan, math.inf]),
        ("max_tokens", [0, -1, 2.5, math.nan, math.inf]),
    ],
)
def test_an_impossible_setting_is_refused_by_name_with_a_valid_value(setting, values):
    valid = {"temperature": 0.7, "top_p": 0.9, "max_tokens": 40}
    Decoding(**valid)
    for value in values:
        with pytest.raises(ValueError, match=rf"^{setting}: .*such as {valid[setting]}.*; got"):
            Decoding(**valid | {setting: value})
