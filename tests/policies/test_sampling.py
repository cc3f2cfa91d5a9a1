import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import stats

from companion.measures import clopper_pearson
from companion.policies.decoding import Decoding, log_probabilities
from companion.policies.sampling import _inverted, sample, uniforms

PAD, END = 0, 1
PROMPTS = [(2, 3, 4), (5,), (2, 3, 4, 6, 7, 8), (5, 2), (9, 9, 9)]
NUCLEUS = Decoding(temperature=0.8, top_p=0.9, max_tokens=6)
PLAIN = Decoding(temperature=1.0, top_p=1.0, max_tokens=6)


@pytest.fixture(scope="module")
def model(tiny_llama):
    return tiny_llama()


def draw(model, prompts, n, decoding, seed=0, *, end_tokens=frozenset({END}), **options):
    return sample(
        model, prompts, n, decoding, seed, end_tokens=end_tokens, pad_token=PAD, **options
    )


def texts(samples):
    """The completion of every sample, in order."""
    return [samples.completions[i] for i in samples.sample_of]


@torch.inference_mode()
def one_by_one(model, prompt, sample_index, decoding, seed, end_tokens):
    """One sample without batch, cache, padding or sharing, from the same uniform numbers."""
    written, log_probability = (), 0.0
    for depth in range(decoding.max_tokens):
        logits = model(input_ids=torch.tensor([[*prompt, *written]]), use_cache=False).logits
        scores = log_probabilities(logits[0, -1], decoding).double().numpy()
        cumulative = np.cumsum(np.exp(scores))
        u = uniforms(seed, prompt, depth, sample_index, 1)[0]
        token = int(np.searchsorted(cumulative / cumulative[-1], u, side="right"))
        written += (token,)
        log_probability += scores[token]
        if token in end_tokens:
            return written, log_probability, True
    return written, log_probability, False


# Prefix sharing changes nothing.


@pytest.mark.parametrize("decoding", [NUCLEUS, PLAIN], ids=["nucleus", "plain"])
@pytest.mark.parametrize(
    ("end_tokens", "most_rows"), [({END}, 5), ({END, 4, 7}, 1024)], ids=["split", "padded"]
)
def test_every_sample_is_the_one_drawn_alone(model, decoding, end_tokens, most_rows):
    end_tokens, n, first = frozenset(end_tokens), 12, 3
    options = {"end_tokens": end_tokens, "first_sample": first, "most_rows": most_rows}
    found = draw(model, PROMPTS, n, decoding, 5, **options)
    finished, lengths = set(), set()
    for prompt, samples in zip(PROMPTS, found, strict=True):
        assert samples.n == n
        for i, distinct in enumerate(samples.sample_of):
            alone = one_by_one(model, prompt, first + i, decoding, 5, end_tokens)
            assert samples.completions[distinct] == alone[0]
            # Batches of other shapes round single precision otherwise, by processor.
            assert samples.log_probabilities[distinct] == pytest.approx(alone[1], abs=1e-4)
            assert samples.finished[distinct] == alone[2]
            finished.add(alone[2])
            lengths.add(len(alone[0]))
    assert finished == {True, False}  # the case is not a trivial one
    assert len(lengths) > 3


def test_distinct_completions_are_held_once_in_order(model):
    for samples in draw(model, PROMPTS, 300, NUCLEUS):
        assert all(a < b for a, b in pairwise(samples.completions))
        assert sorted(set(samples.sample_of)) == list(range(len(samples.completions)))
        assert samples.counts.sum() == samples.n == 300
        assert samples.counts.tolist() == np.bincount(samples.sample_of).tolist()


