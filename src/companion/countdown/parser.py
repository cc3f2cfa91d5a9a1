r"""Read an answer as an exact expression, or say in one typed reason why it is none.

A recursive-descent parser over whole numbers. Operators, numbers and the claimed value all come
from the one tree that it builds; nothing is ever run as code. In words:

- **Numbers** are written with the ASCII digits 0-9, without leading zeros, points, commas or
  exponents.
- **Operators** have the usual precedence and group from the left. Other spellings of them are
  listed in ``SPELLINGS``; ``\frac{a}{b}`` (``\dfrac``, ``\tfrac``) is a division.
- **Brackets** are round or square and close in kind; ``\left`` and ``\right`` before one are
  ignored. Braces belong to ``\frac`` alone, since LaTeX does not print them.
- **One minus sign** may stand before a number, bracket or fraction, and binds tighter than any
  operator. Two in a row are refused, because ``7--3`` is also how LaTeX writes a dash.
- **One claim** ``= value`` may follow: a whole number or a fraction of two, with or without a
  minus sign. The parser reads it; :func:`companion.countdown.answers.judge` checks that it holds.
- White space may stand between any two of these. One pair of ``$ $``, ``$$ $$``, ``\( \)`` or
  ``\[ \]`` may surround the whole. Anything else is refused.

The tests read the two tables below, so what they say is what happens. Accepted, and read as::

    7                                   7
    (3+4)*2                             ( 3 + 4 ) * 2
    3 + 4 * 2                           3 + ( 4 * 2 )
    8 - 4 - 2                           ( 8 - 4 ) - 2
    8 / 4 * 2                           ( 8 / 4 ) * 2
    ((3))+(4)                           3 + 4
    [(3 + 4) * 2] - 1                   ( ( 3 + 4 ) * 2 ) - 1
    -3 + 4                              ( - 3 ) + 4
    -3 * 4                              ( - 3 ) * 4
    3 * -4                              3 * ( - 4 )
    3 - (-4)                            3 - ( - 4 )
    -(3 + 4)                            ( - ( 3 + 4 ) )
    -(-3)                               ( - ( - 3 ) )
    (3 + 4) × 2                         ( 3 + 4 ) * 2
    3 · 4 ⋅ 5 ∗ 6                       ( ( 3 * 4 ) * 5 ) * 6
    7 − 3 – 2 — 1                       ( ( 7 - 3 ) - 2 ) - 1
    8 ÷ 4 ∕ 2                           ( 8 / 4 ) / 2
    （3＋4）＊2－6／3＝12               ( ( 3 + 4 ) * 2 ) - ( 6 / 3 ) = 12
    3 \times 4 \cdot 5 \div 6           ( ( 3 * 4 ) * 5 ) / 6
    \frac{3 + 5}{7 - 3}                 ( 3 + 5 ) / ( 7 - 3 )
    \frac{\frac{8}{2}}{4} \times 3      ( ( 8 / 2 ) / 4 ) * 3
    -\dfrac{6}{3} + \tfrac{1}{2}        ( - ( 6 / 3 ) ) + ( 1 / 2 )
    \left( 3 + 4 \right) \times 2       ( 3 + 4 ) * 2
    \left[3 + 4\right] * 2              ( 3 + 4 ) * 2
    $(3 + 4) \times 2 = 14$             ( 3 + 4 ) * 2 = 14
    $$3 + 4$$                           3 + 4
    \( 3 + 4 \)                         3 + 4
    \[ 3 + 4 \]                         3 + 4
    (3+4)*2 = 14                        ( 3 + 4 ) * 2 = 14
    (3+4)*2 = 15                        ( 3 + 4 ) * 2 = 15
    3 - 7 = -4                          3 - 7 = -4
    3 - 7 = −4                          3 - 7 = -4
    3 / 6 = 1/2                         3 / 6 = 1/2
    3 / 6 = 2/4                         3 / 6 = 1/2
    -3 / 6 = -\frac{1}{2}               ( - 3 ) / 6 = -1/2
    3 / 0                               3 / 0

Rejected, and why::

    $$                                  empty
    2.5 * 4                             not_a_whole_number
    .5 * 4                              not_a_whole_number
    81+19+5e0                           not_a_whole_number
    1,000 + 1                           not_a_whole_number
    1_000 + 1                           not_a_whole_number
    0x10 + 1                            not_a_whole_number
    3x4                                 not_a_whole_number
    3 + 4.                              not_a_whole_number
    08+1                                leading_zero
    00                                  leading_zero
    123456789012345678901               too_many_digits
    ٣ + ٤                               digit_not_ascii
    ３ + ４                             digit_not_ascii
    3²                                  digit_not_ascii
    ½ + 3                               digit_not_ascii
    9**9**9**9                          operator_not_allowed
    3^2                                 operator_not_allowed
    7//2                                operator_not_allowed
    7 % 2                               operator_not_allowed
    4!                                  operator_not_allowed
    √4                                  operator_not_allowed
    sqrt(16)+2                          name_not_allowed
    gamma(5)+81-81                      name_not_allowed
    3 x 4                               name_not_allowed
    NO_SOLUTION                         name_not_allowed
    Answer: 3 + 4                       name_not_allowed
    \sqrt{4} + 2                        name_not_allowed
    \boxed{3 + 4}                       name_not_allowed
    \left 3 + 4 \right                  name_not_allowed
    81+19 # ok                          character_not_allowed
    3 + 4; 5                            character_not_allowed
    8 : 4                               character_not_allowed
    3 + 4 ≈ 7                           character_not_allowed
    $3 + 4                              character_not_allowed
    --7                                 repeated_minus
    7--3                                repeated_minus
    7 - -3                              repeated_minus
    +7                                  missing_operand
    3 + + 4                             missing_operand
    3 +                                 missing_operand
    * 3                                 missing_operand
    ()                                  missing_operand
    3 =                                 missing_operand
    = 3                                 missing_operand
    (7)(3)                              missing_operator
    7(3)                                missing_operator
    7 3                                 missing_operator
    3\frac{1}{2}                        missing_operator
    (3 + 4                              unbalanced_brackets
    3 + 4)                              unbalanced_brackets
    (3 + 4]                             unbalanced_brackets
    \frac{3}{4                          unbalanced_brackets
    {3 + 4} * 2                         misplaced_braces
    \frac12                             misplaced_braces
    \frac{1}2                           misplaced_braces
    3 + 4 = 7 = 7                       misplaced_equals
    (3 + 4 = 7)                         misplaced_equals
    3 * 4 = 6 + 6                       claim_not_a_value
    14 = (3 + 4) * 2                    claim_not_a_value
    3 = -(-3)                           claim_not_a_value
    3 = 3/0                             division_by_zero
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise
from typing import Final, Literal

from companion.countdown.expressions import Expression, Negation, Number, Operation, evaluate

MAX_CHARACTERS: Final = 300  # six numbers in full LaTeX need about 150; bounds time and tree height
MAX_DEPTH: Final = 20  # six numbers need 5 nested brackets; bounds the recursion of the parser
MAX_DIGITS: Final = 20  # no Countdown number comes near; bounds the size of every value


class Reason(StrEnum):
    """Why an answer is not correct: every way there is, from the text to the target."""

    # Finding the answer in a completion (answers.extract_answer)
    NO_ANSWER = "no_answer"
    ANSWER_NOT_CLOSED = "answer_not_closed"
    # Reading it (parse)
    EMPTY = "empty"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    TOO_MANY_DIGITS = "too_many_digits"
    NOT_A_WHOLE_NUMBER = "not_a_whole_number"
    LEADING_ZERO = "leading_zero"
    DIGIT_NOT_ASCII = "digit_not_ascii"
    OPERATOR_NOT_ALLOWED = "operator_not_allowed"
    NAME_NOT_ALLOWED = "name_not_allowed"
    CHARACTER_NOT_ALLOWED = "character_not_allowed"
    REPEATED_MINUS = "repeated_minus"
    MISSING_OPERAND = "missing_operand"
    MISSING_OPERATOR = "missing_operator"
    UNBALANCED_BRACKETS = "unbalanced_brackets"
    MISPLACED_BRACES = "misplaced_braces"
    MISPLACED_EQUALS = "misplaced_equals"
    CLAIM_NOT_A_VALUE = "claim_not_a_value"
    DIVISION_BY_ZERO = "division_by_zero"
    # Holding it against the problem (answers.judge)
    NUMBERS_NOT_GIVEN = "numbers_not_given"
    NUMBERS_USED_TOO_OFTEN = "numbers_used_too_often"
    NUMBERS_NOT_USED = "numbers_not_used"
    CLAIM_DOES_NOT_HOLD = "claim_does_not_hold"
    TARGET_MISSED = "target_missed"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A typed reason, and one sentence for a human reader."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An expression as read, and the value that its writer claimed for it (None: no claim)."""

    expression: Expression
    claimed: Fraction | None


