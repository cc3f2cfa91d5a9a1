"""Traces: what is enumerated is what is accepted; every other text has its flaw and line."""

from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.countdown.expressions import Number, evaluate, numbers_used, render
from companion.countdown.parser import parse
from companion.countdown.problems import Problem
from companion.countdown.traces import (
    Flaw,
    TraceVerdict,
    _after,
    _read_line,
    line_orders,
    orientations,
    valid_traces,
    verify_trace,
)

CALCULATE = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def worked_out(numbers, intermediates):
    """Value -> the text of every trace that reaches it, by doing every calculation there is."""
    texts = {}

    def work(at_hand, lines):
        if len(at_hand) == 1:
            value, text = at_hand[0]
            answer = text[2:-2] if text.startswith("(") else text
            texts.setdefault(value, set()).add(f"{lines}<answer> {answer} </answer>")
            return
        for i, j in permutations(range(len(at_hand)), 2):
            kept = [item for k, item in enumerate(at_hand) if k not in (i, j)]
            (a, left), (b, right) = at_hand[i], at_hand[j]
            for operator in "+-*/" if b else "+-*":
                made = CALCULATE[operator](a, b)
                if intermediates == "rational" or (made >= 0 and made.denominator == 1):
                    made_text = f"( {left} {operator} {right} )"
                    work([*kept, (made, made_text)], f"{lines}{a} {operator} {b} = {made} , ")

    work([(Fraction(number), str(number)) for number in numbers], "")
    return texts


def accepted(text, problem, intermediates):
    verdict = verify_trace(text, problem, intermediates)
    assert verdict.correct is (verdict.flaw is None) is (verdict.line is None)
    assert (verdict.trace is None) is not verdict.correct
    if verdict.correct:
        assert str(verdict.trace) == text
    return verdict.correct


MODES = pytest.mark.parametrize("intermediates", ["rational", "whole"])


@MODES
@pytest.mark.parametrize(
    "numbers",
    [(7,), (4, 6), (3, 3), (1, 2, 3), (2, 2, 4), (3, 3, 5), (2, 2, 2), (1, 2, 2, 3), (2, 2, 4, 4)],
    ids=str,
)
def test_enumerated_traces_are_all_there_are_and_all_are_accepted(numbers, intermediates):
    texts = worked_out(numbers, intermediates)
    for target in range(-4, 25):
        problem = Problem(numbers, target)
        traces = valid_traces(problem, intermediates)
        assert len(set(traces)) == len(traces)
        assert sorted(map(str, traces)) == sorted(texts.get(target, ()))
        for trace in traces:
            assert verify_trace(str(trace), problem, intermediates) == TraceVerdict(
                True, trace=trace
            )


@MODES
@pytest.mark.parametrize("numbers", [(4, 6), (2, 2, 4), (3, 3, 5)], ids=str)
def test_right_lines_are_accepted_with_their_own_answers_alone(numbers, intermediates):
    texts = worked_out(numbers, intermediates)
    every = [text.split("<answer>") for same in texts.values() for text in same]
    values = {answer: value for value, same in texts.items() for _, answer in pairs(same)}
    for lines, answer in product({lines for lines, _ in every}, values):
        value = values[answer]
        if value.denominator == 1:
            text = f"{lines}<answer>{answer}"
            assert accepted(text, Problem(numbers, int(value)), intermediates) is (
                text in texts[value]
            )


def pairs(texts):
    return [text.split("<answer>") for text in texts]


WORDS = [
    *(str(number) for number in range(26)),
    *("-1", "-3", "1/5", "24/5", "7/1", "14/2", "07", "-0", "+3", "3.0", "1e1", "٣", "³", "x"),
    *("+", "-", "*", "/", "×", "**", "=", "==", ",", "(", ")", "[", "->", "3,", "(3"),
    *("<answer>", "</answer>", "<answer>7", "<eos>", "<pad>", "\u200b"),
]


def one_word_changed(text):
    """Every text with one word replaced, taken out, put in, or moved one place on."""
    words = text.split()
    for place in range(len(words) + 1):
        before, after = words[:place], words[place:]
        for word in WORDS:
            yield " ".join([*before, word, *after])
            yield " ".join([*before, word, *after[1:]])
        yield " ".join([*before, *after[1:]])
        yield " ".join([*before, *after[1:2], *after[:1], *after[2:]])