def test_the_work_is_one_row_for_each_distinct_prefix(model):
    rows = []
    handle = model.register_forward_pre_hook(
        lambda _, args, kwargs: rows.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    try:
        samples = draw(model, [(2, 3, 4)], 500, NUCLEUS)[0]
    finally:
        handle.remove()
    prefixes = {
        completion[:length]
        for completion in samples.completions
        for length in range(len(completion))
    }
    assert sum(rows) == len(prefixes) < 500


# Batches, chunks, order and seeds.


def same(left, right):
    return (
        left.completions == right.completions
        and left.sample_of.tolist() == right.sample_of.tolist()
        and left.finished.tolist() == right.finished.tolist()
        and np.allclose(left.log_probabilities, right.log_probabilities, atol=1e-5)
    )


@pytest.mark.parametrize("most_rows", [1, 3, 7])
def test_the_size_of_a_batch_changes_nothing(model, most_rows):
    whole = draw(model, PROMPTS, 40, NUCLEUS)
    for one, other in zip(
        whole, draw(model, PROMPTS, 40, NUCLEUS, most_rows=most_rows), strict=True
    ):
        assert same(one, other)


def test_other_prompts_and_their_order_change_nothing(model):
    whole = draw(model, PROMPTS, 40, NUCLEUS)
    alone = [draw(model, [prompt], 40, NUCLEUS)[0] for prompt in PROMPTS]
    reversed_order = draw(model, PROMPTS[::-1], 40, NUCLEUS)[::-1]
    for one, other, third in zip(whole, alone, reversed_order, strict=True):
        assert same(one, other)
        assert same(one, third)


def test_a_prompt_given_twice_has_the_same_samples_twice(model):
    first, _, again = draw(model, [PROMPTS[0], PROMPTS[1], PROMPTS[0]], 40, NUCLEUS)
    assert same(first, again)


@pytest.mark.parametrize("decoding", [NUCLEUS, PLAIN], ids=["nucleus", "plain"])
def test_chunks_are_the_pieces_of_one_long_run(model, decoding):
    whole = draw(model, PROMPTS, 16, decoding)
    chunks = [draw(model, PROMPTS, 4, decoding, first_sample=start) for start in (0, 4, 8, 12)]
    for i, samples in enumerate(whole):
        pieces = [texts(chunk[i]) for chunk in chunks]
        assert texts(samples) == [text for piece in pieces for text in piece]
        assert len({tuple(piece) for piece in pieces}) == 4  # and not the same four again
        assert texts(draw(model, PROMPTS, 7, decoding)[i]) == texts(samples)[:7]


def test_seeds_decide(model):
    def drawn(seed):
        return [texts(samples) for samples in draw(model, PROMPTS, 24, PLAIN, seed)]

    first = drawn(0)
    assert first == drawn(0)
    for other in (1, 2**63, -1):
        for one, two in zip(first, drawn(other), strict=True):
            assert one != two
    assert all(len(set(one)) > 12 for one in first)


def test_randomness_is_our_own(model):
    """Neither the state of torch's and numpy's generators matters, nor is it touched."""
    torch.manual_seed(1)
    np.random.seed(1)
    first = draw(model, PROMPTS, 24, PLAIN)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1]
    torch.manual_seed(2)
    again = draw(model, PROMPTS, 24, PLAIN)
    assert all(map(same, first, again))
    torch.manual_seed(1)
    assert torch.equal(torch_state, torch.get_rng_state())
    assert (numpy_state == np.random.get_state()[1]).all()


def test_uniform_numbers_are_uniform_and_belong_to_their_place():
    u = uniforms(0, (2, 3), 0, 0, 4000)
    assert ((u >= 0) & (u < 1)).all()
    assert stats.kstest(u, "uniform").pvalue > 0.01
    assert uniforms(0, (2, 3), 0, 100, 50).tolist() == u[100:150].tolist()
    for other in (
        uniforms(1, (2, 3), 0, 0, 4000),
        uniforms(0, (3, 2), 0, 0, 4000),
        uniforms(0, (2, 3), 1, 0, 4000),
        uniforms(0, (23,), 0, 0, 4000),
    ):
        assert not set(u) & set(other)
        assert abs(stats.spearmanr(u, other).statistic) < 0.05


def test_a_draw_never_leaves_its_row_nor_takes_an_impossible_token():
    below_one = np.nextafter(1.0, 0)
    cumulative = np.tile([0.0, 0.25, 0.25, 1.0, 1.0], (1024, 1))  # only tokens 1 and 3 can be drawn
    rows = np.arange(1024)
    for u, token in ((0.0, 1), (0.2499, 1), (0.25, 3), (0.9, 3), (below_one, 3)):
        assert set(_inverted(cumulative, rows, np.full(1024, u))) == {token}


# Frequencies are the exact probabilities.

