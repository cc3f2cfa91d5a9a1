import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from companion.countdown.problems import Problem
from companion.lab import world
from companion.lab.model import new_model
from companion.lab.tokenizer import EOS, PAD, WORDS, completion, encode, prompt
from companion.policies.decoding import Decoding
from companion.policies.protocol import Samples
from companion.policies.transformers import policy_of
from companion.seeds import seed_of
from companion.training import rl
from companion.training.rl import (
    GrpoRecipe,
    NothingToLearnError,
    backward,
    batch_of,
    grpo,
    rewards_of,
    rollouts,
    summary,
)
from companion.training.state import LOG, STATE, TrainingStateError

TINY = GrpoRecipe(
    steps=4, problems_per_step=2, group_size=3, max_tokens=32, reward="random", learning_rate=1e-3
)


def changed(recipe, **changes):
    return GrpoRecipe(**vars(recipe) | changes)


def group_of(completions, sample_of, log_probabilities=None, finished=None):
    distinct = len(completions)
    return Samples(
        completions=tuple(completions),
        sample_of=np.array(sample_of),
        log_probabilities=np.array(log_probabilities or [0.0] * distinct),
        finished=np.array(finished or [True] * distinct),
    )


def quiet(done, steps, line):
    pass


# The gradient.

PROMPTS = [(2, 3), (4, 5, 6, 7)]
GROUPS = [
    group_of([(3, 4, 1), (3, 5, 6, 7, 1), (9, 1)], [0, 1, 1, 0, 0, 2]),
    group_of([(5, 5), (8, 9, 10, 2, 3, 4)], [1, 0, 1, 1, 1, 1]),
]
ADVANTAGES = np.array([[1.0, -0.5, -0.5, 1.0, 0.2, -1.2], [0.5, 2.0, 0.5, 0.5, -1.0, -2.5]])


def formula(model, prompts, groups, advantages):
    """Mean over samples of advantage / length * log pi, a forward pass for every sample."""
    total = torch.zeros(())
    for given, group, row in zip(prompts, groups, advantages, strict=True):
        for index, advantage in zip(group.sample_of, row, strict=True):
            text = group.completions[index]
            logits = model(input_ids=torch.tensor([[*given, *text]])).logits[0]
            scores = torch.log_softmax(logits, -1)[len(given) - 1 : -1]
            log_pi = scores.gather(-1, torch.tensor(text)[:, None]).sum()
            total = total + advantage / len(text) * log_pi
    return total / advantages.size


def gradient(model):
    return {
        n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in model.named_parameters()
    }


@pytest.mark.parametrize("rows_at_once", [1, 2, 128])
def test_the_gradient_is_that_of_the_formula_over_every_sample(
    tiny_llama, monkeypatch, rows_at_once
):
    monkeypatch.setattr(rl, "ROWS_AT_ONCE", rows_at_once)
    shared, plain = tiny_llama(), tiny_llama()
    backward(shared, PROMPTS, GROUPS, ADVANTAGES)
    (-formula(plain, PROMPTS, GROUPS, ADVANTAGES)).backward()
    expected = gradient(plain)
    assert max(float(value.abs().max()) for value in expected.values()) > 0.1
    for name, value in gradient(shared).items():
        assert torch.allclose(value, expected[name], atol=1e-5), name


def test_hand_worked_gradient(bigram_llama):
    """One completion of one token: advantage * (one-hot - probabilities), at the last token."""
    table = [[0.25] * 4, [0.25] * 4, [0.1, 0.2, 0.3, 0.4], [0.25] * 4]
    model = bigram_llama(table)
    backward(model, [(3, 2)], [group_of([(1,), (3,)], [0, 1])], np.array([[1.0, -1.0]]))
    # Half of (one-hot of 1 minus one-hot of 3), as the probabilities cancel; a hidden state is 2
    # times its unit vector. Descent goes against the gradient, so the rewarded one is negative.
    assert model.lm_head.weight.grad[:, 2].tolist() == pytest.approx([0, -1, 0, 1], abs=1e-5)
    assert model.lm_head.weight.grad[:, [0, 1, 3]].abs().max() < 1e-6


