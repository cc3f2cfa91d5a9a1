"""The one protocol that everything above the models sees: a policy samples and scores.

Prompts and completions are token ids throughout; nothing is decoded and encoded again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from companion.policies.decoding import Decoding

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Samples:
    """``n`` independent completions of one prompt, each distinct one held once.

    Args:
        completions: the distinct completions, each with its end token if it reached one.
        sample_of: shape (n,), the index into ``completions`` of every sample, in order.
        log_probabilities: shape (distinct,), in nats, under the decoding distribution.
        finished: shape (distinct,), whether the completion reached an end token.
    """

    completions: tuple[Tokens, ...]
    sample_of: NDArray[np.int64]
    log_probabilities: NDArray[np.float64]
    finished: NDArray[np.bool_]

    @property
    def n(self) -> int:
        """How many samples were drawn."""
        return len(self.sample_of)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each distinct completion was drawn, shape (distinct,)."""
        return np.bincount(self.sample_of, minlength=len(self.completions))


class Policy(Protocol):
    """What can be sampled and scored, whatever runs it."""

    @property
    def identity(self) -> str:
        """A hash of the weights: two policies with equal identity are the same function."""
        ...

    def sample(
        self,
        prompts: Sequence[Tokens],
        n: int,
        decoding: Decoding,
        seed: int,
        first_sample: int = 0,
    ) -> list[Samples]:
        """Draw samples ``first_sample … first_sample + n - 1`` of every prompt.

        Sample ``i`` of a prompt depends on the seed, the prompt and ``i`` alone: not on ``n``, on
        the other prompts, or on the size of a batch.
        """
        ...

    def score(
        self,
        prompts: Sequence[Tokens],
        continuations: Sequence[Sequence[Tokens]],
        decoding: Decoding,
    ) -> list[list[NDArray[np.float64]]]:
        """Teacher forcing: the log-probability (nats) of every token of every continuation.

        ``continuations[i]`` belong to ``prompts[i]``. A token that the decoding never draws has
        minus infinity.
        """
        ...
