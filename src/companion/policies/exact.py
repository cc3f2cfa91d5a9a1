"""Exact mode: the probability of every solution, without sampling.

Where every valid trace of a problem can be listed, teacher-forcing them all under the decoding
distribution gives the exact probability of every trace, leaf and entrance, and with them pass@k
and coverage for any number of samples:

    p(trace)        = product over its tokens of p(token | prompt, what came before)
    p(leaf)         = sum of p(trace) over the traces that write the leaf
    access pi(b)    = p(operand | prompt) * p(operator | prompt, operand)
    execution of b  = sum of p(trace) over the valid traces that begin with b, over pi(b)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from companion.countdown.problems import Problem
from companion.countdown.space import Space
from companion.countdown.traces import Trace
from companion.policies.decoding import Decoding
from companion.policies.protocol import Policy, Tokens

Array = NDArray[np.float64]


class LocalPolicy(Policy, Protocol):
    """A policy whose next-token distribution can be read."""

    def next_token_distribution(self, prefixes: Sequence[Tokens], decoding: Decoding) -> Array:
        """Log-probabilities (nats) of the token after each prefix, shape (prefixes, vocabulary)."""
        ...


@dataclass(frozen=True)
class Language:
    """How a world is written in tokens; operand and operator are one token each."""

    prompt: Callable[[Problem], Tokens]
    completion: Callable[[Trace], Tokens]


@dataclass(frozen=True, eq=False)
class Exact:
    """One problem under one policy and decoding, without sampling noise.

    Args:
        space: the problem's solution space.
        trace: shape (traces,), the probability of every valid trace.
        access: shape (entrances,), the probability of beginning with each entrance of the menu.
    """

    space: Space
    trace: Array
    access: Array

    @cached_property
    def leaf(self) -> Array:
        """The probability of every leaf, shape (leaves,)."""
        return _summed(self.trace, self.space.leaf_of, len(self.space.leaves))

    @cached_property
    def family(self) -> Array:
        """The probability of a valid trace through each entrance, shape (entrances,)."""
        return _summed(self.trace, self.space.entrance_of, len(self.space.entrances))

    @cached_property
    def execution(self) -> Array:
        """The probability of a valid trace given each entrance; NaN where access is zero."""
        with np.errstate(invalid="ignore", divide="ignore"):
            given = np.where(self.access > 0, self.family / self.access, np.nan)
        return np.asarray(np.minimum(given, 1.0))

    @property
    def solve(self) -> float:
        """The probability that one sample is a valid trace: pass@1."""
        return min(float(self.trace.sum()), 1.0)


def _summed(values: Array, group_of: NDArray[np.int64], groups: int) -> Array:
    # Probabilities scored in single precision may add up to a little more than one.
    return np.minimum(np.bincount(group_of, values, minlength=groups), 1.0)


def exact(
    policy: Policy, spaces: Sequence[Space], language: Language, decoding: Decoding
) -> list[Exact]:
    """The exact probabilities of whole solution spaces.

    Args:
        policy: anything that can score.
        spaces: the solution spaces of the problems.
        language: how problems and traces are written in tokens.
        decoding: a trace longer than its ``max_tokens`` can never be sampled and has probability 0.
    """
    completions = [[language.completion(trace) for trace in space.traces] for space in spaces]
    prompts = [language.prompt(space.problem) for space in spaces]
    scores = policy.score(prompts, completions, decoding)
    found = []
    for space, group in zip(spaces, scores, strict=True):
        trace = np.array([np.exp(t.sum()) if len(t) <= decoding.max_tokens else 0.0 for t in group])
        access = np.zeros(len(space.entrances))
        for index, tokens in zip(space.entrance_of, group, strict=True):
            access[index] = min(np.exp(tokens[:2].sum()), 1.0)  # equal for all traces of a family
        found.append(Exact(space, np.minimum(trace, 1.0), access))
    return found


def entrance_distribution(
    policy: LocalPolicy, prompts: Sequence[Tokens], decoding: Decoding
) -> list[dict[Tokens, float]]:
    """For every prompt, the exact probability of each first pair of tokens, on the menu or not."""
    first = policy.next_token_distribution(prompts, decoding)
    places = [(i, int(token)) for i, row in enumerate(first) for token in np.flatnonzero(row > -40)]
    second = policy.next_token_distribution([(*prompts[i], t) for i, t in places], decoding)
    found: list[dict[Tokens, float]] = [{} for _ in prompts]
    for (i, token), row in zip(places, second, strict=True):
        for following in np.flatnonzero(row > -40):
            found[i][token, int(following)] = float(np.exp(first[i, token] + row[following]))
    return found
