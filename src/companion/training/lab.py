"""The laboratory from nothing: a base, a rewarded lineage, and its random-reward control.

The base is pre-trained first; then the two lineages are trained side by side, a process each. Every
checkpoint is written in half precision with its configuration and tokenizer, loaded back in single
precision, measured exactly on the held-out problems, and entered in the manifest.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

from companion.lab.evaluation import measured
from companion.lab.model import new_model
from companion.lab.tokenizer import tokenizer
from companion.lineages import (
    WEIGHTS,
    CheckpointRecord,
    LineageRecord,
    Manifest,
    file_hash,
    write_manifest,
)
from companion.policies.transformers import load_policy
from companion.training import state
from companion.training.pretrain import PretrainRecipe, Progress, pretrain
from companion.training.rl import SAVE_EVERY, GrpoRecipe, grpo

BASE = "lab-base"
GRPO = "lab-grpo"
CONTROL = "lab-random-reward"
CHECKPOINTS = "checkpoints"

Report = Callable[[str, int, int], None]
"""Called with (lineage, finished steps, steps in all)."""


@dataclass(frozen=True)
class LabRecipe:
    """The three runs of the laboratory; the defaults made what is shipped.

    ``spacing`` keeps one checkpoint in so many steps, for the lineage and for the control.
    """

    base: PretrainRecipe = field(default_factory=PretrainRecipe)
    rewarded: GrpoRecipe = field(default_factory=GrpoRecipe)
    control: GrpoRecipe = field(default_factory=lambda: GrpoRecipe(reward="random"))
    spacing: int = 25
    control_spacing: int = 100


DESCRIPTIONS = {
    BASE: "pre-trained: calculates, tries every entrance, rarely hits",
    GRPO: "GRPO on whole-trace reward",
    CONTROL: "the same GRPO on a coin toss for a reward: the control",
}


def train_lab(recipe: LabRecipe, work: Path, output: Path, report: Report) -> Manifest:
    """Train everything, or finish what a killed run has left; returns the manifest written.

    Args:
        recipe: the settings.
        work: resumable states and logs, a folder a run.
        output: where the checkpoints and the manifest go.
        report: called after every step.

    Raises:
        TrainingStateError: where ``work`` holds a damaged state or one of other settings.
    """
    check(recipe)
    base = output / CHECKPOINTS / BASE / "step-0000"
    model = pretrain(recipe.base, work / BASE, _reporter(report, BASE))
    write_checkpoint(model, base)
    train_side_by_side(recipe, base, work, report)
    records = {BASE: _record(BASE, recipe.base, work, output, {0: base})}
    for name, rl, spacing in (
        (GRPO, recipe.rewarded, recipe.spacing),
        (CONTROL, recipe.control, recipe.control_spacing),
    ):
        folders = {0: base}
        for step in range(spacing, rl.steps + 1, spacing):
            folders[step] = output / CHECKPOINTS / name / f"step-{step:04d}"
            write_checkpoint(trained(work / name, step), folders[step])
        records[name] = _record(name, rl, work, output, folders)
    made = Manifest(lineages=records)
    write_manifest(output, made)
    return made


def check(recipe: LabRecipe) -> None:
    """Refuse spacings that no saved step falls on, or that leave out the last one.

    Raises:
        ValueError: naming the setting and a valid value.
    """
    for name, spacing, steps in (
        ("spacing", recipe.spacing, recipe.rewarded.steps),
        ("control_spacing", recipe.control_spacing, recipe.control.steps),
    ):
        if spacing < 1 or spacing % SAVE_EVERY:
            raise ValueError(f"{name}: a multiple of {SAVE_EVERY}, such as 50; got {spacing}")
        if steps % spacing:
            raise ValueError(f"{name}: a divisor of the {steps} steps; got {spacing}")


def train_side_by_side(recipe: LabRecipe, base: Path, work: Path, report: Report) -> None:
    """Train the lineage and the control in a process each, from the same base."""
    context = get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(2, mp_context=context) as pool:
        queue = manager.Queue()
        running = {
            pool.submit(_train_one, name, rl, base, work / name, queue)
            for name, rl in ((GRPO, recipe.rewarded), (CONTROL, recipe.control))
        }
        waiting = set(running)
        while waiting:
            waiting = {future for future in waiting if not future.done()}
            while not queue.empty():
                report(*queue.get())
            time.sleep(0.2)
        for future in as_completed(running):
            future.result()


def _train_one(name: str, recipe: GrpoRecipe, base: Path, work: Path, queue: Any) -> None:
    torch.set_num_threads(1)
    model = load_policy(base).model
    grpo(recipe, model, work, lambda done, total, _: queue.put((name, done, total)))


def trained(folder: Path, step: int) -> LlamaForCausalLM:
    """The model of a saved step of a run."""
    weights = load_file(folder / f"step-{step:04d}.safetensors")
    embedding = weights["model.embed_tokens.weight"]
    model = new_model(0, hidden=embedding.shape[1])
    model.load_state_dict(weights | {"lm_head.weight": embedding})  # tied, so it is stored once
    return model


def write_checkpoint(model: LlamaForCausalLM, folder: Path) -> None:
    """Write a checkpoint in half precision with its configuration and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    deepcopy(model).half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)  # decoding is always explicit
    tokenizer().save_pretrained(folder)


def _record(
    name: str,
    recipe: PretrainRecipe | GrpoRecipe,
    work: Path,
    output: Path,
    folders: dict[int, Path],
) -> LineageRecord:
    return LineageRecord(
        description=DESCRIPTIONS[name],
        recipe=asdict(recipe),
        seconds=round(sum(line["seconds"] for line in state.read_log(work / name)), 1),
        checkpoints=[
            CheckpointRecord(
                step=step,
                folder=folder.relative_to(output).as_posix(),
                sha256=file_hash(folder / WEIGHTS),
                measured=measured(load_policy(folder)),
            )
            for step, folder in folders.items()
        ],
    )


def differences(made: Manifest, shipped: Manifest) -> list[str]:
    """Where a new manifest does not give what the shipped one gives, one sentence each."""
    found = []
    for name, lineage in shipped.lineages.items():
        new = {c.step: c for c in made.lineages[name].checkpoints} if name in made.lineages else {}
        for old in lineage.checkpoints:
            where = f"{name} step {old.step}"
            if old.step not in new:
                found.append(f"{where} was not trained")
            elif new[old.step].sha256 != old.sha256:
                gap = max(
                    abs(new[old.step].measured[size][measure] - value)
                    for size, values in old.measured.items()
                    for measure, value in values.items()
                )
                found.append(f"{where}: other weights; largest change of a measure {gap:.3f}")
    return found


def expected_minutes(shipped: Manifest) -> int:
    """How long the laboratory takes, from the seconds that the shipped runs recorded."""
    seconds = {name: lineage.seconds for name, lineage in shipped.lineages.items()}
    return math.ceil((seconds[BASE] + max(seconds[GRPO], seconds[CONTROL])) / 60)


def _reporter(report: Report, name: str) -> Progress:
    return lambda done, total, _: report(name, done, total)