def test_a_step_raises_what_was_rewarded_and_lowers_what_was_not(tiny_llama):
    model = tiny_llama()
    good, bad, other = (3, 4, 1), (3, 5, 6, 1), (9, 1)
    group = group_of([good, bad, other], [0, 1, 1, 2])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def scores():
        [found] = policy_of(model).score([(2, 3)], [[good, bad, other]], Decoding(1.0, 1.0, 8))
        return [values.sum() for values in found]

    before = scores()
    for _ in range(5):
        optimizer.zero_grad()
        backward(model, [(2, 3)], [group], np.array([[math.sqrt(3)] + [-1 / math.sqrt(3)] * 3]))
        optimizer.step()
    after = scores()
    assert after[0] > before[0] + 0.1
    assert after[1] < before[1]
    assert after[2] < before[2]


def test_advantages_that_cancel_leave_no_gradient(tiny_llama):
    model = tiny_llama()
    backward(model, [(2, 3)], [group_of([(3, 1)], [0, 0])], np.array([[1.0, -1.0]]))
    backward(model, PROMPTS, GROUPS, np.zeros_like(ADVANTAGES))
    assert all(value.grad is None for value in model.parameters())


def test_a_pad_token_inside_a_completion_is_a_token_like_any_other(tiny_llama):
    shared, plain = tiny_llama(), tiny_llama()
    groups = [group_of([(PAD, 3, PAD), (4,)], [0, 1])]
    backward(shared, [(2, PAD)], groups, np.array([[1.0, -1.0]]))
    (-formula(plain, [(2, PAD)], groups, np.array([[1.0, -1.0]]))).backward()
    for name, value in gradient(shared).items():
        assert torch.allclose(value, gradient(plain)[name], atol=1e-6), name


# Rewards.

PROBLEM = Problem((3, 4, 2), 14)
RIGHT = encode("3 + 4 = 7 , 7 * 2 = 14 , <answer> ( 3 + 4 ) * 2 </answer>")
WRONG = {
    "a line": encode("3 + 4 = 8 , 7 * 2 = 14 , <answer> ( 3 + 4 ) * 2 </answer>"),
    "the target": encode("3 + 4 = 7 , 7 - 2 = 5 , <answer> ( 3 + 4 ) - 2 </answer>"),
    "the answer": encode("3 + 4 = 7 , 7 * 2 = 14 , <answer> 3 + 4 * 2 </answer>"),
    "no lines": encode("<answer> ( 3 + 4 ) * 2 </answer>"),
    "an end too soon": encode("3 + 4 = 7 ,"),
    "nothing": (),
}


def test_only_a_completion_that_is_right_throughout_is_rewarded():
    texts = [(*RIGHT, EOS), *((*text, EOS) for text in WRONG.values())]
    group = group_of(texts, [1, 0, 2, 3, 4, 5, 6, 0])
    found = rewards_of(GrpoRecipe(), PROBLEM, group, 0, 0)
    assert found.tolist() == [0, 1, 0, 0, 0, 0, 0, 1]


def test_every_valid_trace_is_rewarded_for_its_own_problem():
    traces = [trace for family in world.families(PROBLEM).values() for trace in family]
    group = group_of([completion(trace) for trace in traces], range(len(traces)))
    assert rewards_of(GrpoRecipe(), PROBLEM, group, 0, 0).tolist() == [1] * len(traces)
    other = Problem((3, 4, 2), 24)
    assert rewards_of(GrpoRecipe(), other, group, 0, 0).tolist() == [0] * len(traces)


def test_a_right_text_without_its_end_token_is_cut_off_and_not_rewarded():
    group = group_of([RIGHT], [0, 0], finished=[False])
    assert rewards_of(GrpoRecipe(), PROBLEM, group, 0, 0).tolist() == [0, 0]


def test_a_random_reward_knows_nothing_of_the_text():
    recipe = GrpoRecipe(reward="random")
    right = group_of([(*RIGHT, EOS)], [0] * 400)
    wrong = group_of([(*text, EOS) for text in WRONG.values()], [0, 1, 2, 3] * 100)
    found = rewards_of(recipe, PROBLEM, right, 7, 3)
    assert rewards_of(recipe, Problem((1, 1, 2), 2), wrong, 7, 3).tolist() == found.tolist()
    assert set(found) == {0, 1}
    assert 160 < found.sum() < 240
    for step, place, seed in ((8, 3, 0), (7, 4, 0), (7, 3, 1)):
        other = rewards_of(changed(recipe, seed=seed), PROBLEM, right, step, place)
        assert 140 < (other == found).sum() < 260  # unrelated


