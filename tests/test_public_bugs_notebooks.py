"""Faults that users of comparable notebooks and books reported, each with the input that shows it.

The test's name begins with the number of the case. The same faults are tested in their whole
breadth beside the modules: parameters, chapters, execution, freshness, book.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from papermill import inspect_notebook

from companion import book, freshness, profiles
from companion.chapters import (
    CHAPTERS,
    Chapter,
    ChapterError,
    code_cells,
    faults,
    read_notebook,
    tags,
)
from companion.execution import THREAD_LIMITS, execute
from companion.parameters import parameters_cell

ROOT = Path(__file__).parents[1]
CHEAP = {"samples": 16, "resamples": 16, "problems": 3, "draws": 100, "every": 300}

Make = Callable[..., Path]
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)


def papermill(notebook: Path, output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Plain papermill, as a reader types it."""
    command = [sys.executable, "-m", "papermill", str(notebook), str(output)]
    return subprocess.run([*command, *arguments], capture_output=True, encoding="utf-8")


def syntax(notebook: Any, without: str = "") -> Iterator[ast.AST]:
    """Every node of the code of a notebook, leaving out the cells with the tag ``without``."""
    for cell in code_cells(notebook):
        if without not in tags(cell):
            yield from ast.walk(ast.parse(cell.source))


def refused(chapter: Chapter, folder: Path, *arguments: str, notebook: Path | None = None) -> str:
    """What papermill shows when the first cell after the parameters refuses them."""
    output = folder / "out.ipynb"
    finished = papermill(notebook or chapter.notebook(ROOT), output, *arguments)
    assert finished.returncode == 1
    ran = [cell.source for cell in code_cells(read_notebook(output)) if cell.execution_count]
    assert "from_notebook" in ran[-1], "the refusal has to come before anything slow"
    [message] = [line for line in finished.stderr.splitlines() if line.startswith("ParameterErr")]
    return message


@each_chapter
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("use_gpu", "false", "use_gpu must be True or False, for example False"),
        ("samples", "eight", "samples must be a whole number, for example 320"),
        ("sampels", "8", "unknown parameter 'sampels', did you mean 'samples'?"),
    ],
)
def test_b26_papermill_refuses_untyped_values_in_the_first_cell(
    chapter: Chapter, tmp_path: Path, name: str, value: str, message: str
) -> None:
    # The text "false" is true in Python: taken as it comes, it would switch the GPU on.
    assert message in refused(chapter, tmp_path, "-p", name, value)


@each_chapter
def test_b26_papermill_without_a_parameters_tag_is_refused(
    chapter: Chapter, tmp_path: Path
) -> None:
    untagged = tmp_path / "untagged.ipynb"
    text = chapter.notebook(ROOT).read_text(encoding="utf-8")
    untagged.write_text(text.replace('"parameters"', '"params"'), encoding="utf-8")
    message = refused(chapter, tmp_path, "-p", "samples", "8", notebook=untagged)
    assert "samples: set above the defaults and therefore without effect" in message


@each_chapter
def test_b28_papermill_lists_every_parameter_with_type_default_and_help(chapter: Chapter) -> None:
    listed = inspect_notebook(chapter.notebook(ROOT))
    fields = chapter.parameters.model_fields
    assert list(listed) == list(fields)
    for name, field in fields.items():
        assert listed[name]["inferred_type_name"] == type(field.default).__name__
        assert ast.literal_eval(listed[name]["default"]) == field.default
        assert listed[name]["help"] == field.description


