"""Tables of samples: what identifies them, the plan they must fulfil, and how runs are pooled.

A table of samples has one row a sample, with at least the columns ``problem`` (a number or name
that means the same problem in every run) and ``sample`` (its index in the run's seed).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from companion.runs import content_hash

# What may differ between pooled runs: it says which samples they are, not how they were drawn.
POOLABLE = frozenset({"prompts", "seed", "first_sample", "n"})


def sampling_identity(
    *,
    checkpoint: str,
    prompts: Sequence[Sequence[int]],
    temperature: float,
    top_p: float,
    top_k: int | None,
    seed: int,
    first_sample: int,
    n: int,
    max_tokens: int,
    backend: str,
    log_probability_mode: str,
    library: str,
) -> dict[str, object]:
    """The identity of a run of sampled completions; no default, so that no field is forgotten.

    Args:
        checkpoint: hash or revision of the weights, never only a name that can move.
        prompts: token ids, one sequence a prompt, in the order in which parts refer to them.
        temperature: as the sampler applied it, like ``top_p`` and ``top_k``.
        top_p: probability kept at each token.
        top_k: tokens kept at each token; None for all.
        seed: seed of the run.
        first_sample: index of the first sample of each prompt: 0, or more to add to another run.
        n: samples a prompt.
        max_tokens: limit of a completion, in tokens.
        backend: what sampled, such as ``"transformers"``.
        log_probability_mode: whose log-probabilities are kept, such as ``"processed"``.
        library: version of the code that sampled.

    Raises:
        ValueError: for prompts that are not whole numbers.
    """
    return {
        "kind": "samples",
        "checkpoint": checkpoint,
        "prompts": content_hash(prompts, "prompts"),
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "seed": seed,
        "first_sample": first_sample,
        "n": n,
        "max_tokens": max_tokens,
        "backend": backend,
        "log_probability_mode": log_probability_mode,
        "library": library,
    }


def check_sampling_plan(
    table: pd.DataFrame, problems: Sequence[int] | Sequence[str], n: int
) -> None:
    """Refuse a table unless it has samples 0 … n-1 of every planned problem, each once.

    Wrong, unparseable and unfinished samples count: to drop them before an estimator would change
    n, and for the hard problems most.

    Args:
        table: the samples of one seed, with the columns ``problem`` and ``sample``.
        problems: every problem of the plan, as in the column ``problem``.
        n: samples a problem, at least 1.

    Raises:
        ValueError: naming a sample that is missing, repeated or not in the plan.
    """
    if n < 1 or len(problems) == 0:
        raise ValueError(
            f"n, problems: at least 1 of each, such as n=320; got {n}, {len(problems)}"
        )
    planned = pd.MultiIndex.from_product([problems, range(n)])
    present = pd.MultiIndex.from_frame(table[["problem", "sample"]])
    offences = {
        "is missing": planned[~planned.isin(present)],
        "occurs twice": present[present.duplicated()],
        "is not in the plan": present[~present.isin(planned)],
    }
    for offence, samples in offences.items():
        if len(samples):
            problem, sample = samples[0]
            raise ValueError(
                f"table: sample {sample} of problem {problem} {offence}; each problem has samples "
                f"0 to {n - 1} once, the wrong and the unparseable ones included"
            )


def pool(runs: Iterable[tuple[Mapping[str, Any], pd.DataFrame]]) -> pd.DataFrame:
    """The samples of several runs as one table, with each run's seed in the column ``seed``.

    Args:
        runs: pairs of a :func:`sampling_identity` and its table.

    Raises:
        ValueError: when two runs differ in how they were drawn (log-probabilities of two modes or
            temperatures do not mix), or when a sample occurs twice: the same seed draws the same
            samples, so n would rise without new information.
    """
    runs = list(runs)
    if not runs:
        raise ValueError("runs: at least one pair of identity and table; got none")
    first = runs[0][0]
    tables = []
    for identity, table in runs:
        for name in sorted((first.keys() | identity.keys()) - POOLABLE):
            if identity.get(name) != first.get(name):
                raise ValueError(
                    f"runs: pooled runs have one {name}; "
                    f"got {first.get(name)!r} and {identity.get(name)!r}"
                )
        tables.append(table.assign(seed=identity["seed"]))
    pooled = pd.concat(tables, ignore_index=True)
    repeated = pooled[pooled.duplicated(["problem", "seed", "sample"])]
    if len(repeated):
        problem, seed, sample = repeated[["problem", "seed", "sample"]].iloc[0]
        raise ValueError(
            f"runs: sample {sample} of problem {problem} at seed {seed} occurs twice; "
            "give each pooled run its own seed"
        )
    return pooled
