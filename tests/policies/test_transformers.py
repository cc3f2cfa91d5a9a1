import json
import math
import pickle
import random
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from companion.policies import transformers
from companion.policies.decoding import Decoding
from companion.policies.transformers import (
    WEIGHTS,
    CheckpointError,
    load_policy,
    policy_of,
    weights_hash,
)

PLAIN = Decoding(temperature=1.0, top_p=1.0, max_tokens=6)
NUCLEUS = Decoding(temperature=0.8, top_p=0.9, max_tokens=6)
PROMPTS = [(2, 3, 4), (5,), (9, 9, 9, 9, 9, 9)]
CONTINUATIONS = [[(3,), (4, 5, 6, 1), ()], [], [(10, 9, 8, 7, 6), (2, 2)]]


@pytest.fixture(scope="module")
def policy(tiny_llama):
    return policy_of(tiny_llama())


# Teacher forcing.


@torch.inference_mode()
def by_hand(model, prompt, continuation, temperature):
    """log softmax(logits / temperature) of every token, one prefix at a time."""
    values = []
    for t, token in enumerate(continuation):
        prefix = torch.tensor([[*prompt, *continuation[:t]]])
        logits = model(input_ids=prefix, use_cache=False).logits[0, -1].double().numpy()
        scaled = logits / temperature
        values.append(scaled[token] - np.log(np.exp(scaled).sum()))
    return values


@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.0])
def test_scores_are_the_log_softmax_of_the_scaled_logits(policy, temperature):
    found = policy.score(PROMPTS, CONTINUATIONS, Decoding(temperature, 1.0, 6))
    assert [len(group) for group in found] == [3, 0, 2]
    for prompt, group, scores in zip(PROMPTS, CONTINUATIONS, found, strict=True):
        for continuation, values in zip(group, scores, strict=True):
            expected = by_hand(policy.model, prompt, continuation, temperature)
            assert values.dtype == np.float64
            assert values == pytest.approx(expected, abs=1e-5)


def test_hand_worked_scores(bigram_llama):
    table = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 0.1, 0.2, 0.7], [0, 0.25, 0.75, 0]])
    found = policy_of(bigram_llama(table)).score([(2,)], [[(3, 2, 1)]], PLAIN)[0][0]
    assert np.exp(found) == pytest.approx([0.7, 0.75, 0.1], abs=1e-6)
    # Inside a nucleus of 0.8, after 2 come 3 and 2 alone (7 : 2), and after 3 comes 2 or 1.
    half = policy_of(bigram_llama(table)).score([(2,)], [[(3, 2, 1)]], Decoding(1.0, 0.8, 6))[0][0]
    assert np.exp(half) == pytest.approx([7 / 9, 0.75, 0], abs=1e-6)


def test_tokens_that_are_never_drawn_have_minus_infinity(policy):
    everything = [(token,) for token in range(11)]
    [drawn] = policy.next_token_distribution([PROMPTS[0]], NUCLEUS)
    found = np.concatenate(policy.score([PROMPTS[0]], [everything], NUCLEUS)[0])
    assert found == pytest.approx(drawn, abs=1e-5)
    assert np.isneginf(found).any()
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
    greedy = np.concatenate(policy.score([PROMPTS[0]], [everything], Decoding(0.0, 1.0, 6))[0])
    assert sorted(greedy) == [-math.inf] * 10 + [0.0]


@pytest.mark.parametrize("decoding", [PLAIN, NUCLEUS], ids=["plain", "nucleus"])
def test_what_is_scored_is_what_was_sampled(policy, decoding):
    samples = policy.sample(PROMPTS, 60, decoding, seed=0)
    scores = policy.score(PROMPTS, [group.completions for group in samples], decoding)
    for group, scored in zip(samples, scores, strict=True):
        total = np.array([values.sum() for values in scored])
        assert total == pytest.approx(group.log_probabilities, abs=2e-5)


