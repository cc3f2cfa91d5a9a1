"""What a laboratory policy measures on a split of its world, exactly."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from companion import measures
from companion.countdown.space import Space, space
from companion.lab import world
from companion.lab.tokenizer import completion, prompt
from companion.policies.decoding import Decoding
from companion.policies.exact import Exact, Language, LocalPolicy, entrance_distribution, exact

LANGUAGE = Language(prompt, completion)
DECODING = Decoding(temperature=0.7, top_p=0.9, max_tokens=40)  # the paper's temperature and top-p
SAMPLES = 320  # the paper's, for coverage
PROBLEMS: dict[str, int] = {
    "calibration": world.CALIBRATION_OF_EACH_SIZE,
    "held-out": world.HELD_OUT_OF_EACH_SIZE,
}


@lru_cache(maxsize=16)
def spaces(split: world.Split, size: int, count: int) -> tuple[Space, ...]:
    """The solution spaces of the first problems of a split, structural leaves."""
    return tuple(space(p, "whole") for p in world.problems(split, size, count))


def leaves(found: Sequence[Exact]) -> measures.Exact:
    """The probability of every leaf of every problem."""
    return measures.Exact.of([one.leaf for one in found])


def families(found: Sequence[Exact]) -> measures.Exact:
    """The probability of a valid trace through every entrance of every problem."""
    return measures.Exact.of([one.family for one in found])


def entrances(policy: LocalPolicy, chosen: Sequence[Space], decoding: Decoding) -> measures.Exact:
    """The probability of every first operand and operator, on the menu or not."""
    prompts = [prompt(one.problem) for one in chosen]
    found = entrance_distribution(policy, prompts, decoding)
    return measures.Exact.of([list(one.values()) for one in found])


def measured(policy: LocalPolicy, split: world.Split = "held-out") -> dict[str, dict[str, float]]:
    """The headline measures of a checkpoint, by size of the problem."""
    table = {}
    for size in world.SIZES:
        chosen = spaces(split, size, PROBLEMS[split])
        found = exact(policy, chosen, LANGUAGE, DECODING)
        values = {
            "pass@1": measures.pass_at_k(leaves(found), 1),
            "coverage": measures.coverage(leaves(found), SAMPLES),
            "family coverage": measures.family_coverage(families(found), SAMPLES),
            "entrance entropy": measures.entropy(entrances(policy, chosen, DECODING)),
        }
        table[str(size)] = {name: float(np.mean(value)) for name, value in values.items()}
    return table