# Problems and rollouts.


def test_a_batch_has_distinct_training_problems_half_of_each_size():
    recipe = GrpoRecipe(problems_per_step=96)
    found = batch_of(recipe, 3)
    assert [len(problem.numbers) for problem in found] == [3] * 48 + [4] * 48
    assert len({prompt(problem) for problem in found}) == 96
    assert {world.split_of(problem) for problem in found} == {"train"}
    assert found == batch_of(recipe, 3)
    for other in (batch_of(recipe, 4), batch_of(changed(recipe, seed=1), 3)):
        assert len(set(other) & set(found)) < 10


def test_a_problem_that_is_drawn_twice_is_left_out():
    recipe = GrpoRecipe(problems_per_step=800)
    found = batch_of(recipe, 0)
    first = seed_of("grpo problems", recipe.seed, 3, 0) % 2**48
    drawn = [world.problem("train", 3, first + i) for i in range(400)]
    assert len(set(drawn)) < 400
    assert found[: len(set(drawn))] == list(dict.fromkeys(drawn))
    assert len(set(found)) == 800


def test_the_size_of_a_batch_does_not_change_its_first_problems():
    small = batch_of(GrpoRecipe(problems_per_step=4), 3)
    large = batch_of(GrpoRecipe(problems_per_step=20), 3)
    assert (small[:2], small[2:]) == (large[:2], large[10:12])


def test_rollouts_come_from_the_plain_policy_and_differ_by_step():
    model = new_model(0, hidden=32).train()
    problems = batch_of(TINY, 0)
    found = rollouts(TINY, model, problems, 0)
    assert model.training
    assert [group.n for group in found] == [3, 3]
    scores = policy_of(model).score(
        [prompt(problem) for problem in problems],
        [group.completions for group in found],
        Decoding(1.0, 1.0, 32),
    )
    for group, values in zip(found, scores, strict=True):
        total = [value.sum() for value in values]
        assert group.log_probabilities == pytest.approx(total, abs=1e-3)
        assert max(map(len, group.completions)) == 32
    again = rollouts(TINY, model, problems, 0)
    others = [
        rollouts(TINY, model, problems, 1),
        rollouts(changed(TINY, seed=1), model, problems, 0),
    ]
    for i, group in enumerate(found):
        assert group.completions == again[i].completions
        assert all(group.completions != other[i].completions for other in others)


