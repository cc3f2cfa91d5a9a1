"""Measure every ratio and print the table: ``python -m benchmarks [--problems N] [--json FILE]``.

The two sides of a ratio are timed in turn, several times, and the ratio is the median of the
pairs: a machine that slows down slows both. Times are processor seconds of this process.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.enumerator import plain_leaves
from benchmarks.generation import generate
from benchmarks.verifier import sympy_correct
from companion import lineages
from companion.countdown import answers, leaves, solver
from companion.countdown.problems import Problem
from companion.lab import evaluation, world
from companion.lab.tokenizer import Tokens, decode, prompt
from companion.policies.transformers import TransformersPolicy, load_policy
from companion.seeds import generator

PAIRS = 3
SAMPLES = 320


@dataclass(frozen=True)
class Ratio:
    """One line of the table; seconds are medians of one pass of each side."""

    work: str
    against: str
    ours: float
    theirs: float
    ratio: float
    bar: float


def pairs(
    ours: Callable[[], object], theirs: Callable[[], object], scale: float = 1.0
) -> list[float]:
    """Median seconds of both sides and the median ratio, theirs over ours, taken pair by pair."""
    times = [(_seconds(ours), _seconds(theirs) * scale) for _ in range(PAIRS)]
    return [
        statistics.median(a for a, _ in times),
        statistics.median(b for _, b in times),
        statistics.median(b / a for a, b in times),
    ]


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def enumeration(count: int = 100) -> Ratio:
    """Enumerate and name the leaves of fresh four-number problems; our caches start empty."""
    rng = generator("benchmark", "enumeration")
    problems = [
        Problem(tuple(int(n) for n in rng.integers(1, 100, 4)), int(rng.integers(1, 101)))
        for _ in range(count)
    ]

    def ours() -> None:
        for cached in (solver.expressions_by_value, solver._reaching, solver.splits):
            cached.cache_clear()
        for problem in problems:
            {leaves.leaf(found) for found in solver.solve(problem)}

    def theirs() -> None:
        for problem in problems[: count // 10]:
            plain_leaves(problem)

    return Ratio(
        f"enumerate {count} four-number problems",
        "plain recursion over fractions",
        *pairs(ours, theirs, scale=10),
        bar=20,
    )


def sampling(name: str, policy: TransformersPolicy, problems: int, bar: float) -> tuple[Ratio, str]:
    """Draw 320 samples of every held-out problem, and say how many tokens sharing saves.

    ``generate`` does ``problems`` of them, evenly from both sizes, and is scaled up.
    """
    mine, every = prompts(problems // 2), prompts(world.HELD_OUT_OF_EACH_SIZE)
    ratio = Ratio(
        f"{SAMPLES} samples of {len(every)} problems, {name}",
        f"transformers generate ({len(mine)} problems, scaled)",
        *pairs(
            lambda: policy.sample(every, SAMPLES, evaluation.DECODING, seed=1),
            lambda: generate(policy, mine, SAMPLES, evaluation.DECODING, seed=1),
            scale=len(every) / len(mine),
        ),
        bar=bar,
    )
    drawn = policy.sample(every, SAMPLES, evaluation.DECODING, seed=1)
    prefixes = sum(len({c[:i] for c in s.completions for i in range(len(c))}) for s in drawn)
    tokens = sum(int(s.counts @ np.array([len(c) for c in s.completions])) for s in drawn)
    return ratio, f"{name}: {tokens:,} tokens drawn from {prefixes:,} distinct prefixes"


def prompts(of_each_size: int) -> list[Tokens]:
    """The prompts of held-out problems, as many of each size."""
    return [
        prompt(one.problem)
        for size in world.SIZES
        for one in evaluation.spaces("held-out", size, world.HELD_OUT_OF_EACH_SIZE)[:of_each_size]
    ]


def verification(policies: list[TransformersPolicy], samples: int = 500) -> Ratio:
    """Judge the answers of real samples; sympy judges every hundredth and is scaled up."""
    work: list[tuple[str, Problem]] = []
    problems = [p for s in world.SIZES for p in world.problems("held-out", s, 50)]
    for policy in policies:
        drawn = policy.sample([prompt(p) for p in problems], samples, evaluation.DECODING, seed=2)
        for problem, group in zip(problems, drawn, strict=True):
            texts = [answers.extract_answer(decode(tokens)) for tokens in group.completions]
            said = [text if isinstance(text, str) else "" for text in texts]
            work += [(said[i], problem) for i in group.sample_of]

    def ours() -> None:
        answers._read.cache_clear()
        for text, problem in work:
            answers.judge(text, problem)

    def theirs() -> None:
        for text, problem in work[::100]:
            sympy_correct(text, problem)

    return Ratio(
        f"verify {len(work):,} sampled answers ({len(set(work)):,} distinct)",
        "sympy parsing (every hundredth, scaled)",
        *pairs(ours, theirs, scale=len(work) / len(work[::100])),
        bar=50,
    )


def machine() -> str:
    """The processor and the versions that were measured."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8").splitlines()
        cpu = next((s.split(": ", 1)[1] for s in lines if s.startswith("model name")), cpu)
    return (
        f"{cpu}, one thread; Python {platform.python_version()}, torch {torch.__version__}, "
        f"numpy {np.__version__}"
    )


def main() -> None:
    """Measure, print, and write the table to a file if one is named."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    arguments.add_argument(
        "--problems", type=int, default=10, help="problems that generate does (even)"
    )
    arguments.add_argument("--json", type=Path, help="also write the table to this file")
    options = arguments.parse_args()
    if options.problems < 2 or options.problems > 2 * world.HELD_OUT_OF_EACH_SIZE:
        arguments.error(f"--problems: 2 to {2 * world.HELD_OUT_OF_EACH_SIZE}, such as 10")
    torch.set_num_threads(1)
    lineage = lineages.load("lab-grpo")
    base, late = (load_policy(lineage.at(s).folder) for s in (lineage.steps[0], lineage.steps[-1]))
    late_ratio, late_tokens = sampling("late checkpoint", late, options.problems, bar=25)
    base_ratio, base_tokens = sampling("base checkpoint", base, options.problems, bar=8)
    ratios = [enumeration(), late_ratio, base_ratio, verification([base, late])]
    table = Table("work", "against", "ours (s)", "theirs (s)", "ratio", "aim", "")
    for r in ratios:
        met = "met" if r.ratio >= r.bar else "missed"
        table.add_row(
            r.work,
            r.against,
            f"{r.ours:.2f}",
            f"{r.theirs:.2f}",
            f"{r.ratio:.0f}×",
            f"{r.bar:.0f}×",
            met,
        )
    console = Console()
    console.print(table)
    notes = (late_tokens, base_tokens, machine())
    for note in notes:
        console.print(note)
    if options.json:
        found = {"notes": notes, "ratios": [asdict(r) for r in ratios]}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
