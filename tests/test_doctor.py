"""The doctor reports what is wrong, and not only what is there."""

from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import doctor
from companion.cli import app

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
