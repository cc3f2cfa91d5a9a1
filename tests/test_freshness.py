"""An executed chapter is published only while everything that it depends on still holds."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from companion import freshness
from companion.chapters import Chapter, read_notebook
from companion.execution import execute
from companion.freshness import failed_copy, last_seconds, reasons
from companion.parameters import ChapterParameters

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def executed(
    tmp_path_factory: pytest.TempPathFactory, small_project: Make, small_chapter: Chapter
) -> Path:
    """A folder with an executed project, and the small library that it was executed with."""
    folder = tmp_path_factory.mktemp("executed")
    for name in ("code.py", "claims/values.csv", "lab/manifest.json", "lab/model.safetensors"):
        (folder / "library" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "library" / name).write_text("first", encoding="utf-8")
    project = small_project(folder / "project", "print(parameters.samples)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(freshness, "LIBRARY", folder / "library")
        execute(small_chapter, "smoke", {}, project)
    return folder


@pytest.fixture
def folder(executed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, to be changed."""
    copy = tmp_path / "copy"
    shutil.copytree(executed, copy)
    monkeypatch.setattr(freshness, "LIBRARY", copy / "library")
    return copy


def test_what_was_just_executed_is_fresh(folder: Path, small_chapter: Chapter) -> None:
    assert reasons(small_chapter, folder / "project") == []
    assert reasons(small_chapter, folder / "project", "smoke") == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("code.py", "the library changed since it was executed"),
        ("new/module.py", "the library changed since it was executed"),
        ("claims/values.csv", "the shipped data (checkpoints or the paper's values) changed"),
        ("lab/manifest.json", "the shipped data"),
        ("lab/model.safetensors", "the shipped data"),
        ("lab/new.safetensors", "the shipped data"),
    ],
)
def test_a_changed_library_is_seen(
    folder: Path, small_chapter: Chapter, name: str, message: str
) -> None:
    (folder / "library" / name).parent.mkdir(exist_ok=True)
    (folder / "library" / name).write_text("second", encoding="utf-8")
    [reason] = reasons(small_chapter, folder / "project")
    assert message in reason


def test_a_removed_checkpoint_is_seen(folder: Path, small_chapter: Chapter) -> None:
    (folder / "library/lab/model.safetensors").unlink()
    [reason] = reasons(small_chapter, folder / "project")
    assert "the shipped data" in reason


def test_a_compiled_module_is_no_change(folder: Path, small_chapter: Chapter) -> None:
    (folder / "library/lab/__pycache__").mkdir()
    (folder / "library/lab/__pycache__/x.pyc").write_text("compiled", encoding="utf-8")
    assert reasons(small_chapter, folder / "project") == []


def test_a_changed_source_notebook_is_seen(folder: Path, small_chapter: Chapter) -> None:
    source = small_chapter.notebook(folder / "project")
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("print(", "print(1, "), encoding="utf-8")
    assert reasons(small_chapter, folder / "project") == [
        "its source notebook changed since it was executed"
    ]


def test_a_changed_default_is_seen(folder: Path, small_chapter: Chapter) -> None:
    class Changed(ChapterParameters):
        temperature: float = 0.8

    [reason] = reasons(replace(small_chapter, parameters=Changed), folder / "project")
    assert reason == "its parameters changed since it was executed"


def test_another_profile_is_seen_when_one_is_demanded(folder: Path, small_chapter: Chapter) -> None:
    [reason] = reasons(small_chapter, folder / "project", "lab")
    assert "other parameters than those of the profile lab" in reason


def test_a_chapter_that_was_never_executed_is_seen(folder: Path, small_chapter: Chapter) -> None:
    small_chapter.executed(folder / "project").unlink()
    assert reasons(small_chapter, folder / "project") == ["it has not been executed"]


def test_a_failed_run_is_seen_although_an_older_good_one_is_there(
    folder: Path, small_chapter: Chapter
) -> None:
    failed_copy(small_chapter.executed(folder / "project")).write_text("{}", encoding="utf-8")
    [reason] = reasons(small_chapter, folder / "project")
    assert "its last run failed (01-small.failed.ipynb shows where)" in reason


def change(path: Path, alter: Callable[[Any], None]) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    alter(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def change_a_number(notebook: Any) -> None:
    notebook["cells"][-1]["outputs"][0]["text"] = ["64000\n"]


def add_an_error(notebook: Any) -> None:
    error = {"output_type": "error", "ename": "E", "evalue": "", "traceback": []}
    notebook["cells"][-1]["outputs"] = [error]


def mark_as_failed(notebook: Any) -> None:
    notebook["metadata"]["papermill"]["exception"] = True


def lose_the_record(notebook: Any) -> None:
    del notebook["metadata"]["companion"]


def lose_the_parameters(notebook: Any) -> None:
    del notebook["metadata"]["companion"]["parameters"]


def change_the_parameters(notebook: Any) -> None:
    notebook["metadata"]["companion"]["parameters"]["samples"] = 320


def lose_a_hash(notebook: Any) -> None:
    del notebook["metadata"]["companion"]["dependencies"]["library"]


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (change_a_number, "changed by hand"),
        (add_an_error, "holds an error"),
        (mark_as_failed, "holds an error"),
        (lose_the_record, "was not made by 'companion run'"),
        (lose_the_parameters, "does not say its parameters"),
        (change_the_parameters, "its parameters changed"),
        (lose_a_hash, "the library changed"),
    ],
)
def test_an_executed_copy_that_was_tampered_with_is_seen(
    folder: Path, small_chapter: Chapter, alter: Callable[[Any], None], message: str
) -> None:
    change(small_chapter.executed(folder / "project"), alter)
    [reason] = reasons(small_chapter, folder / "project")
    assert message in reason


def test_a_damaged_executed_copy_is_seen(folder: Path, small_chapter: Chapter) -> None:
    small_chapter.executed(folder / "project").write_text("{", encoding="utf-8")
    [reason] = reasons(small_chapter, folder / "project")
    assert "is damaged" in reason


def test_a_readers_own_profile_is_recorded_by_its_values_and_not_by_its_path(
    folder: Path, small_chapter: Chapter
) -> None:
    source = read_notebook(small_chapter.notebook(folder / "project"))
    parameters = ChapterParameters.checked({"samples": 7, "profile": "mine"})
    mine = str(folder / "mine.yaml")
    record = freshness.record(small_chapter, mine, {"seed": 2}, parameters, source)
    assert record["profile"] == "lab"
    assert record["overrides"] == {"samples": 7, "profile": "mine", "seed": 2}
    assert "mine.yaml" not in json.dumps(record)


def test_the_time_of_the_last_run_is_known_for_its_profile_only(
    folder: Path, small_chapter: Chapter
) -> None:
    took = last_seconds(small_chapter, folder / "project", "smoke")
    assert took is not None
    assert took > 0
    assert last_seconds(small_chapter, folder / "project", "lab") is None
    small_chapter.executed(folder / "project").unlink()
    assert last_seconds(small_chapter, folder / "project", "smoke") is None
