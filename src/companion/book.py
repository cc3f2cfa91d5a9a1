"""Build the book from executed chapters, and refuse to publish what is stale or broken."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml
from nbformat import NotebookNode

from companion import claims
from companion.chapters import CHAPTERS, EXECUTED, Chapter, code_cells, read_notebook, tags
from companion.freshness import reasons

SCOREBOARD = Path("book", "_generated", "scoreboard.md")  # the scoreboard page includes it
HTML = Path("_build", "html")
HIDDEN = {"remove-cell", "remove-output"}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class BookError(Exception):
    """The book cannot be built; the message has one sentence for each reason, a line each."""


def chapters_of(project: Path, known: Iterable[Chapter] = CHAPTERS) -> list[Chapter]:
    """The chapters that ``_toc.yml`` lists, in its order.

    Raises:
        BookError: for a damaged table of contents, and for a chapter that is not known.
    """
    try:
        contents = yaml.safe_load((project / "_toc.yml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BookError(f"_toc.yml cannot be read ({type(error).__name__})") from None
    by_stem = {chapter.stem: chapter for chapter in known}
    stems = [page.stem for page in _pages(contents) if page.parent == EXECUTED]
    for stem in stems:
        if stem not in by_stem:
            raise BookError(f"_toc.yml lists {(EXECUTED / stem).as_posix()}: no such chapter")
    return [by_stem[stem] for stem in stems]


def check_fresh(
    project: Path, profile: str | None = None, known: Iterable[Chapter] = CHAPTERS
) -> list[Chapter]:
    """The chapters of the book, all of them fit to be published.

    Args:
        project: the project's folder.
        profile: also demand exactly the parameters of this profile.
        known: the chapters that there are.

    Raises:
        BookError: naming every chapter that was not executed, whose run failed, or whose library,
            data, source notebook or parameters changed since.
    """
    chapters = chapters_of(project, known)
    stale = [
        f"chapter {chapter.name}: {reason}; run 'companion run {chapter.name}'"
        for chapter in chapters
        for reason in reasons(chapter, project, profile)
    ]
    if stale:
        raise BookError("\n".join(stale))
    return chapters


def build(project: Path, profile: str | None = None, known: Iterable[Chapter] = CHAPTERS) -> Path:
    """Build the whole book and return its first page.

    Needs no network and executes nothing. Every warning is an error: a dead reference, citation
    or figure, and a page that lost outputs on the way from the notebook.

    Raises:
        BookError: for stale chapters, every warning, and every page with outputs missing.
    """
    chapters = check_fresh(project, profile, known)
    if find_spec("jupyter_book") is None:
        raise BookError('jupyter-book is not installed: pip install "companion[book]"')
    try:
        verdicts = claims.collect(chapter.executed(project) for chapter in chapters)
    except ValueError as error:
        raise BookError(str(error)) from None
    claims.write_scoreboard(project / SCOREBOARD, verdicts)
    _run_jupyter_book(project)
    missing = [fault for chapter in chapters for fault in missing_outputs(chapter, project)]
    if missing:
        raise BookError("\n".join(missing))
    return project / HTML / "index.html"


def shown_outputs(executed: NotebookNode) -> tuple[int, int]:
    """Cells with outputs, and figures in them, that the page of an executed notebook must show."""
    cells = [cell for cell in code_cells(executed) if cell.outputs and not HIDDEN & set(tags(cell))]
    return len(cells), sum(_figures(output) for cell in cells for output in cell.outputs)


def page_outputs(page: Path) -> tuple[int, int]:
    """Cells with outputs, and figures in them, on a built page."""
    from bs4 import BeautifulSoup

    html = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    return len(html.select(".cell_output")), len(html.select(".cell_output img"))


def _pages(contents: Any) -> Iterator[Path]:
    """Every page of a table of contents, at any depth."""
    if isinstance(contents, list):
        for item in contents:
            yield from _pages(item)
    elif isinstance(contents, dict):
        for key, value in contents.items():
            if key in ("root", "file"):
                yield Path(str(value).removesuffix(".ipynb"))
            else:
                yield from _pages(value)


def _run_jupyter_book(project: Path) -> None:
    command = (sys.executable, "-c", "from jupyter_book.cli.main import main; main()")
    finished = subprocess.run(
        [*command, "build", str(project), "--all", "-W", "-n", "--keep-going", "-q"],
        env={**os.environ, "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if finished.returncode != 0:
        said = COLOURS.sub("", finished.stdout).replace(f"{project}{os.sep}", "").splitlines()
        warnings = [line for line in said if "WARNING" in line or "ERROR" in line]
        raise BookError("\n".join(warnings or said[-5:]))


def _figures(output: NotebookNode) -> int:
    data = output.get("data", {})
    if "text/html" in data:  # goes before any picture in the same output
        return str(data["text/html"]).count("<img ")
    return int(any(kind.startswith("image/") for kind in data))


def missing_outputs(chapter: Chapter, project: Path) -> list[str]:
    """What the built page of a chapter lacks of its executed notebook; empty for a whole page."""
    wanted = shown_outputs(read_notebook(chapter.executed(project)))
    page = project / HTML / EXECUTED / f"{chapter.stem}.html"
    found = page_outputs(page)
    if found == wanted:
        return []
    return [
        f"chapter {chapter.name}: its page shows {found[0]} outputs and {found[1]} figures, "
        f"its notebook holds {wanted[0]} and {wanted[1]}"
    ]
