"""What ``companion train lab`` does around the training: time, progress, the result."""

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from companion.lineages import LAB, MANIFEST, LineageError, Manifest, manifest
from companion.runs import default_root
from companion.training import lab

Say = Callable[[str], None]


def train_lab(work: Path | None, output: Path | None, install: bool, say: Say) -> None:
    """Train the laboratory with a progress bar a run, and say how the result compares.

    Args:
        work: resumable states and logs; by default ``training/lab`` among the runs.
        output: where checkpoints and manifest go; by default ``lab`` inside ``work``.
        install: put the result in the place of the shipped lab.
        say: prints a line.

    Raises:
        TrainingStateError: where ``work`` holds a damaged state or one of other settings.
    """
    work = work or default_root() / "training" / "lab"
    output = output or work / "lab"
    shipped, recipe = shipped_manifest(say), lab.LabRecipe()
    minutes = f"about {lab.expected_minutes(shipped)}" if shipped else "an unknown number of"
    say(
        f"a base ({recipe.base.steps} steps), then a rewarded lineage and its control side by side "
        f"({recipe.rewarded.steps} steps each): {minutes} minutes on two cores; stop it at any "
        "time, the same command goes on"
    )
    say(f"states and logs: {work}")
    torch.set_num_threads(1)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    ) as bars:
        tasks = {
            name: bars.add_task(name, total=steps)
            for name, steps in (
                (lab.BASE, recipe.base.steps),
                (lab.GRPO, recipe.rewarded.steps),
                (lab.CONTROL, recipe.control.steps),
            )
        }

        def report(name: str, done: int, total: int) -> None:
            bars.update(tasks[name], completed=done, total=total)

        made = lab.train_lab(recipe, work, output, report)
    summarise(made, shipped, say)
    if install:
        put_in_place(output, LAB)
        say("installed: run the chapters again to see the book of these checkpoints")
    else:
        say(f"checkpoints and manifest: {output}")


def shipped_manifest(say: Say) -> Manifest | None:
    """The shipped manifest; a damaged one is reported, for training anew is a way to mend it."""
    try:
        return manifest()
    except LineageError as error:
        say(f"nothing to compare with: {error}")
        return None


def summarise(made: Manifest, shipped: Manifest | None, say: Say) -> None:
    """First and last checkpoint of every lineage, and where they are not the shipped ones."""
    for name, lineage in made.lineages.items():
        for checkpoint in (lineage.checkpoints[0], lineage.checkpoints[-1]):
            for size, values in checkpoint.measured.items():
                told = ", ".join(f"{measure} {value:.3f}" for measure, value in values.items())
                say(f"{name} step {checkpoint.step}, {size} numbers: {told}")
    if shipped is None:
        return
    found = lab.differences(made, shipped)
    for difference in found:
        say(difference)
    if not found:
        say("every checkpoint has the hash of the shipped one")


def put_in_place(output: Path, place: Path) -> None:
    """Replace the checkpoints and the manifest of ``place``, the manifest last."""
    (place / MANIFEST).unlink(missing_ok=True)  # a copy cut short must not look complete
    shutil.rmtree(place / lab.CHECKPOINTS, ignore_errors=True)
    shutil.copytree(output / lab.CHECKPOINTS, place / lab.CHECKPOINTS)
    shutil.copyfile(output / MANIFEST, place / MANIFEST)
