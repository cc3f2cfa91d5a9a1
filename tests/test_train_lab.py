"""``companion train lab``: what it says before, during and after, and where the result goes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import lineages, train_lab
from companion.cli import app
from companion.lineages import LAB, MANIFEST, WEIGHTS, Manifest
from companion.training import lab
from companion.training.lab import BASE, CHECKPOINTS, CONTROL, GRPO, LabRecipe
from companion.training.pretrain import PretrainRecipe


class Trained(Exception):
    """Raised in the place of a training that would take half an hour."""


def measured(value: float) -> dict[str, dict[str, float]]:
    return {size: {"pass@1": value, "coverage": 0.5} for size in ("3", "4")}


def a_manifest(late: str = "b" * 64, value: float = 0.25) -> Manifest:
    """A lab whose rewarded lineage has two checkpoints, the late one as given."""
    records = [
        {"step": 0, "folder": "checkpoints/base", "sha256": "a" * 64, "measured": measured(0.125)},
        {"step": 25, "folder": "checkpoints/late", "sha256": late, "measured": measured(value)},
    ]
    run = {"description": "", "recipe": {}, "seconds": 60, "checkpoints": records[:1]}
    runs = {BASE: run, CONTROL: run, GRPO: run | {"checkpoints": records}}
    return Manifest.model_validate({"lineages": runs})


def a_lab(folder: Path, made: Manifest, weights: bytes) -> Path:
    for record in made.lineages[GRPO].checkpoints:
        (folder / record.folder).mkdir(parents=True)
        (folder / record.folder / WEIGHTS).write_bytes(weights)
    lineages.write_manifest(folder, made)
    return folder


@pytest.fixture(autouse=True)
def read_again() -> Iterator[None]:
    """A manifest read by one test is not remembered in the next."""
    yield
    lineages.manifest.cache_clear()


@pytest.fixture
def nothing_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Manifest:
        raise Trained

    monkeypatch.setattr(lab, "train_lab", refuse)


def test_the_time_is_said_before_anything_is_trained(tmp_path: Path, nothing_trained: None) -> None:
    said: list[str] = []
    with pytest.raises(Trained):
        train_lab.train_lab(tmp_path / "work", None, False, said.append)
    minutes = lab.expected_minutes(lineages.manifest())
    recipe = LabRecipe()
    assert said == [
        f"a base ({recipe.base.steps} steps), then a rewarded lineage and its control side by side "
        f"({recipe.rewarded.steps} steps each): about {minutes} minutes on two cores; stop it at "
        "any time, the same command goes on",
        f"states and logs: {tmp_path / 'work'}",
    ]


def test_a_damaged_manifest_stops_no_training(
    tmp_path: Path, nothing_trained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training anew is a way to mend it."""
    (tmp_path / MANIFEST).write_text("{", encoding="utf-8")
    monkeypatch.setattr(lineages, "LAB", tmp_path)
    lineages.manifest.cache_clear()
    said: list[str] = []
    with pytest.raises(Trained):
        train_lab.train_lab(tmp_path / "work", None, False, said.append)
    assert said[0].startswith("nothing to compare with: ")
    assert "manifest.json is damaged" in said[0]
    assert "an unknown number of minutes" in said[1]


@pytest.mark.parametrize("install", [False, True])
def test_a_finished_training_is_left_beside_its_states_or_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install: bool
) -> None:
    shipped = a_lab(tmp_path / "shipped", a_manifest(), b"old")
    monkeypatch.setattr(train_lab, "LAB", shipped)
    monkeypatch.setattr(lineages, "LAB", shipped)
    lineages.manifest.cache_clear()

    def trained(recipe: LabRecipe, work: Path, output: Path, report: lab.Report) -> Manifest:
        for name, steps in ((BASE, recipe.base.steps), (GRPO, 400), (CONTROL, 400)):
            report(name, steps, steps)
        made = a_manifest(late="c" * 64, value=0.375)
        a_lab(output, made, b"new")
        return made

    monkeypatch.setattr(lab, "train_lab", trained)
    said: list[str] = []
    train_lab.train_lab(tmp_path / "work", None, install, said.append)
    assert f"{GRPO} step 0, 3 numbers: pass@1 0.125, coverage 0.500" in said
    assert f"{GRPO} step 25, 4 numbers: pass@1 0.375, coverage 0.500" in said
    assert f"{GRPO} step 25: other weights; largest change of a measure 0.125" in said
    output = tmp_path / "work" / "lab"
    weights = shipped / "checkpoints/late" / WEIGHTS
    if install:
        assert said[-1].startswith("installed: run the chapters again")
        assert weights.read_bytes() == b"new"
        assert lineages.read_manifest(shipped) == lineages.read_manifest(output)
    else:
        assert said[-1] == f"checkpoints and manifest: {output}"
        assert weights.read_bytes() == b"old"


def test_an_equal_result_is_said_to_be_equal() -> None:
    said: list[str] = []
    train_lab.summarise(a_manifest(), a_manifest(), said.append)
    assert said[-1] == "every checkpoint has the hash of the shipped one"


def test_an_installation_leaves_nothing_of_the_old_lab(tmp_path: Path) -> None:
    old, new = a_manifest(), a_manifest(late="c" * 64)
    place = a_lab(tmp_path / "place", old, b"old")
    (place / CHECKPOINTS / "left over").mkdir()
    train_lab.put_in_place(a_lab(tmp_path / "made", new, b"new"), place)
    assert not (place / CHECKPOINTS / "left over").exists()
    assert lineages.read_manifest(place) == new


def test_an_installation_cut_short_does_not_look_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_lab(tmp_path / "place", a_manifest(), b"old")
    made = a_lab(tmp_path / "made", a_manifest(), b"new")

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("shutil.copytree", full)
    with pytest.raises(OSError, match="No space left"):
        train_lab.put_in_place(made, place)
    with pytest.raises(lineages.LineageError, match="cannot be read"):
        lineages.read_manifest(place)


def test_only_the_lab_can_be_trained() -> None:
    result = CliRunner().invoke(app, ["train", "base"])
    assert result.exit_code == 2
    assert result.stderr == "error: there is only one thing to train, lab; got 'base'\n"


def test_a_state_of_other_settings_is_told_in_one_line(tmp_path: Path) -> None:
    """A run begun with other settings is never overwritten, and nothing is trained."""
    base = PretrainRecipe()
    model = lab.new_model(0, base.hidden)
    optimizer = lab.torch.optim.AdamW(model.parameters())
    lab.state.save(tmp_path / BASE, 7, model, optimizer, {"kind": "another"})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = CliRunner().invoke(app, ["train", "lab", "--work", str(tmp_path)])
    assert result.exit_code == 1
    assert "was written under other settings" in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in before} == before


def test_the_lab_that_is_replaced_is_the_one_that_is_read() -> None:
    assert train_lab.LAB == LAB == lineages.LAB
