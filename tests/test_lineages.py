import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from companion import lineages
from companion.countdown.problems import Problem
from companion.lab.model import configuration
from companion.lab.tokenizer import prompt
from companion.lineages import LAB, MANIFEST, WEIGHTS, LineageError
from companion.policies.transformers import CheckpointError, load_policy

LARGEST = 25_000_000  # bytes: what a clone has to carry at most
SHIPPED = {
    checkpoint.folder: checkpoint
    for name in lineages.names()
    for checkpoint in lineages.load(name).checkpoints
}
each_checkpoint = pytest.mark.parametrize(
    "checkpoint", SHIPPED.values(), ids=lambda one: f"{one.lineage}-{one.step}"
)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A laboratory of the same manifest with two of its checkpoints, to be damaged."""
    shutil.copyfile(LAB / MANIFEST, tmp_path / MANIFEST)
    for step in (0, 100):
        folder = lineages.load("lab-grpo").at(step).folder
        shutil.copytree(folder, tmp_path / folder.relative_to(LAB))
    monkeypatch.setattr(lineages, "LAB", tmp_path)
    lineages.manifest.cache_clear()
    yield tmp_path
    lineages.manifest.cache_clear()


def flip_a_bit(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


# What is shipped.


@each_checkpoint
def test_every_shipped_checkpoint_has_its_hash(checkpoint):
    checkpoint.verify()


@each_checkpoint
def test_every_shipped_checkpoint_loads_with_the_auto_classes(checkpoint):
    model = AutoModelForCausalLM.from_pretrained(checkpoint.folder)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint.folder)
    assert isinstance(model, LlamaForCausalLM)
    assert tuple(tokenizer("3 5 7 -> 26 <sep>").input_ids) == prompt(Problem((3, 5, 7), 26))


@each_checkpoint
def test_weights_are_stored_in_half_precision_and_loaded_in_single(checkpoint):
    with safe_open(checkpoint.folder / WEIGHTS, framework="pt") as file:
        stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert {value.dtype for value in stored.values()} == {torch.float16}
    loaded = dict(load_policy(checkpoint.folder).model.named_parameters())
    assert loaded.keys() == stored.keys()
    for name, value in loaded.items():
        assert value.dtype == torch.float32
        assert torch.equal(value, stored[name].float())


@each_checkpoint
def test_only_weights_and_readable_text_are_shipped(checkpoint):
    """No pickles, and no generation_config.json, which would change how others draw tokens."""
    files = {path.name for path in checkpoint.folder.iterdir()}
    assert files == {WEIGHTS, "config.json", "tokenizer.json", "tokenizer_config.json"}


@each_checkpoint
def test_every_configuration_is_the_laboratorys_own(checkpoint):
    """Nothing but the weights may differ between checkpoints; the hash covers only those."""
    given = json.loads((checkpoint.folder / "config.json").read_text(encoding="utf-8"))
    own = configuration(given["hidden_size"]).to_dict()
    for name in given.keys() - {"architectures", "dtype", "transformers_version"}:
        assert given[name] == own[name], name


def test_the_whole_laboratory_is_small():
    files = [path for path in LAB.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) < LARGEST


def test_every_shipped_folder_stands_in_the_manifest():
    on_disk = {path.parent for path in LAB.rglob(WEIGHTS)}
    assert on_disk == set(SHIPPED)


def test_the_rewarded_lineage_and_its_control_start_from_one_base():
    rewarded, control = lineages.load("lab-grpo"), lineages.load("lab-random-reward")
    assert rewarded.at(0).folder == control.at(0).folder == lineages.load("lab-base").at(0).folder
    assert rewarded.steps == tuple(range(0, 401, 25))
    assert control.steps == tuple(range(0, 401, 100))
    settings = {k: v for k, v in rewarded.record.recipe.items() if k != "reward"}
    assert settings == {k: v for k, v in control.record.recipe.items() if k != "reward"}
    assert (rewarded.record.recipe["reward"], control.record.recipe["reward"]) == (
        "trace",
        "random",
    )


def test_checkpoints_of_a_lineage_are_all_different():
    hashes = [checkpoint.record.sha256 for checkpoint in SHIPPED.values()]
    assert len(set(hashes)) == len(hashes)


# Names, steps and the manifest's round trip.


def test_steps_are_those_of_the_manifest():
    assert lineages.steps() == {name: lineages.load(name).steps for name in lineages.names()}
    assert lineages.names() == ("lab-base", "lab-grpo", "lab-random-reward")


def test_an_unknown_lineage_or_step_is_named_with_those_there_are():
    with pytest.raises(LineageError, match=r"no 'lab-grop' \(lineages: lab-base, lab-grpo, lab-r"):
        lineages.load("lab-grop")
    with pytest.raises(LineageError, match=r"'lab-random-reward' has no checkpoint at 50 \(steps:"):
        lineages.load("lab-random-reward").at(50)


def test_a_written_manifest_is_read_back_the_same(tmp_path):
    made = lineages.read_manifest(LAB)
    lineages.write_manifest(tmp_path, made)
    assert lineages.read_manifest(tmp_path) == made
    assert (tmp_path / MANIFEST).read_bytes() == (LAB / MANIFEST).read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == [MANIFEST]


def test_a_manifest_keeps_text_that_is_not_english(tmp_path):
    made = lineages.read_manifest(LAB)
    record = made.lineages["lab-base"].model_copy(update={"description": "Grundmodell, 基座 – α"})
    changed = lineages.Manifest(lineages={"lab-base": record})
    lineages.write_manifest(tmp_path, changed)
    assert lineages.read_manifest(tmp_path) == changed


# Damage.


def test_an_intact_copy_verifies(copy):
    lineages.load("lab-grpo").at(0).verify()
    lineages.load("lab-grpo").at(100).verify()


@pytest.mark.parametrize("place", [0, 9, 5000, -1])
def test_one_flipped_bit_of_the_weights_is_noticed(copy, place):
    """In the header's length, in the header, in a weight, and at the very end."""
    checkpoint = lineages.load("lab-grpo").at(100)
    flip_a_bit(checkpoint.folder / WEIGHTS, place)
    with pytest.raises(LineageError, match=r"^lab-grpo step 100: model\.safetensors is damaged"):
        checkpoint.verify()
    lineages.load("lab-grpo").at(0).verify()


