"""The laboratory's world: small Countdown problems whose every valid trace can be written out.

Problems have three numbers from 1-13 or four from 1-8, a target from 10-60, whole intermediate
results, and at least two entrances. A problem is a pure function of (split, size, index): the
splits are disjoint by the problem's key because the key itself, hashed, decides the split.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from companion.countdown.entrances import Entrance, entrance, menu
from companion.countdown.expressions import OPERATORS, Expression, Number, Operation, Operator
from companion.countdown.problems import Problem
from companion.countdown.solver import expressions_by_value
from companion.countdown.traces import Line, Trace, each_trace
from companion.seeds import generator, seed_of

Split = Literal["train", "calibration", "held-out"]

LARGEST_NUMBER = {3: 13, 4: 8}  # by the count of numbers: a few to a few hundred valid traces
TARGETS = range(10, 61)
LARGEST_VALUE = 512  # 8 * 8 * 8: no valid trace of this world writes a larger number
SIZES = tuple(LARGEST_NUMBER)
HELD_OUT_OF_EACH_SIZE = 50  # problems that every figure is measured on
CALIBRATION_OF_EACH_SIZE = 25  # problems that recipes and settings are chosen on
LONGEST_COMPLETION = 32  # tokens of a four-number trace with its end token
ROOM = 57  # tokens that a four-number prompt leaves in the model's context of 64


def split_of(problem: Problem) -> Split:
    """The split that a problem belongs to, whatever the order of its numbers."""
    numbers, target = problem.key
    share = seed_of("lab split", *numbers, target) % 100
    return "train" if share < 80 else "calibration" if share < 88 else "held-out"


def problem(split: Split, size: int, index: int) -> Problem:
    """Problem ``index`` of a split: an independent draw, so the same problem can come again.

    Args:
        split: ``"train"``, ``"calibration"`` or ``"held-out"``.
        size: how many numbers, 3 or 4.
        index: 0, 1, 2, …

    Raises:
        ValueError: for a split, size or index that does not exist.
    """
    if split not in get_args(Split):
        raise ValueError(f"split: one of {', '.join(get_args(Split))}; got {split!r}")
    if size not in LARGEST_NUMBER:
        raise ValueError(f"size: {' or '.join(map(str, SIZES))} numbers; got {size!r}")
    if index < 0:
        raise ValueError(f"index: 0, 1, 2, …; got {index}")
    rng = generator("lab problem", split, size, index)
    while True:
        numbers = tuple(int(n) for n in rng.integers(1, LARGEST_NUMBER[size] + 1, size))
        targets = _solvable_targets(tuple(sorted(numbers)))
        if not targets:
            continue
        drawn = Problem(numbers, targets[rng.integers(len(targets))])
        if split_of(drawn) == split and _has_two_entrances(drawn):
            return drawn


def problems(split: Split, size: int, count: int) -> list[Problem]:
    """The first ``count`` different problems of a split.

    Raises:
        ValueError: where the split does not seem to hold that many.
    """
    found: dict[tuple[tuple[int, ...], int], Problem] = {}
    for index in range(20 * count + 100):
        if len(found) == count:
            break
        drawn = problem(split, size, index)
        found.setdefault(drawn.key, drawn)
    if len(found) < count:
        raise ValueError(
            f"problems: the {split} split has fewer than {count} problems of {size} numbers; "
            f"a valid value is {len(found) // 2}"
        )
    return list(found.values())


def families(problem: Problem) -> dict[Entrance, tuple[Trace, ...]]:
    """The menu of a problem under the laboratory's rule of whole intermediate results."""
    return menu(problem, "whole")


def _has_two_entrances(problem: Problem) -> bool:
    entrances = map(entrance, each_trace(problem, "whole"))
    first = next(entrances)
    return any(other != first for other in entrances)


@lru_cache(maxsize=4096)
def _solvable_targets(numbers: tuple[int, ...]) -> tuple[int, ...]:
    values = (value for value, _ in expressions_by_value(numbers, True))
    return tuple(sorted(value for value in values if value in TARGETS))


def demonstration(problem: Problem, on_target: float, rng: np.random.Generator) -> Trace:
    """A trace to pre-train on: always right in its arithmetic, seldom on the target.

    With probability ``on_target`` a valid trace, drawn evenly over the entrances first and then
    within the family; otherwise a random calculation with the problem's numbers. So a model that
    learns from it can calculate, tries every door, and rarely hits.
    """
    if rng.random() < on_target:
        doors = list(families(problem).values())
        family = doors[rng.integers(len(doors))]
        return family[rng.integers(len(family))]
    return random_trace(problem.numbers, rng)


def random_trace(numbers: tuple[int, ...], rng: np.random.Generator) -> Trace:
    """A calculation with the given numbers: each line drawn evenly over the allowed ones."""
    at_hand: list[tuple[int, Expression]] = [(n, Number(n)) for n in numbers]
    lines: list[Line] = []
    while len(at_hand) > 1:
        allowed = list(_allowed([value for value, _ in at_hand]))
        i, j, operator, result = allowed[rng.integers(len(allowed))]
        (left, left_written), (right, right_written) = at_hand[i], at_hand[j]
        lines.append(Line(Fraction(left), operator, Fraction(right), Fraction(result)))
        at_hand = [item for k, item in enumerate(at_hand) if k not in (i, j)]
        at_hand.append((result, Operation(operator, left_written, right_written)))
    return Trace(tuple(lines), at_hand[0][1])


def _allowed(values: list[int]) -> Iterator[tuple[int, int, Operator, int]]:
    """Every calculation with two of the values: their places, the operator, the result."""
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            for operator in OPERATORS if i != j else ():
                result = _whole(operator, left, right)
                if result is not None and result <= LARGEST_VALUE:
                    yield i, j, operator, result


def _whole(operator: Operator, left: int, right: int) -> int | None:
    """The result where it is a whole number, zero or more."""
    if operator == "+":
        return left + right
    if operator == "*":
        return left * right
    if operator == "-":
        return left - right if left >= right else None
    return left // right if right and left % right == 0 else None
