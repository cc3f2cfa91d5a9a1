"""Faults that users of other Countdown and math verifiers reported, each as a test of its kind.

B01, B02, … number the reports. Every test has the reported input and a family around it.
"""

import ast
import asyncio
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import companion.countdown
from companion.countdown.answers import judge, judge_completion
from companion.countdown.expressions import Number, Operation, evaluate, numbers_used, render
from companion.countdown.parser import Reason, Rejection, parse_answer
from companion.countdown.problems import Problem


def expressions(numbers, operators="+-*/", max_leaves=5):
    return st.recursive(
        numbers.map(Number),
        lambda inner: st.builds(Operation, st.sampled_from(operators), inner, inner),
        max_leaves=max_leaves,
    )


def value_of(expression):
    """The value; examples that divide by zero are left out."""
    try:
        return evaluate(expression)
    except ZeroDivisionError:
        assume(False)


# B01 (open-thought/reasoning-gym#478): numbers compared as sets; value truncated to an integer.


def test_b01_reported_inputs():
    assert judge("81*1", Problem((1, 81, 1, 1), 81)).reason == Reason.NUMBERS_NOT_USED
    assert judge("81*1*1/1", Problem((1, 81, 1, 1), 81)).correct
    near_miss = judge("7+3/2", Problem((3, 2, 7), 8))
    assert (near_miss.reason, near_miss.value) == (Reason.TARGET_MISSED, Fraction(17, 2))


@given(expressions(st.integers(1, 3)), st.data())
@settings(deadline=None)
def test_b01_multiplicity_counts(expression, data):
    used = numbers_used(expression)
    value = value_of(expression)
    assume(value.denominator == 1)
    text, target = render(expression), int(value)
    assert judge(text, Problem(used, target)).correct
    again = data.draw(st.sampled_from(used))
    assert judge(text, Problem((*used, again), target)).reason == Reason.NUMBERS_NOT_USED
    if used.count(again) > 1:
        fewer = list(used)
        fewer.remove(again)
        assert judge(text, Problem(tuple(fewer), target)).reason == Reason.NUMBERS_USED_TOO_OFTEN


@given(expressions(st.integers(1, 9), "+-*", max_leaves=4), st.integers(2, 9), st.data())
@settings(deadline=None)
def test_b01_no_rounding_turns_a_fraction_into_the_target(whole, denominator, data):
    numerator = data.draw(st.integers(1, 30).filter(lambda above: above % denominator))
    operator = data.draw(st.sampled_from("+-"))
    part = Operation("/", Number(numerator), Number(denominator))
    expression = Operation(operator, whole, part)
    value = evaluate(expression)
    for target in {int(value), round(value), floor(value), ceil(value)}:
        verdict = judge(render(expression), Problem(numbers_used(expression), target))
        assert (verdict.reason, verdict.value) == (Reason.TARGET_MISSED, value)


# B02 (open-thought/reasoning-gym#265): right value from numbers that were never given.


@pytest.mark.parametrize("text", ["12*2", "25-1", "24", "24 = 24", "-(-24)", "48/2"])
def test_b02_reported_inputs(text):
    verdict = judge(text, Problem((3, 5, 7), 24))
    assert (verdict.reason, verdict.value) == (Reason.NUMBERS_NOT_GIVEN, 24)
    assert not verdict.correct


@given(expressions(st.integers(1, 50)), st.lists(st.integers(1, 50), min_size=1, max_size=5))
@settings(deadline=None)
def test_b02_any_foreign_number_is_named_however_right_the_value(expression, numbers):
    value = value_of(expression)
    foreign = set(numbers_used(expression)) - set(numbers)
    assume(foreign and value.denominator == 1)
    verdict = judge(render(expression), Problem(tuple(numbers), int(value)))
    assert verdict.reason == Reason.NUMBERS_NOT_GIVEN
    assert all(str(number) in verdict.detail for number in foreign)


# B04 (TinyZero): a character whitelist and eval, too loose and too strict at once.


