"""The language of answers: the tables of the parser's docstring, its limits, and two oracles."""

import ast
import re
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from companion.countdown import parser
from companion.countdown.expressions import (
    Expression,
    Negation,
    Number,
    Operation,
    evaluate,
    numbers_used,
    render,
)
from companion.countdown.parser import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_DIGITS,
    SPELLINGS,
    Answer,
    Reason,
    Rejection,
    parse,
    parse_answer,
)


def _rows(title):
    """The (form, outcome) rows of one table of the parser's docstring."""
    table = parser.__doc__.split(f"{title}::\n\n")[1].split("\n\n")[0]
    return [re.split(r"\s{2,}", row.strip()) for row in table.strip().splitlines()]


ACCEPTED = _rows("Accepted, and read as")
REJECTED = _rows("Rejected, and why")


@pytest.mark.parametrize(("form", "read_as"), ACCEPTED)
def test_accepted_forms_are_read_as_the_table_says(form, read_as):
    answer = parse_answer(form)
    assert isinstance(answer, Answer)
    claim = "" if answer.claimed is None else f" = {answer.claimed}"
    assert render(answer.expression) + claim == read_as


@pytest.mark.parametrize(("form", "reason"), REJECTED)
def test_rejected_forms_have_the_reason_that_the_table_says(form, reason):
    assert parse_answer(form).reason == Reason(reason)


def test_tables_show_every_operator_bracket_and_reason_of_the_parser():
    shown = " ".join(form for form, _ in ACCEPTED)
    assert all(any(form in shown for form in forms.split()) for forms in SPELLINGS.values())
    # Reasons that answers.py gives, and limits that no table row could show at a glance.
    elsewhere = {"no_answer", "answer_not_closed", "too_long", "too_deep", "target_missed"}
    elsewhere |= {"numbers_not_given", "numbers_used_too_often", "numbers_not_used"}
    elsewhere |= {"claim_does_not_hold"}
    assert {reason for _, reason in REJECTED} == {str(reason) for reason in Reason} - elsewhere


@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u00a0\u3000"])
def test_blank_text_is_empty(blank):
    assert parse_answer(blank).reason == Reason.EMPTY


def test_white_space_of_every_kind_parts_tokens():
    assert parse("3\n+\t4\u00a0*\u2009 2") == parse("3+4*2")
    assert parse("1\u20092").reason == Reason.MISSING_OPERATOR


# Every character of the two planes that hold all scripts, digits and mathematical symbols.
CHARACTERS = [chr(point) for point in range(0x20000)]


def test_exactly_the_documented_characters_are_operators():
    operators = {
        form: symbol
        for symbol in ("+", "-", "*", "/")
        for form in SPELLINGS[symbol].split()
        if len(form) == 1
    }
    found = {}
    for character in CHARACTERS:
        expression = parse(f"7{character}3")
        if isinstance(expression, Operation):
            found[character] = expression.operator
    assert found == operators


def test_exactly_the_ten_ascii_digits_are_digits():
    reasons = {}
    for character in CHARACTERS:
        result = parse(f"1+{character}")
        if isinstance(result, Operation):
            assert result.right == Number(int(character))
            assert character in "0123456789"
        elif character.isdigit():
            reasons[character] = result.reason
    assert len(reasons) > 500
    assert set(reasons.values()) == {Reason.DIGIT_NOT_ASCII}


def test_brackets_close_in_kind():
    kinds = {"(": ")", "[": "]", r"\left(": r"\right)", r"\left[": r"\right]", "（": "）"}
    for opening, closing in kinds.items():
        assert parse(f"{opening}3 + 4{closing} * 2") == parse("(3 + 4) * 2")
    for opening, closing in [("(", "]"), ("[", ")"), ("(", "}"), (r"\left[", r"\right)")]:
        assert parse(f"{opening}3 + 4{closing} * 2").reason == Reason.UNBALANCED_BRACKETS


def test_length_limit_is_exact():
    longest = "7" + " " * (MAX_CHARACTERS - 2) + "7"
    assert parse(longest).reason == Reason.MISSING_OPERATOR
    assert parse(longest + " ").reason == Reason.TOO_LONG


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("(", ")"), ("[", "]"), ("-(", ")"), ("1-(", ")"), (r"\frac{", "}{2}"), (r"\frac{2}{", "}")],
)
def test_depth_limit_is_exact_for_every_bracket(opening, closing):
    def nested(depth):
        return opening * depth + "7" + closing * depth

    assert not isinstance(parse(nested(MAX_DEPTH)), Rejection)
    assert parse(nested(MAX_DEPTH + 1)).reason == Reason.TOO_DEEP


def test_digit_limit_is_exact():
    assert parse("9" * MAX_DIGITS) == Number(10**MAX_DIGITS - 1)
    assert parse("9" * (MAX_DIGITS + 1)).reason == Reason.TOO_MANY_DIGITS


