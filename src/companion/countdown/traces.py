"""Traces: a solution worked out line by line, as the laboratory's model writes it.

    3 + 4 = 7 , 7 * 2 = 14 , <answer> ( 3 + 4 ) * 2 </answer>

Every line takes two of the values at hand and puts its result in their place; the answer is the
expression that the lines have built, operands in the order in which they were written.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import product
from typing import Final

from companion.countdown.expressions import (
    OPERATORS,
    Expression,
    Negation,
    Number,
    Operation,
    Operator,
    apply,
    evaluate,
    render,
)
from companion.countdown.problems import Problem
from companion.countdown.solver import Intermediates, only_whole, solve


@dataclass(frozen=True, slots=True)
class Line:
    """One calculation, ``left operator right = result``."""

    left: Fraction
    operator: Operator
    right: Fraction
    result: Fraction

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right} = {self.result}"


@dataclass(frozen=True, slots=True)
class Trace:
    """The lines of a solution and the expression that they build."""

    lines: tuple[Line, ...]
    expression: Expression

    def __str__(self) -> str:
        worked = "".join(f"{line} , " for line in self.lines)
        return f"{worked}<answer> {render(self.expression)} </answer>"


# Six numbers below 10**18 make no numerator or denominator above 2**5 * 10**108.
MAX_DIGITS: Final = 110

_VALUE = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}(/[1-9][0-9]{{0,{MAX_DIGITS - 1}}})?")

AtHand = tuple[tuple[Fraction, Expression], ...]
"""The values that a line may take, each with the expression that made it."""


class Flaw(StrEnum):
    """The first thing that is wrong with a trace."""

    MALFORMED_LINE = "malformed line"
    OPERAND_NOT_AT_HAND = "operand not at hand"
    DIVISION_BY_ZERO = "division by zero"
    WRONG_RESULT = "wrong result"
    NOT_WHOLE = "intermediate result is not a whole number, zero or more"
    UNFINISHED = "numbers left over"
    TARGET_MISSED = "target missed"
    NO_ANSWER = "no answer, or not in answer tags"
    ANSWER_IS_NOT_THE_LINES = "the answer is not what the lines built"


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    """Whether a trace is right from its first line to its answer, and if not, why and where.

    ``line`` counts from 1; the answer is the line after the last.
    """

    correct: bool
    flaw: Flaw | None = None
    line: int | None = None
    trace: Trace | None = None


def valid_traces(problem: Problem, intermediates: Intermediates = "rational") -> tuple[Trace, ...]:
    """Every trace that :func:`verify_trace` accepts, each once, in a deterministic order.

    A solution gives one trace for each way to write its sums and products (``3 + 4``, ``4 + 3``)
    and for each order of its lines in which every operand is at hand.
    """
    return tuple(dict.fromkeys(each_trace(problem, intermediates)))


def each_trace(problem: Problem, intermediates: Intermediates = "rational") -> Iterator[Trace]:
    """The valid traces one by one, as they are found; one may come twice."""
    for expression in solve(problem, intermediates):
        for written in orientations(expression):
            for lines in line_orders(written):
                yield Trace(lines, written)


def orientations(expression: Expression) -> Iterator[Expression]:
    """The expression with the operands of every sum and product in either order, each once."""
    if isinstance(expression, Number):
        yield expression
        return
    if isinstance(expression, Negation):
        for operand in orientations(expression.operand):
            yield Negation(operand)
        return
    operator = expression.operator
    pairs = list(product(orientations(expression.left), orientations(expression.right)))
    if operator in "+*":
        pairs = list(dict.fromkeys(pairs + [(right, left) for left, right in pairs]))
    for left, right in pairs:
        yield Operation(operator, left, right)


def line_orders(expression: Expression) -> Iterator[tuple[Line, ...]]:
    """Every order of an expression's calculations in which operands come before their use.

    Raises:
        ZeroDivisionError: where the expression divides by zero.
    """
    if not isinstance(expression, Operation):
        yield ()
        return
    left, right = evaluate(expression.left), evaluate(expression.right)
    last = Line(left, expression.operator, right, apply(expression.operator, left, right))
    for before in line_orders(expression.left):
        for beside in line_orders(expression.right):
            for merged in _interleaved(before, beside):
                yield (*merged, last)


def _interleaved(first: tuple[Line, ...], second: tuple[Line, ...]) -> Iterator[tuple[Line, ...]]:
    if not first or not second:
        yield first + second
        return
    for rest in _interleaved(first[1:], second):
        yield (first[0], *rest)
    for rest in _interleaved(first, second[1:]):
        yield (second[0], *rest)


def verify_trace(
    text: str, problem: Problem, intermediates: Intermediates = "rational"
) -> TraceVerdict:
    """Check a written trace line by line, and that its answer is what the lines built.

    Words are parted by white space: lines such as ``3 + 4 = 7``, each followed by the word ``,``,
    then the answer in ``<answer> </answer>``. A value may be negative or a fraction such as
    ``7/2``, written as :class:`Trace` writes it: reduced and without leading zeros. So the texts
    accepted are exactly those of :func:`valid_traces`, whatever the white space.

    Where a line's operand matches several values at hand (a given 7 and a computed 7), every
    reading is followed; six numbers have 110 at the most, and a line too many ends them all.

    Raises:
        ValueError: for an unknown value of ``intermediates``; never for a text.
    """
    whole = only_whole(intermediates)
    *lines, answer = f" {' '.join(text.split())} ".split(" , ")
    readings: list[AtHand] = [tuple((Fraction(n), Number(n)) for n in problem.numbers)]
    written: list[Line] = []
    for position, line_text in enumerate(lines, start=1):
        line = _read_line(line_text)
        if line is None:
            return TraceVerdict(False, Flaw.MALFORMED_LINE, position)
        flaw = _wrong_in_itself(line, whole)
        if flaw is not None:
            return TraceVerdict(False, flaw, position)
        readings = _after(line, readings)
        if not readings:
            return TraceVerdict(False, Flaw.OPERAND_NOT_AT_HAND, position)
        written.append(line)
    end = len(lines) + 1
    if len(readings[0]) > 1:
        return TraceVerdict(False, Flaw.UNFINISHED, end)
    words = answer.split()
    if len(words) < 3 or words[0] != "<answer>" or words[-1] != "</answer>":
        return TraceVerdict(False, Flaw.NO_ANSWER, end)
    given = " ".join(words[1:-1])
    for ((value, expression),) in readings:
        if render(expression) == given:
            if value != problem.target:
                return TraceVerdict(False, Flaw.TARGET_MISSED, end)
            return TraceVerdict(True, trace=Trace(tuple(written), expression))
    return TraceVerdict(False, Flaw.ANSWER_IS_NOT_THE_LINES, end)


def _after(line: Line, readings: list[AtHand]) -> list[AtHand]:
    """The values at hand after a line, in every reading of which ones it took."""
    found: dict[AtHand, None] = {}
    for at_hand in readings:
        for i, (left, left_expression) in enumerate(at_hand):
            if left != line.left:
                continue
            for j, (right, right_expression) in enumerate(at_hand):
                if j == i or right != line.right:
                    continue
                kept = [item for k, item in enumerate(at_hand) if k not in (i, j)]
                made = Operation(line.operator, left_expression, right_expression)
                found[(*kept, (line.result, made))] = None
    return list(found)


def _read_line(text: str) -> Line | None:
    words = text.split()
    if len(words) != 5 or words[3] != "=" or words[1] not in OPERATORS:
        return None
    values = [_read_value(words[i]) for i in (0, 2, 4)]
    left, right, result = values
    if left is None or right is None or result is None:
        return None
    return Line(left, words[1], right, result)


def _read_value(word: str) -> Fraction | None:
    if _VALUE.fullmatch(word) is None:
        return None
    value = Fraction(word)
    return value if str(value) == word else None


def _wrong_in_itself(line: Line, whole: bool) -> Flaw | None:
    if line.operator == "/" and line.right == 0:
        return Flaw.DIVISION_BY_ZERO
    if apply(line.operator, line.left, line.right) != line.result:
        return Flaw.WRONG_RESULT
    if whole and (line.result.denominator != 1 or line.result < 0):
        return Flaw.NOT_WHOLE
    return None