@pytest.mark.parametrize(
    ("text", "numbers", "target", "reason"),
    [
        ("9**9**9**9", (9, 9, 9, 9), 9, Reason.OPERATOR_NOT_ALLOWED),
        ("9**9", (9, 9), 387420489, Reason.OPERATOR_NOT_ALLOWED),
        ("7//2", (7, 2), 3, Reason.OPERATOR_NOT_ALLOWED),
        ("08+1", (8, 1), 9, Reason.LEADING_ZERO),
        ("(7)(3)", (7, 3), 21, Reason.MISSING_OPERATOR),
        ("2.5*4", (2, 5, 4), 10, Reason.NOT_A_WHOLE_NUMBER),
        ("--7", (7,), 7, Reason.REPEATED_MINUS),
        ("(3+4)*2 = 15", (2, 3, 4), 14, Reason.CLAIM_DOES_NOT_HOLD),
        ("(7-3)*6 = 24", (3, 6, 7), 24, None),
        ("(7−3)×6", (3, 6, 7), 24, None),
        (r"(7-3)\times 6", (3, 6, 7), 24, None),
        ("(3+4)*2 = 14", (2, 3, 4), 14, None),
    ],
)
def test_b04_reported_inputs(text, numbers, target, reason):
    assert judge_completion(f"<answer>{text}</answer>", Problem(numbers, target)).reason == reason


PYTHON_ONLY = [
    "{a}**{b}", "{a}//{b}", "{a}%{b}", "{a}^{b}", "{a}|{b}", "{a}&{b}", "{a}<<{b}", "~{a}+{b}",
    "{a}@{b}", "{a} if {b} else 1", "{a} or {b}", "[{a},{b}][0]", "({a},{b})", "{{{a}:{b}}}",
    "lambda: {a}", "abs({a})+{b}", "pow({a},{b})", "int('{a}')", "'{a}'*{b}", "__import__('os')",
    "{a}.real+{b}", "{a}j*{b}", "{a}_0+{b}", "0x{a}+{b}", "0b1+{b}", "{a}e{b}", "{a}.+{b}", ".{a}",
    "{a}+{b} # ok", "{a}+{b};1", "{a}+\\\n{b}", "{a}=={b}", "{a}:={b}", "f'{a}'", "...", "+{a}",
    "{a}<{b}", "{a}!={b}", "{a}+{b}\n{a}", "{a}--{b}", "({a})({b})", "{a}({b})", "{a} {b}", "0{a}",
]  # fmt: skip


@pytest.mark.parametrize("form", PYTHON_ONLY)
@given(a=st.integers(1, 99), b=st.integers(1, 9))
@settings(max_examples=10, deadline=None)
def test_b04_what_only_python_understands_is_rejected(form, a, b):
    assert isinstance(parse_answer(form.format(a=a, b=b)), Rejection)


@given(expressions(st.integers(1, 20)), st.fractions(-50, 50, max_denominator=3))
@settings(deadline=None)
def test_b04_an_equation_has_exactly_one_outcome(expression, claimed):
    value = value_of(expression)
    assume(value.denominator == 1)
    problem = Problem(numbers_used(expression), int(value))
    assert judge(f"{render(expression)} = {value}", problem).correct
    expected = None if claimed == value else Reason.CLAIM_DOES_NOT_HOLD
    assert judge(f"{render(expression)} = {claimed}", problem).reason == expected