TABLE = np.array(
    [
        # pad, end, and three words
        [0.20, 0.20, 0.20, 0.20, 0.20],
        [0.20, 0.20, 0.20, 0.20, 0.20],
        [0.00, 0.10, 0.50, 0.35, 0.05],
        [0.00, 0.30, 0.05, 0.25, 0.40],
        [0.00, 0.60, 0.10, 0.10, 0.20],
    ]
)


def transitions(temperature, top_p):
    """The table under a decoding distribution, worked out in numpy."""
    p = TABLE ** (1 / temperature)
    p /= p.sum(1, keepdims=True)
    for row in p:
        order = np.argsort(-row, kind="stable")
        before = np.cumsum(row[order]) - row[order]
        row[order[before >= top_p]] = 0
    return p / p.sum(1, keepdims=True)


def completions(p, last, length):
    """Every completion of at most so many tokens after a last one, with its probability."""
    found = {}
    for token, chance in enumerate(p[last]):
        if chance == 0:
            continue
        if token == END or length == 1:
            found[token,] = chance
        else:
            for rest, more in completions(p, token, length - 1).items():
                found[(token, *rest)] = chance * more
    return found


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 0.9), (1.5, 0.6)])
def test_sampled_frequencies_are_the_exact_probabilities(bigram_llama, temperature, top_p):
    n, length = 50_000, 3
    exact = completions(transitions(temperature, top_p), 2, length)
    assert sum(exact.values()) == pytest.approx(1)
    samples = draw(bigram_llama(TABLE), [(3, 2)], n, Decoding(temperature, top_p, length))[0]
    counts = dict(zip(samples.completions, samples.counts, strict=True))
    assert counts.keys() <= exact.keys()
    for completion, found in zip(samples.completions, samples.log_probabilities, strict=True):
        assert found == pytest.approx(math.log(exact[completion]), abs=1e-5)

    expected = n * np.array(list(exact.values()))
    observed = np.array([counts.get(completion, 0) for completion in exact])
    assert expected.min() > 5
    assert stats.chisquare(observed, expected).pvalue > 0.01
    level = 1 - 0.01 / len(exact)  # all intervals together hold with probability 0.99
    for completion, chance in exact.items():
        interval = clopper_pearson(int(counts.get(completion, 0)), n, level=level)
        assert interval.low <= chance <= interval.high

    # The same test sees a temperature that is wrong by a tenth.
    wrong = completions(transitions(temperature * 1.1, top_p), 2, length)
    assert wrong.keys() == exact.keys()
    assert stats.chisquare(observed, n * np.array(list(wrong.values()))).pvalue < 1e-6


def test_samples_are_independent_of_their_neighbours(bigram_llama):
    first = np.array([t[0] for t in texts(draw(bigram_llama(TABLE), [(2,)], 20_000, PLAIN)[0])])
    pairs = np.zeros((5, 5))
    np.add.at(pairs, (first[:-1], first[1:]), 1)
    assert stats.chi2_contingency(pairs[1:, 1:]).pvalue > 0.01


# Prompts of different length.


def test_padding_changes_nothing(model):
    short, long = (5,), tuple(range(2, 11)) * 2
    together = draw(model, [short, long], 40, PLAIN)
    assert same(together[0], draw(model, [short], 40, PLAIN)[0])
    assert same(together[1], draw(model, [long], 40, PLAIN)[0])


def test_the_pad_token_is_never_looked_at(model):
    """Not even where it is an end token, as in models without a pad token of their own."""
    prompts = [(5,), (2, 3, 4, 6, 7, 8)]
    expected = draw(model, prompts, 40, PLAIN)
    for pad in (END, 9):
        options = {"end_tokens": frozenset({END}), "pad_token": pad}
        assert all(map(same, expected, sample(model, prompts, 40, PLAIN, 0, **options)))


def test_the_first_token_is_drawn_after_the_last_real_one(bigram_llama):
    """After 2 comes 3, after 3 comes 4, and so on, wherever the prompt ends in the batch."""
    step = np.eye(7)[[1, 1, 3, 4, 5, 6, 1]]
    found = draw(bigram_llama(step), [(2,), (6, 6, 6, 3), (2, 5)], 3, PLAIN)
    assert [samples.completions for samples in found] == [
        ((3, 4, 5, 6, END),),
        ((4, 5, 6, END),),
        ((6, END),),
    ]


