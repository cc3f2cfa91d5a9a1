"""Leaves: when two solutions count as the same one.

``structural`` (the default) sees a sum as a set of signed terms and a product as a set of factors
above and below the line, with signs pulled out: ``a-b+c`` and ``a+c-b`` are one leaf, so are
``a/b*c`` and ``a*c/b``, and ``(a-b)*(c-d)`` and ``(b-a)*(d-c)``. ``paper`` is the rule of arXiv
2608.29188: only ``+`` and ``*`` commute and associate, so it tells apart every pair above.
"""

from collections.abc import Iterable
from typing import Literal

from companion.countdown.expressions import Expression, Negation, Number, Operation

Equivalence = Literal["structural", "paper"]


def leaf(expression: Expression, equivalence: Equivalence = "structural") -> str:
    """The canonical name of the solution that an expression writes.

    Two expressions are the same leaf exactly if their names are equal.

    Raises:
        ValueError: for an unknown equivalence.

    >>> from companion.countdown.parser import parse
    >>> leaf(parse("7 - 2 + 4")) == leaf(parse("4 + 7 - 2"))
    True
    """
    if equivalence == "paper":
        return _paper(expression)
    if equivalence != "structural":
        raise ValueError(f'equivalence: "structural" or "paper"; got {equivalence!r}')
    sign, name = _structural(expression)
    name = name[1:-1] if name.startswith("(") else name
    return f"-({name})" if sign < 0 else name


Sign = int  # 1, -1, or 0 for what is its own opposite: in 7 + (3-3)*5 the plus means nothing
Term = tuple[Sign, str]


def _structural(expression: Expression) -> tuple[Sign, str]:
    """A sign and the name of what it multiplies; the name never starts with a minus."""
    if isinstance(expression, Number):
        return 1, str(expression.value)
    if isinstance(expression, Operation) and expression.operator in "*/":
        sign, above, below = _factors(expression)
        return sign, f"({'*'.join(sorted(above))}{''.join('/' + name for name in sorted(below))})"
    if isinstance(expression, Negation) and not _is_sum(expression.operand):
        sign, name = _structural(expression.operand)
        return -sign, name
    # A sum and its opposite share the name of the one with fewer minus signs.
    terms = _terms(expression)
    written, opposite = (_in_order((side * sign, name) for sign, name in terms) for side in (1, -1))
    _, ((_, first), *others) = min(written, opposite)
    name = f"({first}{''.join('+-'[taken_away] + name for taken_away, name in others)})"
    return (written <= opposite) - (opposite <= written), name


def _in_order(terms: Iterable[Term]) -> tuple[int, list[tuple[bool, str]]]:
    """How many terms are taken away, and each with whether it is: what is added comes first."""
    ordered = sorted((sign < 0, name) for sign, name in terms)
    return sum(taken_away for taken_away, _ in ordered), ordered


def _is_sum(expression: Expression) -> bool:
    if isinstance(expression, Negation):
        return _is_sum(expression.operand)
    return isinstance(expression, Operation) and expression.operator in "+-"


def _terms(expression: Expression) -> list[Term]:
    """The signed terms of a sum, through every nested sum, difference and unary minus."""
    if isinstance(expression, Negation):
        return [(-sign, name) for sign, name in _terms(expression.operand)]
    if isinstance(expression, Operation) and expression.operator in "+-":
        right = _terms(expression.right)
        if expression.operator == "-":
            right = [(-sign, name) for sign, name in right]
        return _terms(expression.left) + right
    return [_structural(expression)]


def _factors(expression: Expression) -> tuple[Sign, list[str], list[str]]:
    """Sign, factors above the line, factors below it, through every nested product."""
    if isinstance(expression, Negation) and not _is_sum(expression):
        sign, above, below = _factors(expression.operand)
        return -sign, above, below
    if isinstance(expression, Operation) and expression.operator in "*/":
        sign, above, below = _factors(expression.left)
        right_sign, right_above, right_below = _factors(expression.right)
        if expression.operator == "/":
            right_above, right_below = right_below, right_above
        return sign * right_sign, above + right_above, below + right_below
    sign, name = _structural(expression)
    return sign, [name], []


def _paper(expression: Expression) -> str:
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, Negation):
        return f"(-{_paper(expression.operand)})"
    operator = expression.operator
    if operator in "+*":
        return f"({operator.join(sorted(_paper_chain(expression, operator)))})"
    return f"({_paper(expression.left)}{operator}{_paper(expression.right)})"


def _paper_chain(expression: Expression, operator: str) -> list[str]:
    if isinstance(expression, Operation) and expression.operator == operator:
        return _paper_chain(expression.left, operator) + _paper_chain(expression.right, operator)
    return [_paper(expression)]
