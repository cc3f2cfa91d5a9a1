"""The figures of chapter 1: one function a figure, each with its description in words."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion.experiments.trade_off import ALL, TradeOff, rows_by
from companion.plots import CONTROL, REWARDED, STYLES, Style, add_legend, draw_curve, draw_estimates
from companion.plots import panels as small_multiples
from companion.prose import number

Described = tuple[Figure, str]
"""A figure and its description, as :func:`companion.plots.show` takes them."""

LABELS = {"pass@1": "pass@1", "entrance entropy": "entropy (nats)"}
INTERVAL_SHADE = 0.15


def along_training(results: TradeOff, measures: tuple[str, ...], size: str = ALL) -> Described:
    """The measures along training, the lineage and its control: exact curves, sampled points."""
    figure, axes = small_multiples(
        [_title(measure, results) for measure in measures],
        x_label="training step",
        y_label="",
        share_y=False,
    )
    for panel, measure in zip(axes, measures, strict=True):
        panel.set_ylabel(LABELS.get(measure, "share"))
        _draw_lineages(panel, results, measure, size)
    for panel in axes:
        _from_zero([panel])
    add_legend(figure)
    what = " ".join(_sentence(results, measure, size) for measure in measures)
    return figure, f"Measures along training, {_size(size)}. {what}"


def by_size(results: TradeOff, measure: str) -> Described:
    """One measure along training, a panel for each size of problem."""
    sizes = _sizes(results)
    figure, axes = small_multiples(
        [_size(size) for size in sizes],
        x_label="training step",
        y_label=LABELS.get(measure, "share"),
    )
    for panel, size in zip(axes, sizes, strict=True):
        _draw_lineages(panel, results, measure, size)
    _from_zero(axes)
    add_legend(figure)
    what = " ".join(f"{_size(size)}: {_sentence(results, measure, size)}" for size in sizes)
    return figure, f"{_title(measure, results)} along training. {what}"


def pass_at_k(results: TradeOff) -> Described:
    """pass@k against k, early, late and the late control, a panel for each size of problem."""
    p, sizes = results.parameters, _sizes(results)
    control = int(results.pass_at_k.query("lineage == @p.control")["step"].max())
    series = {
        (p.lineage, p.early): (f"step {p.early}", STYLES[1]),
        (p.lineage, p.late): (f"step {p.late}", REWARDED),
        (p.control, control): (f"random reward, step {control}", CONTROL),
    }
    figure, axes = small_multiples(
        [_size(size) for size in sizes], x_label="k (samples)", y_label="pass@k"
    )
    words = []
    for panel, size in zip(axes, sizes, strict=True):
        for (name, step), (label, style) in series.items():
            table = results.pass_at_k
            here = (table["lineage"] == name) & (table["step"] == step) & (table["size"] == size)
            exact, drawn = (table[here & (table["kind"] == kind)] for kind in ("exact", "sampled"))
            draw_curve(panel, exact["k"], exact["value"], label=f"{label}, exact", style=style)
            _draw_sampled(panel, drawn, "k", f"{label}, sampled", style)
            first, last = exact["value"].iloc[0], exact["value"].iloc[-1]
            words.append(f"{_size(size)}, {label}: {number(first)} to {number(last)}.")
        panel.set_xscale("log", base=2)
        panel.set_ylim(0, 1.02)
    add_legend(figure)
    largest = number(int(results.pass_at_k["k"].max()))
    return figure, f"pass@k from one sample to {largest}. {' '.join(words)}"


def _from_zero(axes: list[Axes]) -> None:
    """One scale for the panels, from zero to the highest of what is drawn in any."""
    top = max(panel.get_ylim()[1] for panel in axes)
    for panel in axes:
        panel.set_ylim(0, top)


def _draw_lineages(panel: Axes, results: TradeOff, measure: str, size: str) -> None:
    p = results.parameters
    chosen = results.curve.query("measure == @measure and size == @size")
    # A lineage that is its own control is drawn once, as the control.
    looks = {p.lineage: ("rewarded", REWARDED), p.control: ("random reward", CONTROL)}
    for name, (label, style) in looks.items():
        rows = chosen[chosen["lineage"] == name].sort_values("step")
        exact, drawn = (rows[rows["kind"] == kind] for kind in ("exact", "sampled"))
        _draw_exact(panel, exact, "step", f"{label}, exact", style)
        _draw_sampled(panel, drawn, "step", f"{label}, {number(p.samples)} samples", style)


def _draw_exact(panel: Axes, rows: pd.DataFrame, x: str, label: str, style: Style) -> None:
    draw_curve(panel, rows[x], rows["value"], label=label, style=style)
    panel.fill_between(
        rows[x], rows["low"], rows["high"], color=style.colour, alpha=INTERVAL_SHADE, linewidth=0
    )


def _draw_sampled(panel: Axes, rows: pd.DataFrame, x: str, label: str, style: Style) -> None:
    draw_estimates(
        panel,
        rows[x],
        rows["value"],
        label=label,
        style=style,
        low=rows["low"],
        high=rows["high"],
    )


def _sentence(results: TradeOff, measure: str, size: str) -> str:
    rows = rows_by("lineage", results.changes.query("measure == @measure and size == @size"))
    p = results.parameters
    mine, control = rows[p.lineage], rows[p.control]
    change = f"{_title(measure, results)} goes from {number(mine['early'])} to"
    if p.lineage == p.control:
        return f"{change} {number(control['late'])} with a random reward."
    return (
        f"{change} {number(mine['late'])} with the reward and to {number(control['late'])} with a "
        "random one."
    )


def _title(measure: str, results: TradeOff) -> str:
    counted = measure.endswith("coverage")
    return f"{measure} at {number(results.parameters.samples)}" if counted else measure


def _sizes(results: TradeOff) -> list[str]:
    return sorted(set(results.problems["size"]))


def _size(size: str) -> str:
    return "all problems" if size == ALL else f"{size} numbers"
