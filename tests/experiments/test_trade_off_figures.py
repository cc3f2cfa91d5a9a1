import math

import numpy as np
import pytest

from companion.experiments import trade_off_figures as figures
from companion.plots import CONTROL, REWARDED, as_html
from companion.prose import number

HEADLINE = ("pass@1", "coverage", "family coverage")
DRAW = {
    "along training": lambda results: figures.along_training(results, HEADLINE),
    "by size": lambda results: figures.by_size(results, "coverage"),
    "entropy by size": lambda results: figures.by_size(results, "entrance entropy"),
    "pass@k": figures.pass_at_k,
}
each_figure = pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)


def lines(axes):
    """What an axes shows: legend label -> (x, y)."""
    handles, labels = axes.get_legend_handles_labels()
    drawn = [handle.lines[0].get_xydata().T for handle in handles]
    return dict(zip(labels, drawn, strict=True))


# Words.


def test_the_description_of_the_training_curves_has_their_ends(made_up):
    _, words = DRAW["along training"](made_up())
    assert words == (
        "Measures along training, all problems. pass@1 goes from 0.100 to 0.250 with the reward "
        "and to 0.090 with a random one. coverage at 16 goes from 0.800 to 0.400 with the reward "
        "and to 0.700 with a random one. family coverage at 16 goes from 0.900 to 0.300 with the "
        "reward and to 0.850 with a random one."
    )


def test_the_description_by_size_has_each_size(made_up):
    results = made_up(changes={("lab-grpo", "4", "coverage"): (0.5, 0.45, -0.2, 0.1)})
    _, words = DRAW["by size"](results)
    assert words == (
        "coverage at 16 along training. 3 numbers: coverage at 16 goes from 0.800 to 0.400 with "
        "the reward and to 0.700 with a random one. 4 numbers: coverage at 16 goes from 0.500 to "
        "0.450 with the reward and to 0.700 with a random one."
    )


def test_the_description_of_pass_at_k_has_the_ends_of_every_curve(made_up):
    results = made_up(changes={("lab-grpo", "3", "pass@1"): (0.001, 0.0, -0.1, 0.1)})
    _, words = DRAW["pass@k"](results)
    assert words.startswith("pass@k from one sample to 2,048. 3 numbers, step 0: 0.00100 to ")
    for part in (
        f"3 numbers, step 0: 0.00100 to {number(1 - 0.999**2048)}.",
        "3 numbers, step 400: 0 to 0.",
        "3 numbers, random reward, step 400: 0.090 to 1.00.",
        "4 numbers, step 400: 0.250 to 1.00.",
    ):
        assert part in words


def test_the_control_alone_is_not_called_rewarded(made_up):
    results = made_up(parameters={"lineage": "lab-random-reward"})
    figure, words = DRAW["along training"](results)
    assert "pass@1 goes from 0.100 to 0.090 with a random reward." in words
    assert "with the reward" not in words
    for axes in figure.axes:
        assert list(lines(axes)) == ["random reward, exact", "random reward, 16 samples"]
    figure, _ = DRAW["pass@k"](results)
    assert list(lines(figure.axes[0])) == [
        "step 0, exact",
        "step 0, sampled",
        "random reward, step 400, exact",
        "random reward, step 400, sampled",
    ]


# Drawings.


def test_curves_are_the_exact_values_and_marks_the_sampled_ones(made_up):
    results = made_up()
    figure, _ = DRAW["along training"](results)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "pass@1",
        "coverage at 16",
        "family coverage at 16",
    ]
    for axes, measure in zip(figure.axes, HEADLINE, strict=True):
        found = lines(axes)
        for name, label in (("lab-grpo", "rewarded"), ("lab-random-reward", "random reward")):
            rows = results.curve[results.curve["measure"] == measure]
            rows = rows[(rows["lineage"] == name) & (rows["size"] == "all")]
            for kind, what in (("exact", "exact"), ("sampled", "16 samples")):
                expected = rows[rows["kind"] == kind][["step", "value"]].to_numpy().T
                assert np.array_equal(found[f"{label}, {what}"], expected)


def test_steps_are_joined_in_their_order(made_up):
    results = made_up()
    results.curve.update(results.curve.iloc[::-1].reset_index(drop=True))
    figure, _ = DRAW["by size"](results)
    for axes in figure.axes:
        for x, _ in lines(axes).values():
            assert x.tolist() == [0, 200, 400]


def test_the_control_looks_the_same_everywhere(made_up):
    for draw in DRAW.values():
        figure, _ = draw(made_up())
        for axes in figure.axes:
            handles, labels = axes.get_legend_handles_labels()
            colour = {
                label: handle.lines[0].get_color()
                for label, handle in zip(labels, handles, strict=True)
            }
            for label, drawn in colour.items():
                if label.startswith("random reward"):
                    assert drawn == CONTROL.colour
                elif label.startswith(("rewarded", "step 400")):
                    assert drawn == REWARDED.colour


def test_measures_start_at_zero_and_pass_at_k_is_a_probability(made_up):
    for name, draw in DRAW.items():
        figure, _ = draw(made_up())
        for axes in figure.axes:
            low, high = axes.get_ylim()
            assert low == 0
            assert high > 0
            if name == "pass@k":
                assert 1 <= high < 1.1
                assert axes.get_xscale() == "log"


def test_entropy_has_its_unit(made_up):
    figure, _ = DRAW["entropy by size"](made_up())
    assert {axes.get_ylabel() for axes in figure.axes} == {"entropy (nats)"}
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["3 numbers", "4 numbers"]


@each_figure
def test_the_same_results_give_the_same_bytes(made_up, draw):
    one, other = (as_html(*draw(made_up())) for _ in range(2))
    assert one == other


def test_other_results_give_another_picture(made_up):
    draw = DRAW["by size"]
    (one, words), (other, _) = (
        draw(made_up(changes={("lab-grpo", "4", "coverage"): (0.8, late, -0.5, -0.3)}))
        for late in (0.4, 0.401)
    )
    assert as_html(one, words) != as_html(other, words)


@each_figure
def test_a_figure_without_intervals_is_drawn(made_up, draw):
    """Of one problem of each size nothing says how problems differ."""
    results = made_up()
    results.curve[["low", "high"]] = math.nan
    results.pass_at_k[["low", "high"]] = math.nan
    figure, words = draw(results)
    figure.draw_without_rendering()
    assert words
    assert "nan" not in words
