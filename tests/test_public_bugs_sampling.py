"""Faults that users of other samplers and trainers reported, each as a test of its kind.

B14, B16, … number the reports. The same faults are tested in their whole breadth beside the
modules: policies and training; what the store does about them stands in test_samples.
"""

import inspect
import json
import math

import numpy as np
import pytest
import torch

from companion.countdown.problems import Problem
from companion.countdown.space import space
from companion.experiments.rollouts import Plan, rollouts
from companion.lab import tokenizer
from companion.lab.model import new_model
from companion.policies.decoding import Decoding
from companion.policies.transformers import TransformersPolicy, load_policy, policy_of
from companion.runs import RunStore
from companion.training import pretrain, rl
from companion.training.advantages import group_normalised

PLAIN = Decoding(temperature=1.0, top_p=1.0, max_tokens=6)
PROMPTS = [(2, 3, 4), (5,), (2, 3, 4, 6, 7, 8, 9, 10)]


@pytest.fixture(scope="module")
def policy(tiny_llama):
    return policy_of(tiny_llama())


def texts(samples):
    """The completion of every sample, in order."""
    return [samples.completions[i] for i in samples.sample_of]


@torch.inference_mode()
def logits_after(policy, tokens):
    return policy.model(input_ids=torch.tensor([tokens])).logits[0, -1]


# B14 (huggingface/trl#4159, vllm-project/vllm#9453): log-probabilities of the raw logits returned
# for samples drawn at another temperature.


@pytest.mark.parametrize("temperature", [0.6, 1.7])
def test_b14_log_probabilities_are_those_of_the_temperature_that_drew(policy, temperature):
    decoding = Decoding(temperature, 1.0, 1)
    for prompt, samples in zip(PROMPTS, policy.sample(PROMPTS, 200, decoding, 0), strict=True):
        logits = logits_after(policy, prompt)
        drawn = torch.tensor([token for (token,) in samples.completions])
        processed = torch.log_softmax(logits / temperature, -1)[drawn].numpy()
        raw = torch.log_softmax(logits, -1)[drawn].numpy()
        assert samples.log_probabilities == pytest.approx(processed, abs=1e-5)
        assert abs(raw - processed).max() > 0.1


@pytest.mark.parametrize("decoding", [Decoding(0.6, 1.0, 6), Decoding(0.6, 0.9, 6)], ids=str)
def test_b14_the_importance_ratio_of_an_unchanged_policy_is_one(policy, decoding):
    samples = policy.sample(PROMPTS, 100, decoding, 0)
    scores = policy.score(PROMPTS, [group.completions for group in samples], decoding)
    for group, scored in zip(samples, scores, strict=True):
        new = np.array([values.sum() for values in scored])
        assert np.exp(new - group.log_probabilities) == pytest.approx(1, abs=1e-4)


# B16 (vllm-project/vllm#15281): sampling settings taken over from the model's folder.

HIDDEN_DEFAULTS = {
    "do_sample": False,
    "top_k": 1,
    "temperature": 0.1,
    "top_p": 0.01,
    "repetition_penalty": 5.0,
    "max_new_tokens": 1,
    "min_new_tokens": 6,
    "suppress_tokens": [3, 4, 5],
    "eos_token_id": 7,
}


@pytest.mark.parametrize("place", ["generation_config.json", "config.json"])
def test_b16_no_setting_of_the_folder_reaches_the_sampler(policy, tmp_path, place):
    policy.model.save_pretrained(tmp_path)
    path = tmp_path / place
    settings = json.loads(path.read_text(encoding="utf-8"))
    hidden = {name: value for name, value in HIDDEN_DEFAULTS.items() if name not in settings}
    if place == "generation_config.json":
        hidden = HIDDEN_DEFAULTS
    path.write_text(json.dumps(settings | hidden), encoding="utf-8")
    loaded = load_policy(tmp_path)
    for expected, found in zip(
        policy.sample(PROMPTS, 64, PLAIN, 0), loaded.sample(PROMPTS, 64, PLAIN, 0), strict=True
    ):
        assert texts(found) == texts(expected)
        assert len(found.completions) > 20


