"""One theme for every figure: readable on a phone, in dark mode, without colour, without sight.

Figures have an opaque light ground, colours from the palette of Okabe and Ito, and a second sign
beside each colour (line style and marker). They leave the notebook as SVG with a description.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

WIDTH = 5.6  # inches: at this width 11 points stay readable on a phone
PANEL_HEIGHT = 2.7
LARGEST_SVG = 100_000  # bytes: base64 adds a third, and a page holds a dozen figures
PNG_RESOLUTION = 200  # dots an inch: sharp on screens of double density

INK = "#262626"
GRID = "#d9d9d9"


@dataclass(frozen=True)
class Style:
    """How one series looks: colour, line style and marker always go together."""

    colour: str
    line: str
    marker: str


# From Okabe and Ito's palette; its yellow and sky blue are too light on a white ground.
STYLES = (
    Style("#0072b2", "-", "o"),
    Style("#d55e00", "--", "D"),
    Style("#009e73", "-.", "^"),
    Style("#cc79a7", ":", "v"),
)
REWARDED = STYLES[0]
CONTROL = Style("#6b6b6b", "--", "s")  # the random-reward lineage, the same in every chapter


def set_theme() -> None:
    """Set the book's seaborn theme; :func:`panels` and :func:`show` do it by themselves."""
    sns.set_theme(
        style="whitegrid",
        palette=[style.colour for style in STYLES],
        rc={
            "figure.facecolor": "white",
            "savefig.facecolor": "white",  # opaque: transparent figures vanish in dark mode
            "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine has it
            "font.size": 11,
            "axes.titlesize": 11.5,
            "axes.labelsize": 11,
            "xtick.labelsize": 10.5,
            "ytick.labelsize": 10.5,
            "legend.fontsize": 10.5,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "grid.color": GRID,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "lines.linewidth": 2.0,
            "lines.markersize": 6.0,
            "svg.fonttype": "path",  # letters as outlines: the same picture in every browser
            "svg.hashsalt": "companion",  # the same figure gives the same bytes
        },
    )


def panels(
    titles: Sequence[str], *, x_label: str, y_label: str, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """Small multiples, one below the other on one x-axis, so that a phone can show them.

    Args:
        titles: one a panel, such as ``("3 numbers", "4 numbers")``; ``("",)`` for a single panel.
        x_label: written once, below the last panel, with its unit.
        y_label: written at every panel, with its unit.
        share_y: whether the panels have one scale.

    Raises:
        ValueError: for no titles.
    """
    if not titles:
        raise ValueError('titles: one a panel, such as ("3 numbers", "4 numbers")')
    set_theme()
    size = (WIDTH, PANEL_HEIGHT * len(titles) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(titles), 1, sharex=True, sharey=share_y, squeeze=False)
    axes = list(grid[:, 0])
    for panel, title in zip(axes, titles, strict=True):
        panel.set_title(title, loc="left", fontweight="bold")
        panel.set_ylabel(y_label)
    axes[-1].set_xlabel(x_label)
    return figure, axes


def draw_line(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    *,
    label: str,
    style: Style,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> None:
    """A line with markers, and interval bars where ``low`` and ``high`` are given.

    Args:
        axes: the panel.
        x: positions, shape (points,).
        y: values, shape (points,).
        label: the series' name in the legend.
        style: see :data:`STYLES`; :data:`CONTROL` for the random-reward lineage.
        low: lower ends, shape (points,).
        high: upper ends, shape (points,).

    Raises:
        ValueError: for lengths that differ, one end without the other, or low above high.
    """
    _draw(axes, x, y, label, style, style.line, style.marker, low, high)


def draw_estimates(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    *,
    label: str,
    style: Style,
    low: ArrayLike,
    high: ArrayLike,
) -> None:
    """Sampled estimates as points with interval bars, to lie on an exact curve. See draw_line."""
    _draw(axes, x, y, label, style, "none", style.marker, low, high)


def draw_curve(axes: Axes, x: ArrayLike, y: ArrayLike, *, label: str, style: Style) -> None:
    """An exact curve: a line without markers, because it has no sampling noise. See draw_line."""
    _draw(axes, x, y, label, style, style.line, "none", None, None)


def add_legend(figure: Figure) -> None:
    """One legend above all panels, each series named once."""
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(map(str, labels), handles, strict=True))
    columns = 1 if max(map(len, entries), default=0) > 24 else 2
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        handlelength=3.2,  # long enough to tell dashes from dots
    )


def show(figure: Figure, alt: str, caption: str = "") -> None:
    """Show the figure below the cell with its description, and close it.

    Args:
        figure: any matplotlib figure.
        alt: what a reader who cannot see the figure has to know: what is drawn and what it shows.
        caption: a line below the figure; plain text.

    Raises:
        ValueError: for an empty ``alt``.
    """
    from IPython.display import display

    bundle = {"text/html": as_html(figure, alt, caption), "text/plain": f"[Figure: {alt}]"}
    display(bundle, raw=True)  # type: ignore[no-untyped-call]
    plt.close(figure)  # an open one would be shown a second time, without its description


def as_html(figure: Figure, alt: str, caption: str = "") -> str:
    """The figure as one HTML element that needs no other file. See :func:`show`.

    Raises:
        ValueError: for an empty ``alt``.
    """
    if not alt.strip():
        raise ValueError("alt: describe the figure, such as 'Coverage falls at every step.'")
    kind, data = _image(figure)
    address = f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        '<figure class="companion-figure">'
        f'<img alt="{escape(" ".join(alt.split()))}" src="{address}" '
        'style="width: 100%; max-width: 44rem; height: auto; background: white">'
        f"{below}</figure>"
    )


def _draw(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    label: str,
    style: Style,
    line: str,
    marker: str,
    low: ArrayLike | None,
    high: ArrayLike | None,
) -> None:
    given = {"x": x, "y": y, "low": low, "high": high}
    arrays = {name: np.asarray(a, dtype=float) for name, a in given.items() if a is not None}
    if len({array.shape for array in arrays.values()}) != 1 or arrays["x"].ndim != 1:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{', '.join(arrays)}: one value a point in each; got {shapes}")
    if (low is None) != (high is None):
        raise ValueError("low and high: give both ends of the interval, or neither")
    bars = None
    if "low" in arrays:
        if np.any(arrays["low"] > arrays["high"]):
            raise ValueError("low: nowhere above high")
        # A percentile interval may miss its estimate by a rounding error; a bar cannot be negative.
        bars = np.maximum([arrays["y"] - arrays["low"], arrays["high"] - arrays["y"]], 0)
    axes.errorbar(
        arrays["x"],
        arrays["y"],
        yerr=bars,
        label=label,
        color=style.colour,
        linestyle=line,
        marker=marker,
        markeredgecolor="white",
        capsize=3,
        elinewidth=1.2,
    )


def _image(figure: Figure) -> tuple[str, bytes]:
    """The figure as SVG, or as PNG where so much is drawn that SVG would be heavy."""
    set_theme()
    buffer = io.BytesIO()
    # No date and no version: the same figure gives the same bytes.
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    if buffer.tell() <= LARGEST_SVG:
        return "svg+xml", buffer.getvalue()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_RESOLUTION, metadata={"Software": None})
    return "png", buffer.getvalue()
