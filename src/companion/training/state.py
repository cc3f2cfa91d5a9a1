"""The resumable state of a training run: weights, optimiser and log, never half-written.

A run's folder holds ``state.safetensors`` (weights, optimiser moments and the number of finished
steps in one file, replaced as a whole) and ``log.jsonl`` (one line a step). All randomness is
derived from (seed, step), so nothing else is needed to go on exactly as if nothing had happened.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

STATE, LOG = "state.safetensors", "log.jsonl"


class TrainingStateError(RuntimeError):
    """A training state that is damaged, or belongs to other settings."""


def write_atomically(path: Path, write: Any) -> None:
    """Let ``write(temporary_path)`` write a file, then put it in place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def save(
    folder: Path,
    step: int,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    settings: dict[str, Any],
) -> None:
    """Save the state after ``step`` finished steps."""
    names = [name for name, _ in model.named_parameters()]
    tensors = {f"model.{name}": value.detach() for name, value in model.named_parameters()}
    for index, moments in optimizer.state_dict()["state"].items():
        for kind, value in moments.items():
            tensors[f"{kind}.{names[index]}"] = torch.as_tensor(value)
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    metadata = {"step": str(step), "settings": json.dumps(settings, sort_keys=True)}
    metadata["checksum"] = _checksum(metadata, tensors)
    write_atomically(folder / STATE, lambda path: save_file(tensors, path, metadata))


def _checksum(metadata: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """A hash over the step, the settings, and every tensor's name, type, shape and values."""
    digest = hashlib.sha256(f"{metadata.get('step')} {metadata.get('settings')}".encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()


def load(
    folder: Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    settings: dict[str, Any],
) -> int:
    """Load the state into the model and the optimiser; returns the number of finished steps.

    A folder without a state is a run that has not begun: 0 steps.

    Raises:
        TrainingStateError: where the file is damaged, or was written under other settings.
    """
    path = folder / STATE
    if not path.exists():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # Copies, because Windows cannot replace a file of which a part is still mapped.
            tensors = {name: file.get_tensor(name).clone() for name in sorted(file.keys())}
    except (SafetensorError, OSError) as damage:
        raise _damaged(path, damage) from None
    checksum = _checksum(metadata, tensors)
    if metadata.get("checksum") != checksum:
        raise _damaged(path, "its values are not those of its checksum")
    if metadata.get("settings") != json.dumps(settings, sort_keys=True):
        raise TrainingStateError(
            f"{path} was written under other settings; choose another folder, "
            "or remove it to train this run from its first step"
        )
    moments: dict[int, dict[str, Tensor]] = {}
    with torch.no_grad():
        for index, (name, parameter) in enumerate(model.named_parameters()):
            parameter.copy_(tensors[f"model.{name}"])
            moments[index] = {
                kind: tensors[f"{kind}.{name}"]
                for kind in ("step", "exp_avg", "exp_avg_sq")
                if f"{kind}.{name}" in tensors
            }
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    return int(metadata["step"])


def _damaged(path: Path, why: object) -> TrainingStateError:
    return TrainingStateError(
        f"{path} is damaged ({why}); remove it to train this run from its first step"
    )


class Log:
    """One JSON object a step, appended to ``log.jsonl``."""

    def __init__(self, folder: Path, finished: int) -> None:
        """Open the log, dropping lines of steps after ``finished``: they will be done again."""
        self.path = folder / LOG
        folder.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_log(folder) if line["step"] <= finished]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        write_atomically(self.path, lambda path: path.write_text(text, encoding="utf-8"))

    def append(self, **values: float) -> None:
        """Append one step's values."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")


def read_log(folder: Path) -> list[dict[str, float]]:
    """The log's lines; a last line that a kill cut short is left out."""
    path = folder / LOG
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines
