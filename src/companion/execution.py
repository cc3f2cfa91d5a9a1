"""Run a chapter's notebook with papermill and keep the result only if it is good."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from papermill.exceptions import PapermillExecutionError

from companion import freshness
from companion.chapters import (
    CELL_SECONDS,
    KERNEL,
    Chapter,
    ChapterError,
    code_cells,
    faults,
    read_notebook,
    resolve,
    tags,
)
from companion.parameters import (
    ChapterParameters,
    known_lineages,
    refuse_absent,
)

CHAPTERS_AT_ONCE = 2  # one thread each
THREAD_LIMITS = (  # two threads of one small model mostly wait for each other
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|API_?KEY|ACCESS_?KEY", re.IGNORECASE)
BINARY_TYPES = ("image/png", "image/jpeg", "application/pdf")  # base64
SHORTEST_SECRET = 8  # characters; shorter values would take ordinary words out of the page


def execute(
    chapter: Chapter,
    profile: str,
    overrides: Mapping[str, object],
    project: Path,
    *,
    output: Path | None = None,
    cell_seconds: int = CELL_SECONDS,
    progress: bool = False,
) -> Path:
    """Execute a chapter and return the path of the executed copy.

    The copy appears at its place in one step, and only after a run without fault. The notebook of
    a failed run is kept beside it with the ending ``.failed.ipynb``; until the next good run the
    book refuses to be built.

    Args:
        chapter: which one.
        profile: name of a profile, or path of a YAML file.
        overrides: parameters that go before the profile's.
        project: the project's folder.
        output: where to write instead of ``book/chapters/``.
        cell_seconds: the longest time that one cell may take.
        progress: show a progress bar on stderr.

    Raises:
        ParameterError: before anything is started.
        ChapterError: for a notebook that breaks the rules, and a run that failed.
    """
    parameters = resolve(chapter, profile, overrides)
    refuse_absent(parameters, known_lineages())
    notebook = chapter.notebook(project)
    source = read_notebook(notebook)
    if found := faults(source, chapter):
        raise ChapterError(f"{notebook.name}: {'; '.join(found)}")
    record = freshness.record(chapter, profile, overrides, parameters, source)
    output = chapter.executed(project) if output is None else output
    with _reserved(output) as write, tempfile.TemporaryDirectory() as folder:
        work = Path(folder, notebook.name)
        nbformat.write(source, work)  # type: ignore[no-untyped-call]
        failure = _run(work, parameters, notebook.parent, cell_seconds, progress)
        executed = _publishable(read_notebook(work), project)
        if failure:
            executed.metadata.papermill["exception"] = True
            write(executed, freshness.failed_copy(output))
            raise ChapterError(f"chapter {chapter.name}: {failure}")
        record["outputs"] = freshness.outputs_digest(executed)
        executed.metadata["companion"] = record
        write(executed, output)
        freshness.failed_copy(output).unlink(missing_ok=True)
    return output


def execute_all(
    overrides: Mapping[Chapter, Mapping[str, object]],
    profile: str,
    project: Path,
    *,
    cell_seconds: int = CELL_SECONDS,
) -> Iterator[tuple[Chapter, Path | ChapterError]]:
    """Execute chapters, two at a time in processes of their own, and yield each as it ends.

    A chapter that fails does not stop the others: its error is yielded in place of its path.

    Args:
        overrides: the chapters, each with the parameters that go before the profile's.
        profile: name of a profile, or path of a YAML file.
        project: the project's folder.
        cell_seconds: the longest time that one cell may take.

    Raises:
        ParameterError: before the first chapter starts, when any of them would refuse.
    """
    for chapter, own in overrides.items():
        refuse_absent(resolve(chapter, profile, own), known_lineages())
    # A forked process would share the locks of this one; Windows and macOS spawn anyway.
    with ProcessPoolExecutor(CHAPTERS_AT_ONCE, mp_context=get_context("spawn")) as pool:
        running = {
            pool.submit(execute, chapter, profile, own, project, cell_seconds=cell_seconds): chapter
            for chapter, own in overrides.items()
        }
        for future in as_completed(running):
            try:
                yield running[future], future.result()
            except ChapterError as error:
                yield running[future], error


def _run(
    work: Path, parameters: ChapterParameters, folder: Path, cell_seconds: int, progress: bool
) -> str:
    """Execute ``work`` in place; an empty text, or what went wrong in one line."""
    try:
        with _one_thread():
            papermill.execute_notebook(
                work,
                work,
                parameters=parameters.model_dump(),
                kernel_name=KERNEL["name"],
                progress_bar=progress,
                execution_timeout=cell_seconds,
                cwd=folder,
            )
    except PapermillExecutionError as error:
        first_line = (error.evalue.strip().splitlines() or [""])[0]
        return f"cell [{error.exec_count}] raised {error.ename}: {first_line}"
    except CellTimeoutError:
        return (
            f"cell [{_last_cell(work)}] took longer than {cell_seconds} s: "
            f"lower {_costs(parameters)}, or allow more with --cell-seconds"
        )
    except DeadKernelError:
        return (
            f"cell [{_last_cell(work)}] ended its kernel, as a system does that runs out of "
            f"memory: lower {_costs(parameters)}"
        )
    except RuntimeError as error:
        return f"its kernel did not start ({error})"
    return ""


def _costs(parameters: ChapterParameters) -> str:
    return " or ".join(
        f"{name} (now {getattr(parameters, name)})" for name in parameters.costly_fields
    )


def _last_cell(work: Path) -> int:
    """The number that the last cell to start would have had in brackets."""
    cells = code_cells(read_notebook(work))
    return sum(cell.metadata.papermill.start_time is not None for cell in cells)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Kernels started inside inherit one thread each; our own environment comes back after."""
    before = {name: os.environ.get(name) for name in THREAD_LIMITS}
    os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _reserved(output: Path) -> Iterator[Callable[[NotebookNode, Path], None]]:
    """Find out before a long run whether ``output`` can be written, and how."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{output.stem}-", suffix=".tmp", dir=output.parent)
        os.close(handle)
    except OSError as error:
        raise ChapterError(f"{output.parent} cannot be written ({error.strerror})") from None
    temporary = Path(name)

    def write(notebook: NotebookNode, place: Path) -> None:
        try:
            nbformat.write(notebook, temporary)  # type: ignore[no-untyped-call]
            temporary.replace(place)
        except OSError as error:
            raise ChapterError(f"{place} cannot be written ({error.strerror})") from None

    try:
        yield write
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _publishable(executed: NotebookNode, project: Path) -> NotebookNode:
    """The executed notebook without paths of this machine, secrets and run times of cells.

    The cell that papermill added is folded away, not removed: it says what this run used.
    """
    run = executed.metadata.get("papermill", {})
    executed.metadata.papermill = {name: run.get(name) for name in ("duration", "exception")}
    for cell in executed.cells:
        for times in ("papermill", "execution"):
            cell.metadata.pop(times, None)
        if "injected-parameters" in tags(cell):
            cell.metadata.tags = [*tags(cell), "hide-cell"]
            cell.id = "injected-parameters"  # papermill draws a new one in every run
    labels = _private_texts(project)
    # A path ends where its last name does: /home/me must not match in /home/menu.
    private = re.compile("|".join(f"{re.escape(text)}(?![\\w-])" for text in labels))
    published: NotebookNode = _without(executed, private, labels)
    return published


def _private_texts(project: Path) -> dict[str, str]:
    """Text that must not be published -> what stands in its place; the longest first."""
    private = {
        value: f"[{name}]"
        for name, value in os.environ.items()
        if SECRET_NAME.search(name) and len(value) >= SHORTEST_SECRET
    }
    folders = ((project.resolve(), "."), (Path(sys.prefix), "[venv]"), (Path.home(), "~"))
    for folder, label in folders:
        if folder != Path(folder.anchor):  # a home folder of "/" would match everywhere
            private[str(folder)] = private[folder.as_posix()] = label
            private[repr(str(folder))[1:-1]] = label  # as Python prints it on Windows
    return dict(sorted(private.items(), key=lambda item: -len(item[0])))


def _without(value: Any, private: re.Pattern[str], labels: Mapping[str, str]) -> Any:
    """The same nested value with each private text replaced; encoded images stay as they are."""
    if isinstance(value, str):
        return private.sub(lambda match: labels[match[0]], value)
    if isinstance(value, list):
        return [_without(item, private, labels) for item in value]
    if isinstance(value, Mapping):
        kept = {
            key: item if key in BINARY_TYPES else _without(item, private, labels)
            for key, item in value.items()
        }
        return NotebookNode(kept)  # type: ignore[no-untyped-call]
    return value