@pytest.mark.parametrize("tokens_at_once", [1, 30, 200])
def test_batches_and_padding_change_no_score(policy, monkeypatch, tokens_at_once):
    samples = policy.sample(PROMPTS, 60, NUCLEUS, seed=0)
    groups = [group.completions for group in samples]
    prefixes = [(*p, *c[:-1]) for p, group in zip(PROMPTS, groups, strict=True) for c in group]
    whole = policy.score(PROMPTS, groups, NUCLEUS)
    distributions = policy.next_token_distribution(prefixes, NUCLEUS)
    monkeypatch.setattr(transformers, "TOKENS_AT_ONCE", tokens_at_once)
    again = policy.score(PROMPTS, groups, NUCLEUS)
    for one, other in zip(whole, again, strict=True):
        assert np.concatenate(other) == pytest.approx(np.concatenate(one), abs=2e-5)
    np.testing.assert_allclose(
        np.exp(policy.next_token_distribution(prefixes, NUCLEUS)), np.exp(distributions), atol=2e-5
    )


def test_next_token_distribution_is_that_of_each_prefix_alone(policy):
    prefixes = [(2, 3, 4), (5,), (9,) * 20]
    found = policy.next_token_distribution(prefixes, PLAIN)
    assert found.shape == (3, 11)
    for prefix, row in zip(prefixes, found, strict=True):
        expected = [by_hand(policy.model, prefix, (token,), 1.0)[0] for token in range(11)]
        assert row == pytest.approx(expected, abs=1e-5)
    assert policy.next_token_distribution([], PLAIN).shape == (0, 11)


def test_an_empty_continuation_has_no_scores(policy):
    assert policy.score([], [], PLAIN) == []
    [[one], []] = policy.score([(2,), (3,)], [[()], []], PLAIN)
    assert one.shape == (0,)


def test_the_context_may_be_filled_but_not_overflowed(policy):
    policy.score([(2,) * 20], [[(3,) * 4]], PLAIN)
    with pytest.raises(ValueError, match=r"^continuations: 25 tokens with their prompt.* reads 24"):
        policy.score([(2,) * 20], [[(3,) * 4, (3,) * 5]], PLAIN)
    with pytest.raises(ValueError, match=r"^continuations: 25 tokens"):
        policy.next_token_distribution([(2,) * 25], PLAIN)


def test_a_prompt_without_tokens_is_refused_and_not_read_from_its_end(policy):
    with pytest.raises(ValueError, match=r"^prompts: an empty prompt"):
        policy.score([(2,), ()], [[(3,)], [(3,)]], PLAIN)
    with pytest.raises(ValueError, match=r"^prompts: an empty prompt"):
        policy.next_token_distribution([(2, 3), ()], PLAIN)


def test_continuations_belong_to_prompts(policy):
    with pytest.raises(
        ValueError, match=r"^continuations: a group for each of the 2 prompts; got 1"
    ):
        policy.score([(2,), (3,)], [[(3,)]], PLAIN)


# Other weights.


def interpolated(one, other, share):
    theirs = dict(other.model.named_parameters())
    return {
        name: (1 - share) * value.detach() + share * theirs[name].detach()
        for name, value in one.model.named_parameters()
    }


def test_interpolation_meets_both_ends(policy, tiny_llama):
    other = policy_of(tiny_llama(seed=1))
    before = weights_hash(policy.model)
    for share, end in ((0, policy), (1, other)):
        mixed = policy.with_weights(interpolated(policy, other, share))
        assert mixed.identity == end.identity
        for one, two in zip(
            mixed.sample(PROMPTS, 40, PLAIN, 0), end.sample(PROMPTS, 40, PLAIN, 0), strict=True
        ):
            assert one.completions == two.completions
    half = policy.with_weights(interpolated(policy, other, 0.5))
    assert half.identity not in {policy.identity, other.identity}
    assert weights_hash(policy.model) == policy.identity == before  # the old policy is as it was