@pytest.mark.parametrize(
    ("problem", "intermediates"),
    [
        (Problem((2, 3, 4), 14), "whole"),
        (Problem((2, 2, 4), 16), "rational"),
        (Problem((1, 5, 5, 5), 24), "rational"),
        (Problem((7,), 7), "whole"),
    ],
    ids=str,
)
def test_one_changed_word_is_a_flaw_unless_it_makes_another_valid_trace(problem, intermediates):
    texts = set(map(str, valid_traces(problem, intermediates)))
    assert texts
    for text in sorted(texts)[:6]:
        for changed in one_word_changed(text):
            assert accepted(changed, problem, intermediates) is (changed in texts)


RIGHT = "3 + 4 = 7 , 7 * 2 = 14 , <answer> ( 3 + 4 ) * 2 </answer>"


FLAWS = [
    ("3 + 4 , 7 * 2 = 14 , <answer> ( 3 + 4 ) * 2 </answer>", Flaw.MALFORMED_LINE, 1),
    ("3 + 4 = 7 7 , 7 * 2 = 14 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 1),
    ("3 + 4 = 7 , 7 × 2 = 14 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 2),
    ("3 + 4 = 7 , , 7 * 2 = 14 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 2),
    ("3 + 4 = 07 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 1),
    ("3 + 4 = 14/2 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 1),
    ("3 + 4 = 7.0 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 1),
    ("3 + ٤ = 7 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 1),
    ("3 / 4 = 3/0 , <answer> 7 </answer>", Flaw.MALFORMED_LINE, 1),
    ("<answer> 3 , 4 </answer>", Flaw.MALFORMED_LINE, 1),
    ("3 + 5 = 8 , 8 * 2 = 16 , <answer> 7 </answer>", Flaw.OPERAND_NOT_AT_HAND, 1),
    ("3 + 3 = 6 , 6 * 2 = 12 , <answer> 7 </answer>", Flaw.OPERAND_NOT_AT_HAND, 1),
    ("3 + 4 = 7 , 3 * 2 = 6 , <answer> 7 </answer>", Flaw.OPERAND_NOT_AT_HAND, 2),
    ("3 + 4 = 7 , 7 * 2 = 14 , 14 + 2 = 16 , <answer> 7 </answer>", Flaw.OPERAND_NOT_AT_HAND, 3),
    ("3 / 0 = 0 , <answer> 7 </answer>", Flaw.DIVISION_BY_ZERO, 1),
    ("3 + 4 = 8 , 8 * 2 = 16 , <answer> ( 3 + 4 ) * 2 </answer>", Flaw.WRONG_RESULT, 1),
    ("3 + 4 = 7 , 7 * 2 = 15 , <answer> ( 3 + 4 ) * 2 </answer>", Flaw.WRONG_RESULT, 2),
    ("3 - 4 = -1 , <answer> 7 </answer>", Flaw.NOT_WHOLE, 1),
    ("3 + 4 = 7 , 7 / 2 = 7/2 , <answer> 7 </answer>", Flaw.NOT_WHOLE, 2),
    ("", Flaw.UNFINISHED, 1),
    ("<answer> ( 3 + 4 ) * 2 </answer>", Flaw.UNFINISHED, 1),
    ("3 + 4 = 7 , <answer> ( 3 + 4 ) * 2 </answer>", Flaw.UNFINISHED, 2),
    ("3 + 4 = 7 , 7 * 2 = 14", Flaw.UNFINISHED, 2),  # cut off: the last line is not closed
    ("3 * 4 = 12 , 12 - 2 = 10 , <answer> ( 3 * 4 ) - 2 </answer>", Flaw.TARGET_MISSED, 3),
    ("3 + 4 = 7 , 7 * 2 = 14 ,", Flaw.NO_ANSWER, 3),
    ("3 + 4 = 7 , 7 * 2 = 14 , ( 3 + 4 ) * 2", Flaw.NO_ANSWER, 3),
    ("3 + 4 = 7 , 7 * 2 = 14 , <answer> ( 3 + 4 ) * 2", Flaw.NO_ANSWER, 3),
    ("3 + 4 = 7 , 7 * 2 = 14 , <answer> </answer>", Flaw.NO_ANSWER, 3),
    (f"{RIGHT} <eos>", Flaw.NO_ANSWER, 3),
    (RIGHT.replace("( 3 + 4 ) * 2", "2 * ( 3 + 4 )"), Flaw.ANSWER_IS_NOT_THE_LINES, 3),
    (RIGHT.replace("( 3 + 4 ) * 2", "( ( 3 + 4 ) * 2 )"), Flaw.ANSWER_IS_NOT_THE_LINES, 3),
    (RIGHT.replace("( 3 + 4 ) * 2", "(3+4)*2"), Flaw.ANSWER_IS_NOT_THE_LINES, 3),
    (RIGHT.replace("( 3 + 4 ) * 2", "14"), Flaw.ANSWER_IS_NOT_THE_LINES, 3),
    (RIGHT.replace("( 3 + 4 ) * 2", "( 3 + 4 ) * 2 = 14"), Flaw.ANSWER_IS_NOT_THE_LINES, 3),
]


@pytest.mark.parametrize(("text", "flaw", "line"), FLAWS)
def test_flaws_worked_by_hand(text, flaw, line):
    assert verify_trace(text, Problem((2, 3, 4), 14), "whole") == TraceVerdict(False, flaw, line)


def test_every_flaw_is_shown():
    assert {flaw for _, flaw, _ in FLAWS} == set(Flaw)


def test_the_first_flaw_is_the_one_named():
    text = "3 + 4 = 8 , 9 + 9 = 9 , nothing"
    assert verify_trace(text, Problem((2, 3, 4), 14)) == TraceVerdict(False, Flaw.WRONG_RESULT, 1)


@pytest.mark.parametrize(
    ("numbers", "target", "lines", "answers"),
    [
        # The second 4 of the second line is the given or the computed one.
        ((2, 2, 4), 16, "2 + 2 = 4 , 4 * 4 = 16 ,", ["( 2 + 2 ) * 4", "4 * ( 2 + 2 )"]),
        ((2, 2, 4), 0, "2 + 2 = 4 , 4 - 4 = 0 ,", ["( 2 + 2 ) - 4", "4 - ( 2 + 2 )"]),
        # Which of two given numbers is taken makes no difference.
        ((3, 3, 5), 12, "3 * 5 = 15 , 15 - 3 = 12 ,", ["( 3 * 5 ) - 3"]),
        # Two given 4s and a computed one.
        (
            (2, 2, 4, 4),
            4,
            "2 + 2 = 4 , 4 - 4 = 0 , 0 + 4 = 4 ,",
            ["( ( 2 + 2 ) - 4 ) + 4", "( 4 - ( 2 + 2 ) ) + 4", "( 4 - 4 ) + ( 2 + 2 )"],
        ),
    ],
)
def test_every_reading_of_equal_values_is_followed(numbers, target, lines, answers):
    problem = Problem(numbers, target)
    texts = {f"{lines} <answer> {answer} </answer>" for answer in answers}
    assert all(accepted(text, problem, "whole") for text in texts)
    assert texts == {str(t) for t in valid_traces(problem, "whole") if str(t).startswith(lines)}


@pytest.mark.parametrize(
    ("numbers", "target", "text"),
    [
        (
            (1, 5, 5, 5),
            24,
            "1 / 5 = 1/5 , 5 - 1/5 = 24/5 , 5 * 24/5 = 24 , "
            "<answer> 5 * ( 5 - ( 1 / 5 ) ) </answer>",
        ),
        (
            (3, 3, 8, 8),
            24,
            "8 / 3 = 8/3 , 3 - 8/3 = 1/3 , 8 / 1/3 = 24 , <answer> 8 / ( 3 - ( 8 / 3 ) ) </answer>",
        ),
        ((1, 2, 3), -3, "1 - 2 = -1 , 3 * -1 = -3 , <answer> 3 * ( 1 - 2 ) </answer>"),
        ((2, 4, 6), -3, "2 - 4 = -2 , 6 / -2 = -3 , <answer> 6 / ( 2 - 4 ) </answer>"),
        ((2, 3), -1, "2 - 3 = -1 , <answer> 2 - 3 </answer>"),
    ],
)
def test_fractions_and_negative_values(numbers, target, text):
    problem = Problem(numbers, target)
    assert accepted(text, problem, "rational")
    assert verify_trace(text, problem, "whole").flaw is Flaw.NOT_WHOLE


def test_white_space_between_words_does_not_matter():
    problem = Problem((2, 3, 4), 14)
    verdict = verify_trace("\n" + RIGHT.replace(" , ", "\t,\n").replace(" ", "  "), problem)
    assert str(verdict.trace) == RIGHT
    assert not verify_trace(RIGHT.replace(" , ", ", "), problem).correct
    assert not verify_trace(RIGHT.replace(" ", ""), problem).correct


def test_one_number_has_a_trace_without_lines():
    assert [str(trace) for trace in valid_traces(Problem((7,), 7))] == ["<answer> 7 </answer>"]
    assert valid_traces(Problem((7,), 8)) == ()


def test_values_of_six_of_the_largest_numbers_are_read():
    largest = 10**18 - 1
    powers = [largest**exponent for exponent in range(1, 6)]
    lines = [f"{largest} * {power} = {largest * power} , " for power in powers]
    verdict = verify_trace(f"{''.join(lines)}<answer> 1 </answer>", Problem((largest,) * 6, 1))
    assert verdict == TraceVerdict(False, Flaw.ANSWER_IS_NOT_THE_LINES, 6)


def test_an_unknown_rule_for_intermediates_is_refused():
    with pytest.raises(ValueError, match='intermediates: "rational" or "whole"'):
        verify_trace(RIGHT, Problem((2, 3, 4), 14), "integer")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("7", ["7"]),
        ("7 - 2", ["7 - 2"]),
        ("3 + 3", ["3 + 3"]),
        ("2 * (3 + 4)", ["2 * ( 3 + 4 )", "2 * ( 4 + 3 )", "( 3 + 4 ) * 2", "( 4 + 3 ) * 2"]),
        ("8 / (3 - 2 * 1)", ["8 / ( 3 - ( 2 * 1 ) )", "8 / ( 3 - ( 1 * 2 ) )"]),
        ("-(3 + 4)", ["( - ( 3 + 4 ) )", "( - ( 4 + 3 ) )"]),
    ],
)
def test_orientations_by_hand(text, written):
    assert sorted(map(render, orientations(parse(text)))) == sorted(written)


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("7", 1),
        ("((1 + 2) + 3) + 4", 1),
        ("(1 + 2) * (3 + 4)", 2),
        ("(1 + 2) * (3 + 4) * (5 + 6)", 8),  # hook lengths: 5! / (5 * 3 * 1 * 1 * 1)
        ("(1 + 2 + 3) * (4 + 5 + 6)", 6),  # 5! / (5 * 2 * 2 * 1 * 1)
    ],
)
def test_lines_come_in_every_order_that_has_operands_at_hand(text, orders):
    expression = parse(text)
    found = list(line_orders(expression))
    assert len(set(found)) == len(found) == orders
    for lines in found:
        at_hand = list(map(Fraction, numbers_used(expression)))
        for line in lines:
            at_hand.remove(line.left)
            at_hand.remove(line.right)
            at_hand.append(line.result)
        assert at_hand == [evaluate(expression)]


def test_lines_of_a_division_by_zero_cannot_be_written():
    with pytest.raises(ZeroDivisionError):
        list(line_orders(parse("3 / (2 - 2)")))


def test_readings_of_six_equal_numbers_stay_few():
    """The worst that a text can do: one line more, and no reading is left."""

    def most(readings, lines_left):
        if lines_left == 0:
            return len(readings)
        values = {value for value, _ in readings[0]}
        lines = [
            _read_line(f"{a} {operator} {b} = {CALCULATE[operator](a, b)}")
            for a, b, operator in product(values, values, "+-*/")
            if b or operator != "/"
        ]
        after = [_after(line, readings) for line in lines]
        return max(len(readings), *(most(found, lines_left - 1) for found in after if found))

    assert most([tuple((Fraction(1), Number(1)) for _ in range(6))], 5) == 110


ENDLESS = {
    "lines": "1 * 1 = 1 , " * 20_000,
    "commas": " , " * 20_000,
    "digits": "9" * 100_000 + " + 1 = 1 , ",
    "minus signs": "-" * 100_000 + "1 + 1 = 0 , ",
    "fractions": "1" + "/1" * 50_000 + " + 1 = 0 , ",
    "answers": "<answer> 1 </answer> " * 20_000,
    "spaces": " " * 1_000_000,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_endless_text_has_an_early_flaw(text):
    verdict = verify_trace(text, Problem((1,) * 6, 1))
    assert not verdict.correct
    assert verdict.line <= 6


PIECES = [
    *WORDS,
    *(
        "2",
        "3",
        "4",
        "=",
        ",",
        "\n",
        "9" * 5_000,
        "\ud800",
        "1/" + "9" * 60,
        "<answer> 7 </answer>",
    ),
    *("3 + 4 = 7 , ", "7 * 2 = 14 , ", "2 + 2 = 4 , ", "<answer> ( 3 + 4 ) * 2 </answer>"),
]


@given(
    st.text() | st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join),
    st.sampled_from(["rational", "whole"]),
)
def test_hostile_text_has_a_typed_verdict(text, intermediates):
    problem = Problem((2, 3, 4), 14)
    verdict = verify_trace(text, problem, intermediates)
    if verdict.correct:
        assert verdict.trace in valid_traces(problem, intermediates)
    else:
        assert verdict.flaw in set(Flaw)
        assert 1 <= verdict.line <= len(text.split(",")) + 1