def test_b04_nothing_in_the_package_runs_text_as_code():
    for source in Path(companion.countdown.__file__).parent.glob("*.py"):
        tree = ast.parse(source.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not names & {"eval", "exec", "compile", "__import__", "literal_eval"}, source.name


# B05 (huggingface/Math-Verify#55, #50): verdicts that depend on the thread; inputs that hang.

PROBES = ["(3+4)*2 = 14", "10^{10^{10^{10}}}", "9**9**9**9", "(" * 300, "3+", "(3+4)*2"]
PROBLEM = Problem((2, 3, 4), 14)


def _reasons():
    return [judge(text, PROBLEM).reason for text in PROBES]


def test_b05_same_verdicts_in_threads_event_loop_and_subprocess():
    expected = [
        None,
        Reason.OPERATOR_NOT_ALLOWED,
        Reason.OPERATOR_NOT_ALLOWED,
        Reason.TOO_DEEP,
        Reason.MISSING_OPERAND,
        None,
    ]
    assert _reasons() == expected
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: _reasons(), range(8))) == [expected] * 8

    async def inside_a_running_loop():
        return _reasons()

    assert asyncio.run(inside_a_running_loop()) == expected
    program = (
        "from companion.countdown.answers import judge\n"
        "from companion.countdown.problems import Problem\n"
        f"print([judge(text, Problem((2, 3, 4), 14)).reason for text in {PROBES!r}])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert result.stdout.strip() == str(expected)


# B07 (huggingface/Math-Verify#60, #76, #41): a permissive fallback that manufactures agreement.


@pytest.mark.parametrize(
    "text",
    [
        "(3+4)*2",
        "The answer is (3+4)*2 = 14.",
        "**(3+4)*2**",
        "\\boxed{(3+4)*2}",
        "#### (3+4)*2",
        "answer: (3+4)*2",
        "<answer>(3+4)*2",
        "(3+4)*2</answer>",
        "[answer](3+4)*2[/answer]",
    ],
)
def test_b07_no_second_rule_finds_an_answer_without_its_tags(text):
    verdict = judge_completion(text, PROBLEM)
    assert verdict.reason in (Reason.NO_ANSWER, Reason.ANSWER_NOT_CLOSED)


@given(st.text(alphabet="0123456789+-*/=() .\n<>awner/", max_size=60))
@settings(deadline=None)
def test_b07_no_tags_no_answer(text):
    assume("<answer>" not in text)
    assert judge_completion(text, PROBLEM).reason == Reason.NO_ANSWER


@pytest.mark.parametrize(
    "text", ["**(3+4)*2**", "3x-y+13=0", "4\\sqrt(2)", "(3+4)*2 = 14%", "(3+4)*2 \\approx 14"]
)
def test_b07_nothing_is_dropped_from_an_answer_to_make_it_readable(text):
    assert isinstance(parse_answer(text), Rejection)


# B08 (EleutherAI/lm-evaluation-harness#3214, #1204): the same number in other clothes.


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("70000", None),
        ("$70000$", None),
        ("70000 = 140000/2", None),
        ("$70,000.", Reason.CHARACTER_NOT_ALLOWED),
        ("70,000", Reason.NOT_A_WHOLE_NUMBER),
        (r"\$70{,}000", Reason.CHARACTER_NOT_ALLOWED),
        ("70000.0", Reason.NOT_A_WHOLE_NUMBER),
        ("70\u2009000", Reason.LEADING_ZERO),
        ("70 000", Reason.LEADING_ZERO),
        ("70 123", Reason.MISSING_OPERATOR),
        ("70k", Reason.NOT_A_WHOLE_NUMBER),
        ("7e4", Reason.NOT_A_WHOLE_NUMBER),
    ],
)
def test_b08_every_form_of_a_number_has_one_documented_outcome(text, reason):
    assert judge(text, Problem((70000,), 70000)).reason == reason


# B10 (EleutherAI/lm-evaluation-harness#3438): the first match is graded, or the prompt's example.

PROMPT = (
    "Using the numbers 2, 3, 4, reach 14. Answer as in <answer> (1 + 2) / 3 </answer>.\n"
    "Example: 5, 6 and 7 make 18: <answer> 5 + 6 + 7 </answer>\n"
)


def echoing_model(prompt, answer):
    """What a model generates that recites its prompt, then thinks, then answers."""
    return f"{prompt}<think> or <answer> 3 * 4 </answer>? </think> {answer}"


def test_b10_the_last_pair_is_graded_and_not_the_recited_example():
    right, wrong = "<answer> (3 + 4) * 2 </answer>", "<answer> 3 * 4 - 2 </answer>"
    assert judge_completion(echoing_model(PROMPT, right), PROBLEM).correct
    assert judge_completion(right + wrong, PROBLEM).reason == Reason.TARGET_MISSED
    example = Problem((5, 6, 7), 18)
    assert judge_completion(PROMPT, example).correct  # why the prompt must never be passed
    recited = judge_completion(echoing_model(PROMPT, ""), example)
    assert recited.reason == Reason.NO_ANSWER


