"""The sentences of chapter 1 whose numbers, and whose verbs, come from the run.

Each function shows one paragraph below its cell. A sentence that would be false for other numbers
is chosen by the numbers: "falls" is written only where the interval says so.
"""

import math
from collections.abc import Callable, Sequence

import pandas as pd

from companion.claims import Checked, Verdict
from companion.experiments.trade_off import (
    ALL,
    PAPER_COVERAGE,
    Row,
    TradeOff,
    direction,
    recovered,
    rows_by,
)
from companion.prose import change, number, percent, plural, say


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
    ratio, late = rows["pass@1"]["ratio"], number(float(rows["pass@1"]["late"]))
    say(
        "From step {early} to step {late}, **pass@1 {gain}** from {p0} to {p1}, while **coverage "
        "at {n} {loss}** from {c0} to {c1} and **family coverage {doors}** from {f0} to {f1}.",
        early=p.early,
        late=p.late,
        n=p.samples,
        gain=direction(rows["pass@1"]),
        p0=float(rows["pass@1"]["early"]),
        p1=f"{late} ({number(ratio)}× as high)" if math.isfinite(ratio) else late,
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
    if p.lineage == p.control:
        say("In this run the lineage is its own control, so nothing above is the reward's doing.")
        return
    say(
        "The control, trained on a coin toss, moves from {c0} to {c1} in coverage: a change of "
        "{noise:change}{share}. Its pass@1 {gain}, from {p0} to {p1}.",
        c0=float(other["coverage"]["early"]),
        c1=float(other["coverage"]["late"]),
        noise=float(other["coverage"]["value"]),
        share=_share_of_loss(mine, other),
        p0=float(other["pass@1"]["early"]),
        p1=float(other["pass@1"]["late"]),
        gain=direction(other["pass@1"]),
    )


def sizes(results: TradeOff) -> None:
    """The same for each size of problem."""
    p = results.parameters
    for size in sorted(set(results.problems["size"])):
        rows, other = (_changes(results, name, size) for name in (p.lineage, p.control))
        say(
            "With **{size} numbers**, pass@1 {gain} ({p0} to {p1}) and coverage {loss} "
            "({c0} to {c1}); the control's coverage ends at {control}, a change of "
            "{noise:change}{share}.",
            size=size,
            gain=direction(rows["pass@1"]),
            p0=float(rows["pass@1"]["early"]),
            p1=float(rows["pass@1"]["late"]),
            loss=direction(rows["coverage"]),
            c0=float(rows["coverage"]["early"]),
            c1=float(rows["coverage"]["late"]),
            control=float(other["coverage"]["late"]),
            noise=float(other["coverage"]["value"]),
            share="" if p.lineage == p.control else _share_of_loss(rows, other),
        )


def paper_leaves(results: TradeOff) -> None:
    """Coverage under the paper's rule for which solutions are one leaf."""
    p = results.parameters
    mine, other = (_changes(results, name, ALL)[PAPER_COVERAGE] for name in (p.lineage, p.control))
    say(
        "The paper's rule tells more solutions apart than ours. Under it the exact coverage {what} "
        "from {before} to {after}; the control ends at {control}.",
        what=direction(mine),
        before=float(mine["early"]),
        after=float(mine["late"]),
        control=float(other["late"]),
    )


def changes(results: TradeOff) -> None:
    """Every measure of both lineages, early and late, with its paired change, as a table."""
    shown = results.changes.rename(columns={"value": "change"})
    table(shown[["lineage", "size", "measure", "early", "late", "change", "low", "high", "ratio"]])


def lost_problems(results: TradeOff) -> None:
    """The lost problems, one a row."""
    table(results.lost[["numbers", "target", "entrances", "open entrances", "chance", "solved"]])


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
        "{change}. The control ends at {control:nats}.",
        what=direction(row),
        before=float(row["early"]),
        after=float(row["late"]),
        change=_with_interval(row, change),
        control=float(_changes(results, p.control, ALL)["entrance entropy"]["late"]),
    )


def crossing(results: TradeOff) -> None:
    """From how many samples the early checkpoint's pass@k is above the late one's."""
    largest = plural(int(results.pass_at_k["k"].max()), "sample")
    for row in results.crossing.to_dict("records"):
        where = "all problems" if row["size"] == ALL else f"{row['size']} numbers"
        if row["k"] == 0:
            crossed = f"the early checkpoint is never ahead, up to {largest}"
        elif row["k"] == 1:
            crossed = "the early checkpoint is ahead already at the first sample"
        else:
            crossed = f"the early checkpoint overtakes the late one at {number(row['k'])} samples"
        say(
            "- **{where}**: {crossed}. At {n} pass@k late minus early is {gap}.",
            where=where,
            crossed=crossed,
            n=plural(results.parameters.samples, "sample"),
            gap=_with_interval(row, change),
        )