Symbol = Literal["+", "-", "*", "/", "(", ")", "[", "]", "{", "}", "=", "fraction", "end of text"]
Token = int | Symbol

SPELLINGS: Final[Mapping[Symbol, str]] = {
    "+": "+ ＋",
    "-": "- − – — ‐ ‑ ‒ － ﹣",
    "*": r"* × · ⋅ ∙ ∗ ＊ \times \cdot",
    "/": r"/ ÷ ∕ ⁄ ／ \div",
    "(": "( （",
    ")": ") ）",
    "[": "[ ［",
    "]": "] ］",
    "{": "{",
    "}": "}",
    "=": "= ＝",
    "fraction": r"\frac \dfrac \tfrac",
}
_SYMBOLS = {form: symbol for symbol, forms in SPELLINGS.items() for form in forms.split(" ")}
_CLOSING: Final[Mapping[Token, Symbol]] = {"(": ")", "[": "]", "{": "}"}
_DELIMITERS = (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]"))

# One match a token; white space, and \left or \right before a bracket, are left out. Every other
# character begins a match, so nothing is skipped unread.
_TOKEN = re.compile(
    r"""\s*(?:\\left\s*(?=[(\[（［])|\\right\s*(?=[)\]）］]))?
    (   \.?[0-9][0-9A-Za-z_.,]*   # a number, or what was meant as one
    |   \\[A-Za-z]+              # a command
    |   \w+                      # a name, or numerals other than 0-9
    |   \*\*|//|[^\w\s]          # a symbol
    )""",
    re.VERBOSE,
)
_FOREIGN_OPERATORS = frozenset(("**", "//", "^", "!", "%", "√"))
_DIGITS = frozenset("0123456789")


