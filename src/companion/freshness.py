"""Whether an executed chapter still says what this copy of the project would say.

A run writes a *record* into the metadata of the executed notebook: hashes of everything that its
numbers depend on, and its parameters. A page is published only while all of them still hold.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from companion import profiles
from companion.chapters import Chapter, ChapterError, code_cells, digest, read_notebook, resolve
from companion.parameters import ChapterParameters, ParameterError

if TYPE_CHECKING:
    from nbformat import NotebookNode

LIBRARY = Path(__file__).parent
CAUSES = {
    "library": "the library",
    "data": "the shipped data (checkpoints or the paper's values)",
    "notebook": "its source notebook",
}


def dependencies(source: "NotebookNode") -> dict[str, str]:
    """sha256 of the library's code, of the data that it ships, and of a source notebook."""
    return {
        "library": _digest_of(LIBRARY.rglob("*.py")),
        "data": _digest_of(
            path
            for folder in ("claims", "lab")
            for path in (LIBRARY / folder).rglob("*")
            if path.is_file() and path.suffix not in (".py", ".pyc")
        ),
        "notebook": digest(source),
    }


def record(
    chapter: Chapter,
    profile: str,
    overrides: Mapping[str, object],
    parameters: ChapterParameters,
    source: "NotebookNode",
) -> dict[str, object]:
    """What a run depends on, taken before it starts.

    A profile of the package is recorded by name, so that a change of the profile shows later. A
    file of the reader's own is recorded by its values: its path belongs to one machine.
    """
    shipped = profile in profiles.names()
    own = {} if shipped else parameters.model_dump(exclude_defaults=True)
    return {
        "chapter": chapter.name,
        "profile": profile if shipped else profiles.DEFAULT,
        "overrides": {**own, **overrides},
        "parameters": parameters.model_dump(),
        "dependencies": dependencies(source),
    }


def outputs_digest(executed: "NotebookNode") -> str:
    """sha256 of the sources and outputs of the code cells."""
    shown = [[cell.source, cell.outputs] for cell in code_cells(executed)]
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def failed_copy(executed: Path) -> Path:
    """Where the notebook of a failed run is kept to be looked at."""
    return executed.with_suffix(".failed.ipynb")


def reasons(chapter: Chapter, project: Path, profile: str | None = None) -> list[str]:
    """Why the executed copy of a chapter must not be published; empty when it may.

    Args:
        chapter: which one.
        project: the project's folder.
        profile: also demand exactly the parameters of this profile.
    """
    path = chapter.executed(project)
    if failed_copy(path).exists():
        return [f"its last run failed ({failed_copy(path).name} shows where)"]
    if not path.exists():
        return ["it has not been executed"]
    try:
        executed, source = read_notebook(path), read_notebook(chapter.notebook(project))
    except ChapterError as error:
        return [str(error)]
    if _has_failed(executed):
        return ["its executed copy holds an error"]
    if "companion" not in executed.metadata:
        return ["its executed copy was not made by 'companion run'"]
    kept = executed.metadata.companion
    return _changes(kept, executed, source) + _other_parameters(kept, chapter, profile)


def last_seconds(chapter: Chapter, project: Path, profile: str) -> float | None:
    """How long the last good run of a chapter in this profile took here; None without one."""
    try:
        metadata = read_notebook(chapter.executed(project)).metadata
        if metadata.companion.parameters.profile == profile:
            return float(metadata.papermill.duration)
    except (ChapterError, AttributeError):
        pass
    return None


def _changes(kept: "NotebookNode", executed: "NotebookNode", source: "NotebookNode") -> list[str]:
    now = dependencies(source)
    changed = [
        f"{words} changed since it was executed"
        for cause, words in CAUSES.items()
        if kept.get("dependencies", {}).get(cause) != now[cause]
    ]
    if kept.get("outputs") != outputs_digest(executed):
        changed.append("its executed copy was changed by hand")
    return changed


def _other_parameters(kept: "NotebookNode", chapter: Chapter, profile: str | None) -> list[str]:
    if not {"parameters", "profile", "overrides"} <= kept.keys():
        return ["its executed copy does not say its parameters"]
    try:
        now = resolve(chapter, kept.profile, kept.overrides).model_dump()
        wanted = now if profile is None else resolve(chapter, profile, {}).model_dump()
    except ParameterError as error:
        return [f"its parameters are no longer valid ({error})"]
    if kept.parameters != now:
        return ["its parameters changed since it was executed"]
    if kept.parameters != wanted:
        return [f"it was executed with other parameters than those of the profile {profile}"]
    return []


def _has_failed(executed: "NotebookNode") -> bool:
    return bool(executed.metadata.get("papermill", {}).get("exception")) or any(
        output.output_type == "error" for cell in code_cells(executed) for output in cell.outputs
    )


def _digest_of(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(f"{path.relative_to(LIBRARY).as_posix()}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