@pytest.mark.parametrize(("operator", "value"), [("+", 150), ("-", -148), ("*", 1), ("/", 1)])
def test_longest_flat_chain_is_read_and_every_walk_over_it_is_safe(operator, value):
    text = operator.join("1" * (MAX_CHARACTERS // 2))
    expression = parse(text)
    assert evaluate(expression) == value
    assert numbers_used(expression) == (1,) * (MAX_CHARACTERS // 2)
    assert render(expression).count(operator) == MAX_CHARACTERS // 2 - 1
    assert expression == parse(text)
    assert hash(expression) == hash(parse(text))
    assert repr(expression).count("Number") == MAX_CHARACTERS // 2


def test_claims_are_exact_fractions():
    assert parse_answer("7 + 3/2 = 17/2").claimed == Fraction(17, 2)
    assert parse_answer("1/3 = 333333333333/1000000000000").claimed != Fraction(1, 3)
    assert parse_answer("3").claimed is None


def test_parse_alone_takes_no_claim():
    assert parse("3 + 4 = 7").reason == Reason.MISPLACED_EQUALS


def test_form_outside_the_language_outranks_a_fault_in_the_grammar():
    assert parse("(3 + + x").reason == Reason.NAME_NOT_ALLOWED


@pytest.mark.parametrize("character", ["\u202e", "\ud800", "\x00", "\u200b", "\ufeff", "\u00ad"])
def test_details_quote_invisible_characters_readably(character):
    rejection = parse(f"3{character}4")
    assert rejection.reason == Reason.CHARACTER_NOT_ALLOWED
    assert rejection.detail.isprintable()
    rejection.detail.encode("utf-8")


# Oracle 1: Python's own parser, on the part of the language that the two share.


def _from_python(node):
    """A Python syntax tree as an expression; ValueError for what answers do not have."""
    match node:
        case ast.Expression():
            return _from_python(node.body)
        case ast.Constant(value=int() as value):
            return Number(value)
        case ast.UnaryOp(op=ast.USub()):
            return Negation(_from_python(node.operand))
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            symbols = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
            left, right = _from_python(node.left), _from_python(node.right)
            return Operation(symbols[type(node.op)], left, right)
    raise ValueError(node)


def _python_reading(text):
    if re.search(r"-\s*-", text):
        return None  # the one deliberate difference: two minus signs in a row
    try:
        return _from_python(ast.parse(text.strip(), mode="eval"))
    except (SyntaxError, ValueError):
        return None


PIECES = ["1", "2", "10", "12", "+", "-", "*", "/", "(", ")", "(3", "4)", " ", "+5", "*6", "-(7"]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@settings(max_examples=300, deadline=None)
def test_reads_plain_text_exactly_as_python_does(text):
    result = parse(text)
    assert (None if isinstance(result, Rejection) else result) == _python_reading(text)


# Oracle 2: a tree written in any of the documented ways comes back as the same tree.


def expressions(numbers):
    return st.recursive(
        numbers.map(Number),
        lambda inner: (
            inner.map(Negation)
            | st.builds(Operation, st.sampled_from(["+", "-", "*", "/"]), inner, inner)
        ),
        max_leaves=6,
    )


EXPRESSIONS = expressions(st.integers(0, 10**6))
BRACKETS = [
    ("(", ")"),
    ("[", "]"),
    ("（", "）"),
    (r"\left(", r"\right)"),
    (r"\left [ ", r"\right ]"),
]


@st.composite
def written(draw, expression: Expression):
    """The expression in a mixture of spellings, brackets and spaces."""

    def space():
        return draw(st.sampled_from(["", " ", "\n"]))

    def spelling(symbol):
        return draw(st.sampled_from(SPELLINGS[symbol].split()))

    def operand(part):
        opening, closing = draw(st.sampled_from(BRACKETS))
        text = draw(written(part))
        return text if isinstance(part, Number) else f"{opening}{text}{closing}"

    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, Negation):
        return spelling("-") + space() + operand(expression.operand)
    left, operator, right = expression.left, expression.operator, expression.right
    if operator == "/" and draw(st.booleans()):
        return f"{spelling('fraction')}{{{draw(written(left))}}}{space()}{{{draw(written(right))}}}"
    return operand(left) + space() + spelling(operator) + space() + operand(right)


@given(st.data(), EXPRESSIONS)
@settings(max_examples=300, deadline=None)
def test_every_spelling_of_a_tree_reads_back_as_that_tree(data, expression):
    text = data.draw(written(expression))
    result = parse(text)
    assume(getattr(result, "reason", None) not in (Reason.TOO_LONG, Reason.TOO_DEEP))
    assert result == expression


@given(EXPRESSIONS)
@settings(deadline=None)
def test_rendered_trees_read_back(expression):
    assert parse(render(expression)) == expression


@given(expressions(st.integers(0, 3)))
@settings(max_examples=300, deadline=None)
def test_value_is_that_of_fraction_arithmetic(expression):
    def by_fractions(part):
        if isinstance(part, Number):
            return Fraction(part.value)
        if isinstance(part, Negation):
            return -by_fractions(part.operand)
        left, right = by_fractions(part.left), by_fractions(part.right)
        return {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left / right,
        }[part.operator]()

    try:
        expected = by_fractions(expression)
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            evaluate(expression)
    else:
        assert evaluate(expression) == expected