def test_b16_every_setting_of_a_draw_is_given_explicitly(policy):
    fields = {f.name for f in inspect.signature(Decoding).parameters.values()}
    assert fields == {"temperature", "top_p", "max_tokens"}
    for name in fields:
        rest = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 6}
        del rest[name]
        with pytest.raises(TypeError, match=name):
            Decoding(**rest)


# B17 (vllm-project/vllm#10852, #7808): n equal completions; the same samples again in every chunk.


def test_b17_samples_of_one_seed_differ_from_each_other(policy):
    for samples in policy.sample(PROMPTS, 16, PLAIN, 0):
        assert len(samples.completions) > 8


def test_b17_four_chunks_of_four_are_the_sixteen(policy):
    whole = policy.sample(PROMPTS, 16, PLAIN, 0)
    chunks = [policy.sample(PROMPTS, 4, PLAIN, 0, first_sample=start) for start in range(0, 16, 4)]
    singles = [policy.sample(PROMPTS, 1, PLAIN, 0, first_sample=start) for start in range(16)]
    for i, samples in enumerate(whole):
        for pieces in (chunks, singles):
            assert [text for piece in pieces for text in texts(piece[i])] == texts(samples)
        assert len({tuple(texts(chunk[i])) for chunk in chunks}) == 4


def test_b17_neither_seed_nor_limit_has_a_default(policy):
    with pytest.raises(TypeError, match="seed"):
        policy.sample(PROMPTS, 4, PLAIN)
    with pytest.raises(TypeError, match="max_tokens"):
        Decoding(1.0, 1.0)
    first, again, other = (policy.sample(PROMPTS, 16, PLAIN, seed)[0] for seed in (0, 0, 1))
    assert texts(first) == texts(again)
    assert sum(a == b for a, b in zip(texts(first), texts(other), strict=True)) < 4


# B19 (TransformerLensOrg/TransformerLens#1760): padding changes the shorter prompts' continuations.

LENGTHS = [tokenizer.encode("1 1 -> 2 <sep>"), tokenizer.encode("3 5 7 9 -> 24 <sep> 3 * 5 = 15 ,")]


@pytest.mark.parametrize("decoding", [Decoding(0.0, 1.0, 12), Decoding(1.0, 0.9, 12)], ids=str)
def test_b19_prompts_of_different_length_together_and_alone(tiny_llama, decoding):
    model = tiny_llama(len(tokenizer.WORDS), max_position_embeddings=64)
    for pad in (tokenizer.PAD, tokenizer.EOS):
        policy = TransformersPolicy(model, frozenset({tokenizer.EOS}), pad, "test")
        together = policy.sample(LENGTHS, 20, decoding, 0)
        for prompt, found in zip(LENGTHS, together, strict=True):
            [alone] = policy.sample([prompt], 20, decoding, 0)
            assert texts(found) == texts(alone)


def test_b19_the_first_token_is_that_after_the_last_real_one(tiny_llama):
    model = tiny_llama(len(tokenizer.WORDS), max_position_embeddings=64)
    policy = policy_of(model)
    greedy = policy.sample(LENGTHS, 1, Decoding(0.0, 1.0, 1), 0)
    drawn = policy.next_token_distribution(LENGTHS, PLAIN)
    for prompt, found, row in zip(LENGTHS, greedy, drawn, strict=True):
        expected = torch.log_softmax(logits_after(policy, prompt), -1).numpy()
        assert found.completions == ((int(expected.argmax()),),)
        assert row == pytest.approx(expected, abs=1e-5)


# B20 (EleutherAI/lm-evaluation-harness#1053): a text joined at the prompt's boundary is not
# tokenised like its two parts; a continuation can be left without tokens.