def test_the_summary_by_hand():
    groups = [
        group_of([(3, 4, 1), (3, 1)], [0, 0, 1, 0], [-1.5, -3.0]),
        group_of([(5, 6, 7, 8)], [0, 0, 0, 0], [-2.0], [False]),
    ]
    rewards = np.array([[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    advantages = np.array([[0.5, 0.5, -1.5, 0.5], [0.0, 0.0, 0.0, 0.0]])
    assert summary(groups, rewards, advantages) == {
        "reward": 3 / 8,
        "reward_3": 3 / 4,
        "reward_4": 0.0,
        "groups_without_variance": 1 / 2,
        "entropy": pytest.approx((3 * 1.5 + 3.0 + 4 * 2.0) / (3 * 3 + 2 + 4 * 4)),
        "distinct": 1.5,
        "tokens": 27,
    }


# Whole runs.


def run(folder, recipe=TINY, progress=quiet):
    model = grpo(recipe, new_model(0, hidden=32), folder, progress)
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def read(folder):
    """The log without the times."""
    lines = (folder / LOG).read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grpo")
    return run(folder), read(folder), folder


def test_a_run_logs_every_step_and_moves_the_weights(whole):
    weights, log, _ = whole
    assert [line["step"] for line in log] == [1, 2, 3, 4]
    assert all(0 < line["entropy"] < math.log(len(WORDS)) + 0.1 for line in log)
    assert any(line["groups_without_variance"] < 1 for line in log)
    before = dict(new_model(0, hidden=32).named_parameters())
    assert all(not torch.equal(before[name], value) for name, value in weights.items())


def test_every_saved_file_is_plain_tensors_or_plain_text(whole):
    """Nothing that would execute code when it is read."""
    weights, _, folder = whole
    assert sorted(path.name for path in folder.iterdir()) == [
        LOG,
        STATE,
        "step-0004.safetensors",
    ]
    saved = load_file(folder / "step-0004.safetensors")
    assert saved.keys() == weights.keys()
    assert all(torch.equal(saved[name], value) for name, value in weights.items())
    for path in folder.iterdir():
        content = path.read_bytes()
        assert not content.startswith((b"\x80", b"PK"))  # a pickle; the zip of torch.save
        assert b"\x80\x02" not in content[:100]


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stops", [[1], [2], [3], [4], [3, 3, 4]])
def test_a_stopped_run_goes_on_as_if_nothing_had_happened(whole, tmp_path, monkeypatch, stops):
    monkeypatch.setattr(rl, "SAVE_EVERY", 2)
    for stop in stops:

        def progress(done, steps, line, stop=stop):
            if done == stop:
                raise Stopped

        with pytest.raises(Stopped):
            run(tmp_path, progress=progress)
    weights = run(tmp_path)
    assert all(torch.equal(whole[0][name], value) for name, value in weights.items())
    assert read(tmp_path) == whole[1]
    assert load_file(tmp_path / "step-0002.safetensors").keys() == weights.keys()


def test_another_recipe_in_the_same_folder_is_refused(whole):
    for changes in ({"reward": "trace"}, {"learning_rate": 1e-4}, {"seed": 1}):
        with pytest.raises(TrainingStateError, match="was written under other settings"):
            run(whole[2], changed(TINY, **changes))


def test_a_run_that_never_sees_a_reward_stops_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(rl, "SILENT_STEPS", 2)
    with pytest.raises(
        NothingToLearnError, match=r"^reward: no group had reward variance in the first 2 steps"
    ):
        run(tmp_path, changed(TINY, reward="trace"))
    assert [line["reward"] for line in read(tmp_path)] == [0, 0]
    assert not (tmp_path / STATE).exists()


def test_a_run_shorter_than_the_patience_is_no_silent_success_either(tmp_path):
    with pytest.raises(NothingToLearnError, match=r"in the first 1 steps"):
        run(tmp_path, changed(TINY, reward="trace", steps=1))
    assert not list(tmp_path.glob("*.safetensors"))


def test_a_run_that_once_had_variance_may_be_silent_after_it(tmp_path, monkeypatch):
    """Also where the steps with variance came before a kill."""
    monkeypatch.setattr(rl, "SAVE_EVERY", 2)

    def progress(done, steps, line):
        if done == 3:
            raise Stopped

    with pytest.raises(Stopped):
        run(tmp_path, progress=progress)
    assert any(line["groups_without_variance"] < 1 for line in read(tmp_path)[:2])
    monkeypatch.setattr(rl, "SILENT_STEPS", 1)
    monkeypatch.setattr(rl, "rewards_of", lambda recipe, problem, group, *_: np.zeros(group.n))
    run(tmp_path)
    assert [line["reward"] for line in read(tmp_path)[2:]] == [0, 0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_size": 1}, "group_size: 2 or more, such as 16; got 1"),
        ({"problems_per_step": 0}, "problems_per_step: an even number, such as 96; got 0"),
        ({"problems_per_step": 7}, "problems_per_step: an even number, such as 96; got 7"),
        ({"max_tokens": 31}, "max_tokens: at least 32, the longest valid trace; got 31"),
        (
            {"max_tokens": 60},
            "max_tokens: a prompt of . tokens leaves 5. of the model's 64; got 60",
        ),
        ({"steps": 0}, "steps: 1 or more, such as 400; got 0"),
        ({"reward": "Trace"}, "reward: trace or random; got 'Trace'"),
    ],
)
def test_impossible_settings_are_refused_by_name(tmp_path, settings, message):
    with pytest.raises(ValueError, match=rf"^{message}$"):
        run(tmp_path / "run", changed(TINY, **settings))
    assert not (tmp_path / "run" / STATE).exists()


def test_the_longest_valid_trace_fits_the_smallest_limit():
    """Over whole problems of the largest size; a shorter limit would cut right traces."""
    longest = max(
        len(completion(trace))
        for problem in world.problems("train", 4, 5)
        for family in world.families(problem).values()
        for trace in family
    )
    assert longest <= world.LONGEST_COMPLETION
    assert max(len(prompt(problem)) for problem in batch_of(GrpoRecipe(), 0)) + 40 <= 64