# The end of a completion.


def test_an_end_token_ends_at_once_and_belongs_to_the_completion(bigram_llama):
    table = np.zeros((6, 6))
    table[:, [END, 4, 5]] = [0.2, 0.2, 0.6]
    model = bigram_llama(table)
    samples = draw(model, [(2,)], 400, PLAIN, end_tokens=frozenset({END, 4, 5}))[0]
    assert samples.completions == ((END,), (4,), (5,))
    assert samples.finished.all()
    # With one end token fewer, a completion goes on after it.
    samples = draw(model, [(2,)], 400, PLAIN, end_tokens=frozenset({END, 4}))[0]
    assert all(set(c[:-1]) <= {5} for c in samples.completions)
    ended = [c[-1] in (END, 4) for c in samples.completions]
    assert samples.finished.tolist() == ended
    assert {len(c) for c, end in zip(samples.completions, ended, strict=True) if not end} == {6}


def test_a_completion_that_reaches_the_limit_is_not_finished(bigram_llama):
    step = np.eye(7)[[1, 1, 3, 4, 5, 6, 1]]
    for limit, written, finished in (
        (1, (3,), False),
        (4, (3, 4, 5, 6), False),
        (5, (3, 4, 5, 6, END), True),
        (6, (3, 4, 5, 6, END), True),
    ):
        samples = draw(bigram_llama(step), [(2,)], 5, Decoding(1.0, 1.0, limit))[0]
        assert samples.completions == (written,)
        assert samples.finished.tolist() == [finished]
    without_end = draw(bigram_llama(step), [(2,)], 5, PLAIN, end_tokens=frozenset())[0]
    assert without_end.finished.tolist() == [False]


def test_temperature_zero_is_the_argmax_at_every_step(model):
    for prompt, samples in zip(
        PROMPTS, draw(model, PROMPTS, 30, Decoding(0.0, 1.0, 6)), strict=True
    ):
        written = []
        while len(written) < 6 and END not in written:
            with torch.inference_mode():
                logits = model(input_ids=torch.tensor([[*prompt, *written]])).logits[0, -1]
            written.append(int(logits.argmax()))
        assert samples.completions == (tuple(written),)
        assert samples.log_probabilities.tolist() == [0.0]


# Hostile input.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n: 1 or more samples, such as 320; got 0"),
        ({"n": -5}, "n: 1 or more samples, such as 320; got -5"),
        ({"prompts": [(2,), ()]}, "prompts: an empty prompt has no next token"),
        ({"prompts": [(2, 11)]}, r"prompts: token ids from 0 to 10; got \(2, 11\)"),
        ({"prompts": [(2, -1)]}, r"prompts: token ids from 0 to 10; got \(2, -1\)"),
        ({"prompts": [(2,), (2,) * 19]}, "max_tokens: a prompt of 19 tokens leaves 5 of the .* 24"),
        ({"prompts": [(2,) * 30]}, "max_tokens: a prompt of 30 tokens leaves -6"),
        ({"first_sample": -1}, "first_sample: 0 or more, such as 0; got -1"),
        ({"most_rows": 0}, "most_rows: 1 or more, such as 1024; got 0"),
    ],
)
def test_impossible_requests_are_refused_by_name(model, options, message):
    valid = {"prompts": PROMPTS, "n": 4, "decoding": PLAIN}
    with pytest.raises(ValueError, match=f"^{message}"):
        draw(model, **valid | options)


def test_a_prompt_may_fill_the_context_to_the_last_token(model):
    assert draw(model, [(2,) * 18], 4, PLAIN)[0].n == 4


def test_no_prompts_are_no_samples(model):
    assert draw(model, [], 4, PLAIN) == []


def test_a_model_that_has_diverged_is_refused(tiny_llama):
    broken = tiny_llama()
    with torch.no_grad():
        broken.model.norm.weight[0] = math.nan
    for decoding in (PLAIN, NUCLEUS):
        with pytest.raises(ValueError, match=r"^logits: not finite"):
            draw(broken, PROMPTS, 4, decoding)