def test_b20_a_boundary_joins_ids_and_moves_no_token(policy):
    """Wherever a text is cut into prompt and continuation, its tokens score the same."""
    whole = (2, 3, 4, 6, 7, 8, 9, 10)
    [[full]] = policy.score([whole[:1]], [[whole[1:]]], PLAIN)
    for cut in range(1, len(whole)):
        [[found]] = policy.score([whole[:cut]], [[whole[cut:]]], PLAIN)
        assert len(found) == len(whole) - cut
        assert found == pytest.approx(full[cut - 1 :], abs=1e-5)
    [[nothing]] = policy.score([whole], [[()]], PLAIN)
    assert len(nothing) == 0


def test_b20_text_is_refused_and_ids_come_back_as_they_were_drawn(policy):
    with pytest.raises(ValueError, match=r"^prompts: token ids from 0 to 10; got '3 5 7'"):
        policy.sample(["3 5 7"], 4, PLAIN, 0)
    [samples] = policy.sample([(2, 3)], 50, PLAIN, 0)
    for completion in samples.completions:
        assert all(type(token) is int for token in completion)


def test_b20_in_the_laboratory_a_number_is_one_token_and_no_start_of_another():
    """So the first token of a completion is its first operand, after any prompt."""
    given = "3 5 7 -> 26 <sep>"
    for start in ("25 - 3 = 22", "2 + 5 = 7", "( 25 - 3 ) * 4", "<answer> 25"):
        assert tokenizer.encode(f"{given} {start}") == (
            *tokenizer.encode(given),
            *tokenizer.encode(start),
        )
    firsts = {tokenizer.encode(f"{n} + 1")[0] for n in range(tokenizer.LARGEST_VALUE + 1)}
    assert len(firsts) == tokenizer.LARGEST_VALUE + 1


# B22 (huggingface/trl#5773): one sample without a score, or a group of one, makes the loss NaN.


def test_b22_a_group_of_one_is_refused():
    with pytest.raises(ValueError, match=r"^group_size: a group needs 2 samples or more"):
        group_normalised([[1.0]])
    with pytest.raises(ValueError, match=r"^group_size: 2 or more, such as 16; got 1"):
        rl.grpo(rl.GrpoRecipe(group_size=1), None, None, None)


def test_b22_a_sample_without_a_score_leaves_the_others_finite():
    [[missing, *scored]] = group_normalised([[math.nan, 1, 0, 1]])
    assert missing == 0
    assert np.isfinite(scored).all()
    assert scored == pytest.approx([math.sqrt(0.5), -math.sqrt(2), math.sqrt(0.5)], rel=1e-4)


# B25 (huggingface/trl#1623): the end token is masked as padding; of several ends only one counts.


@pytest.mark.parametrize("pad", [tokenizer.PAD, tokenizer.EOS])
def test_b25_the_label_of_the_end_token_counts_whatever_the_pad_token(tiny_llama, monkeypatch, pad):
    monkeypatch.setattr(pretrain, "PAD", pad)
    model = tiny_llama(len(tokenizer.WORDS), max_position_embeddings=64)
    given, short, long = (5, 6), (7, tokenizer.EOS), (7, 8, 9, 10, tokenizer.EOS)
    loss = pretrain.next_token_loss(model, [given, given], [short, long])
    loss.backward()
    scores = policy_of(model).score([given], [[short, long]], PLAIN)[0]
    nats = -np.concatenate(scores)
    assert float(loss.detach()) == pytest.approx(nats.mean(), abs=1e-5)
    assert nats.mean() != pytest.approx(np.delete(nats, 1).mean(), abs=1e-3)


def test_b25_every_declared_end_token_ends(bigram_llama):
    table = np.zeros((6, 6))
    table[:, 2:] = [0.4, 0.1, 0.4, 0.1]
    policy = policy_of(bigram_llama(table, eos_token_id=[4, 2]))
    [samples] = policy.sample([(3,)], 300, Decoding(1.0, 1.0, 20), 0)
    assert samples.finished.all()
    assert {completion[-1] for completion in samples.completions} == {2, 4}
    assert all({2, 4}.isdisjoint(completion[:-1]) for completion in samples.completions)