def survivors(results: TradeOff) -> None:
    """Coverage on the problems solved at both checkpoints."""
    rows = rows_by("when", results.survivors.query("kind == 'exact'"))
    count = int(rows["early"]["problems"])
    if count < 2:
        say(
            "{count} of {problems} problems is solved at both checkpoints: too few to say "
            "anything about survivors.",
            count="None" if count == 0 else "Only 1",
            problems=len(results.problems),
        )
        return
    say(
        "{count} of {problems} problems are solved at both checkpoints. On these survivors the "
        "exact coverage {what}, from {before} to {after}, a change of {change}. The control's goes "
        "to {control} on the same problems. {so}",
        count=count,
        problems=len(results.problems),
        what=direction(rows["change"]),
        before=float(rows["early"]["value"]),
        after=float(rows["late"]["value"]),
        change=_with_interval(rows["change"], change),
        control=float(rows["late control"]["value"]),
        so=(
            "Forgotten problems alone do not explain the loss."
            if direction(rows["change"]) == "falls"
            else "In this run the survivors alone show no clear loss."
        ),
    )


def retention(results: TradeOff) -> None:
    """Leaves kept beside problems kept, and what to expect of each."""
    for kind in ("exact", "sampled"):
        rows = _retention(results, kind, "late")
        how = {"exact": "Exactly", "sampled": "In samples"}[kind]
        if math.isnan(rows["leaf"]["value"]):
            say("{how}: the early checkpoint finds nothing that could be found again.", how=how)
            continue
        say(
            "{how}: of the early leaves the late checkpoint finds {leaf} again, and of the "
            "early-solved problems it solves {problem}.",
            how=how,
            leaf=_with_interval(rows["leaf"], percent),
            problem=_with_interval(rows["problem"], percent),
        )
    once_more = _retention(results, "exact", "early once more")
    if math.isnan(once_more["leaf"]["value"]):
        return
    control = _retention(results, "exact", "late control")
    say(
        "What to compare this with: the early checkpoint itself, drawn a second time, finds "
        "{leaf:percent} of its leaves and {problem:percent} of its problems again, and the late "
        "control {control_leaf:percent} and {control_problem:percent}.",
        leaf=float(once_more["leaf"]["value"]),
        problem=float(once_more["problem"]["value"]),
        control_leaf=float(control["leaf"]["value"]),
        control_problem=float(control["problem"]["value"]),
    )


def lost(results: TradeOff) -> None:
    """What fresh samples make of the lost problems."""
    p, share = results.parameters, recovered(results.lost)
    if share is None:
        say("No problem is solved early and not late: there is nothing to draw again.")
        return
    closed = results.lost[results.lost["chance"] == 0]
    entered = int((closed["open entrances"] > 0).sum())
    say(
        "{lost} solved at step {early} and not at step {late}. With {resamples} of each, {solved} "
        "of {count} {are} solved ({share:percent}, {low:percent} to {high:percent}). {chance}",
        lost=plural(share.n, "problem") + (" is" if share.n == 1 else " are"),
        early=p.early,
        late=p.late,
        resamples=plural(p.resamples, "fresh sample"),
        solved=int((results.lost["solved"] > 0).sum()),
        count=share.n,
        are="is" if share.n == 1 else "are",
        share=share.value,
        low=share.low,
        high=share.high,
        chance=(
            f"The exact probability is zero for {number(len(closed))} of them: every valid trace "
            f"needs a token that this decoding never draws. On {number(entered)} of these the "
            "policy still takes an entrance of the menu, and strays behind it."
            if len(closed)
            else "The exact probability is zero for none of them."
        ),
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


def _with_interval(row: Row, unit: Callable[[float], str]) -> str:
    """A value with its interval, if it has one: of a single problem there is none."""
    value, low, high = (float(row[part]) for part in ("value", "low", "high"))
    if not math.isfinite(low) or not math.isfinite(high):
        return unit(value)
    return f"{unit(value)} ({unit(low)} to {unit(high)})"


def _retention(results: TradeOff, kind: str, who: str) -> dict[str, Row]:
    return rows_by("what", results.retention.query("kind == @kind and again == @who"))


def _share_of_loss(mine: dict[str, Row], control: dict[str, Row]) -> str:
    """What the control loses of the coverage that the lineage loses, where it loses any."""
    loss, noise = mine["coverage"]["value"], control["coverage"]["value"]
    if not loss < 0:
        return ", while the rewarded lineage loses none"
    return f", {percent(max(0.0, noise / loss))} of what the rewarded lineage loses"


def _changes(results: TradeOff, lineage: str, size: str) -> dict[str, Row]:
    return rows_by("measure", results.changes.query("lineage == @lineage and size == @size"))
