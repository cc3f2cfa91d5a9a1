"""Chapter 1: what training gains at one sample, and what it loses over many.

Every measure is exact (the whole solution space is scored under the decoding distribution) and,
at a few checkpoints, sampled beside it. Both go through :mod:`companion.measures`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from companion import lineages, measures
from companion.claims import Measured
from companion.countdown.space import Space, space
from companion.experiments.exactly import exact_table, first_pairs, solution_spaces
from companion.experiments.rollouts import (
    Plan,
    entrance_counts,
    family_counts,
    leaf_counts,
    rollouts,
)
from companion.lab import world
from companion.lab.evaluation import families, leaves, spaces
from companion.measures import Bootstrap, Interval, Outcomes
from companion.parameters import TradeOffParameters
from companion.policies.decoding import Decoding
from companion.policies.exact import Exact as SpaceProbabilities
from companion.policies.transformers import TransformersPolicy, load_policy
from companion.runs import RunStore, default_root
from companion.seeds import seed_of

MEASURES = ("pass@1", "coverage", "family coverage", "entrance entropy")
ALL = "all"  # sizes together
PAPER_COVERAGE = "coverage (paper's leaves)"  # exact only, beside the main one
LADDER = (1, 2, 4, 8, 16, 32, 64, 128, 256, 320, 512, 1024, 2048)  # the k of pass@k

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reach:
    """What one checkpoint can hit, exactly or in samples, and its measures problem by problem.

    Args:
        leaves: of all problems.
        families: of all problems.
        values: one row a problem, one column a measure.
    """

    leaves: Outcomes
    families: Outcomes
    values: pd.DataFrame


@dataclass(frozen=True, eq=False)
class TradeOff:
    """The chapter's results, as tidy tables.

    Args:
        parameters: of the run.
        problems: one row a problem: numbers, target, size, leaves, entrances, traces.
        curve: one row for every (lineage, step, size, measure, kind): value and interval.
        pass_at_k: one row for every (lineage, step, size, k, kind): value and interval.
        crossing: one row a size: from how many samples the early checkpoint is ahead.
        changes: one row for every (lineage, size, measure): late minus early, paired, exact.
        survivors: coverage at both checkpoints on the problems solved at both.
        retention: the share of early leaves, and of early-solved problems, found again late.
        lost: the problems solved early and not late, drawn again with more samples.
        claims: this run's values by the paper's identifiers.
    """

    parameters: TradeOffParameters
    problems: pd.DataFrame
    curve: pd.DataFrame
    pass_at_k: pd.DataFrame
    crossing: pd.DataFrame
    changes: pd.DataFrame
    survivors: pd.DataFrame
    retention: pd.DataFrame
    lost: pd.DataFrame
    claims: dict[str, Measured | None]


def run(parameters: TradeOffParameters) -> TradeOff:
    """Measure the whole chapter.

    Raises:
        LineageError, CheckpointError: for a checkpoint that is missing or damaged.
        RunStoreError: where samples cannot be kept on disk.
    """
    decoding = Decoding(parameters.temperature, parameters.top_p, parameters.max_tokens)
    chosen = held_out(parameters.problems)
    sizes = np.array([str(len(one.problem.numbers)) for one in chosen])
    bootstrap = Bootstrap(parameters.seed, draws=parameters.draws)
    store = RunStore(default_root())
    main, control = parameters.lineage, parameters.control
    early, late = (main, parameters.early), (main, parameters.late)

    exactly: dict[tuple[str, int], Reach] = {}
    sampled: dict[tuple[str, int], Reach] = {}
    for name in dict.fromkeys((main, control)):
        for step in shown(name, parameters):
            policy = load(name, step, parameters.use_gpu)
            exactly[name, step] = exact_reach(store, policy, chosen, decoding, parameters.samples)
            if (name, step) in sampled_points(parameters):
                plan = Plan(parameters.samples, decoding, seed_at(parameters, name, step))
                sampled[name, step] = sampled_reach(store, policy, chosen, plan)
    survived = survivor_masks(sampled[early], sampled[late])
    lost = draw_lost_again(store, chosen, survived.lost, exactly[late], parameters, decoding)
    late_control = (control, parameters.late)
    survivors = survivor_table(
        exactly, sampled, early, late, late_control, survived.both, bootstrap
    )
    retention = retention_table(
        exactly, sampled, early, late, late_control, parameters.samples, bootstrap
    )
    changes = change_table(exactly, parameters, sizes, bootstrap)
    return TradeOff(
        parameters=parameters,
        problems=problem_table(chosen),
        curve=curve_table({"exact": exactly, "sampled": sampled}, sizes, bootstrap),
        pass_at_k=pass_at_k_table({"exact": exactly, "sampled": sampled}, sizes, bootstrap),
        crossing=crossing_table(exactly[early], exactly[late], sizes, parameters, bootstrap),
        changes=changes,
        survivors=survivors,
        retention=retention,
        lost=lost,
        claims=measured(exactly, early, late, changes, survivors, retention, lost, bootstrap),
    )


def held_out(problems: int) -> tuple[Space, ...]:
    """The solution spaces of the held-out problems, ``problems`` of each size (0 for all)."""
    count = problems or world.HELD_OUT_OF_EACH_SIZE
    return tuple(one for size in world.SIZES for one in spaces("held-out", size, count))


def shown(name: str, parameters: TradeOffParameters) -> tuple[int, ...]:
    """The steps to show of a lineage: those of the parameters that it has a checkpoint for."""
    present = lineages.load(name).steps
    return tuple(step for step in parameters.steps if step in present)


def sampled_points(parameters: TradeOffParameters) -> set[tuple[str, int]]:
    """The checkpoints that are sampled too: first, middle and last, and the control's last."""
    steps = shown(parameters.lineage, parameters)
    points = {steps[0], steps[len(steps) // 2], steps[-1]}
    control = shown(parameters.control, parameters)
    return {(parameters.lineage, step) for step in points} | {(parameters.control, control[-1])}


def load(name: str, step: int, use_gpu: bool) -> TransformersPolicy:
    """A checkpoint as a policy, after its file has been compared with its hash."""
    checkpoint = lineages.load(name).at(step)
    checkpoint.verify()
    return load_policy(checkpoint.folder, use_gpu=use_gpu)


def seed_at(parameters: TradeOffParameters, name: str, step: int, purpose: str = "") -> int:
    """The seed of a checkpoint's samples: two checkpoints never share their random numbers."""
    return seed_of("trade-off", parameters.seed, name, step, purpose) % 2**63


def exact_reach(
    store: RunStore,
    policy: TransformersPolicy,
    chosen: Sequence[Space],
    decoding: Decoding,
    n: int,
) -> Reach:
    """A checkpoint's probabilities and measures, without sampling; coverage at ``n``."""
    table = exact_table(store, policy, chosen, decoding)
    found = solution_spaces(table, chosen)
    reach = _reach(leaves(found), families(found), measures.entropy(first_pairs(table)), n)
    reach.values[PAPER_COVERAGE] = measures.coverage(paper_leaves(found), n)
    reach.values["open entrances"] = [int((one.access > 0).sum()) for one in found]
    return reach


def paper_leaves(found: Sequence[SpaceProbabilities]) -> measures.Exact:
    """The probability of every leaf that the paper's rule tells apart."""
    as_paper = [space(one.space.problem, "whole", "paper") for one in found]
    return measures.Exact.of(
        [
            np.bincount(other.leaf_of, one.trace, minlength=len(other.leaves))
            for one, other in zip(found, as_paper, strict=True)
        ]
    )


def sampled_reach(
    store: RunStore, policy: TransformersPolicy, chosen: Sequence[Space], plan: Plan
) -> Reach:
    """The same from samples: the unbiased estimates, and Miller-Madow for the entropy."""
    table = rollouts(store, policy, chosen, plan)
    doors = entrance_counts(table, len(chosen), plan.n)
    return _reach(
        leaf_counts(table, chosen, plan.n),
        family_counts(table, chosen, plan.n),
        measures.miller_madow_entropy(doors),
        plan.n,
    )


def _reach(found: Outcomes, doors: Outcomes, entropy: Array, n: int) -> Reach:
    values = {
        "pass@1": measures.pass_at_k(found, 1),
        "coverage": measures.coverage(found, n),
        "family coverage": measures.family_coverage(doors, n),
        "entrance entropy": entropy,
    }
    return Reach(found, doors, pd.DataFrame(values))


def survivor_masks(early: Reach, late: Reach) -> measures.Survivors:
    """Which problems the samples solve at both checkpoints, only early, only late."""
    if not isinstance(early.leaves, measures.Counts) or not isinstance(
        late.leaves, measures.Counts
    ):
        raise TypeError("survivors are chosen by samples, as in the paper")
    return measures.survivors(early.leaves, late.leaves)


def problem_table(chosen: Iterable[Space]) -> pd.DataFrame:
    """One row a problem; the columns are there even for none."""
    rows = [
        (
            str(len(one.problem.numbers)),
            " ".join(map(str, one.problem.numbers)),
            one.problem.target,
            len(one.leaves),
            len(one.entrances),
            len(one.traces),
        )
        for one in chosen
    ]
    columns = ["size", "numbers", "target", "leaves", "entrances", "traces"]
    return pd.DataFrame(rows, columns=columns)


def of_size(sizes: NDArray[np.str_], size: str) -> NDArray[np.bool_]:
    """Which problems are of a size, or all of them."""
    return np.ones(len(sizes), dtype=bool) if size == ALL else sizes == size


def size_labels(sizes: NDArray[np.str_]) -> tuple[str, ...]:
    """Each size, and all together."""
    return (*sorted(set(sizes.tolist())), ALL)


def _row(interval: Interval) -> dict[str, float]:
    return {
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "problems": interval.n,
    }


def curve_table(
    kinds: dict[str, dict[tuple[str, int], Reach]], sizes: NDArray[np.str_], bootstrap: Bootstrap
) -> pd.DataFrame:
    """Every measure along the lineages, with intervals over problems."""
    return pd.DataFrame(
        {"lineage": name, "step": step, "size": size, "measure": measure, "kind": kind}
        | _row(bootstrap.mean(reach.values.loc[of_size(sizes, size), measure]))
        for kind, points in kinds.items()
        for (name, step), reach in points.items()
        for size in size_labels(sizes)
        for measure in MEASURES
    )


def pass_at_k_table(
    kinds: dict[str, dict[tuple[str, int], Reach]], sizes: NDArray[np.str_], bootstrap: Bootstrap
) -> pd.DataFrame:
    """pass@k of every sampled checkpoint; samples give only the k up to their number."""
    rows = []
    for (name, step), drawn in kinds["sampled"].items():
        for kind, reach in (("exact", kinds["exact"][name, step]), ("sampled", drawn)):
            most = reach.leaves.n if isinstance(reach.leaves, measures.Counts) else LADDER[-1]
            for k in (k for k in LADDER if k <= most):
                values = measures.pass_at_k(reach.leaves, k)
                for size in size_labels(sizes):
                    where = {"lineage": name, "step": step, "size": size, "k": k, "kind": kind}
                    rows.append(where | _row(bootstrap.mean(values[of_size(sizes, size)])))
    return pd.DataFrame(rows)


def crossing_table(
    early: Reach,
    late: Reach,
    sizes: NDArray[np.str_],
    parameters: TradeOffParameters,
    bootstrap: Bootstrap,
) -> pd.DataFrame:
    """The smallest k at which the early checkpoint's exact pass@k is above the late one's.

    ``k`` is 1 where the early one is ahead from the start, and 0 where it is ahead at no k up to
    the largest one shown. The gap is pass@k late minus early at as many samples as the run draws,
    paired over problems.
    """
    curves = [
        np.array([measures.pass_at_k(reach.leaves, k) for k in range(1, LADDER[-1] + 1)])
        for reach in (early, late)
    ]
    ends = [measures.pass_at_k(reach.leaves, parameters.samples) for reach in (early, late)]
    rows = []
    for size in size_labels(sizes):
        mine = of_size(sizes, size)
        before, after = (curve[:, mine].mean(1) for curve in curves)
        ahead = np.flatnonzero(before > after)
        gap = bootstrap.difference(*(end[mine] for end in ends))
        rows.append({"size": size, "k": int(ahead[0]) + 1 if len(ahead) else 0} | _row(gap))
    return pd.DataFrame(rows)


def change_table(
    exactly: dict[tuple[str, int], Reach],
    parameters: TradeOffParameters,
    sizes: NDArray[np.str_],
    bootstrap: Bootstrap,
) -> pd.DataFrame:
    """Late minus early and late over early, paired, of the lineage and of the control."""
    rows = []
    for name in dict.fromkeys((parameters.lineage, parameters.control)):
        before = exactly[name, parameters.early].values
        after = exactly[name, parameters.late].values
        for size in size_labels(sizes):
            mine = of_size(sizes, size)
            for measure in (*MEASURES, PAPER_COVERAGE):
                pair = before.loc[mine, measure], after.loc[mine, measure]
                ratio = bootstrap.ratio(pair[1], pair[0])
                rows.append(
                    {
                        "lineage": name,
                        "size": size,
                        "measure": measure,
                        "early": pair[0].mean(),
                        "late": pair[1].mean(),
                        **_row(bootstrap.difference(*pair)),
                        "ratio": ratio.value,
                        "ratio_low": ratio.low,
                        "ratio_high": ratio.high,
                    }
                )
    return pd.DataFrame(rows)


def survivor_table(
    exactly: dict[tuple[str, int], Reach],
    sampled: dict[tuple[str, int], Reach],
    early: tuple[str, int],
    late: tuple[str, int],
    control: tuple[str, int],
    both: NDArray[np.bool_],
    bootstrap: Bootstrap,
) -> pd.DataFrame:
    """Coverage on the problems that samples solve at both checkpoints, and the late control's.

    The samples that chose the problems flatter both coverages; the exact values are measured with
    nothing that took part in the choice.
    """
    rows = []
    for kind, points in (("exact", exactly), ("sampled", sampled)):
        before, after, other = (
            points[p].values.loc[both, "coverage"] for p in (early, late, control)
        )
        for when, interval in (
            ("early", bootstrap.mean(before)),
            ("late", bootstrap.mean(after)),
            ("change", bootstrap.difference(before, after)),
            ("late control", bootstrap.mean(other)),
            ("change of the control", bootstrap.difference(before, other)),
        ):
            rows.append({"kind": kind, "when": when} | _row(interval))
    return pd.DataFrame(rows)


def retention_table(
    exactly: dict[tuple[str, int], Reach],
    sampled: dict[tuple[str, int], Reach],
    early: tuple[str, int],
    late: tuple[str, int],
    control: tuple[str, int],
    n: int,
    bootstrap: Bootstrap,
) -> pd.DataFrame:
    """The pooled share of early leaves, and of early-solved problems, that are found again.

    A single leaf is harder to find twice than any leaf at all, so a share below that of the
    problems means nothing by itself. What to expect is said by two more rows: the early policy
    drawn a second time, and the late control.
    """
    rows = []
    for kind, points in (("exact", exactly), ("sampled", sampled)):
        again = {"late": points[late], "late control": points[control]}
        if kind == "exact":
            again["early once more"] = points[early]  # samples would be compared with themselves
        before = points[early].leaves
        for who, reach in again.items():
            for what, turnover in (
                ("leaf", measures.leaf_turnover(before, reach.leaves, n)),
                ("problem", measures.problem_turnover(before, reach.leaves, n)),
            ):
                share = bootstrap.ratio(turnover.retained, turnover.early)
                rows.append({"kind": kind, "again": who, "what": what} | _row(share))
    return pd.DataFrame(rows)


def draw_lost_again(
    store: RunStore,
    chosen: Sequence[Space],
    lost: NDArray[np.bool_],
    late: Reach,
    parameters: TradeOffParameters,
    decoding: Decoding,
) -> pd.DataFrame:
    """The problems that samples solve early and not late, with fresh samples of the late one.

    ``chance`` is the exact probability that so many samples solve the problem, ``open entrances``
    how many entrances of its menu the late checkpoint takes at all.
    """
    places = np.flatnonzero(lost)
    table = problem_table([chosen[i] for i in places]).assign(place=places)
    table["chance"] = measures.pass_at_k(late.leaves, parameters.resamples)[places]
    table["open entrances"] = late.values["open entrances"].to_numpy()[places]
    table["solved"] = 0
    if len(places):
        seed = seed_at(parameters, parameters.lineage, parameters.late, "lost")
        policy = load(parameters.lineage, parameters.late, parameters.use_gpu)
        again = [chosen[i] for i in places]
        drawn = rollouts(store, policy, again, Plan(parameters.resamples, decoding, seed))
        table["solved"] = (drawn["leaf"] != measures.MISS).groupby(drawn["problem"]).sum()
    return table


def recovered(lost: pd.DataFrame) -> Interval | None:
    """The share of lost problems that fresh samples solve, with its exact binomial interval."""
    if lost.empty:
        return None
    return measures.clopper_pearson(int((lost["solved"] > 0).sum()), len(lost))


def measured(
    exactly: dict[tuple[str, int], Reach],
    early: tuple[str, int],
    late: tuple[str, int],
    changes: pd.DataFrame,
    survivors: pd.DataFrame,
    retention: pd.DataFrame,
    lost: pd.DataFrame,
    bootstrap: Bootstrap,
) -> dict[str, Measured | None]:
    """This run's values by the identifiers of the paper's table."""
    found: dict[str, Measured | None] = {}
    change = rows_by("measure", changes.query("lineage == @early[0] and size == @ALL"))
    for measure, name in zip(
        MEASURES, ("pass1", "coverage", "family_coverage", "entrance_entropy"), strict=True
    ):
        before, after = (_row(bootstrap.mean(exactly[p].values[measure])) for p in (early, late))
        found[f"tradeoff.grpo.{name}.early"] = _measured(before, "exact")
        found[f"tradeoff.grpo.{name}.late"] = _measured(after, "exact", change[measure])
    relative = change["coverage"]
    found["tradeoff.grpo.coverage.relative"] = _measured(
        {
            "value": relative["ratio"] - 1,
            "low": relative["ratio_low"] - 1,
            "high": relative["ratio_high"] - 1,
            "problems": relative["problems"],
        },
        "exact",
    )
    kept = rows_by("when", survivors.query("kind == 'exact'"))
    found["tradeoff.survivors.coverage.early"] = _measured(kept["early"], "exact")
    found["tradeoff.survivors.coverage.late"] = _measured(kept["late"], "exact", kept["change"])
    again = rows_by("what", retention.query("kind == 'sampled' and again == 'late'"))
    for what in ("leaf", "problem"):
        found[f"tradeoff.retention.{what}"] = _measured(again[what], "sampled")
    share = recovered(lost)
    found["tradeoff.lost.recovered"] = None if share is None else _measured(_row(share), "sampled")
    return found


Row = Mapping[Any, Any]
"""One row of a table, by column."""


def rows_by(column: str, table: pd.DataFrame) -> dict[str, Row]:
    """The rows of a table by the value of one of its columns."""
    return {str(row[column]): row for row in table.to_dict("records")}


def _measured(row: Row, how: str, change: Row | None = None) -> Measured | None:
    value, low, high = (float(row[part]) for part in ("value", "low", "high"))
    if not np.isfinite([value, low, high]).all():
        return None  # no problem, or one: nothing says how problems differ
    difference = None if change is None else (float(change["low"]), float(change["high"]))
    if difference is not None and not np.isfinite(difference).all():
        difference = None
    return Measured(value, low, high, f"{int(row['problems'])} problems, {how}", difference)


def direction(row: Row) -> str:
    """What an interval of a change says: it rises, it falls, or it does not clearly change.

    Without an interval (NaN: only one problem), nothing is clear.
    """
    if row["low"] > 0:
        return "rises"
    return "falls" if row["high"] < 0 else "does not clearly change"
