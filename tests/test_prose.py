from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.utils.capture import RichOutput
from markdown_it import MarkdownIt

from companion.prose import change, escape, number, percent, plural, prose, say


@dataclass(frozen=True)
class Interval:
    value: float
    low: float
    high: float


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.3231, "0.323"),
        (0.0, "0"),
        (0.0432, "0.043"),
        (0.01, "0.010"),
        (22, "22"),
        (22.0, "22.0"),
        (2048, "2,048"),
        (19941.0, "19,941"),
        (158.9, "159"),
        (9.996, "10.0"),
        (0.9996, "1.00"),
        (1.585, "1.58"),
        (-0.144, "−0.144"),
        (0.00582, "0.00582"),
        (0.0000123, "1.23 × 10⁻⁵"),
        (-0.0000123, "−1.23 × 10⁻⁵"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.4321, "43%"),
        (0.0432, "4.3%"),
        (0.0996, "10%"),
        (0.997, "99.7%"),
        (0.0, "0%"),
        (1.0, "100%"),
        (0.00034, "0.034%"),
        (-0.67, "−67%"),
    ],
)
def test_percentages(value: float, text: str) -> None:
    assert percent(value) == text


def test_changes_and_nouns() -> None:
    assert [change(x) for x in (0.107, -0.144, 0.0)] == ["+0.107", "−0.144", "0"]
    assert [plural(n, "problem") for n in (0, 1, 2048)] == [
        "0 problems",
        "1 problem",
        "2,048 problems",
    ]


@given(st.floats(1e-4, 1e9))
def test_a_written_number_is_close_to_the_number(value: float) -> None:
    written = float(number(value).replace(",", ""))
    assert written == pytest.approx(value, rel=5.1e-3, abs=5.1e-4 if value >= 0.00995 else 0)


def test_fills_values_with_intervals_and_units() -> None:
    text = prose(
        "Coverage falls to {late:percent}, entropy to {entropy:nats}; {n} problems, {ratio:times}.",
        late=Interval(0.43, 0.38, 0.482),
        entropy=0.76,
        n=np.int64(1200),
        ratio=np.float64(2.6),
    )
    assert text == (
        "Coverage falls to 43% (38% to 48%), entropy to 0.760 nats; 1,200 problems, 2.60×."
    )


def test_doubled_braces_are_for_mathematics() -> None:
    assert prose("$p^{{k}}$ is {x}", x=0.5) == "$p^{k}$ is 0.500"


@pytest.mark.parametrize(
    ("template", "values", "message"),
    [
        ("{late}", {}, r"template: \{late\} has no value; give late="),
        ("nothing", {"late": 1.0}, "template: the text does not use late"),
        ("{late:percents}", {"late": 1.0}, "no such unit; one of percent"),
        ("{late.value}", {"late": 1.0}, "write a plain name"),
        ("{late!r}", {"late": 1.0}, "write a plain name"),
        ("{}", {}, "write a plain name"),
        ("{late}", {"late": float("nan")}, "late: a number in the text has to be finite"),
        ("{late:percent}", {"late": float("inf")}, "late: a share in the text has to be finite"),
        ("{late}", {"late": True}, "late: a number, text or an estimate is needed"),
        ("{late}", {"late": None}, "late: a number, text or an estimate is needed"),
        ("{late}", {"late": Interval(0.5, float("nan"), 1)}, "late: a number in the text"),
    ],
)
def test_refuses_what_would_be_a_wrong_sentence(template: str, values: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prose(template, **values)


@given(st.text(min_size=1))
def test_a_string_comes_out_of_markdown_as_it_went_in(text: str) -> None:
    """No string can add a tag, a link, a heading or mathematics to the page."""
    inline = MarkdownIt("js-default").render(f"start {escape(text)} end")
    shown = (
        inline.removeprefix("<p>")
        .removesuffix("</p>\n")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", '"')
        .replace("&amp;", "&")
    )
    expected = " ".join(f"start {text.replace(chr(0), chr(0xFFFD))} end".split())
    assert " ".join(shown.split()) == expected


@pytest.mark.parametrize(
    "text", ["<b>x</b>", "[a](http://b)", "`code`", "$x$", "*a*", "{{x}}", "{cite}`x`", "\\(x\\)"]
)
def test_markdown_in_a_value_is_inert(text: str) -> None:
    assert not set(prose("{x}", x=text)) & set("<>[]`$*{}\\_")


def test_say_shows_markdown(shown: Callable[..., list[RichOutput]]) -> None:
    (output,) = shown(say, "Late: {late}.", late=0.43)
    assert output.data["text/markdown"] == "Late: 0.430."