def test_weights_of_another_step_are_noticed(copy):
    early, late = (lineages.load("lab-grpo").at(step) for step in (0, 100))
    shutil.copyfile(early.folder / WEIGHTS, late.folder / WEIGHTS)
    with pytest.raises(LineageError, match=r"^lab-grpo step 100: .* is damaged"):
        late.verify()


def test_missing_weights_are_named(copy):
    checkpoint = lineages.load("lab-grpo").at(100)
    (checkpoint.folder / WEIGHTS).unlink()
    with pytest.raises(LineageError, match=r"^lab-grpo step 100: model\.safetensors is missing"):
        checkpoint.verify()


def test_a_missing_checkpoint_folder_is_named(copy):
    with pytest.raises(LineageError, match=r"^lab-grpo step 400: model\.safetensors is missing"):
        lineages.load("lab-grpo").at(400).verify()


def test_a_checkpoint_without_its_configuration_is_refused_when_it_is_loaded(copy):
    folder = lineages.load("lab-grpo").at(100).folder
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"step-0100: the folder has no config\.json"):
        load_policy(folder)


def test_a_missing_manifest_is_one_clear_error(copy):
    (copy / MANIFEST).unlink()
    with pytest.raises(LineageError, match=r"manifest\.json cannot be read \(No such file"):
        lineages.load("lab-grpo")


def third_checkpoint(manifest):
    return manifest["lineages"]["lab-grpo"]["checkpoints"][3]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda m: third_checkpoint(m).update(colour="red"), "lab-grpo, checkpoints, 3, colour"),
        (lambda m: third_checkpoint(m).pop("sha256"), "lab-grpo, checkpoints, 3, sha256"),
        (lambda m: third_checkpoint(m).update(step="many"), "lab-grpo, checkpoints, 3, step"),
        (lambda m: third_checkpoint(m).update(measured={"3": 1}), "3, measured, 3"),
        (lambda m: m["lineages"]["lab-grpo"].pop("seconds"), "lab-grpo, seconds"),
        (lambda m: m.pop("lineages"), "lineages"),
    ],
)
def test_a_manifest_of_another_form_is_refused_with_the_place(copy, damage, said):
    content = json.loads((copy / MANIFEST).read_text(encoding="utf-8"))
    damage(content)
    (copy / MANIFEST).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(LineageError, match=rf"manifest\.json is damaged \(.*{said}, ") as raised:
        lineages.load("lab-grpo")
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("kept", [0, 1, 100, -2])
def test_a_manifest_cut_short_is_refused(copy, kept):
    data = (copy / MANIFEST).read_bytes()
    (copy / MANIFEST).write_bytes(data[:kept])
    with pytest.raises(LineageError, match=r"manifest\.json is damaged \(Invalid JSON"):
        lineages.load("lab-grpo")


def test_a_manifest_that_is_not_text_is_refused(copy):
    (copy / MANIFEST).write_bytes(b'{"lineages": {"\xff\xfe": 1}}')
    with pytest.raises(LineageError, match=r"manifest\.json is damaged \("):
        lineages.load("lab-grpo")


def test_a_folder_in_the_place_of_the_manifest_is_one_clear_error(tmp_path: Path):
    (tmp_path / MANIFEST).mkdir()
    with pytest.raises(LineageError, match=r"manifest\.json cannot be read"):
        lineages.read_manifest(tmp_path)