@given(st.lists(st.sampled_from(["1+2", "3*4", "(3+4)*2", "14", "x"]), min_size=1, max_size=6))
@settings(deadline=None)
def test_b10_only_the_last_of_several_answers_matters(answers):
    text = " then ".join(f"<answer>{answer}</answer>" for answer in answers)
    assert judge_completion(text, PROBLEM) == judge(answers[-1], PROBLEM)


# B41 (reasoning-gym after #478): two readings of one string, and a relative tolerance.


@pytest.mark.parametrize(
    ("text", "numbers", "target", "reason"),
    [
        ("81+19+5e0", (81, 19), 105, Reason.NOT_A_WHOLE_NUMBER),
        ("4!", (4,), 24, Reason.OPERATOR_NOT_ALLOWED),
        ("sqrt(16)+2", (16, 2), 6, Reason.NAME_NOT_ALLOWED),
        ("gamma(5)+81-81", (5, 81, 81), 24, Reason.NAME_NOT_ALLOWED),
        ("3**2", (3, 2), 9, Reason.OPERATOR_NOT_ALLOWED),
        ("3^2", (3, 2), 1, Reason.OPERATOR_NOT_ALLOWED),
        ("3^2", (3, 2), 9, Reason.OPERATOR_NOT_ALLOWED),
        ("2.5*4", (2, 5, 4), 10, Reason.NOT_A_WHOLE_NUMBER),
        ("81+19 # ok", (81, 19), 100, Reason.CHARACTER_NOT_ALLOWED),
        ("100000001/1", (100000001, 1), 100000000, Reason.TARGET_MISSED),
        ("99999+1 = 200001/2", (99999, 1), 100000, Reason.CLAIM_DOES_NOT_HOLD),
        ("99999+1 = 100000.5", (99999, 1), 100000, Reason.NOT_A_WHOLE_NUMBER),
        ("9**9**9**9", (9, 9, 9, 9), 9, Reason.OPERATOR_NOT_ALLOWED),
    ],
)
def test_b41_reported_inputs(text, numbers, target, reason):
    assert judge(text, Problem(numbers, target)).reason == reason


@given(st.integers(1, 10**15), st.integers(1, 10**15), st.sampled_from([-1, 1]))
@settings(deadline=None)
def test_b41_no_tolerance_at_any_size(left, right, off_by):
    total = Problem((left, right), left + right)
    assert judge(f"{left} + {right}", total).correct
    missed = Problem((left, right), left + right + off_by)
    assert judge(f"{left} + {right}", missed).reason == Reason.TARGET_MISSED
    claimed = judge(f"{left}+{right} = {left + right + off_by}", total)
    assert claimed.reason == Reason.CLAIM_DOES_NOT_HOLD


OPERANDS = [
    "1",
    "16",
    "81",
    "(19)",
    "-2",
    "2.5",
    "5e0",
    "0x1",
    "1_0",
    "1,0",
    "(",
    "3)",
    "[4]",
    "4!",
]
OPERANDS += ["sqrt(4)", "x", "²", "½", "٣", "\\frac{1}{2}", "\\frac{16}{1 + 2}", "{7}", "5%", "# 5"]
JOINTS = ["+", "-", "*", "/", "**", "//", "^", "=", "", " ", "\\times ", "\\div ", "×", "−", "÷ "]


@given(
    st.sampled_from(OPERANDS),
    st.lists(st.tuples(st.sampled_from(JOINTS), st.sampled_from(OPERANDS)), max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_b41_no_letter_or_digit_of_an_accepted_answer_goes_unread(first, others):
    """Whatever is accepted, its words are exactly the tree's numbers, and the claim after them."""
    text = first + "".join(joint + operand for joint, operand in others)
    answer = parse_answer(text)
    if isinstance(answer, Rejection):
        return
    left = re.sub(r"\\(times|frac|div)", " ", text.partition("=")[0])
    assert re.findall(r"\w+", left) == [str(number) for number in numbers_used(answer.expression)]
