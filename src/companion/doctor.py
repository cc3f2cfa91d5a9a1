"""What is installed, present and writable here, and how long the chapters take."""

import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from companion import lineages, profiles
from companion.chapters import CHAPTERS, EXECUTED, ChapterError, find_project
from companion.freshness import last_seconds
from companion.runs import RunStoreError, default_root

REFERENCE_SECONDS = {  # (chapter, profile) -> a first execution on one core of an AMD EPYC (Zen 3)
    ("trade-off", "lab"): 70,
    ("trade-off", "smoke"): 25,
}


@dataclass(frozen=True)
class Finding:
    """One line of the report; ``good`` is False for what has to be mended."""

    what: str
    found: str
    good: bool = True


def examine(start: Path) -> list[Finding]:
    """Every finding, for the project that ``start`` lies in."""
    python = Finding("python", f"{platform.python_version()} on {platform.system()}")
    return [python, *packages(), device(), *checkpoints(), *folders(start), *times(start)]


def packages() -> Iterator[Finding]:
    """Each package that this one asks for: the version, and whether it is in the range.

    A package of an extra may be missing; one of the core may not.
    """
    for text in metadata.requires("companion") or ():
        needed = Requirement(text)
        extra = needed.marker is not None and not needed.marker.evaluate({"extra": ""})
        try:
            version = metadata.version(needed.name)
        except metadata.PackageNotFoundError:
            yield Finding(needed.name, "not installed" + " (optional)" * extra, good=extra)
            continue
        good = needed.specifier.contains(version, prereleases=True)
        wanted = "" if good else f", needed: {needed.specifier}"
        yield Finding(needed.name, version + wanted, good)


def device() -> Finding:
    """Where models run, and on how many threads."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    threads = os.environ.get("OMP_NUM_THREADS", "not set; chapters set it to 1")
    return Finding("device", f"{gpu}, {os.cpu_count()} CPU cores, OMP_NUM_THREADS {threads}")


def checkpoints() -> Iterator[Finding]:
    """Each lineage, after comparing every one of its checkpoints with its hash."""
    try:
        found = [lineages.load(name) for name in lineages.names()]
    except lineages.LineageError as error:
        yield Finding("lineages", str(error), good=False)
        return
    for lineage in found:
        faults = []
        for checkpoint in lineage.checkpoints:
            try:
                checkpoint.verify()
            except lineages.LineageError as error:
                faults.append(str(error))
        steps = ", ".join(map(str, lineage.steps))
        intact = f"intact, trained in {lineage.record.seconds:.0f} s, steps {steps}"
        yield Finding(f"lineage {lineage.name}", "; ".join(faults) or intact, good=not faults)


def folders(start: Path) -> Iterator[Finding]:
    """Whether executed chapters and samples can be written."""
    try:
        yield writable("executed chapters", find_project(start) / EXECUTED)
    except ChapterError as error:
        yield Finding("executed chapters", str(error), good=False)
    try:
        yield writable("samples", default_root())
    except RunStoreError as error:
        yield Finding("samples", str(error), good=False)


def writable(what: str, folder: Path) -> Finding:
    """Whether a file can be made in ``folder``, or in the folder that it will be made in."""
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            return Finding(what, str(folder))
    except OSError as error:
        return Finding(what, f"{folder} cannot be written ({error.strerror})", good=False)


def times(start: Path) -> Iterator[Finding]:
    """How long each chapter took here in each profile, or takes on the machine of reference."""
    try:
        project = find_project(start)
    except ChapterError:
        return
    for chapter in CHAPTERS:
        for profile in profiles.names():
            seconds = last_seconds(chapter, project, profile)
            expected = REFERENCE_SECONDS.get((chapter.name, profile))
            first = f"; a first execution takes about {expected} s" if expected else ""
            took = f"{seconds:.0f} s" if seconds else f"not timed here yet{first}"
            yield Finding(f"{chapter.name} in {profile}", took)
