import json
import math

import pytest
import torch

from companion.countdown.problems import Problem
from companion.lab import world
from companion.lab.tokenizer import EOS, WORDS, completion, prompt
from companion.seeds import generator
from companion.training import pretrain as pretraining
from companion.training.pretrain import PretrainRecipe, learning_rate, next_token_loss, pretrain
from companion.training.state import LOG, TrainingStateError

TINY = PretrainRecipe(hidden=32, steps=5, traces_per_size=2, pool=8, warmup=2)


def parameters(model):
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def quiet(done, steps, line):
    pass


# The loss.


@pytest.fixture(scope="module")
def model(tiny_llama):
    return tiny_llama(len(WORDS), max_position_embeddings=64)


@pytest.fixture(scope="module")
def texts():
    problems = [Problem((3, 5, 7), 26), Problem((1, 2, 3, 4), 24), Problem((9, 2, 13), 20)]
    rng = generator("test", 0)
    traces = [completion(world.demonstration(p, 0.5, rng)) for p in problems]
    assert len({len(p) + len(t) for p, t in zip(map(prompt, problems), traces, strict=True)}) > 1
    return [prompt(p) for p in problems], traces


@torch.inference_mode()
def by_hand(model, prompts, completions):
    """The mean over all tokens of the completions, each after its prefix alone."""
    nats = []
    for given, text in zip(prompts, completions, strict=True):
        for t, token in enumerate(text):
            logits = model(input_ids=torch.tensor([[*given, *text[:t]]])).logits[0, -1]
            nats.append(-float(torch.log_softmax(logits.double(), -1)[token]))
    return sum(nats) / len(nats)


def test_the_loss_is_the_mean_over_the_completions_tokens(model, texts):
    assert float(next_token_loss(model, *texts).detach()) == pytest.approx(
        by_hand(model, *texts), abs=1e-5
    )


def test_hand_worked_loss(bigram_llama):
    table = [[0.25] * 4, [0.25] * 4, [0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.1, 0.1]]
    model = bigram_llama(table)
    # After 2 comes 3 (0.4), after 3 the end (0.3); after 3 comes the end at once (0.3).
    found = float(next_token_loss(model, [(3, 2), (2, 3)], [(3, 1), (1,)]).detach())
    assert found == pytest.approx(-(math.log(0.4) + 2 * math.log(0.3)) / 3, abs=1e-5)


def test_the_last_end_token_counts_even_where_it_is_the_pad_token_too(model, texts, monkeypatch):
    prompts, completions = texts
    expected = by_hand(model, prompts, completions)
    cut = by_hand(model, prompts, [text[:-1] for text in completions])
    assert completions[0][-1] == EOS
    assert cut != pytest.approx(expected, abs=1e-3)
    monkeypatch.setattr(pretraining, "PAD", EOS)
    assert float(next_token_loss(model, prompts, completions).detach()) == pytest.approx(
        expected, abs=1e-5
    )


def test_an_end_token_inside_a_prompt_does_not_count(model, texts):
    prompts, completions = texts
    prompts = [(EOS, *given) for given in prompts]
    found = float(next_token_loss(model, prompts, completions).detach())
    assert found == pytest.approx(by_hand(model, prompts, completions), abs=1e-5)


# The schedule.


