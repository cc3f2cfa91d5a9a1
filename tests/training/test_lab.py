import json
import shutil
from dataclasses import replace

import pytest
import torch

from companion import lineages
from companion.lab import evaluation
from companion.lab.model import new_model
from companion.lineages import MANIFEST, WEIGHTS, LineageRecord, Manifest, file_hash
from companion.policies.transformers import load_policy
from companion.training import lab, state
from companion.training.lab import BASE, CONTROL, GRPO, LabRecipe, train_lab
from companion.training.pretrain import PretrainRecipe
from companion.training.rl import GrpoRecipe, save_weights

SHIPPED_BASE = lineages.load("lab-grpo").at(0)
TINY = GrpoRecipe(steps=5, problems_per_step=2, group_size=16)
RECIPE = LabRecipe(
    base=PretrainRecipe(steps=1, traces_per_size=2, pool=4),
    rewarded=TINY,
    control=replace(TINY, reward="random"),
    spacing=5,
    control_spacing=5,
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small(monkeypatch):
    make_small(monkeypatch)


def make_small(patch):
    """Checkpoints are measured on three problems of each size, and may be five steps apart."""
    patch.setitem(evaluation.PROBLEMS, "held-out", 3)
    patch.setattr(lab, "SAVE_EVERY", 5)


def finished_base(recipe, folder):
    """A state in which pre-training has already reached the shipped base.

    A base of one step never solves anything, and a reward that never comes teaches nothing.
    """
    model = load_policy(SHIPPED_BASE.folder).model
    optimizer = torch.optim.AdamW(model.parameters())
    settings = {"kind": "pretrain", **recipe.__dict__}
    state.save(folder, recipe.steps, model, optimizer, settings)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A laboratory of five steps: its folders, its manifest and every report."""
    folder = tmp_path_factory.mktemp("lab")
    finished_base(RECIPE.base, folder / "work" / BASE)
    reports = []
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        made = train_lab(
            RECIPE, folder / "work", folder / "lab", lambda *report: reports.append(report)
        )
    return folder, made, reports


def checkpoints(made):
    return [(name, c) for name, lineage in made.lineages.items() for c in lineage.checkpoints]


# A whole laboratory.


def test_every_checkpoint_is_written_verifies_and_loads(trained, small, monkeypatch):
    folder, made, _ = trained
    monkeypatch.setattr(lineages, "LAB", folder / "lab")
    lineages.manifest.cache_clear()
    assert lineages.manifest() == made
    assert lineages.steps() == {BASE: (0,), CONTROL: (0, 5), GRPO: (0, 5)}
    for name in lineages.names():
        for checkpoint in lineages.load(name).checkpoints:
            checkpoint.verify()
            policy = load_policy(checkpoint.folder)
            assert evaluation.measured(policy) == checkpoint.record.measured
    lineages.manifest.cache_clear()


def test_the_checkpoint_is_the_trained_model_in_half_precision(trained):
    folder, made, _ = trained
    for name in (GRPO, CONTROL):
        weights = lab.trained(folder / "work" / name, 5).state_dict()
        written = load_policy(folder / "lab" / made.lineages[name].checkpoints[1].folder).model
        for key, value in written.state_dict().items():
            assert torch.equal(value, weights[key].half().float()), key


def test_the_lineages_differ_from_their_base_and_from_each_other(trained):
    _, made, _ = trained
    hashes = {checkpoint.sha256 for _, checkpoint in checkpoints(made)}
    assert len(hashes) == 3  # the base is shared
    assert made.lineages[GRPO].checkpoints[0].sha256 == SHIPPED_BASE.record.sha256


def test_the_manifest_records_recipe_and_time(trained):
    folder, made, _ = trained
    assert made.lineages[GRPO].recipe == RECIPE.rewarded.__dict__
    assert made.lineages[CONTROL].recipe["reward"] == "random"
    for name in (GRPO, CONTROL):
        log = state.read_log(folder / "work" / name)
        assert [line["step"] for line in log] == list(range(1, 6))
        spent = sum(line["seconds"] for line in log)
        assert made.lineages[name].seconds == pytest.approx(spent, abs=0.05)


def test_every_step_of_both_runs_is_reported(trained):
    _, _, reports = trained
    for name in (GRPO, CONTROL):
        assert [r for r in reports if r[0] == name] == [(name, i, 5) for i in range(1, 6)]


def test_a_second_call_trains_nothing_and_gives_the_same(trained, small):
    """Even where the checkpoints have been removed: they are made of the finished runs."""
    folder, made, _ = trained
    first = (folder / "lab" / MANIFEST).read_bytes()
    shutil.rmtree(folder / "lab" / lab.CHECKPOINTS)
    logs = {path: path.read_text(encoding="utf-8") for path in folder.rglob("log.jsonl")}
    reports = []
    again = train_lab(
        RECIPE, folder / "work", folder / "lab", lambda *report: reports.append(report)
    )
    assert again == made
    assert (folder / "lab" / MANIFEST).read_bytes() == first
    assert reports == []
    assert logs == {path: path.read_text(encoding="utf-8") for path in folder.rglob("log.jsonl")}
    for _, checkpoint in checkpoints(again):
        assert file_hash(folder / "lab" / checkpoint.folder / WEIGHTS) == checkpoint.sha256


def test_a_run_of_other_settings_is_refused(trained, small):
    folder, _, _ = trained
    other = replace(RECIPE, base=replace(RECIPE.base, learning_rate=1.0))
    with pytest.raises(state.TrainingStateError, match="was written under other settings"):
        train_lab(other, folder / "work", folder / "elsewhere", lambda *_: None)


# One checkpoint.


@pytest.mark.parametrize("hidden", [32, 64, 128])
def test_a_model_of_any_width_is_written_and_read_back(tmp_path, hidden):
    model = new_model(3, hidden)
    save_weights(model, tmp_path / "step-0025")
    weights = model.state_dict()
    read = lab.trained(tmp_path, 25)
    assert all(torch.equal(value, weights[name]) for name, value in read.state_dict().items())
    lab.write_checkpoint(read, tmp_path / "checkpoint")
    written = load_policy(tmp_path / "checkpoint").model
    assert written.config.hidden_size == hidden
    for name, value in written.state_dict().items():
        assert torch.equal(value, weights[name].half().float()), name
    assert {value.dtype for value in read.parameters()} == {torch.float32}  # not touched


def test_a_shipped_checkpoint_written_again_has_the_same_bytes(tmp_path):
    lab.write_checkpoint(load_policy(SHIPPED_BASE.folder).model, tmp_path)
    assert file_hash(tmp_path / WEIGHTS) == SHIPPED_BASE.record.sha256
    assert {path.name for path in tmp_path.iterdir()} == {
        path.name for path in SHIPPED_BASE.folder.iterdir()
    }


def test_a_saved_step_that_lacks_a_tensor_is_refused(tmp_path):
    model = new_model(3)
    save_weights(model, tmp_path / "step-0025")
    weights = lab.load_file(tmp_path / "step-0025.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    state.save_file(weights, tmp_path / "step-0025.safetensors")
    with pytest.raises(RuntimeError, match=r"layers\.1\.mlp\.up_proj"):
        lab.trained(tmp_path, 25)


# Settings.


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"spacing": 0}, "^spacing: a multiple of 25"),
        ({"spacing": 10}, "^spacing: a multiple of 25, such as 50; got 10"),
        ({"control_spacing": -25}, "^control_spacing: a multiple of 25"),
        ({"spacing": 150}, "^spacing: a divisor of the 400 steps; got 150"),
        ({"control_spacing": 800}, "^control_spacing: a divisor of the 400 steps; got 800"),
    ],
)
def test_a_spacing_that_skips_the_last_step_is_refused_at_once(tmp_path, changes, said):
    with pytest.raises(ValueError, match=said):
        train_lab(LabRecipe(**changes), tmp_path / "work", tmp_path / "lab", print)
    assert list(tmp_path.iterdir()) == []


def test_the_default_recipe_is_that_of_the_shipped_laboratory():
    recipe, shipped = LabRecipe(), lineages.manifest().lineages
    for name, own in ((BASE, recipe.base), (GRPO, recipe.rewarded), (CONTROL, recipe.control)):
        assert shipped[name].recipe == own.__dict__
    assert lineages.load(GRPO).steps == tuple(range(0, 401, recipe.spacing))
    assert lineages.load(CONTROL).steps == tuple(range(0, 401, recipe.control_spacing))


# Two manifests beside each other.


def test_equal_manifests_have_no_difference(trained):
    _, made, _ = trained
    assert lab.differences(made, made) == []
    assert lab.differences(lineages.manifest(), lineages.manifest()) == []


def test_a_changed_weight_is_a_difference(trained, small, tmp_path):
    folder, made, _ = trained
    record = made.lineages[GRPO]
    policy = load_policy(folder / "lab" / record.checkpoints[1].folder)
    norm = policy.model.state_dict()["model.norm.weight"].clone()
    norm[5] *= 3
    changed = tmp_path / lab.CHECKPOINTS / "changed"
    lab.write_checkpoint(policy.with_weights({"model.norm.weight": norm}).model, changed)
    later = record.checkpoints[1].model_copy(
        update={
            "sha256": file_hash(changed / WEIGHTS),
            "measured": evaluation.measured(load_policy(changed)),
        }
    )
    new = record.model_copy(update={"checkpoints": [record.checkpoints[0], later]})
    other = Manifest(lineages={**made.lineages, GRPO: new})
    old = record.checkpoints[1].measured
    gap = max(abs(later.measured[s][m] - old[s][m]) for s in old for m in old[s])
    assert lab.differences(other, made) == [
        f"{GRPO} step 5: other weights; largest change of a measure {gap:.3f}"
    ]


def test_what_was_not_trained_is_a_difference(trained):
    _, made, _ = trained
    short = made.lineages[GRPO].model_copy(
        update={"checkpoints": made.lineages[GRPO].checkpoints[:1]}
    )
    other = Manifest(lineages={BASE: made.lineages[BASE], GRPO: short})
    assert lab.differences(other, made) == [
        f"{GRPO} step 5 was not trained",
        f"{CONTROL} step 0 was not trained",
        f"{CONTROL} step 5 was not trained",
    ]


def test_expected_minutes_are_the_base_and_the_slower_of_the_two_runs():
    def taking(seconds):
        return LineageRecord(description="", recipe={}, seconds=seconds, checkpoints=[])

    runs = {BASE: taking(100.0), GRPO: taking(200.0), CONTROL: taking(321.0)}
    assert lab.expected_minutes(Manifest(lineages=runs)) == 8  # 421 s, rounded up
    runs[GRPO] = taking(380.0)
    assert lab.expected_minutes(Manifest(lineages=runs)) == 8
    runs[GRPO] = taking(380.1)
    assert lab.expected_minutes(Manifest(lineages=runs)) == 9


def test_the_manifest_is_plain_json(trained):
    folder, made, _ = trained
    text = (folder / "lab" / MANIFEST).read_text(encoding="utf-8")
    assert Manifest(**json.loads(text)) == made
