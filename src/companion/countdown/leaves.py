"""Leaves: when two solutions count as the same one.

``structural`` (the default) sees a sum as a set of signed terms and a product as a set of factors
above and below the line, with signs pulled out: ``a-b+c`` and ``a+c-b`` are one leaf, so are
``a/b*c`` and ``a*c/b``, and ``(a-b)*(c-d)`` and ``(b-a)*(d-c)``. ``paper`` is the rule of arXiv
2608.29188: only ``+`` and ``*`` commute and associate, so it tells apart every pair above.
"""

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
    return name if sign > 0 else f"-({name})"


# A term is (negative?, name): in sorted order what is added comes before what is taken away.
Term = tuple[bool, str]


def _structural(expression: Expression) -> tuple[int, str]:
    """A sign and the name of what it multiplies; the name never starts with a minus."""
    if isinstance(expression, Number):
        return 1, str(expression.value)
    if isinstance(expression, Operation) and expression.operator in "*/":
        sign, above, below = _factors(expression)
        return sign, f"({'*'.join(sorted(above))}{''.join('/' + name for name in sorted(below))})"
    if isinstance(expression, Negation) and not _is_sum(expression.operand):
        sign, name = _structural(expression.operand)
        return -sign, name
    terms = sorted(_terms(expression))
    opposite = sorted((not negative, name) for negative, name in terms)
    # A sum and its opposite share one name; where they are equal (3 - 3) the sign means nothing.
    sign = 1 if terms <= opposite else -1
    first, *others = min(terms, opposite)
    return sign, f"({first[1]}{''.join('+-'[negative] + name for negative, name in others)})"


def _is_sum(expression: Expression) -> bool:
    if isinstance(expression, Negation):
        return _is_sum(expression.operand)
    return isinstance(expression, Operation) and expression.operator in "+-"


def _terms(expression: Expression) -> list[Term]:
    """The signed terms of a sum, through every nested sum, difference and unary minus."""
    if isinstance(expression, Negation):
        return [(not negative, name) for negative, name in _terms(expression.operand)]
    if isinstance(expression, Operation) and expression.operator in "+-":
        right = _terms(expression.right)
        if expression.operator == "-":
            right = [(not negative, name) for negative, name in right]
        return _terms(expression.left) + right
    sign, name = _structural(expression)
    return [(sign < 0, name)]


def _factors(expression: Expression) -> tuple[int, list[str], list[str]]:
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