def test_the_learning_rate_by_hand():
    recipe = PretrainRecipe(steps=12, warmup=4, learning_rate=0.8)
    found = [learning_rate(recipe, step) for step in range(12)]
    assert found[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert found[4] == pytest.approx(0.8)  # cosine of 0
    assert found[8] == pytest.approx(0.4)  # half-way down
    assert found[6] == pytest.approx(0.4 * (1 + math.sqrt(0.5)))
    assert found[11] == pytest.approx(0.4 * (1 + math.cos(math.pi * 7 / 8)))
    assert learning_rate(recipe, 12) == pytest.approx(0)
    assert found[4:] == sorted(found[4:], reverse=True)


def test_a_run_that_ends_before_its_warm_up_only_climbs():
    recipe = PretrainRecipe(steps=2, warmup=4, learning_rate=0.8)
    assert [learning_rate(recipe, step) for step in range(2)] == pytest.approx([0.2, 0.4])
    assert learning_rate(PretrainRecipe(steps=4, warmup=0, learning_rate=0.8), 0) == 0.8


# Whole runs.


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run: its weights, its log, and what was reported."""
    folder = tmp_path_factory.mktemp("pretrain")
    reported = []
    model = pretrain(TINY, folder, lambda *values: reported.append(values))
    return parameters(model), read(folder), reported


def read(folder):
    """The log without the times."""
    lines = (folder / LOG).read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def test_every_step_is_reported_and_logged(whole):
    _, log, reported = whole
    assert [line["step"] for line in log] == [1, 2, 3, 4, 5]
    assert [(done, steps) for done, steps, _ in reported] == [(i, 5) for i in range(1, 6)]
    assert [line["loss"] for _, _, line in reported] == [line["loss"] for line in log]
    assert log[0]["loss"] == pytest.approx(math.log(527), abs=0.1)  # nothing is known yet


def test_a_run_is_a_function_of_its_recipe(whole, tmp_path):
    again = pretrain(TINY, tmp_path, quiet)
    assert all(torch.equal(whole[0][n], v) for n, v in again.named_parameters())
    assert read(tmp_path) == whole[1]


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stops", [[1], [2], [3, 4], [5], [1, 1, 2, 3, 3, 4, 5]])
def test_a_stopped_run_goes_on_as_if_nothing_had_happened(whole, tmp_path, monkeypatch, stops):
    monkeypatch.setattr(pretraining, "SAVE_EVERY", 2)
    for stop in stops:

        def progress(done, steps, line, stop=stop):
            if done == stop:
                raise Stopped

        with pytest.raises(Stopped):
            pretrain(TINY, tmp_path, progress)
    model = pretrain(TINY, tmp_path, quiet)
    assert all(torch.equal(whole[0][n], v) for n, v in model.named_parameters())
    assert read(tmp_path) == whole[1]


def test_a_finished_run_is_loaded_and_not_trained_again(whole, tmp_path):
    pretrain(TINY, tmp_path, quiet)
    reported = []
    model = pretrain(TINY, tmp_path, lambda *values: reported.append(values))
    assert reported == []
    assert all(torch.equal(whole[0][n], v) for n, v in model.named_parameters())


def test_another_recipe_in_the_same_folder_is_refused(tmp_path):
    pretrain(PretrainRecipe(**vars(TINY) | {"steps": 1}), tmp_path, quiet)
    with pytest.raises(TrainingStateError, match="was written under other settings"):
        pretrain(PretrainRecipe(**vars(TINY) | {"steps": 1, "seed": 1}), tmp_path, quiet)


def test_some_steps_teach_something(tmp_path):
    recipe = PretrainRecipe(hidden=32, steps=30, traces_per_size=4, pool=4, warmup=3)
    losses = []
    pretrain(recipe, tmp_path, lambda done, steps, line: losses.append(line["loss"]))
    assert sum(losses[-5:]) / 5 < losses[0] - 1  # nats a token, of log(527) = 6.3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps: 1 or more; got 0"),
        ({"traces_per_size": 0}, "traces_per_size: 1 or more; got 0"),
        ({"pool": 0}, "pool: 1 or more; got 0"),
        ({"hidden": 16}, "hidden: a multiple of 32, such as 64; got 16"),
        ({"hidden": 65}, "hidden: a multiple of 32, such as 64; got 65"),
        ({"on_target_3": 1.5}, "on_target_3: a share from 0 to 1; got 1.5"),
        ({"on_target_4": math.nan}, "on_target_4: a share from 0 to 1; got nan"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_written(tmp_path, settings, message):
    with pytest.raises(ValueError, match=rf"^{message}$"):
        pretrain(PretrainRecipe(**vars(TINY) | settings), tmp_path / "run", quiet)
    assert not (tmp_path / "run").exists()
