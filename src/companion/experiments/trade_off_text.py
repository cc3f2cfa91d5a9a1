"""The sentences of chapter 1 whose numbers, and whose verbs, come from the run.

Each function shows one paragraph below its cell. A sentence that would be false for other numbers
is chosen by the numbers: "falls" is written only where the interval says so.
"""

import math
from collections.abc import Sequence

import pandas as pd

from companion.claims import Checked, Verdict
from companion.experiments.trade_off import (
    ALL,
    MEASURES,
    Row,
    TradeOff,
    direction,
    recovered,
    rows_by,
)
from companion.prose import number, percent, plural, say


def world(results: TradeOff) -> None:
    """What the problems of this run are."""
    p, problems = results.parameters, results.problems
    counts = problems["size"].value_counts().sort_index()
    say(
        "This run asks {problems} held-out problems ({sizes}). Together they have {leaves} "
        "leaves, {entrances} entrances and {traces} valid traces; on average {mean} entrances a "
        "problem. Tokens are drawn at temperature {temperature} with top-p {top_p}.",
        problems=len(problems),
        sizes=", ".join(f"{count} of {size} numbers" for size, count in counts.items()),
        leaves=int(problems["leaves"].sum()),
        entrances=int(problems["entrances"].sum()),
        traces=int(problems["traces"].sum()),
        mean=float(problems["entrances"].mean()),
        temperature=f"{p.temperature:g}",
        top_p=f"{p.top_p:g}",
    )


def along_training(results: TradeOff) -> None:
    """How the headline measures change with the reward."""
    p = results.parameters
    rows = _changes(results, p.lineage, ALL)
    say(
        "From step {early} to step {late}, **pass@1 {gain}** from {p0} to {p1} "
        "({gain_by:times} as high), while **coverage at {n} {loss}** from {c0} to {c1} and "
        "**family coverage {doors}** from {f0} to {f1}.",
        early=p.early,
        late=p.late,
        n=p.samples,
        gain=direction(rows["pass@1"]),
        gain_by=float(rows["pass@1"]["ratio"]),
        p0=float(rows["pass@1"]["early"]),
        p1=float(rows["pass@1"]["late"]),
        loss=direction(rows["coverage"]),
        c0=float(rows["coverage"]["early"]),
        c1=float(rows["coverage"]["late"]),
        doors=direction(rows["family coverage"]),
        f0=float(rows["family coverage"]["early"]),
        f1=float(rows["family coverage"]["late"]),
    )


def control(results: TradeOff) -> None:
    """What the coin toss loses, beside what the reward loses."""
    p = results.parameters
    mine, other = (_changes(results, name, ALL) for name in (p.lineage, p.control))
    loss, noise = mine["coverage"]["value"], other["coverage"]["value"]
    if loss < 0:
        share = f"{percent(max(0.0, noise / loss))} of what the rewarded lineage loses"
    else:
        share = "while the rewarded lineage loses none"
    say(
        "The control, trained on a coin toss, moves from {c0} to {c1} in coverage: a change of "
        "{noise:change}, {share}. Its pass@1 {gain}, from {p0} to {p1}.",
        c0=float(other["coverage"]["early"]),
        c1=float(other["coverage"]["late"]),
        noise=float(noise),
        share=share,
        p0=float(other["pass@1"]["early"]),
        p1=float(other["pass@1"]["late"]),
        gain=direction(other["pass@1"]),
    )


def sizes(results: TradeOff) -> None:
    """The same for each size of problem."""
    p = results.parameters
    for size in sorted(set(results.problems["size"])):
        rows = _changes(results, p.lineage, size)
        say(
            "With **{size} numbers**, pass@1 {gain} ({p0} to {p1}) and coverage {loss} "
            "({c0} to {c1}); the control's coverage ends at {control}.",
            size=size,
            gain=direction(rows["pass@1"]),
            p0=float(rows["pass@1"]["early"]),
            p1=float(rows["pass@1"]["late"]),
            loss=direction(rows["coverage"]),
            c0=float(rows["coverage"]["early"]),
            c1=float(rows["coverage"]["late"]),
            control=float(_changes(results, p.control, size)["coverage"]["late"]),
        )


def changes(results: TradeOff) -> None:
    """Every measure of both lineages, early and late, with its paired change, as a table."""
    shown = results.changes.rename(columns={"value": "change"})
    table(shown[["lineage", "size", "measure", "early", "late", "change", "low", "high", "ratio"]])


def lost_problems(results: TradeOff) -> None:
    """The lost problems, one a row."""
    table(results.lost[["numbers", "target", "leaves", "chance", "solved"]])


def table(rows: pd.DataFrame) -> None:
    """A table with its numbers rounded as in the text, and no counter in front."""
    from IPython.display import HTML, display

    shown = rows.copy()
    for column in shown.select_dtypes("float"):
        shown[column] = [number(value) if math.isfinite(value) else "–" for value in shown[column]]
    display(HTML(shown.to_html(index=False, border=0)))  # type: ignore[no-untyped-call]


