import base64
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup
from IPython.utils.capture import RichOutput
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from companion import plots

STEPS = np.arange(0, 100, 25)


def figure(points: int = 4) -> Figure:
    made, (axes,) = plots.panels(("",), x_label="training step", y_label="coverage at 320")
    x = np.arange(points)
    y = 1 / (1 + x)
    plots.draw_line(axes, x, y, label="rewarded", style=plots.REWARDED, low=y - 0.1, high=y + 0.1)
    plots.add_legend(made)
    return made


def image(html: str) -> tuple[str, bytes]:
    tag = BeautifulSoup(html, "html.parser").find("img")
    assert tag is not None
    kind, data = re.fullmatch(r"data:image/(.+);base64,(.+)", str(tag["src"])).groups()
    return kind, base64.b64decode(data)


@pytest.mark.parametrize("alt", ["", "  \n"])
def test_a_figure_without_a_description_is_refused(alt: str) -> None:
    with pytest.raises(ValueError, match="alt: describe the figure"):
        plots.show(figure(), alt)


def test_the_description_and_the_caption_are_escaped() -> None:
    html = plots.as_html(figure(), 'a "quote" & <b>\nsecond line', "x < y")
    tag = BeautifulSoup(html, "html.parser").find("img")
    assert tag is not None
    assert tag["alt"] == 'a "quote" & <b> second line'
    assert "<figcaption>x &lt; y</figcaption>" in html
    assert "<b>" not in html


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert plots.as_html(figure(), "alt") == plots.as_html(figure(), "alt")


def test_the_image_says_nothing_about_the_machine_that_made_it() -> None:
    kind, data = image(plots.as_html(figure(), "alt"))
    assert kind == "svg+xml"
    assert b"date" not in data.lower()
    assert b"Matplotlib v" not in data
    assert b"<text" not in data  # outlines, so that no font is looked up


def test_the_ground_is_opaque_white_so_that_dark_mode_can_show_it() -> None:
    _, data = image(plots.as_html(figure(), "alt"))
    first_patch = next(ElementTree.fromstring(data).iter("{http://www.w3.org/2000/svg}path"))
    assert "fill: #ffffff" in first_patch.attrib["style"]


def test_a_heavy_figure_leaves_as_a_sharp_picture_of_less_than_150_kb() -> None:
    html = plots.as_html(figure(points=2000), "alt")
    kind, data = image(html)
    assert kind == "png"
    width = int.from_bytes(data[16:20], "big")
    assert width >= 2 * plots.WIDTH * 96  # two dots for every CSS pixel
    assert len(html) < 150_000
    assert len(plots.as_html(figure(), "alt")) < 150_000
    assert b"Software" not in data


def test_show_leaves_html_with_the_description_and_closes_the_figure(
    shown: Callable[..., list[RichOutput]],
) -> None:
    open_figure, axes = plt.subplots()
    axes.plot([0, 1])
    (output,) = shown(plots.show, open_figure, "A line rises.")
    assert 'alt="A line rises."' in output.data["text/html"]
    assert output.data["text/plain"] == "[Figure: A line rises.]"
    assert not plt.fignum_exists(open_figure.number)


def test_panels_share_their_axes_and_name_their_units_once() -> None:
    made, axes = plots.panels(("3 numbers", "4 numbers"), x_label="step", y_label="coverage")
    axes[0].set_ylim(0, 0.5)
    assert axes[1].get_ylim() == (0, 0.5)
    assert [panel.get_title(loc="left") for panel in axes] == ["3 numbers", "4 numbers"]
    assert [panel.get_xlabel() for panel in axes] == ["", "step"]
    assert made.get_size_inches()[0] == plots.WIDTH
    with pytest.raises(ValueError, match="titles: one a panel"):
        plots.panels((), x_label="step", y_label="coverage")


def test_an_interval_reaches_from_low_to_high() -> None:
    _, (axes,) = plots.panels(("",), x_label="step", y_label="coverage")
    plots.draw_line(
        axes, [0, 25], [0.5, 0.4], label="a", style=plots.REWARDED, low=[0.3, 0.4], high=[0.6, 0.4]
    )
    (bars,) = axes.containers[0].lines[2]
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends[0] == pytest.approx([0.3, 0.6])
    assert ends[1] == pytest.approx([0.4, 0.4])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [1.0]}, "one value a point"),
        ({"low": [0.0, 0.0]}, "both ends"),
        ({"low": [0.9, 0.0], "high": [0.8, 1.0]}, "low: nowhere above high"),
        ({"low": [0.9], "high": [0.8]}, "one value a point"),
    ],
)
def test_refuses_data_that_do_not_fit(changes: dict, message: str) -> None:
    _, (axes,) = plots.panels(("",), x_label="step", y_label="coverage")
    data = {"x": [0, 25], "y": [0.5, 0.4], "label": "a", "style": plots.REWARDED} | changes
    with pytest.raises(ValueError, match=message):
        plots.draw_line(axes, **data)


def test_the_legend_names_a_series_of_two_panels_once() -> None:
    made, axes = plots.panels(("3 numbers", "4 numbers"), x_label="step", y_label="coverage")
    for panel in axes:
        plots.draw_curve(panel, STEPS, STEPS / 100, label="exact", style=plots.REWARDED)
    plots.add_legend(made)
    (legend,) = made.legends
    assert [text.get_text() for text in legend.get_texts()] == ["exact"]


def luminance(colour: str) -> float:
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_styles_differ_without_colour_and_stand_out_from_the_ground() -> None:
    styles = (*plots.STYLES, plots.CONTROL)
    assert len({style.marker for style in styles}) == len(styles)
    assert len({style.colour for style in styles}) == len(styles)
    assert len({style.line for style in plots.STYLES}) == len(plots.STYLES)
    for style in styles:  # WCAG 2.1 asks for 3:1 for graphics
        assert 1.05 / (luminance(style.colour) + 0.05) >= 3


def test_an_exact_curve_is_a_line_and_an_estimate_a_point_with_its_interval() -> None:
    _, (axes,) = plots.panels(("",), x_label="samples", y_label="pass@k")
    plots.draw_curve(axes, [1, 320], [0.1, 0.9], label="exact", style=plots.REWARDED)
    plots.draw_estimates(
        axes, [320], [0.9], label="sampled", style=plots.REWARDED, low=[0.8], high=[0.95]
    )
    exact, sampled = (container.lines[0] for container in axes.containers)
    assert (exact.get_linestyle(), exact.get_marker()) == ("-", "none")
    assert (sampled.get_linestyle(), sampled.get_marker()) == ("None", "o")
    assert [len(container.lines[2]) for container in axes.containers] == [0, 1]