# B40 (vllm-project/vllm#3333): samples that depend on the batch; a cache that misses a setting.


def test_b40_a_sample_does_not_depend_on_what_it_is_drawn_with(policy):
    [alone] = policy.sample([PROMPTS[1]], 12, PLAIN, 0)
    for companions in ([], PROMPTS[:1], PROMPTS[2:], PROMPTS * 3):
        found = policy.sample([*companions, PROMPTS[1]], 30, PLAIN, 0)[-1]
        assert texts(found)[:12] == texts(alone)


def test_b40_stored_samples_are_used_again_for_the_same_settings_only(tmp_path):
    policy = policy_of(new_model(0, hidden=32).eval())
    chosen = [space(Problem((2, 3, 7), 13), "whole")]
    passes = []
    policy.model.register_forward_pre_hook(lambda *_: passes.append(1))

    def computed(decoding, seed=0, n=4):
        before = len(passes)
        rollouts(RunStore(tmp_path), policy, chosen, Plan(n, decoding, seed))
        return len(passes) > before

    first = Decoding(0.6, 1.0, 3)
    assert computed(first)
    assert not computed(first)
    assert computed(Decoding(1.0, 1.0, 3))
    assert computed(Decoding(0.6, 0.9, 3))
    assert computed(Decoding(0.6, 1.0, 4))
    assert computed(first, seed=1)
    assert computed(first, n=5)
    assert not computed(first)


# B47 (jsboige/CoursIA#10504): a reward that is always zero trains on nothing and ends cleanly.


def test_b47_a_reward_without_variance_stops_the_run(tmp_path):
    recipe = rl.GrpoRecipe(steps=2, problems_per_step=2, group_size=2, max_tokens=32)
    with pytest.raises(rl.NothingToLearnError, match="no group had reward variance") as stopped:
        rl.grpo(recipe, new_model(0, hidden=32), tmp_path, lambda *_: None)
    assert "\n" not in str(stopped.value)
    assert not list(tmp_path.glob("*.safetensors"))  # nothing that looks like a result


def test_b47_a_problem_cannot_lack_its_target():
    with pytest.raises(TypeError, match="target"):
        Problem((3, 5, 7))
    with pytest.raises(ValueError, match="target"):
        Problem((3, 5, 7), None)


# B50 (princeton-pli/retaining-by-doing#5): a begin token is added twice, or unasked.


@pytest.mark.parametrize("begins", [0, 1, 2])
def test_b50_the_model_reads_exactly_the_given_ids(policy, tmp_path, begins):
    """Whatever the folder's configuration and tokenizer say about a begin token."""
    begin = 2
    policy.model.save_pretrained(tmp_path)
    for name, settings in {
        "config.json": {"bos_token_id": begin},
        "generation_config.json": {"bos_token_id": begin, "forced_bos_token_id": begin},
        "tokenizer_config.json": {"add_bos_token": True, "chat_template": "{{ bos_token }}"},
    }.items():
        path = tmp_path / name
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.write_text(json.dumps(known | settings), encoding="utf-8")
    loaded = load_policy(tmp_path)
    read = []
    for module in (loaded.model, loaded.model.base_model):
        module.register_forward_pre_hook(
            lambda _, args, kwargs: read.append(kwargs["input_ids"][0].tolist()), with_kwargs=True
        )
    prompt = (begin,) * begins + (5, 6)
    loaded.sample([prompt], 4, Decoding(1.0, 1.0, 1), 0)
    loaded.score([prompt], [[(7,)]], PLAIN)
    loaded.next_token_distribution([prompt], PLAIN)
    assert {tuple(ids[: len(prompt)]) for ids in read} == {prompt}
    assert {ids.count(begin) for ids in read} == {begins}


def test_b50_the_laboratorys_tokenizer_adds_nothing():
    text = "3 5 7 -> 26 <sep>"
    ids = tokenizer.tokenizer()(text).input_ids
    assert tuple(ids) == tokenizer.encode(text) == tokenizer.prompt(Problem((3, 5, 7), 26))
