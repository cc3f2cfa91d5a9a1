"""Samples of a checkpoint, scored against the solution spaces, kept on disk.

One row a sample: what it wrote, which leaf and which entrance of the problem's solution space it
reached (:data:`~companion.measures.MISS` for none), and with which two tokens it began.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from companion import measures
from companion.countdown.space import Space
from companion.experiments.fingerprint import sampler_hash
from companion.lab.evaluation import LANGUAGE
from companion.lab.tokenizer import WORDS, decode
from companion.measures import MISS
from companion.policies.decoding import Decoding
from companion.policies.protocol import Samples
from companion.policies.transformers import TransformersPolicy
from companion.runs import RunStore
from companion.samples import check_sampling_plan, sampling_identity

PROBLEMS_A_PART = 20  # a killed run loses at most the samples of so many problems


@dataclass(frozen=True)
class Plan:
    """How samples are drawn."""

    n: int
    decoding: Decoding
    seed: int


def rollouts(
    store: RunStore, policy: TransformersPolicy, chosen: Sequence[Space], plan: Plan
) -> pd.DataFrame:
    """The samples of a policy on some problems, from disk where they have been drawn before.

    Returns:
        Columns ``problem`` (index into ``chosen``), ``sample``, ``leaf``, ``family``,
        ``entrance``, ``text`` and ``finished``; ``n`` rows a problem.
    """
    prompts = [LANGUAGE.prompt(one.problem) for one in chosen]
    identity = sampling_identity(
        checkpoint=policy.identity,
        prompts=prompts,
        temperature=plan.decoding.temperature,
        top_p=plan.decoding.top_p,
        top_k=None,
        seed=plan.seed,
        first_sample=0,
        n=plan.n,
        max_tokens=plan.decoding.max_tokens,
        backend="transformers",
        log_probability_mode="processed",
        library=sampler_hash(),
    )

    def draw(part: list[int]) -> pd.DataFrame:
        drawn = policy.sample([prompts[i] for i in part], plan.n, plan.decoding, plan.seed)
        rows = [scored(chosen[i], samples) for i, samples in zip(part, drawn, strict=True)]
        return pd.concat(
            [table.assign(problem=i) for i, table in zip(part, rows, strict=True)],
            ignore_index=True,
        )

    everyone = list(range(len(chosen)))
    parts = [everyone[i : i + PROBLEMS_A_PART] for i in range(0, len(everyone), PROBLEMS_A_PART)]
    table = store.table(identity, parts, draw)
    check_sampling_plan(table, everyone, plan.n)
    return table


def scored(space: Space, samples: Samples) -> pd.DataFrame:
    """The rows of one problem's samples.

    A finished completion is right exactly if it is one of the problem's valid traces: the solution
    space is complete, so looking it up there is verifying it.
    """
    valid = {LANGUAGE.completion(trace): i for i, trace in enumerate(space.traces)}
    found = np.array([valid.get(tokens, MISS) for tokens in samples.completions])
    distinct = pd.DataFrame(
        {
            "leaf": np.where(found == MISS, MISS, space.leaf_of[found]),
            "family": np.where(found == MISS, MISS, space.entrance_of[found]),
            "entrance": [" ".join(WORDS[t] for t in c[:2]) for c in samples.completions],
            "text": [decode(tokens) for tokens in samples.completions],
            "finished": samples.finished,
        }
    )
    rows = distinct.iloc[samples.sample_of].reset_index(drop=True)
    return rows.assign(sample=np.arange(samples.n))


def leaf_counts(table: pd.DataFrame, chosen: Sequence[Space], n: int) -> measures.Counts:
    """How many samples reached each leaf; wrong ones stay in n."""
    return _counts(table, "leaf", [len(one.leaves) for one in chosen], n)


def family_counts(table: pd.DataFrame, chosen: Sequence[Space], n: int) -> measures.Counts:
    """How many samples solved through each entrance of the menu; wrong ones stay in n."""
    return _counts(table, "family", [len(one.entrances) for one in chosen], n)


def entrance_counts(table: pd.DataFrame, problems: int, n: int) -> measures.Counts:
    """How many samples began with each first operand and operator, on the menu or not."""
    by_problem = table.groupby("problem")["entrance"]
    return measures.Counts.of(
        [by_problem.get_group(i).value_counts().to_numpy() for i in range(problems)], n
    )


def _counts(table: pd.DataFrame, column: str, sizes: Sequence[int], n: int) -> measures.Counts:
    values = table[column].to_numpy().reshape(len(sizes), n)
    return measures.Counts.from_samples(list(values), sizes, n)
