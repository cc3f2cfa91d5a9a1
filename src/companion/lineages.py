"""Lineages: a base policy and its checkpoints along one training run.

The shipped lineages live in ``companion/lab`` with a manifest that records, for every checkpoint,
how it was made, the hash of its file and what it measured. A chapter names a lineage and a step;
it never knows where the weights lie or what made them.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

LAB = Path(__file__).parent / "lab"
MANIFEST = "manifest.json"
WEIGHTS = "model.safetensors"


class LineageError(ValueError):
    """A lineage, checkpoint or manifest that is missing or damaged; the message says which."""


class CheckpointRecord(BaseModel):
    """What the manifest says of one checkpoint.

    Args:
        step: training steps since the base.
        folder: relative to the manifest; two lineages may share their base.
        sha256: of the weights file.
        measured: exact values on the held-out problems, by size of the problem and measure.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    step: int
    folder: str
    sha256: str
    measured: dict[str, dict[str, float]]


class LineageRecord(BaseModel):
    """What the manifest says of one lineage: its recipe, its seed, and how long it took."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    description: str
    recipe: dict[str, int | float | str]
    seconds: float
    checkpoints: list[CheckpointRecord]


class Manifest(BaseModel):
    """Everything that is shipped, by the name of the lineage."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    lineages: dict[str, LineageRecord]


@dataclass(frozen=True)
class Checkpoint:
    """The weights of one training step of a lineage."""

    lineage: str
    folder: Path
    record: CheckpointRecord

    @property
    def step(self) -> int:
        """Training steps since the base."""
        return self.record.step

    def verify(self) -> None:
        """Compare the weights file with its hash.

        Raises:
            LineageError: where the file is missing or is not the one that was trained.
        """
        path = self.folder / WEIGHTS
        if not path.is_file():
            raise LineageError(
                f"{self.lineage} step {self.step}: {path.name} is missing; restore it with git"
            )
        if file_hash(path) != self.record.sha256:
            raise LineageError(
                f"{self.lineage} step {self.step}: {path.name} is damaged (its hash is not the "
                "manifest's); restore it with git, or train it again with 'companion train lab'"
            )


@dataclass(frozen=True)
class Lineage:
    """A base and its checkpoints, by step."""

    name: str
    record: LineageRecord
    checkpoints: tuple[Checkpoint, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of its checkpoints, in order."""
        return tuple(checkpoint.step for checkpoint in self.checkpoints)

    def at(self, step: int) -> Checkpoint:
        """The checkpoint of a step.

        Raises:
            LineageError: where there is none.
        """
        for checkpoint in self.checkpoints:
            if checkpoint.step == step:
                return checkpoint
        raise LineageError(
            f"step: lineage {self.name!r} has no checkpoint at {step} "
            f"(steps: {', '.join(map(str, self.steps))})"
        )


def load(name: str) -> Lineage:
    """The lineage of a name.

    Raises:
        LineageError: where there is none, or the manifest is damaged.
    """
    known = manifest().lineages
    if name not in known:
        raise LineageError(f"lineage: there is no {name!r} (lineages: {', '.join(sorted(known))})")
    record = known[name]
    checkpoints = tuple(Checkpoint(name, LAB / r.folder, r) for r in record.checkpoints)
    return Lineage(name, record, checkpoints)


def names() -> tuple[str, ...]:
    """The names of all lineages."""
    return tuple(sorted(manifest().lineages))


def steps() -> dict[str, tuple[int, ...]]:
    """The steps of every lineage's checkpoints."""
    return {name: load(name).steps for name in names()}


@cache
def manifest() -> Manifest:
    """The shipped manifest.

    Raises:
        LineageError: where it is missing or damaged.
    """
    return read_manifest(LAB)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a folder of lineages; see :func:`manifest`."""
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise LineageError(f"{path} cannot be read ({error.strerror})") from None
    except ValidationError as error:
        fault = error.errors()[0]
        what = ", ".join(map(str, (*fault["loc"], fault["msg"])))
        raise LineageError(f"{path} is damaged ({what}); restore it with git") from None


def write_manifest(folder: Path, made: Manifest) -> None:
    """Write a manifest in one piece, readable and with a stable order."""
    text = json.dumps(made.model_dump(), indent=1, sort_keys=True, ensure_ascii=False)
    temporary = folder / f".{MANIFEST}.tmp"
    temporary.write_text(text + "\n", encoding="utf-8")
    temporary.replace(folder / MANIFEST)


def file_hash(path: Path) -> str:
    """sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