def test_tied_embeddings_stay_tied(policy, tiny_llama):
    mixed = policy.with_weights(interpolated(policy, policy_of(tiny_llama(seed=1)), 0.3)).model
    embedding = mixed.get_input_embeddings().weight
    assert mixed.lm_head.weight is embedding
    assert embedding is not policy.model.get_input_embeddings().weight


def test_a_part_of_the_weights_leaves_the_rest(policy, tiny_llama):
    name = "model.layers.1.mlp.up_proj.weight"
    new = dict(tiny_llama(seed=1).named_parameters())[name].detach()
    found = dict(policy.with_weights({name: new}).model.named_parameters())
    for own, value in policy.model.named_parameters():
        assert torch.equal(found[own], new if own == name else value)


@pytest.mark.parametrize(
    "weights",
    [
        {"model.layers.1.mlp.up.weight": torch.zeros(48, 32)},
        {"model.norm.weight": torch.zeros(31)},
        {"model.norm.weight": torch.zeros(1, 32)},
        {"model.embed_tokens.weight": torch.zeros(12, 32)},
    ],
)
def test_weights_of_another_architecture_are_refused(policy, weights):
    [(name, value)] = weights.items()
    with pytest.raises(ValueError, match=r"^weights: the model has no tensor ") as refusal:
        policy.with_weights(weights)
    assert f"{name} of {tuple(value.shape)}" in str(refusal.value)


# The identity.


def test_one_bit_changes_the_identity(policy, tiny_llama):
    assert policy_of(tiny_llama()).identity == policy.identity
    for name, value in policy.model.named_parameters():
        changed = value.detach().clone()
        changed.view(torch.int32).view(-1)[-1] ^= 1
        assert policy.with_weights({name: changed}).identity != policy.identity


# Checkpoint folders.


