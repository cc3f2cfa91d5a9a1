"""The doctor reports what is wrong, and not only what is there."""

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import doctor, lineages, profiles
from companion.chapters import CHAPTERS
from companion.cli import app
from companion.doctor import Finding

ROOT = Path(__file__).parents[1]


def test_the_doctor_finds_this_installation_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, ["doctor"])
    for word in ("torch", "device", "lab-grpo", "executed chapters", "trade-off in lab"):
        assert word in result.stdout
    assert result.exit_code == 0


def test_every_requirement_is_examined() -> None:
    found = {finding.what.lower() for finding in doctor.packages()}
    assert {"torch", "papermill", "jupyter-book", "sphinx", "vllm"} <= found


def test_a_package_outside_its_range_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        metadata, "requires", lambda _: ["numpy<1", "no-such-package>=1", "absent; extra == 'gpu'"]
    )
    numpy, core, optional = doctor.packages()
    assert not numpy.good
    assert numpy.found.endswith("needed: <1")
    assert (core.found, core.good) == ("not installed", False)
    assert (optional.found, optional.good) == ("not installed (optional)", True)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A lab with one lineage of two checkpoints, in the place of the shipped one."""
    records = []
    for step in (0, 25):
        weights = tmp_path / str(step) / lineages.WEIGHTS
        weights.parent.mkdir()
        weights.write_bytes(bytes([step]))
        digest = lineages.file_hash(weights)
        records.append({"step": step, "folder": str(step), "sha256": digest, "measured": {}})
    lineage = {"description": "", "recipe": {}, "seconds": 60, "checkpoints": records}
    made = lineages.Manifest.model_validate({"lineages": {"own": lineage}})
    lineages.write_manifest(tmp_path, made)
    monkeypatch.setattr(lineages, "LAB", tmp_path)
    lineages.manifest.cache_clear()
    yield tmp_path
    lineages.manifest.cache_clear()


def test_intact_checkpoints_are_reported(lab: Path) -> None:
    wanted = Finding("lineage own", "intact, trained in 60 s, steps 0, 25")
    assert list(doctor.checkpoints()) == [wanted]


def test_a_damaged_and_a_missing_checkpoint_are_faults(lab: Path) -> None:
    (lab / "0" / lineages.WEIGHTS).write_bytes(b"damaged")
    (lab / "25" / lineages.WEIGHTS).unlink()
    [finding] = doctor.checkpoints()
    assert not finding.good
    assert "own step 0: model.safetensors is damaged" in finding.found
    assert "own step 25: model.safetensors is missing" in finding.found


def test_a_damaged_manifest_is_a_fault(lab: Path) -> None:
    (lab / lineages.MANIFEST).write_text("{", encoding="utf-8")
    [finding] = doctor.checkpoints()
    assert not finding.good
    assert "manifest.json is damaged" in finding.found


def test_a_chapter_that_was_not_run_here_has_its_expected_time(tmp_path: Path) -> None:
    for name in ("_config.yml", "_toc.yml"):
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "notebooks").mkdir()
    found = {finding.what: finding.found for finding in doctor.times(tmp_path)}
    expected = doctor.REFERENCE_SECONDS["trade-off", "lab"]
    assert found["trade-off in lab"] == (
        f"not timed here yet; a first execution takes about {expected} s"
    )


def test_every_chapter_has_an_expected_time_in_every_profile() -> None:
    wanted = {(chapter.name, profile) for chapter in CHAPTERS for profile in profiles.names()}
    assert doctor.REFERENCE_SECONDS.keys() == wanted


def test_outside_the_project_is_a_fault(tmp_path: Path) -> None:
    [chapters, *_] = doctor.folders(tmp_path)
    assert not chapters.good
    assert "--project" in chapters.found
    assert list(doctor.times(tmp_path)) == []


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert doctor.writable("samples", tmp_path / "new" / "folder").good
    assert not (tmp_path / "new").exists()
    assert not doctor.writable("samples", tmp_path / "file" / "folder").good
