"""Hostile text: only typed verdicts ever come out, and each of them fast.

The aim is 5 ms a verdict. The bound tested is ten times that, on the fastest of a few tries, so
that a busy machine does not fail the test; an exponential or quadratic parser still does.
"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from companion.countdown.answers import Verdict, extract_answer, judge, judge_completion
from companion.countdown.expressions import evaluate, numbers_used, render
from companion.countdown.parser import (
    MAX_CHARACTERS,
    SPELLINGS,
    Answer,
    Reason,
    Rejection,
    parse,
    parse_answer,
)
from companion.countdown.problems import Problem

SECONDS_ALLOWED = 0.05
PROBLEM = Problem((2, 3, 4), 14)


def fastest(function, *arguments):
    """The result and the shortest of up to three durations in seconds."""
    shortest = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        result = function(*arguments)
        shortest = min(shortest, time.perf_counter() - begin)
        if shortest < SECONDS_ALLOWED / 10:
            break
    return result, shortest


def assert_typed_and_fast(text):
    """Every public function gives its documented type within the time allowed."""
    for judged in (text, f"<answer>{text}</answer>"):
        verdict, seconds = fastest(judge_completion, judged, PROBLEM)
        assert_sound(verdict)
        assert seconds < SECONDS_ALLOWED
    verdict, seconds = fastest(judge, text, PROBLEM)
    assert_sound(verdict)
    assert seconds < SECONDS_ALLOWED
    answer = parse_answer(text)
    if isinstance(answer, Rejection):
        assert (verdict.reason, verdict.detail) == (answer.reason, answer.detail)
    else:
        assert isinstance(answer, Answer)
        assert verdict.expression == answer.expression
        back = parse(render(answer.expression))
        # More brackets and spaces than were written can only push it over a limit.
        assert back == answer.expression or back.reason in (Reason.TOO_LONG, Reason.TOO_DEEP)
    assert isinstance(extract_answer(text), str | Rejection)


def assert_sound(verdict):
    assert isinstance(verdict, Verdict)
    if verdict.reason is None:
        assert verdict.detail == ""
        assert sorted(numbers_used(verdict.expression)) == sorted(PROBLEM.numbers)
        assert evaluate(verdict.expression) == verdict.value == PROBLEM.target
        assert verdict.claimed in (None, verdict.value)
    else:
        assert isinstance(verdict.reason, Reason)
        assert 0 < len(verdict.detail) <= 3 * MAX_CHARACTERS
        assert verdict.detail.isprintable()


# Every character there is, lone surrogates and unassigned ones too.
ANY_CHARACTER = st.characters(exclude_categories=())
PIECES = [
    *(form for forms in SPELLINGS.values() for form in forms.split()),
    *("2", "3", "4", "14", "0", "007", "2.5", "5e0", "1,000", "٣", "²", "x", "sqrt", "_", "\\"),
    *(" ", "\n", "\u200b", "\ud800", "**", "//", "^", "!", "%", "#", "$", "$$", r"\(", r"\)"),
    *(r"\left", r"\right", r"\left(", r"\right)", "<answer>", "</answer>", "</think>", "()"),
]
PLAIN_PIECES = ["2", "3", "4", "14", "+", "-", "*", "/", "(", ")", " ", "=", r"\frac{3}{4}"]


@given(st.text(ANY_CHARACTER, max_size=2 * MAX_CHARACTERS))
@settings(max_examples=300, deadline=None)
def test_any_unicode_text(text):
    assert_typed_and_fast(text)


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
@settings(max_examples=300, deadline=None)
def test_any_sequence_of_pieces_of_the_language(text):
    assert_typed_and_fast(text)


@given(st.lists(st.sampled_from(PLAIN_PIECES), max_size=9).map("".join))
@settings(max_examples=300, deadline=None)
def test_short_sequences_that_are_often_well_formed(text):
    assert_typed_and_fast(text)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_correct_answers_with_one_character_changed(data):
    text = data.draw(
        st.sampled_from(
            ["(3+4)*2 = 14", r"\left(3 + 4\right) \times 2", "( 3 + 4 ) * 2", r"2\cdot(4+3)"]
        )
    )
    position = data.draw(st.integers(0, len(text)))
    removed = data.draw(st.integers(0, 1))
    inserted = data.draw(st.text(ANY_CHARACTER, max_size=1))
    assert_typed_and_fast(text[:position] + inserted + text[position + removed :])


HALF = MAX_CHARACTERS // 2
ADVERSARIAL = {
    "deep round": "(" * HALF + "7" + ")" * (HALF - 1),
    "only opening": "(" * MAX_CHARACTERS,
    "only closing": ")" * MAX_CHARACTERS,
    "mixed brackets": "([" * HALF,
    "deep minus": "-(" * HALF,
    "many minus": "-" * MAX_CHARACTERS,
    "deep fractions": r"\frac{" * (MAX_CHARACTERS // 6),
    "fractions in denominators": r"\frac{1}{" * 20 + "7" + "}" * 20,
    "fractions of fractions": r"\frac{\frac{7}{8}}{\frac{8}{7}}" * 9,
    "flat sum": "+".join("7" * HALF),
    "flat quotient": "/".join("7" * HALF),
    "growing denominators": "+".join(f"1/{number}" for number in range(101, 150)),
    "large products": "*".join(["9" * 20] * 14),
    "large quotients": "/".join(["9" * 20] * 14),
    "zero denominators": "+".join(["1/0"] * 70),
    "long digits": "9" * MAX_CHARACTERS,
    "too long digits": "9" * 1_000_000,
    "power tower": "9" + "**9" * 99,
    "braced power tower": "10^{" * 70 + "10" + "}" * 70,
    "factorials": "9" + "!" * 299,
    "white space": " " * MAX_CHARACTERS,
    "white space inside": "3" + " " * 298 + "4",
    "lefts without brackets": r"\left" * 60,
    "left and spaces": (r"\left" + " " * 24) * 10,
    "points": "." * MAX_CHARACTERS,
    "points and digits": "1." * HALF,
    "equals": "1=" * HALF,
    "backslashes": "\\" * MAX_CHARACTERS,
    "dollars": "$" * MAX_CHARACTERS,
    "one letter": "a" * MAX_CHARACTERS,
    "combining marks": "7" + "\u0301" * 299,
    "surrogates": "\ud800" * MAX_CHARACTERS,
    "nulls": "\x00" * MAX_CHARACTERS,
    "a million letters": "a" * 1_000_000,
}


@pytest.mark.parametrize("text", ADVERSARIAL.values(), ids=ADVERSARIAL)
def test_adversarial_text(text):
    assert_typed_and_fast(text)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("<answer>" * 100_000, Reason.ANSWER_NOT_CLOSED),
        ("</answer>" * 100_000, Reason.NO_ANSWER),
        ("</think>" * 100_000, Reason.NO_ANSWER),
        ("<answer>" * 50_000 + "7" + "</answer>" * 50_000, "7"),
        ("<answer>7</answer>" * 50_000, "7"),
        ("<answer>" + " " * 1_000_000 + "</answer>", ""),
        ("<" * 1_000_000, Reason.NO_ANSWER),
        ("<answer" * 100_000, Reason.NO_ANSWER),
        ("</think><answer>" * 50_000 + "7</answer>", "7"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_extraction_from_a_million_characters_of_tags_is_not_quadratic(text, outcome):
    found, seconds = fastest(extract_answer, text)
    assert getattr(found, "reason", found) == outcome
    # Measured 10 to 30 ms; anything quadratic in 100,000 tags takes minutes.
    assert seconds < 2
