"""The chapters of the book: their notebooks, their parameters and the rules for both."""

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from companion import profiles
from companion.parameters import (
    ChapterParameters,
    TradeOffParameters,
    did_you_mean,
    parameters_cell,
)

if TYPE_CHECKING:
    from nbformat import NotebookNode

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
CELL_SECONDS = 3600  # a chapter of the lab needs a minute; one on a GPU far longer
EXECUTED = Path("book", "chapters")  # executed copies, which the book renders; never committed


class ChapterError(Exception):
    """A chapter that cannot be found or run; the message is one sentence."""


@dataclass(frozen=True)
class Chapter:
    """One notebook of the book.

    Args:
        name: as typed on the command line.
        number: place in the book.
        title: as the page has it.
        parameters: the class that checks its parameters.
    """

    name: str
    number: int
    title: str
    parameters: type[ChapterParameters]

    @property
    def stem(self) -> str:
        """File name without its ending, of the source notebook and of the executed copy."""
        return f"{self.number:02d}-{self.name}"

    def notebook(self, project: Path) -> Path:
        """The source notebook, without outputs."""
        return project / "notebooks" / f"{self.stem}.ipynb"

    def executed(self, project: Path) -> Path:
        """The executed copy that the book renders."""
        return project / EXECUTED / f"{self.stem}.ipynb"


CHAPTERS = (
    Chapter("trade-off", 1, "The trade-off: right more often, in fewer ways", TradeOffParameters),
)


def chapter_named(name: str) -> Chapter:
    """The chapter with this name.

    Raises:
        ChapterError: when there is none, with the nearest name.
    """
    known = {chapter.name: chapter for chapter in CHAPTERS}
    if name not in known:
        raise ChapterError(
            f"there is no chapter {name!r}{did_you_mean(name, known)} "
            f"(chapters: {', '.join(known)})"
        )
    return known[name]


def find_project(start: Path) -> Path:
    """The nearest folder, from ``start`` upwards, that holds ``_toc.yml`` and ``notebooks/``.

    Raises:
        ChapterError: when there is none.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / "_toc.yml").is_file() and (folder / "notebooks").is_dir():
            return folder
    raise ChapterError(
        f"{start} is not inside the project (a folder with _toc.yml and notebooks/): "
        "go there, or name it with --project"
    )


def resolve(chapter: Chapter, profile: str, overrides: Mapping[str, object]) -> ChapterParameters:
    """The parameters that a run uses: defaults, then the profile, then what was typed.

    Raises:
        ParameterError: for an unknown profile, and an unknown or impossible parameter.
    """
    known = [other.parameters for other in CHAPTERS if other != chapter]
    chosen = profiles.load(profile, [chapter.parameters, *known])
    mine = {
        name: value for name, value in chosen.items() if name in chapter.parameters.model_fields
    }
    return chapter.parameters.checked({**mine, **overrides})


def read_notebook(path: Path) -> "NotebookNode":
    """A notebook, upgraded to the current minor version of the format.

    Raises:
        ChapterError: when the file is missing, damaged, or no notebook.
    """
    import nbformat  # not needed to refuse a mistake on the command line

    try:
        text = path.read_text(encoding="utf-8")
        notebook: NotebookNode = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(notebook)
    except OSError as error:
        raise ChapterError(f"{path} cannot be read ({error.strerror})") from None
    except Exception as error:  # nbformat lets through whatever its own parsing stumbles over
        raise ChapterError(f"{path} is damaged or no notebook ({type(error).__name__})") from None
    return notebook


def tags(cell: "NotebookNode") -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", []))


def code_cells(notebook: "NotebookNode") -> "list[NotebookNode]":
    """The code cells of a notebook, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def digest(notebook: "NotebookNode") -> str:
    """sha256 of what a notebook says: kinds, sources and tags of its cells, not its outputs."""
    said = [[cell.cell_type, cell.source, sorted(tags(cell))] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def faults(notebook: "NotebookNode", chapter: Chapter) -> list[str]:
    """What is wrong with a source notebook, one sentence each; empty for a good one.

    It begins with the chapter's title. One cell is tagged ``parameters`` and says word for word
    what the class says, so every value in it is a literal; the next code cell calls
    ``from_notebook(globals())``. The kernel is plain ``python3``. No outputs are stored.
    """
    code, parameters = code_cells(notebook), chapter.parameters
    tagged = [place for place, cell in enumerate(code) if "parameters" in tags(cell)]
    found = []
    if not notebook.cells or notebook.cells[0].source.splitlines()[:1] != [f"# {chapter.title}"]:
        found.append(f"it must begin with the line '# {chapter.title}'")
    if len(tagged) != 1:
        found.append(f"{len(tagged)} code cells have the tag 'parameters' instead of one")
    else:
        found += _cell_faults(code[tagged[0]].source, parameters)
        if not any(_checks_parameters(cell.source) for cell in code[tagged[0] + 1 :][:1]):
            found.append(
                "the cell after the parameters does not check them: it needs "
                f"parameters = {parameters.__name__}.from_notebook(globals())"
            )
    kernel = notebook.metadata.get("kernelspec", {})
    if any(kernel.get(key) != KERNEL[key] for key in ("language", "name")):
        found.append(f"its kernel must be the one that every Jupyter has: kernelspec {KERNEL}")
    if any(cell.outputs or cell.execution_count for cell in code):
        found.append("outputs are stored in it: clear them before saving")
    return found


def _cell_faults(text: str, parameters: type[ChapterParameters]) -> list[str]:
    wanted, got = parameters_cell(parameters).splitlines(), text.strip().splitlines()
    length = max(len(wanted), len(got))
    wanted, got = (lines + ["nothing"] * (length - len(lines)) for lines in (wanted, got))
    return [
        f"line {number} of the parameters cell must be {want!r}, is {line!r} "
        "(to run with another value, use -p or a profile)"
        for number, (want, line) in enumerate(zip(wanted, got, strict=True), start=1)
        if want != line
    ][:1]


def _checks_parameters(text: str) -> bool:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return False
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr == "from_notebook" for call in calls)
