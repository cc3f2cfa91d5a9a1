"""Exact probabilities of a checkpoint, kept on disk like samples.

One row a probability: of a valid trace, of an entrance of the menu, or of a first pair of tokens
(on the menu or not).
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from companion import measures
from companion.countdown.space import Space
from companion.experiments.fingerprint import sampler_hash
from companion.lab.evaluation import LANGUAGE
from companion.policies.decoding import Decoding
from companion.policies.exact import Exact, entrance_distribution, exact
from companion.policies.transformers import TransformersPolicy
from companion.runs import RunStore, content_hash

KINDS = ("trace", "access", "first pair")


def exact_table(
    store: RunStore, policy: TransformersPolicy, chosen: Sequence[Space], decoding: Decoding
) -> pd.DataFrame:
    """All exact probabilities of a policy on some problems, from disk where they are known.

    Returns:
        Columns ``problem`` (index into ``chosen``), ``kind`` (one of :data:`KINDS`) and
        ``probability``; within a problem and kind in the order of the solution space.
    """
    prompts = [LANGUAGE.prompt(one.problem) for one in chosen]
    identity = {
        "kind": "exact",
        "checkpoint": policy.identity,
        "prompts": content_hash(prompts, "prompts"),
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens,
        "backend": "transformers",
        "library": sampler_hash(),
    }

    def compute(_: str) -> pd.DataFrame:
        found = exact(policy, chosen, LANGUAGE, decoding)
        pairs = entrance_distribution(policy, prompts, decoding)
        return pd.concat(
            [
                pd.DataFrame({"problem": i, "kind": kind, "probability": values})
                for i, (one, first) in enumerate(zip(found, pairs, strict=True))
                for kind, values in zip(
                    KINDS, (one.trace, one.access, np.array(list(first.values()))), strict=True
                )
            ],
            ignore_index=True,
        )

    return store.table(identity, ["all problems"], compute)


def solution_spaces(table: pd.DataFrame, chosen: Sequence[Space]) -> list[Exact]:
    """The exact probabilities, problem by problem."""
    traces, access = (_by_problem(table, kind) for kind in KINDS[:2])
    return [Exact(one, traces[i], access[i]) for i, one in enumerate(chosen)]


def first_pairs(table: pd.DataFrame) -> measures.Exact:
    """The probability of every first operand and operator, on the menu or not."""
    pairs = _by_problem(table, KINDS[2])
    return measures.Exact.of([pairs[i] for i in range(len(pairs))])


def _by_problem(table: pd.DataFrame, kind: str) -> dict[int, NDArray[np.float64]]:
    rows = table[table["kind"] == kind]
    return {
        int(str(problem)): group.to_numpy(dtype=np.float64)
        for problem, group in rows.groupby("problem")["probability"]
    }
