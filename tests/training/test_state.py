import importlib.util
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from companion.training import state
from companion.training.state import LOG, STATE, Log, TrainingStateError, read_log, write_atomically

WORKER = Path(__file__).with_name("train_worker.py")
spec = importlib.util.spec_from_file_location("train_worker", WORKER)
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)

SETTINGS = {"kind": "test", "seed": 0, "rate": 0.1}


def network(seed=0):
    """A small network that takes some steps, and its optimiser."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def take_step(model, optimizer, seed):
    inputs = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()


def values(model):
    return [value.detach().clone() for value in model.parameters()]


def equal(left, right):
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.fixture
def folder(tmp_path):
    """A folder with the state after three steps."""
    model, optimizer = network()
    for seed in range(3):
        take_step(model, optimizer, seed)
    state.save(tmp_path, 3, model, optimizer, SETTINGS)
    return tmp_path


# Save and load.


def test_a_loaded_state_goes_on_bit_for_bit(folder):
    model, optimizer = network()
    for seed in range(6):
        take_step(model, optimizer, seed)
    resumed, resumed_optimizer = network(seed=1)
    assert state.load(folder, resumed, resumed_optimizer, SETTINGS) == 3
    for seed in range(3, 6):
        take_step(resumed, resumed_optimizer, seed)
    assert equal(values(resumed), values(model))


def test_the_optimiser_matters(folder):
    """Without its moments, the next step is another one."""
    resumed, resumed_optimizer = network(seed=1)
    state.load(folder, resumed, resumed_optimizer, SETTINGS)
    fresh = torch.optim.AdamW(resumed.parameters(), lr=0.1)
    forgetful = values(resumed)
    take_step(resumed, resumed_optimizer, 3)
    right = values(resumed)
    with torch.no_grad():
        for parameter, value in zip(resumed.parameters(), forgetful, strict=True):
            parameter.copy_(value)
    take_step(resumed, fresh, 3)
    assert not equal(values(resumed), right)


def test_a_folder_without_a_state_is_a_run_that_has_not_begun(tmp_path):
    model, optimizer = network()
    before = values(model)
    assert state.load(tmp_path / "none", model, optimizer, SETTINGS) == 0
    assert equal(values(model), before)


def test_a_state_without_moments_can_be_saved_and_loaded(tmp_path):
    """Where no step has had a gradient, the optimiser has none."""
    model, optimizer = network()
    state.save(tmp_path, 1, model, optimizer, SETTINGS)
    resumed, resumed_optimizer = network(seed=1)
    assert state.load(tmp_path, resumed, resumed_optimizer, SETTINGS) == 1
    take_step(model, optimizer, 0)
    take_step(resumed, resumed_optimizer, 0)
    assert equal(values(resumed), values(model))


def test_nothing_of_the_file_stays_in_use(folder):
    """Else Windows could not replace it, and a change of the file would change the run."""
    model, optimizer = network(seed=1)
    state.load(folder, model, optimizer, SETTINGS)
    before = [m.clone() for s in optimizer.state.values() for m in s.values()]
    path = folder / STATE
    with path.open("r+b") as file:  # in place, not a new file
        file.write(bytes(path.stat().st_size))
    after = [m for s in optimizer.state.values() for m in s.values()]
    assert len(before) == 12
    assert equal(before, after)


@pytest.mark.parametrize(
    "settings", [{**SETTINGS, "seed": 1}, {**SETTINGS, "more": 1}, {"kind": "test"}, {}]
)
def test_a_state_of_other_settings_is_refused(folder, settings):
    model, optimizer = network()
    with pytest.raises(
        TrainingStateError, match="was written under other settings; choose another"
    ):
        state.load(folder, model, optimizer, settings)


# Damage.


def refusal(folder):
    model, optimizer = network()
    before = values(model)
    with pytest.raises(TrainingStateError) as refused:
        state.load(folder, model, optimizer, SETTINGS)
    assert equal(values(model), before)
    message = str(refused.value)
    assert str(folder / STATE) in message
    assert message.endswith("remove it to train this run from its first step")
    return message


@pytest.mark.parametrize("kept", [0, 4, 8, 100, 0.5, -1])
def test_a_truncated_state_is_refused(folder, kept):
    path = folder / STATE
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])
    assert "is damaged" in refusal(folder)


def test_a_flipped_bit_anywhere_is_refused_or_harmless(folder):
    path = folder / STATE
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    model, optimizer = network()
    state.load(folder, model, optimizer, SETTINGS)
    expected = values(model)
    rng = random.Random(0)
    for place in [*(rng.randrange(len(whole)) for _ in range(100)), *range(header, len(whole), 9)]:
        content = bytearray(whole)
        content[place] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            assert state.load(folder, model, optimizer, SETTINGS) == 3
            assert place < header  # in the name or the value of what only describes the file
            assert equal(values(model), expected)
        except TrainingStateError:
            continue


def test_a_file_of_another_kind_is_refused(folder):
    path = folder / STATE
    save_file({"model.0.weight": torch.zeros(4, 3)}, path)
    refusal(folder)
    path.write_bytes(b"\x80\x04\x95" + bytes(300))
    assert "is damaged" in refusal(folder)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "folder" / "file"
    write_atomically(path, lambda temporary: temporary.write_bytes(b"old"))

    def fail(temporary):
        temporary.write_bytes(b"half of the n")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is open")
def test_a_file_is_replaced_as_a_whole(tmp_path):
    """Whoever reads the old file meanwhile reads it to its end."""
    path = tmp_path / "file"
    write_atomically(path, lambda temporary: temporary.write_bytes(b"old"))
    with path.open("rb") as reader:
        write_atomically(path, lambda temporary: temporary.write_bytes(b"the new one"))
        assert reader.read() == b"old"
    assert path.read_bytes() == b"the new one"


# The log.


def test_the_log_drops_what_will_be_done_again(tmp_path):
    log = Log(tmp_path, 0)
    for step in range(1, 6):
        log.append(step=step, loss=step / 2)
    assert read_log(tmp_path) == [{"step": s, "loss": s / 2} for s in range(1, 6)]
    Log(tmp_path, 3).append(step=4, loss=0.25)
    assert [(line["step"], line["loss"]) for line in read_log(tmp_path)] == [
        (1, 0.5),
        (2, 1.0),
        (3, 1.5),
        (4, 0.25),
    ]


def test_a_last_line_that_was_cut_short_is_left_out_and_mended(tmp_path):
    log = Log(tmp_path, 0)
    for step in range(1, 4):
        log.append(step=step, loss=0.5)
    whole = (tmp_path / LOG).read_text(encoding="utf-8")
    second = whole.index("\n", whole.index("\n") + 1)
    for end in range(second + 1, len(whole) + 1):
        (tmp_path / LOG).write_text(whole[:end], encoding="utf-8")
        steps = [line["step"] for line in read_log(tmp_path)]
        assert steps == ([1, 2] if end < len(whole) - 1 else [1, 2, 3])
        Log(tmp_path, 2).append(step=3, loss=0.5)
        assert (tmp_path / LOG).read_text(encoding="utf-8") == whole


def test_no_log_is_an_empty_one(tmp_path):
    assert read_log(tmp_path / "none") == []


# Kills.


def logs(folder):
    """Both logs without the times."""
    return [
        [{k: v for k, v in line.items() if k != "seconds"} for line in read_log(folder / name)]
        for name in ("base", "grpo")
    ]


def start_and_kill(folder, after, seconds):
    """Kill a worker so long after it has printed so many lines; returns the lines."""
    command = [sys.executable, str(WORKER), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        lines = [process.stdout.readline() for _ in range(after)]
        time.sleep(seconds)
        process.kill()
        lines += process.stdout.readlines()
    assert process.returncode != 0, "the worker had finished before it was killed"
    assert lines[0]
    assert lines[after - 1]
    return lines


def test_killed_runs_go_on_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(worker.pretraining, "SAVE_EVERY", 100)
    monkeypatch.setattr(worker.rl, "SAVE_EVERY", 100)
    reported = []
    whole = worker.train(tmp_path / "whole", reported.append, save_every=100)
    assert len(reported) == 12

    rng = random.Random(1)
    killed = tmp_path / "killed"
    first = start_and_kill(killed, rng.randint(2, 5), rng.random() * 0.02)
    second = start_and_kill(killed, rng.randint(3, 7), rng.random() * 0.1)
    assert first[0] == "base 1\n"
    assert second[0] != "base 1\n"  # it went on from what was saved
    resumed = worker.train(killed, lambda _: None)
    assert equal(values(resumed), values(whole))
    assert logs(killed) == logs(tmp_path / "whole")
    assert [len(log) for log in logs(killed)] == [6, 6]