def entrances(results: TradeOff) -> None:
    """How the first choice changes."""
    p = results.parameters
    row = _changes(results, p.lineage, ALL)["entrance entropy"]
    say(
        "The entrance entropy {what}: from {before:nats} to {after:nats}, a change of "
        "{value:change} ({low:change} to {high:change}). The control ends at {control:nats}.",
        what=direction(row),
        before=float(row["early"]),
        after=float(row["late"]),
        value=float(row["value"]),
        low=float(row["low"]),
        high=float(row["high"]),
        control=float(_changes(results, p.control, ALL)["entrance entropy"]["late"]),
    )


def crossing(results: TradeOff) -> None:
    """Where the early checkpoint's pass@k overtakes the late one's."""
    largest = int(results.pass_at_k["k"].max())
    for row in results.crossing.to_dict("records"):
        where = "all problems" if row["size"] == ALL else f"{row['size']} numbers"
        if row["k"] == 0:
            crossed = f"the late checkpoint stays ahead up to {plural(largest, 'sample')}"
        else:
            crossed = f"the early checkpoint overtakes it at {plural(int(row['k']), 'sample')}"
        say(
            "- **{where}**: {crossed}. At {n} samples pass@k late minus early is {gap:change} "
            "({low:change} to {high:change}).",
            where=where,
            crossed=crossed,
            n=results.parameters.samples,
            gap=float(row["value"]),
            low=float(row["low"]),
            high=float(row["high"]),
        )


def survivors(results: TradeOff) -> None:
    """Coverage on the problems solved at both checkpoints."""
    rows = rows_by("when", results.survivors.query("kind == 'exact'"))
    count = int(rows["early"]["problems"])
    if count < 2:
        say(
            "Only {count} of {problems} problems is solved at both checkpoints: too few to say "
            "anything about survivors.",
            count=count,
            problems=len(results.problems),
        )
        return
    say(
        "{count} of {problems} problems are solved at both checkpoints. On these survivors the "
        "exact coverage {what}, from {before} to {after} (change {value:change}, {low:change} to "
        "{high:change}). {so}",
        count=count,
        problems=len(results.problems),
        what=direction(rows["change"]),
        before=float(rows["early"]["value"]),
        after=float(rows["late"]["value"]),
        value=float(rows["change"]["value"]),
        low=float(rows["change"]["low"]),
        high=float(rows["change"]["high"]),
        so=(
            "Forgotten problems alone do not explain the loss."
            if direction(rows["change"]) == "falls"
            else "In this run the survivors alone show no loss."
        ),
    )


def retention(results: TradeOff) -> None:
    """Leaves kept beside problems kept."""
    for kind in ("exact", "sampled"):
        rows = rows_by("what", results.retention.query("kind == @kind"))
        say(
            "{kind}: the late checkpoint finds {leaf:percent} of the early leaves again "
            "({leaf_low:percent} to {leaf_high:percent}), and solves {problem:percent} of the "
            "early-solved problems ({problem_low:percent} to {problem_high:percent}).",
            kind={"exact": "Exactly", "sampled": "In samples"}[kind],
            leaf=float(rows["leaf"]["value"]),
            leaf_low=float(rows["leaf"]["low"]),
            leaf_high=float(rows["leaf"]["high"]),
            problem=float(rows["problem"]["value"]),
            problem_low=float(rows["problem"]["low"]),
            problem_high=float(rows["problem"]["high"]),
        )


def lost(results: TradeOff) -> None:
    """What fresh samples make of the lost problems."""
    p, share = results.parameters, recovered(results.lost)
    if share is None:
        say("No problem is solved early and not late: there is nothing to draw again.")
        return
    closed = int((results.lost["chance"] == 0).sum())
    say(
        "{lost} solved at step {early} and not at step {late}. Of these, {resamples} fresh "
        "samples solve {solved} ({share:percent}, {low:percent} to {high:percent}). The exact "
        "probability is zero for {closed} of them: every valid trace needs a token that this "
        "decoding never draws.",
        lost=plural(len(results.lost), "problem") + (" is" if len(results.lost) == 1 else " are"),
        early=p.early,
        late=p.late,
        resamples=p.resamples,
        solved=int((results.lost["solved"] > 0).sum()),
        share=share.value,
        low=share.low,
        high=share.high,
        closed=closed,
    )


def verdict(rows: Sequence[Checked]) -> None:
    """How many of the paper's directions this run shares."""
    count = {kind: sum(row.verdict is kind for row in rows) for kind in Verdict}
    failed = [
        f"{row.claim.quantity} ({row.claim.setting})"
        for row in rows
        if row.verdict is Verdict.NOT_REPRODUCED
    ]
    say(
        "Of the paper's {rows} figures in this chapter, {same} have a direction that this run "
        "shares and {failed} one that it does not{which}; {rest} are not measured in this profile.",
        rows=len(rows),
        same=count[Verdict.SAME_DIRECTION] + count[Verdict.REPRODUCED],
        failed=count[Verdict.NOT_REPRODUCED],
        which=f": {'; '.join(failed)}" if failed else "",
        rest=count[Verdict.NOT_MEASURED],
    )


def _changes(results: TradeOff, lineage: str, size: str) -> dict[str, Row]:
    rows = rows_by("measure", results.changes.query("lineage == @lineage and size == @size"))
    return {measure: rows[measure] for measure in MEASURES}
