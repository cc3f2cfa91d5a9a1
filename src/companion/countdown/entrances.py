"""Entrances: the first operand and operator of a solution, and the menu of a problem.

An entrance is what a trace does first: the operand and the operator of its first calculation, as
written. The menu of a problem is the set over all its valid traces, in both orders of every sum
and product, so a model that begins with ``7 *`` is never booked outside the menu for having turned
``4 * 7`` round. The reference code of arXiv 2608.29188 reads the entrance off the text of the
sorted canonical form instead; :func:`paper_entrance` reproduces that.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from companion.countdown.expressions import Expression, Operator
from companion.countdown.leaves import leaf
from companion.countdown.problems import Problem
from companion.countdown.solver import Intermediates, solve
from companion.countdown.traces import Trace, valid_traces


@dataclass(frozen=True, slots=True, order=True)
class Entrance:
    """The first operand and operator of a trace: ``Entrance(4, "*")``."""

    operand: Fraction
    operator: Operator

    def __str__(self) -> str:
        return f"{self.operand} {self.operator}"


def entrance(trace: Trace) -> Entrance | None:
    """The operand and operator of the first line; none for a problem of one number."""
    return Entrance(trace.lines[0].left, trace.lines[0].operator) if trace.lines else None


def paper_entrance(expression: Expression) -> Entrance | None:
    """The first number and the operator after it, in the text of the paper's canonical form."""
    first = re.match(r"\(*(\d+)([-+*/])", leaf(expression, "paper"))
    return Entrance(Fraction(int(first[1])), first[2]) if first else None  # type: ignore[arg-type]


def menu(
    problem: Problem, intermediates: Intermediates = "rational"
) -> dict[Entrance, tuple[Trace, ...]]:
    """The entrances of a problem, in order, each with the valid traces that begin with it."""
    families: dict[Entrance, list[Trace]] = {}
    for trace in valid_traces(problem, intermediates):
        first = entrance(trace)
        if first is not None:
            families.setdefault(first, []).append(trace)
    return {first: tuple(families[first]) for first in sorted(families)}


def paper_menu(
    problem: Problem, intermediates: Intermediates = "rational"
) -> dict[Entrance, tuple[Expression, ...]]:
    """The entrances of the paper's definition, each with the solutions filed under it."""
    families: dict[Entrance, list[Expression]] = {}
    for expression in solve(problem, intermediates):
        first = paper_entrance(expression)
        if first is not None:
            families.setdefault(first, []).append(expression)
    return {first: tuple(families[first]) for first in sorted(families)}
