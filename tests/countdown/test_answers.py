"""Finding an answer by the one rule, and judging it against its problem."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from companion.countdown.answers import extract_answer, judge, judge_completion
from companion.countdown.expressions import Number, Operation, evaluate, numbers_used, render
from companion.countdown.parser import MAX_CHARACTERS, Reason
from companion.countdown.problems import Problem

PROBLEM = Problem((2, 3, 4), 14)

EXTRACTED = [
    ("<answer>3 + 4</answer>", "3 + 4"),
    ("<answer>\n 3 + 4\t</answer>", "3 + 4"),
    ("<answer></answer>", ""),
    ("<ANSWER>3</Answer>", "3"),
    ("so <answer> 3 </answer> it is", "3"),
    # The last complete pair counts, whatever follows it.
    ("<answer>1</answer> no: <answer>2</answer>", "2"),
    ("<answer>1</answer><answer>2</answer> wait, <answer>3", "2"),
    ("<answer>1</answer></answer>", "1"),
    # A pair holds no other answer tag.
    ("<answer><answer>1 + 2</answer>", "1 + 2"),
    ("<answer>1 <answer>2</answer> 3</answer>", "2"),
    ("<answer>1<answer>2</answer>", "2"),
    ("</answer>1<answer>2</answer>", "2"),
    # Only what follows the last end of thought counts.
    ("<think> <answer>1</answer> </think> <answer>2</answer>", "2"),
    ("<answer>1</answer> </think> <answer>2</answer>", "2"),
    ("</think> <answer>1</answer> </THINK> <answer>2</answer>", "2"),
    ("<answer>1</think>2 <answer>3</answer>", "3"),
    # Without an end of thought all of the text counts.
    ("<think> <answer>1</answer>", "1"),
    # Tags of other names are part of the answer, for the parser to refuse.
    ("<answer><b>3</b></answer>", "<b>3</b>"),
    ("<answer>< answer>3</answer>", "< answer>3"),
]

NOT_EXTRACTED = [
    ("", Reason.NO_ANSWER),
    ("(3 + 4) * 2 = 14", Reason.NO_ANSWER),
    ("The answer is \\boxed{(3 + 4) * 2}", Reason.NO_ANSWER),
    ("(3 + 4) * 2</answer>", Reason.NO_ANSWER),
    ("</answer><answer>", Reason.ANSWER_NOT_CLOSED),
    ("<answer>(3 + 4) * 2", Reason.ANSWER_NOT_CLOSED),
    ("<answer>(3 + 4) * 2<answer>", Reason.ANSWER_NOT_CLOSED),
    ("<answer>(3 + 4) * 2</ answer>", Reason.ANSWER_NOT_CLOSED),
    ("<answer>(3 + 4) * 2</think></answer>", Reason.NO_ANSWER),
    ("<think><answer>(3 + 4) * 2</answer></think>", Reason.NO_ANSWER),
    ("<think><answer>1</answer></think> so <answer>2", Reason.ANSWER_NOT_CLOSED),
    # Unicode folds these letters to s and k; tags are ASCII.
    ("<anſwer>(3 + 4) * 2</anſwer>", Reason.NO_ANSWER),
]


@pytest.mark.parametrize(("text", "answer"), EXTRACTED)
def test_extracts_the_last_complete_pair_after_the_last_thought(text, answer):
    assert extract_answer(text) == answer


@pytest.mark.parametrize(("text", "reason"), NOT_EXTRACTED)
def test_text_without_an_answer_says_why(text, reason):
    assert extract_answer(text).reason == reason
    verdict = judge_completion(text, PROBLEM)
    assert (verdict.correct, verdict.reason, verdict.value) == (False, reason, None)


def test_kelvin_sign_does_not_end_a_thought():
    assert extract_answer("<answer>1</answer></thin\u212a>") == "1"


@given(st.lists(st.sampled_from(["<answer>", "</answer>", "</think>", "1", " 2 "]), max_size=20))
@settings(max_examples=300, deadline=None)
def test_extraction_agrees_with_a_search_over_all_pairs_of_tags(pieces):
    text = "".join(pieces)
    text_after_thought = text.rpartition("</think>")[2]
    between = [
        before.rpartition("<answer>")
        for before in text_after_thought.split("</answer>")[:-1]  # each ends at a closing tag
    ]
    complete = [inside.strip() for _, opened, inside in between if opened]
    result = extract_answer(text)
    if complete:
        assert result == complete[-1]
    else:
        opened = "<answer>" in text_after_thought
        assert result.reason == (Reason.ANSWER_NOT_CLOSED if opened else Reason.NO_ANSWER)


JUDGED = [
    ("(3 + 4) * 2", None),
    ("( 3 + 4 ) * 2", None),
    ("(3 + 4) * 2 = 14", None),
    ("(3 + 4) × 2 = 28/2", None),
    (r"$2 \times \left(4 + 3\right)$", None),
    ("2 * -(-3 - 4)", None),
    ("(3 + 4) * 2 = 15", Reason.CLAIM_DOES_NOT_HOLD),
    ("3 * 4 + 2 = 14", None),
    ("3 * 4 - 2", Reason.TARGET_MISSED),
    ("3 * 4 - 2 = 10", Reason.TARGET_MISSED),
    ("3 * 4 - 2 = 14", Reason.CLAIM_DOES_NOT_HOLD),
    ("7 * 2", Reason.NUMBERS_NOT_GIVEN),
    ("14", Reason.NUMBERS_NOT_GIVEN),
    ("3 * 4 + 2 + 2 - 2", Reason.NUMBERS_USED_TOO_OFTEN),
    ("3 * 4", Reason.NUMBERS_NOT_USED),
    ("3 * 4 + 1 + 1", Reason.NUMBERS_NOT_GIVEN),
    ("34 - 2", Reason.NUMBERS_NOT_GIVEN),
    ("2 + 2 + 3", Reason.NUMBERS_USED_TOO_OFTEN),
    ("", Reason.EMPTY),
    ("14 = (3 + 4) * 2", Reason.CLAIM_NOT_A_VALUE),
    ("3 ** 4 * 2", Reason.OPERATOR_NOT_ALLOWED),
]


@pytest.mark.parametrize(("text", "reason"), JUDGED)
def test_judges_by_the_documented_reasons(text, reason):
    verdict = judge(text, PROBLEM)
    assert verdict.reason == reason
    assert verdict.correct == (reason is None)
    assert bool(verdict.detail) == (reason is not None)


def test_division_by_zero_is_a_verdict():
    problem = Problem((4, 4, 7), 7)
    verdict = judge("7 / (4 - 4)", problem)
    assert (verdict.reason, verdict.value) == (Reason.DIVISION_BY_ZERO, None)
    assert judge("7 / (4 - 4) = 7", problem).reason == Reason.DIVISION_BY_ZERO
    # A value over zero must not become zero again by being divided by.
    assert judge("4 / (7 / (4 - 4))", Problem((4, 4, 4, 7), 0)).reason == Reason.DIVISION_BY_ZERO
    assert judge("0 / (4 - 4)", problem).reason == Reason.NUMBERS_NOT_GIVEN
    assert judge("(4 - 4) / 7", Problem((4, 4, 7), 0)).correct


def test_fractions_on_the_way_are_exact():
    assert judge("8 / (3 - 8 / 3)", Problem((3, 3, 8, 8), 24)).correct
    assert judge(r"\frac{8}{3 - \frac{8}{3}}", Problem((3, 3, 8, 8), 24)).correct


def test_verdict_shows_its_work():
    verdict = judge("7 + 3/2 = 17/2", Problem((2, 3, 7), 8))
    assert verdict.reason == Reason.TARGET_MISSED
    assert verdict.value == verdict.claimed == Fraction(17, 2)
    assert render(verdict.expression) == "7 + ( 3 / 2 )"
    assert verdict.detail == "the value is 17/2, the target 8"
    unread = judge("7 +", Problem((7,), 7))
    assert (unread.expression, unread.value, unread.claimed) == (None, None, None)


def test_judges_what_it_extracts():
    assert judge_completion("<answer>3*4+2 = 14</answer>", PROBLEM).correct
    assert judge_completion("<answer> </answer>", PROBLEM).reason == Reason.EMPTY
    long = "<answer>" + "3+" * MAX_CHARACTERS + "4</answer>"
    assert judge_completion(long, PROBLEM).reason == Reason.TOO_LONG


SMALL_NUMBERS = st.integers(1, 4)
EXPRESSIONS = st.recursive(
    SMALL_NUMBERS.map(Number),
    lambda inner: st.builds(Operation, st.sampled_from(["+", "-", "*", "/"]), inner, inner),
    max_leaves=4,
)


@given(EXPRESSIONS, st.lists(SMALL_NUMBERS, min_size=1, max_size=4), st.integers(-3, 12))
@settings(max_examples=300, deadline=None)
def test_correct_means_the_same_multiset_and_the_same_value(expression, numbers, target):
    try:
        value = evaluate(expression)
    except ZeroDivisionError:
        value = None
    for problem in (
        Problem(tuple(numbers), target),
        Problem(tuple(reversed(numbers_used(expression))), target),
        Problem(numbers_used(expression), int(value or 0)),
    ):
        expected = (
            Counter(numbers_used(expression)) == Counter(problem.numbers)
            and value == problem.target
        )
        assert judge(render(expression), problem).correct == expected


@given(EXPRESSIONS, st.fractions(-20, 20, max_denominator=4))
@settings(deadline=None)
def test_a_claim_can_only_turn_a_correct_answer_into_a_wrong_one(expression, claimed):
    problem = Problem(numbers_used(expression), 3)
    without = judge(render(expression), problem)
    verdict = judge(f"{render(expression)} = {claimed}", problem)
    assert verdict.claimed == claimed
    assert verdict.value == without.value
    assert verdict.correct == (without.correct and claimed == without.value)