def test_b29_a_derived_value_in_the_parameters_cell_breaks_the_rules(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    notebook = read_notebook(small_chapter.notebook(small_project(tmp_path)))
    assert faults(notebook, small_chapter) == []
    for derived in ("m: int = samples * 2", "path = 'a' + 'b'", "if use_gpu:\n    samples = 1"):
        notebook.cells[1].source = f"{parameters_cell(small_chapter.parameters)}\n{derived}"
        assert "must be 'nothing'" in faults(notebook, small_chapter)[0]


def test_b31_a_failed_run_leaves_what_was_there_and_blocks_the_book(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(
        tmp_path, "import os\n\nif parameters.samples > 100:\n    os.kill(os.getpid(), 9)"
    )
    good = execute(small_chapter, "smoke", {"samples": 1}, project).read_bytes()
    with pytest.raises(ChapterError, match=r"ended its kernel.*lower samples \(now 100000\)"):
        execute(small_chapter, "smoke", {"samples": 100_000}, project)
    assert small_chapter.executed(project).read_bytes() == good
    with pytest.raises(book.BookError, match="its last run failed"):
        book.build(project, None, [small_chapter])
    execute(small_chapter, "smoke", {"samples": 1}, project)
    assert book.check_fresh(project, None, [small_chapter]) == [small_chapter]


def test_b32_the_contents_are_in_the_format_of_jupyter_book_1() -> None:
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert contents["format"] == "jb-book"
    assert not (ROOT / "myst.yml").exists()


def test_b34_a_raising_chapter_is_never_published(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    project = small_project(tmp_path, "raise RuntimeError('broken')")
    with pytest.raises(ChapterError, match=r"cell \[4\] raised RuntimeError: broken"):
        execute(small_chapter, "smoke", {}, project)
    # Nor when somebody puts the failed notebook in the place of the good one.
    freshness.failed_copy(small_chapter.executed(project)).replace(small_chapter.executed(project))
    with pytest.raises(book.BookError, match="holds an error"):
        book.build(project, None, [small_chapter])


def test_b34_the_book_would_stop_at_an_error_even_without_the_freshness_check() -> None:
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert settings["execute"]["execute_notebooks"] == "off"
    assert settings["sphinx"]["config"]["nb_execution_raise_on_error"] is True


def test_b37_a_chapter_runs_in_the_c_locale_and_in_a_folder_with_spaces(
    two_runs: tuple[Any, Any],
) -> None:
    assert two_runs[1].metadata.papermill.exception is None
    assert f"samples = {CHEAP['samples']}" in code_cells(two_runs[1])[1].source


@each_chapter
def test_b38_a_chapter_imports_only_what_the_core_installs(chapter: Chapter) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}
    for node in syntax(read_notebook(chapter.notebook(ROOT))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for package in {name.split(".")[0] for name in names} - sys.stdlib_module_names:
            assert package == "companion" or canonicalize_name(package) in core


def test_b38_no_page_has_a_launch_button_that_nobody_tested() -> None:
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    launch = settings.get("launch_buttons", {})
    assert not any(launch.get(key) for key in ("binderhub_url", "colab_url", "thebe"))


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Chapter 1 by ``companion run`` and by plain papermill with the same parameters.

    They share no stored samples. The second one has a C locale without Python's UTF-8 mode, and
    spaces in its paths.
    """
    folder = tmp_path_factory.mktemp("two runs")
    notebook = CHAPTERS[0].notebook(ROOT)
    outputs = folder / "by companion.ipynb", folder / "by papermill.ipynb"
    own = ["companion", "run", CHAPTERS[0].name, "--project", str(ROOT), "--profile", "smoke"]
    own += [item for name, value in CHEAP.items() for item in ("-p", f"{name}={value}")]
    plain = ["papermill", str(notebook), str(outputs[1])]
    plain += ["-f", str(profiles.FOLDER / "smoke.yaml")]
    plain += [item for name, value in CHEAP.items() for item in ("-p", name, str(value))]
    one_thread = dict.fromkeys(THREAD_LIMITS, "1")
    for command, environment in (
        ([*own, "--output", str(outputs[0])], {}),
        (plain, {"LC_ALL": "C", "PYTHONUTF8": "0", **one_thread}),
    ):
        runs = {"COMPANION_RUNS": str(folder / f"samples by {command[0]}")}
        finished = subprocess.run(
            [sys.executable, "-m", *command],
            env={**os.environ, **runs, **environment},
            capture_output=True,
            encoding="utf-8",
        )
        assert finished.returncode == 0, finished.stderr
    return read_notebook(outputs[0]), read_notebook(outputs[1])


def test_b43_two_runs_of_a_chapter_show_the_same(two_runs: tuple[Any, Any]) -> None:
    first, second = (
        {cell.source: cell.outputs for cell in code_cells(notebook)} for notebook in two_runs
    )
    assert any(first.values())
    for source in first.keys() & second.keys():
        assert first[source] == second[source], source
    injected = first.keys() ^ second.keys()  # companion writes all parameters, papermill ours
    assert all(source.startswith("# Parameters") for source in injected)


@each_chapter
def test_b43_no_chapter_draws_from_an_unseeded_stream(chapter: Chapter) -> None:
    code = "\n".join(cell.source for cell in code_cells(read_notebook(chapter.notebook(ROOT))))
    assert re.search(r"default_rng\(\)|np\.random\.|\brandom\.|manual_seed", code) is None


@each_chapter
def test_b44_no_chapter_holds_results_as_constants(chapter: Chapter) -> None:
    # A measured number looks like 0.051 or [3, 5, 8]: both arms have to come from the run.
    for node in syntax(read_notebook(chapter.notebook(ROOT)), without="parameters"):
        if isinstance(node, ast.Constant):
            assert not isinstance(node.value, float), ast.unparse(node)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            parts = node.values if isinstance(node, ast.Dict) else node.elts
            numbers = [part for part in parts if isinstance(getattr(part, "value", None), int)]
            assert len(numbers) < 3, ast.unparse(node)


@each_chapter
def test_b46_a_secret_given_as_a_parameter_is_refused_and_not_repeated(chapter: Chapter) -> None:
    command = [sys.executable, "-m", "companion", "run", chapter.name, "--project", str(ROOT)]
    for given in ("hf_token=hf_SECRET", "cache_dir=/home/me"):
        finished = subprocess.run([*command, "-p", given], capture_output=True, encoding="utf-8")
        assert finished.returncode == 2
        assert given.partition("=")[0] in finished.stderr
        assert given.partition("=")[2] not in finished.stdout + finished.stderr


def test_b46_no_path_reaches_the_executed_copy(two_runs: tuple[Any, Any]) -> None:
    text = str(two_runs[0])
    for private in ("input_path", str(ROOT), f"{Path.home()}{os.sep}"):
        assert private not in text
