"""Chapters run in real kernels: what a good run leaves, and what a failed one says."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from companion import freshness
from companion.chapters import Chapter, ChapterError, read_notebook
from companion.execution import execute, execute_all
from companion.parameters import ParameterError

Make = Callable[..., Path]

SHOW_SURROUNDINGS = (
    "import os\nfrom pathlib import Path\n"
    "print('threads', os.environ['OMP_NUM_THREADS'], 'samples', parameters.samples)\n"
    "print(Path.home() / 'data', Path.cwd(), os.environ['SOME_TOKEN'])\n"
    "[Path.home(), 'https://example.org/home/menu']"
)


@pytest.fixture(scope="module")
def good(
    tmp_path_factory: pytest.TempPathFactory, small_project: Make, small_chapter: Chapter
) -> tuple[Path, Any]:
    """A project with one executed chapter, and the executed notebook."""
    project = small_project(tmp_path_factory.mktemp("a project"), SHOW_SURROUNDINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOME_TOKEN", "hf_0123456789")
        patch.setenv("OMP_NUM_THREADS", "3")
        path = execute(small_chapter, "smoke", {"samples": 5}, project)
        assert os.environ["OMP_NUM_THREADS"] == "3"  # our own environment is as it was
    return project, read_notebook(path)


def run_faulty(project: Path, chapter: Chapter, **options: Any) -> str:
    with pytest.raises(ChapterError) as caught:
        execute(chapter, "smoke", {"samples": 5}, project, **options)
    assert not chapter.executed(project).exists()
    failed = read_notebook(freshness.failed_copy(chapter.executed(project)))
    assert failed.metadata.papermill["exception"] is True
    assert "companion" not in failed.metadata
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_copy_appears_alone_in_the_folder_of_the_book(good: tuple[Path, Any]) -> None:
    project, _ = good
    assert [path.name for path in (project / "book/chapters").iterdir()] == ["01-small.ipynb"]


def test_the_kernel_has_one_thread_and_the_parameters(good: tuple[Path, Any]) -> None:
    assert "threads 1 samples 5" in good[1].cells[4].outputs[0].text


def test_the_record_holds_the_parameters_of_the_run(good: tuple[Path, Any]) -> None:
    record = good[1].metadata.companion
    assert (record.chapter, record.profile, record.overrides) == ("small", "smoke", {"samples": 5})
    assert record.parameters.samples == 5
    assert record.parameters.draws == 1000
    assert set(record.dependencies) == {"library", "data", "notebook"}


def test_the_injected_cell_is_folded_away(good: tuple[Path, Any]) -> None:
    [injected] = [cell for cell in good[1].cells if "injected-parameters" in cell.metadata.tags]
    assert "hide-cell" in injected.metadata.tags
    assert "samples = 5" in injected.source


def test_no_path_and_no_secret_stays(good: tuple[Path, Any]) -> None:
    project, executed = good
    text = (project / "book/chapters/01-small.ipynb").read_text(encoding="utf-8")
    for private in ("hf_0123456789", str(Path.home() / "data"), str(project), "input_path"):
        assert private not in text
    shown = executed.cells[4].outputs[0].text
    assert "~" in shown
    assert "[SOME_TOKEN]" in shown
    assert "https://example.org/home/menu" in text


def test_a_second_run_gives_the_same_notebook(
    good: tuple[Path, Any], small_chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, executed = good
    monkeypatch.setenv("SOME_TOKEN", "hf_0123456789")
    output = tmp_path / "another" / "place.ipynb"
    again = read_notebook(execute(small_chapter, "smoke", {"samples": 5}, project, output=output))
    again.metadata.papermill["duration"] = executed.metadata.papermill.duration
    assert again == executed


def test_a_raising_cell_is_named(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(tmp_path, "1 + 1", "raise RuntimeError('no\\nluck')")
    said = run_faulty(project, small_chapter)
    assert said == "chapter small: cell [5] raised RuntimeError: no"


def test_a_killed_kernel_names_what_to_lower(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    # SIGKILL is what the kernel gets when the machine runs out of memory.
    project = small_project(tmp_path, "import os\nos.kill(os.getpid(), 9)", "1 + 1")
    said = run_faulty(project, small_chapter)
    assert said.startswith("chapter small: cell [4] ended its kernel")
    assert "lower samples (now 5) or problems (now 20)" in said


def test_a_slow_cell_names_what_to_lower(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(tmp_path, "import time\ntime.sleep(20)", "1 + 1")
    said = run_faulty(project, small_chapter, cell_seconds=1)
    assert "cell [4] took longer than 1 s: lower samples (now 5)" in said


def test_wrong_parameters_start_nothing(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(tmp_path, "1 + 1")
    for overrides in ({"samples": -1}, {"lineage": "none"}, {"sampels": 3}):
        with pytest.raises(ParameterError):
            execute(small_chapter, "smoke", overrides, project)
    assert not (project / "book/chapters").exists()


def test_a_notebook_that_breaks_the_rules_starts_nothing(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(tmp_path, "1 + 1")
    source = small_chapter.notebook(project)
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace('"parameters"', '"params"'), encoding="utf-8")
    with pytest.raises(ChapterError, match="have the tag 'parameters'"):
        execute(small_chapter, "smoke", {}, project)
    assert not (project / "book/chapters").exists()


def test_a_folder_that_cannot_be_written_is_found_before_the_run(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(tmp_path, "raise SystemError('it ran')")
    (project / "book/chapters").write_text("a file", encoding="utf-8")
    with pytest.raises(ChapterError, match="chapters cannot be written"):
        execute(small_chapter, "smoke", {}, project)


def test_two_chapters_run_beside_each_other_and_one_may_fail(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(tmp_path, "assert parameters.samples == 5, 'not five'")
    other = replace(small_chapter, number=2)
    text = small_chapter.notebook(project).read_text(encoding="utf-8")
    other.notebook(project).write_text(text, encoding="utf-8")
    overrides = {small_chapter: {"samples": 5}, other: {"samples": 6}}
    results = dict(execute_all(overrides, "smoke", project))
    assert results[small_chapter] == small_chapter.executed(project)
    assert "raised AssertionError: not five" in str(results[other])
    assert not other.executed(project).exists()