class _RejectedError(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.rejection = Rejection(reason, detail)


def parse(text: str) -> Expression | Rejection:
    """Read an expression that claims no value.

    Never raises, whatever the text; takes time linear in its length.

    >>> parse("(3 + 4) × 2") == parse("[3+4]*2")
    True
    >>> parse("2.5 * 4").reason
    <Reason.NOT_A_WHOLE_NUMBER: 'not_a_whole_number'>
    """
    answer = parse_answer(text)
    if isinstance(answer, Rejection):
        return answer
    if answer.claimed is not None:
        return Rejection(Reason.MISPLACED_EQUALS, "an expression alone claims no value with '='")
    return answer.expression


def parse_answer(text: str) -> Answer | Rejection:
    """Read an expression and the value claimed for it, if any (``expression = value``).

    Whether the claim holds is not looked at. A form that is not in the language is reported before
    any fault in how forms are put together; among faults of a kind, the first from the left.
    Never raises, whatever the text; takes time linear in its length.
    """
    if len(text) > MAX_CHARACTERS:
        return Rejection(Reason.TOO_LONG, f"an answer has at most {MAX_CHARACTERS} characters")
    try:
        tokens = _tokens(_without_delimiters(text.strip()))
        expression = _sum(tokens, 0)
        claimed = None
        if tokens[-1] == "=":
            tokens.pop()
            claimed = _claim(_sum(tokens, 0))
        _close(tokens, "end of text")
    except _RejectedError as rejected:
        return rejected.rejection
    return Answer(expression, claimed)


def _without_delimiters(text: str) -> str:
    for opening, closing in _DELIMITERS:
        enough = len(opening) + len(closing)
        if len(text) >= enough and text.startswith(opening) and text.endswith(closing):
            return text[len(opening) : -len(closing)].strip()
    return text


def _tokens(text: str) -> list[Token]:
    """The tokens in reverse, so that the next one is at the end of the list."""
    tokens = [_SYMBOLS.get(form) or _number(form) for form in _TOKEN.findall(text)]
    if not tokens:
        raise _RejectedError(Reason.EMPTY, "the answer is empty")
    if ("-", "-") in pairwise(tokens):
        raise _RejectedError(
            Reason.REPEATED_MINUS, "two minus signs in a row have two readings; write 7 - (-3)"
        )
    return ["end of text", *reversed(tokens)]


def _number(form: str) -> int:
    if not (form.isascii() and form.isdigit()):
        raise _RejectedError(*_foreign(form))
    if len(form) > MAX_DIGITS:
        raise _RejectedError(
            Reason.TOO_MANY_DIGITS, f"a number has at most {MAX_DIGITS} digits; got {len(form)}"
        )
    if form[0] == "0" and form != "0":
        raise _RejectedError(Reason.LEADING_ZERO, f"{form} starts with a zero")
    return int(form)


def _foreign(form: str) -> tuple[Reason, str]:
    """Why a form that is neither a symbol nor a whole number is refused."""
    if form.lstrip(".")[:1] in _DIGITS:
        return Reason.NOT_A_WHOLE_NUMBER, f"{form!r} is not a whole number in the digits 0-9"
    if form[0].isnumeric():
        return Reason.DIGIT_NOT_ASCII, f"{form!r} is a numeral other than the digits 0-9"
    if form in _FOREIGN_OPERATORS:
        return Reason.OPERATOR_NOT_ALLOWED, f"{form!r} is none of + - * /"
    if form.isalpha() or len(form) > 1:
        return Reason.NAME_NOT_ALLOWED, f"{form!r} is a name; an answer has only numbers"
    return Reason.CHARACTER_NOT_ALLOWED, f"{form!r} has no place in an expression"


def _sum(tokens: list[Token], depth: int) -> Expression:
    """``product {(+|-) product}``, built from the left without recursion."""
    left = _product(tokens, depth)
    while (operator := tokens[-1]) == "+" or operator == "-":
        tokens.pop()
        left = Operation(operator, left, _product(tokens, depth))
    return left


def _product(tokens: list[Token], depth: int) -> Expression:
    """``operand {(*|/) operand}``, built from the left without recursion."""
    left = _operand(tokens, depth)
    while (operator := tokens[-1]) == "*" or operator == "/":
        tokens.pop()
        left = Operation(operator, left, _operand(tokens, depth))
    return left


def _operand(tokens: list[Token], depth: int) -> Expression:
    """``[-] number``, ``[-] ( sum )``, ``[-] [ sum ]`` or ``[-] fraction { sum } { sum }``."""
    token = tokens.pop()
    if isinstance(token, int):
        return Number(token)
    if token == "-":  # never two: the tokens hold no repeated minus
        return Negation(_operand(tokens, depth))
    if token == "(" or token == "[":
        return _enclosed(token, tokens, depth)
    if token == "fraction":
        return Operation("/", _in_braces(tokens, depth), _in_braces(tokens, depth))
    if token == "{":
        raise _RejectedError(Reason.MISPLACED_BRACES, r"braces group nothing but \frac{a}{b}")
    raise _RejectedError(
        Reason.MISSING_OPERAND, f"a number or an opening bracket is expected, not {token!r}"
    )


def _in_braces(tokens: list[Token], depth: int) -> Expression:
    if tokens.pop() != "{":
        raise _RejectedError(Reason.MISPLACED_BRACES, r"a fraction is written \frac{a}{b}")
    return _enclosed("{", tokens, depth)


def _enclosed(opening: Symbol, tokens: list[Token], depth: int) -> Expression:
    if depth == MAX_DEPTH:
        raise _RejectedError(Reason.TOO_DEEP, f"brackets nest at most {MAX_DEPTH} deep")
    inner = _sum(tokens, depth + 1)
    _close(tokens, _CLOSING[opening])
    return inner


def _close(tokens: list[Token], closing: Symbol) -> None:
    """Take ``closing``, or say what stands in its place after a complete expression."""
    token = tokens.pop()
    if token == closing:
        return
    if isinstance(token, int) or token in ("(", "[", "{", "fraction"):
        raise _RejectedError(
            Reason.MISSING_OPERATOR, f"an operator is missing before {token}; write 7 * 3"
        )
    if token == "=":
        raise _RejectedError(
            Reason.MISPLACED_EQUALS, "one '=' may follow the whole expression, once"
        )
    raise _RejectedError(Reason.UNBALANCED_BRACKETS, f"{closing!r} is expected, not {token!r}")


def _claim(expression: Expression) -> Fraction:
    match expression:
        case (
            Number()
            | Negation(Number())
            | Operation("/", Number() | Negation(Number()), Number())
            | Negation(Operation("/", Number(), Number()))
        ):
            try:
                return evaluate(expression)
            except ZeroDivisionError:
                raise _RejectedError(
                    Reason.DIVISION_BY_ZERO, "the claimed value divides by zero"
                ) from None
    raise _RejectedError(
        Reason.CLAIM_NOT_A_VALUE, "a whole number or a fraction such as 7/2 follows '='"
    )
