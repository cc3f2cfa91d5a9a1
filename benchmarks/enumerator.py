"""The plain way to enumerate a Countdown problem, to be measured against.

Written as the task suggests: choose two numbers, replace them by one of the six results, recurse,
and remove repeats at the end by the canonical name (the reference code of arXiv 2608.29188 works
like this). No memory, no splitting, exact fractions.
"""

from collections.abc import Iterator
from fractions import Fraction

from companion.countdown.expressions import Expression, Number, Operation
from companion.countdown.leaves import leaf
from companion.countdown.problems import Problem

Item = tuple[Fraction, Expression]


def plain_leaves(problem: Problem) -> set[str]:
    """The names of all leaves of a problem, under rational intermediate results."""
    items = [(Fraction(n), Number(n)) for n in problem.numbers]
    return {leaf(found) for value, found in reduced(items) if value == problem.target}


def reduced(items: list[Item]) -> Iterator[Item]:
    """Every value that the items can be reduced to, with its expression."""
    if len(items) == 1:
        yield items[0]
        return
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            rest = [item for k, item in enumerate(items) if k not in (i, j)]
            for combined in combinations(items[i], items[j]):
                yield from reduced([*rest, combined])


def combinations(left: Item, right: Item) -> Iterator[Item]:
    """The six results of two items, without divisions by zero."""
    (a, x), (b, y) = left, right
    yield a + b, Operation("+", x, y)
    yield a * b, Operation("*", x, y)
    yield a - b, Operation("-", x, y)
    yield b - a, Operation("-", y, x)
    if b:
        yield a / b, Operation("/", x, y)
    if a:
        yield b / a, Operation("/", y, x)
