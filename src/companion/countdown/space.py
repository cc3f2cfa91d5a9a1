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
    """The solution space of a problem of two numbers or more."""
    traces = valid_traces(problem, intermediates)
    names = {trace.expression: leaf(trace.expression, equivalence) for trace in traces}
    first = [entrance(trace) for trace in traces]
    leaves = tuple(sorted(set(names.values())))
    entrances = tuple(sorted({e for e in first if e is not None}))
    return Space(
        problem,
        traces,
        leaves,
        np.array([leaves.index(names[t.expression]) for t in traces], dtype=np.int64),
        entrances,
        np.array([entrances.index(e) for e in first if e is not None], dtype=np.int64),
    )
