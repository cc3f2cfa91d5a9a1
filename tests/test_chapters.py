"""The rules for a chapter's notebook, and finding the project and its chapters."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from companion.chapters import (
    CHAPTERS,
    Chapter,
    ChapterError,
    chapter_named,
    digest,
    faults,
    find_project,
    read_notebook,
    resolve,
)
from companion.parameters import ParameterError, TradeOffParameters

ROOT = Path(__file__).parents[1]

Make = Callable[..., Path]


@pytest.fixture
def notebook(tmp_path: Path, small_project: Make, small_chapter: Chapter) -> Any:
    return read_notebook(small_chapter.notebook(small_project(tmp_path, "1 + 1")))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_every_chapter_of_the_book_keeps_the_rules(chapter: Chapter) -> None:
    assert faults(read_notebook(chapter.notebook(ROOT)), chapter) == []


def test_a_good_notebook_has_no_faults(notebook: Any, small_chapter: Chapter) -> None:
    assert faults(notebook, small_chapter) == []


def lose_the_tag(notebook: Any) -> None:
    notebook.cells[1].metadata.tags = []


def tag_two_cells(notebook: Any) -> None:
    notebook.cells[3].metadata.tags = ["parameters"]


def change_a_default(notebook: Any) -> None:
    notebook.cells[1].source = notebook.cells[1].source.replace("= 320", "= 64")


def change_a_type(notebook: Any) -> None:
    notebook.cells[1].source = notebook.cells[1].source.replace("samples: int", "samples: float")


def derive_a_value(notebook: Any) -> None:
    notebook.cells[1].source += "\ndoubled = samples * 2"


def leave_one_out(notebook: Any) -> None:
    notebook.cells[1].source = "\n".join(notebook.cells[1].source.splitlines()[:-1])


def skip_the_check(notebook: Any) -> None:
    notebook.cells[2].source = "parameters = None"


def check_too_late(notebook: Any) -> None:
    notebook.cells[2], notebook.cells[3] = notebook.cells[3], notebook.cells[2]


def keep_an_output(notebook: Any) -> None:
    notebook.cells[3].outputs = [{"output_type": "stream", "name": "stdout", "text": "2"}]


def keep_a_count(notebook: Any) -> None:
    notebook.cells[3].execution_count = 3


def change_the_title(notebook: Any) -> None:
    notebook.cells[0].source = "# Another title"


def name_a_private_kernel(notebook: Any) -> None:
    notebook.metadata.kernelspec.name = "my-environment"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lose_the_tag, "0 code cells have the tag 'parameters'"),
        (tag_two_cells, "2 code cells have the tag 'parameters'"),
        (change_a_default, "must be 'samples: int = 320  # samples a problem', is 'samples: int ="),
        (change_a_type, "is 'samples: float = 320"),
        (derive_a_value, "must be 'nothing', is 'doubled = samples * 2'"),
        (leave_one_out, "must be 'use_gpu: bool = False  # run the model on a GPU', is 'nothing'"),
        (skip_the_check, "parameters = ChapterParameters.from_notebook(globals())"),
        (check_too_late, "does not check them"),
        (keep_an_output, "outputs are stored"),
        (keep_a_count, "outputs are stored"),
        (change_the_title, "must begin with the line '# A small chapter'"),
        (name_a_private_kernel, "kernelspec"),
    ],
)
def test_a_broken_rule_is_named(
    notebook: Any, small_chapter: Chapter, spoil: Callable[[Any], None], message: str
) -> None:
    spoil(notebook)
    found = faults(notebook, small_chapter)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"cells": 3}', b"\xff\xfe", b'{"nbformat": 4}']
)
def test_a_damaged_notebook_is_named(tmp_path: Path, content: bytes) -> None:
    damaged = tmp_path / "01-damaged.ipynb"
    damaged.write_bytes(content)
    with pytest.raises(ChapterError, match=r"01-damaged\.ipynb is damaged or no notebook"):
        read_notebook(damaged)


def test_an_absent_notebook_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChapterError, match=r"absent\.ipynb cannot be read"):
        read_notebook(tmp_path / "absent.ipynb")


def test_the_digest_sees_what_is_said_and_not_how_it_was_saved(notebook: Any) -> None:
    before = digest(notebook)
    keep_an_output(notebook)
    notebook.metadata.language_info = {"name": "python", "version": "3.99"}
    notebook.cells[3].id = "another"
    assert digest(notebook) == before
    notebook.cells[3].metadata.tags = ["hide-input"]
    assert digest(notebook) != before
    notebook.cells[3].metadata.tags = []
    notebook.cells[0].source += " "
    assert digest(notebook) != before


def test_the_project_is_found_from_inside(tmp_path: Path, small_project: Make) -> None:
    project = small_project(tmp_path / "a project")
    assert find_project(project / "book") == project
    with pytest.raises(ChapterError, match="--project"):
        find_project(tmp_path)


def test_a_chapter_is_found_by_name() -> None:
    assert chapter_named("trade-off").stem == "01-trade-off"
    with pytest.raises(ChapterError, match="did you mean 'trade-off'"):
        chapter_named("tradeoff")


def test_what_is_typed_goes_before_the_profile_and_the_profile_before_the_defaults() -> None:
    found = resolve(chapter_named("trade-off"), "smoke", {"samples": 5})
    assert isinstance(found, TradeOffParameters)
    assert (found.profile, found.samples, found.seed) == ("smoke", 5, 1)
    assert found.resamples < TradeOffParameters().resamples


def test_a_profile_may_hold_parameters_of_other_chapters(small_chapter: Chapter) -> None:
    # smoke sets 'every' and 'resamples', which the small chapter does not have.
    assert resolve(small_chapter, "smoke", {}).profile == "smoke"
    with pytest.raises(ParameterError, match="unknown parameter 'every'"):
        resolve(small_chapter, "smoke", {"every": 25})


def test_a_wrong_value_in_a_profile_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(json.dumps({"samples": "many"}), encoding="utf-8")
    with pytest.raises(ParameterError, match="samples must be a whole number"):
        resolve(chapter_named("trade-off"), str(mine), {})
