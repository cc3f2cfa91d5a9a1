"""The command line: mistakes end in one line and the right exit code."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from companion.chapters import Chapter
from companion.cli import OneLineErrors, app
from companion.parameters import ParameterError, TradeOffParameters

ROOT = Path(__file__).parents[1]


def companion(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in the project's folder."""
    result = CliRunner().invoke(app, [*arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run"], 2, "error: name one chapter (trade-off), or use --all"),
        (["run", "trade-off", "--all"], 2, "error: name one chapter (trade-off), or use --all"),
        (["run", "--all", "--output", "x"], 2, "error: name one chapter"),
        (["run", "tradeoff"], 1, "error: there is no chapter 'tradeoff', did you mean 'trade-off'"),
        (["run", "trade-off", "-p", "sampels=3"], 2, "error: unknown parameter 'sampels', did you"),
        (["run", "trade-off", "-p", "samples"], 2, "error: -p takes name=value, such as -p sampl"),
        (["run", "trade-off", "-p", "samples=eight"], 2, "error: samples must be a whole number"),
        (["run", "trade-off", "-p", "samples=-1"], 2, "error: samples must be at least 1"),
        (["run", "trade-off", "-p", "top_p=0"], 2, "error: top_p must be more than 0"),
        (["run", "trade-off", "-p", "use_gpu=perhaps"], 2, "error: use_gpu must be True or False"),
        (["run", "--all", "-p", "lineage=none"], 2, "error: lineage: there is no lineage 'none'"),
        (["run", "trade-off", "--profile", "lba"], 2, "error: profile: there is none called 'lba'"),
        (["run", "trade-off", "--project", "/"], 1, "is not inside the project"),
        (["build", "--project", "/"], 1, "is not inside the project"),
    ],
)
def test_a_mistake_ends_in_one_line(arguments: list[str], code: int, message: str) -> None:
    found, _, stderr = companion(*arguments)
    assert found == code
    assert message in stderr
    assert stderr.count("\n") == 1


def test_only_exceptions_of_the_package_lose_their_stack() -> None:
    commands = typer.Typer(cls=OneLineErrors)

    @commands.command()
    def explained() -> None:
        raise ParameterError("samples [is] wrong")

    @commands.command()
    def bug() -> None:
        raise KeyError("samples")

    result = CliRunner().invoke(commands, ["explained"])
    assert (result.exit_code, result.stderr) == (2, "error: samples [is] wrong\n")
    assert isinstance(CliRunner().invoke(commands, ["bug"]).exception, KeyError)


@pytest.fixture
def project(
    tmp_path: Path,
    small_project: Callable[..., Path],
    small_chapter: Chapter,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """A project whose only chapter takes seconds, as the command line sees it."""
    monkeypatch.setattr("companion.cli.CHAPTERS", (small_chapter,))
    return small_project(tmp_path, "print(parameters.samples)")


def test_a_chapter_that_is_up_to_date_is_left_out_on_request(
    project: Path, small_chapter: Chapter
) -> None:
    stale = ("run", "--all", "--stale", "--project", str(project), "--profile")
    executed = small_chapter.executed(project)
    code, text, _ = companion(*stale, "smoke")
    assert (code, text) == (0, f"small: {executed}\n")
    first = executed.read_bytes()
    assert companion(*stale, "smoke") == (0, "small: up to date\n", "")
    assert executed.read_bytes() == first
    # In another profile it is another page.
    code, text, _ = companion(*stale, "lab")
    assert (code, text) == (0, f"small: {executed}\n")
    assert executed.read_bytes() != first


def test_a_chapter_whose_notebook_changed_is_run_again(
    project: Path, small_chapter: Chapter
) -> None:
    again = ("run", "--all", "--stale", "--project", str(project), "--profile", "smoke")
    assert companion(*again)[0] == 0
    notebook = small_chapter.notebook(project)
    text = notebook.read_text(encoding="utf-8")
    notebook.write_text(text.replace("parameters.samples)", "'no samples')"), encoding="utf-8")
    assert companion(*again)[1] == f"small: {small_chapter.executed(project)}\n"
    assert "no samples" in small_chapter.executed(project).read_text(encoding="utf-8")


def test_a_chapter_that_fails_fails_the_command(project: Path, small_chapter: Chapter) -> None:
    notebook = small_chapter.notebook(project)
    text = notebook.read_text(encoding="utf-8")
    notebook.write_text(text.replace("parameters.samples)", "1 / 0)"), encoding="utf-8")
    code, text, _ = companion("run", "--all", "--project", str(project), "--profile", "smoke")
    assert code == 1
    assert "small: chapter small: cell [4] raised ZeroDivisionError: division by zero" in text
    assert not small_chapter.executed(project).exists()


def test_list_shows_every_parameter_profile_and_lineage() -> None:
    code, text, _ = companion("list")
    assert code == 0
    for word in (*TradeOffParameters.model_fields, "trade-off", "smoke", "lab-random-reward"):
        assert word in text


def test_help_answers_without_the_heavy_libraries() -> None:
    program = (
        "import sys\nfrom companion.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'transformers', 'papermill', 'nbformat', 'pandas', 'seaborn'}\n"
        "print('heavy:', sorted(heavy & sys.modules.keys()))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert "heavy: []" in finished.stdout
    for command in ("run", "build", "doctor", "list"):
        assert command in finished.stdout


def test_the_module_is_the_command() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "companion", "run"], capture_output=True, encoding="utf-8"
    )
    assert finished.returncode == 2
    assert finished.stderr.startswith("error: name one chapter")
