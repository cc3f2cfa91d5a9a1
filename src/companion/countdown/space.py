"""The solution space of one problem as arrays: traces, and which leaf and entrance each has."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from companion.countdown.entrances import Entrance, entrance
from companion.countdown.leaves import Equivalence, leaf
from companion.countdown.problems import Problem
from companion.countdown.solver import Intermediates
from companion.countdown.traces import Trace, valid_traces


@dataclass(frozen=True, eq=False)
class Space:
    """Every valid trace of a problem, each with its leaf and its entrance.

    Args:
        problem: the problem.
        traces: all valid traces.
        leaves: names of the distinct leaves.
        leaf_of: shape (traces,), index into ``leaves``.
        entrances: the menu.
        entrance_of: shape (traces,), index into ``entrances``.
    """

    problem: Problem
    traces: tuple[Trace, ...]
    leaves: tuple[str, ...]
    leaf_of: NDArray[np.int64]
    entrances: tuple[Entrance, ...]
    entrance_of: NDArray[np.int64]


@lru_cache(maxsize=2048)
def space(
    problem: Problem,
    intermediates: Intermediates = "rational",
    equivalence: Equivalence = "structural",
) -> Space:
    """The solution space of a problem of two numbers or more; the arrays are read-only.

    Raises:
        ValueError: for a problem of one number, which has no calculation and so no entrance, and
            for an unknown value of ``intermediates`` or ``equivalence``.
    """
    if len(problem.numbers) == 1:
        raise ValueError(f"problem: two numbers or more, such as (3, 5); got {problem.numbers}")
    traces = valid_traces(problem, intermediates)
    names = {trace.expression: leaf(trace.expression, equivalence) for trace in traces}
    first = [entrance(trace) for trace in traces]
    leaves = tuple(sorted(set(names.values())))
    entrances = tuple(sorted({e for e in first if e is not None}))
    leaf_of = [leaves.index(names[t.expression]) for t in traces]
    entrance_of = [entrances.index(e) for e in first if e is not None]
    return Space(problem, traces, leaves, _indices(leaf_of), entrances, _indices(entrance_of))


def _indices(places: list[int]) -> NDArray[np.int64]:
    """Read-only, because one space is shared by every caller."""
    indices = np.array(places, dtype=np.int64)
    indices.flags.writeable = False
    return indices