@pytest.fixture(scope="module")
def saved(policy, tmp_path_factory):
    """A checkpoint in half precision, as they are shipped."""
    folder = tmp_path_factory.mktemp("checkpoints") / "step-0025"
    half = policy.with_weights({}).model.half()
    half.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to damage."""
    return shutil.copytree(saved, tmp_path / "step-0025")


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | changes), encoding="utf-8")


def refusal(folder):
    """The one sentence with which a folder is refused."""
    with pytest.raises(CheckpointError) as refused:
        load_policy(folder)
    message = str(refused.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


def test_half_precision_on_disk_runs_in_single_precision(saved, policy):
    loaded = load_policy(saved)
    assert {value.dtype for value in load_file(saved / WEIGHTS).values()} == {torch.float16}
    assert {value.dtype for value in loaded.model.parameters()} == {torch.float32}
    assert not loaded.model.training
    rounded = {n: v.detach().half().float() for n, v in policy.model.named_parameters()}
    assert loaded.identity == policy.with_weights(rounded).identity
    assert (loaded.end_tokens, loaded.pad_token) == (frozenset({1}), 0)


def test_end_and_pad_tokens_are_those_of_the_configuration(folder):
    change_config(folder, eos_token_id=[4, 7], pad_token_id=None)
    loaded = load_policy(folder)
    assert loaded.end_tokens == frozenset({4, 7})
    assert loaded.pad_token in loaded.end_tokens
    samples = loaded.sample([(2, 3), (5,)], 40, PLAIN, 0)
    ends = {completion[-1] for group in samples for completion in group.completions}
    assert {4, 7} <= ends


@pytest.mark.parametrize("ends", [None, []])
def test_a_model_that_never_ends_is_refused(folder, ends):
    change_config(folder, eos_token_id=ends)
    assert refusal(folder).startswith("config.json: eos_token_id names no end token")


@pytest.mark.parametrize("name", ["config.json", WEIGHTS])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert refusal(folder) == f"checkpoint step-0025: the folder has no {name}"


def test_a_missing_folder_is_named(tmp_path):
    assert refusal(tmp_path / "step-0050") == "checkpoint step-0050: the folder has no config.json"


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 200, 0.5, -1])
def test_truncated_weights_are_refused(folder, kept):
    path = folder / WEIGHTS
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    assert refusal(folder).startswith("checkpoint step-0025 is damaged")


def test_a_flipped_bit_is_refused_or_changes_the_identity(folder, saved):
    path, whole = folder / WEIGHTS, (saved / WEIGHTS).read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    identity = load_policy(saved).identity
    rng = random.Random(0)
    places = [rng.randrange(header) for _ in range(15)]
    places += [rng.randrange(header, len(whole)) for _ in range(5)]
    refused = 0
    for place in places:
        content = bytearray(whole)
        content[place] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            # Inside the header's free metadata, a flip may be harmless.
            changed = load_policy(folder).identity != identity
            assert changed or place < header
        except CheckpointError:
            refused += 1
    assert refused > 5


def test_weights_that_are_not_finite_are_refused(folder):
    weights = load_file(folder / WEIGHTS)
    weights["model.norm.weight"][3] = math.nan
    save_file(weights, folder / WEIGHTS, {"format": "pt"})
    assert refusal(folder) == "checkpoint step-0025 is damaged: weights are not finite"


@pytest.mark.parametrize("change", ["lost", "renamed", "added"])
def test_no_tensor_is_made_up_or_left_out(folder, change):
    weights = load_file(folder / WEIGHTS)
    name = "model.layers.0.mlp.down_proj.weight"
    if change == "added":
        weights["model.layers.2.mlp.down_proj.weight"] = weights[name].clone()
    else:
        value = weights.pop(name)
        if change == "renamed":
            weights["model.layers.0.mlp.down.weight"] = value
    save_file(weights, folder / WEIGHTS, {"format": "pt"})
    message = refusal(folder)
    assert "model.safetensors and config.json do not belong together" in message
    assert "model.layers." in message


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"llama"', "{}", '{"model_type": "no such"}', "\x00\x01", "é" * 50],
)
def test_a_configuration_that_is_none_is_refused(folder, text):
    (folder / "config.json").write_text(text, encoding="utf-8")
    assert refusal(folder).startswith("checkpoint step-0025 is damaged")


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": "thirty-two"},
        {"hidden_size": -1},
        {"hidden_size": 64},
        {"num_attention_heads": 0},
        {"num_hidden_layers": 1},
        {"num_hidden_layers": 3},
        {"vocab_size": 10},
        {"pad_token_id": 11},
        {"tie_word_embeddings": False},
    ],
    ids=str,
)
def test_a_configuration_of_other_weights_is_refused(folder, changes):
    change_config(folder, **changes)
    assert "do not belong together" in refusal(folder)


class Bomb:
    """What a pickle does when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return self.path.touch, ()


@pytest.mark.parametrize("name", [WEIGHTS, "pytorch_model.bin"])
def test_a_pickle_is_refused_and_never_read(folder, tmp_path, name):
    (folder / WEIGHTS).unlink()
    bomb = pickle.dumps(Bomb(tmp_path / "exploded"))
    (folder / name).write_bytes(bomb)
    refusal(folder)
    assert not (tmp_path / "exploded").exists()
    pickle.loads(bomb)  # the bomb is a real one  # noqa: S301
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("model_type", ["llama", "custom"])
def test_code_in_the_folder_is_never_executed(folder, tmp_path, model_type):
    """Nor is anybody asked on the terminal whether it should be."""
    code = f"import pathlib\npathlib.Path({str(tmp_path / 'executed')!r}).touch()\n"
    (folder / "modelling.py").write_text(code, encoding="utf-8")
    classes = {"AutoConfig": "modelling.Config", "AutoModelForCausalLM": "modelling.Model"}
    change_config(folder, model_type=model_type, auto_map=classes)
    if model_type == "llama":
        load_policy(folder)  # transformers' own class does
    else:
        assert "custom code" in refusal(folder)
    assert not (tmp_path / "executed").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(ValueError, match=r"^use_gpu: no GPU is available here.* valid .* False"):
        load_policy(tmp_path / "nothing", use_gpu=True)
