"""The complete solution space of a Countdown problem, by exact enumeration.

An expression over a multiset of numbers is an operation over two expressions, one over each side
of a split of the multiset in two. So the values that a small multiset can reach are tabulated once
(:func:`expressions_by_value`), and a target is traced back through the last operation: to make
``t`` from a left side worth ``a``, the right side must be worth ``t - a``, ``a - t``, ``t + a``,
``t / a``, ``a / t`` or ``t * a``.

Sums and products are kept in one orientation here (``a + b`` stands for ``b + a`` too);
:mod:`companion.countdown.traces` writes out both.

Time on one core, measured with nothing tabulated yet: 3 numbers 0.2 ms, 4 numbers 1 ms, 5 numbers
10 ms, 6 numbers 0.1 to 0.5 s and up to a hundred thousand solutions.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import gcd
from typing import Literal

from companion.countdown.expressions import Expression, Number, Operation, Operator
from companion.countdown.problems import Problem

Intermediates = Literal["rational", "whole"]
"""``rational``: any exact fraction, also negative (the paper). ``whole``: Countdown's own rule,
every intermediate result is a whole number, zero or more (the laboratory)."""

Ratio = tuple[int, int]  # a reduced fraction; tuples hash several times faster than Fraction
Multiset = tuple[int, ...]  # sorted numbers

# Multisets up to this size are tabulated; larger ones are solved for one value at a time. Under
# whole results a table of three numbers is small, and a world of small numbers meets it again.
TABULATED = {True: 3, False: 2}  # by whether results must be whole


def solve(problem: Problem, intermediates: Intermediates = "rational") -> tuple[Expression, ...]:
    """Every expression that uses each number exactly once and equals the target.

    Sums and products appear in one orientation each; brackets that do not change the tree do not
    exist. The order is deterministic.

    Args:
        problem: the numbers and the target.
        intermediates: ``"rational"`` (the paper's space) or ``"whole"`` (the laboratory's).

    Raises:
        ValueError: for another value of ``intermediates``.
    """
    whole = only_whole(intermediates)
    return _reaching(tuple(sorted(problem.numbers)), (problem.target, 1), whole)


def only_whole(intermediates: Intermediates) -> bool:
    """Whether every intermediate result must be a whole number, zero or more.

    Raises:
        ValueError: for another value than ``"rational"`` or ``"whole"``.
    """
    if intermediates not in ("rational", "whole"):
        raise ValueError(f'intermediates: "rational" or "whole"; got {intermediates!r}')
    return intermediates == "whole"


@lru_cache(maxsize=4096)
def expressions_by_value(numbers: Multiset, whole: bool) -> dict[Ratio, tuple[Expression, ...]]:
    """For each value that the multiset can reach, the expressions that reach it."""
    if len(numbers) == 1:
        return {(numbers[0], 1): (Number(numbers[0]),)}
    reached: dict[Ratio, list[Expression]] = {}
    for left, right in splits(numbers):
        right_table = expressions_by_value(right, whole).items()
        for a, lefts in expressions_by_value(left, whole).items():
            for b, rights in right_table:
                for operator, swapped, value in _combinations(a, b, whole):
                    reached.setdefault(value, []).extend(
                        _join(operator, swapped, lefts, rights, same_side=left == right)
                    )
    return {value: tuple(dict.fromkeys(found)) for value, found in reached.items()}


@lru_cache(maxsize=65536)
def _reaching(numbers: Multiset, target: Ratio, whole: bool) -> tuple[Expression, ...]:
    if len(numbers) <= TABULATED[whole]:
        return expressions_by_value(numbers, whole).get(target, ())
    found: list[Expression] = []
    for left, right in splits(numbers):
        # Most needed values cannot be reached at all, so looking one up has to be cheap.
        table = expressions_by_value(right, whole) if len(right) <= TABULATED[whole] else None
        for a, lefts in expressions_by_value(left, whole).items():
            for operator, swapped, b in _needed(a, target, right, whole):
                rights = _reaching(right, b, whole) if table is None else table.get(b)
                if rights:
                    found.extend(_join(operator, swapped, lefts, rights, same_side=left == right))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=4096)
def splits(numbers: Multiset) -> tuple[tuple[Multiset, Multiset], ...]:
    """Every way to part a multiset in two non-empty ones, the smaller first, each way once."""
    found: dict[tuple[Multiset, Multiset], None] = {}
    for size in range(1, len(numbers) // 2 + 1):
        for chosen in combinations(range(len(numbers)), size):
            left = tuple(numbers[i] for i in chosen)
            right = tuple(numbers[i] for i in range(len(numbers)) if i not in chosen)
            if (right, left) not in found:
                found[left, right] = None
    return tuple(found)


def _combinations(a: Ratio, b: Ratio, whole: bool) -> Iterator[tuple[Operator, bool, Ratio]]:
    """The results of the six operations on two values; swapped are ``b - a`` and ``b / a``."""
    (p, q), (r, s) = a, b
    if whole:
        yield "+", False, (p + r, 1)
        yield "*", False, (p * r, 1)
        if p >= r:
            yield "-", False, (p - r, 1)
        if r >= p:
            yield "-", True, (r - p, 1)
        if r and p % r == 0:
            yield "/", False, (p // r, 1)
        if p and r % p == 0:
            yield "/", True, (r // p, 1)
        return
    ps, qr, qs = p * s, q * r, q * s
    yield "+", False, _reduced(ps + qr, qs)
    yield "*", False, _reduced(p * r, qs)
    yield "-", False, _reduced(ps - qr, qs)
    yield "-", True, _reduced(qr - ps, qs)
    if r:
        yield "/", False, _reduced(ps, qr)
    if p:
        yield "/", True, _reduced(qr, ps)


def _needed(
    a: Ratio, target: Ratio, right: Multiset, whole: bool
) -> list[tuple[Operator, bool, Ratio]]:
    """Every operation that can make the target of ``a``, with the other value that it needs."""
    (p, q), (t, u) = a, target
    pu, tq, qu = p * u, t * q, q * u
    needed: list[tuple[Operator, bool, Ratio]] = [
        ("+", False, _reduced(tq - pu, qu)),  # b = t - a
        ("-", False, _reduced(pu - tq, qu)),  # b = a - t
        ("-", True, _reduced(tq + pu, qu)),  # b = t + a
    ]
    if p:
        needed.append(("*", False, _reduced(tq, pu)))  # b = t / a
        needed.append(("/", True, _reduced(t * p, qu)))  # b = t * a
        if t:
            needed.append(("/", False, _reduced(pu, tq)))  # b = a / t
    elif t == 0:
        # Zero times anything, and zero divided by anything but zero, is zero.
        for b in expressions_by_value(right, whole):
            needed.append(("*", False, b))
            if b[0]:
                needed.append(("/", False, b))
    if whole:
        return [
            (operator, swapped, b)
            for operator, swapped, b in needed
            if (operator, swapped, target) in _combinations(a, b, whole)
        ]
    return needed


def _join(
    operator: Operator,
    swapped: bool,
    lefts: tuple[Expression, ...],
    rights: tuple[Expression, ...],
    same_side: bool,
) -> Iterator[Expression]:
    for left in lefts:
        for right in rights:
            if swapped:
                yield Operation(operator, right, left)
            elif same_side and operator in "+*" and repr(right) < repr(left):
                yield Operation(operator, right, left)  # 3+5 and 5+3 over two equal sides are one
            else:
                yield Operation(operator, left, right)


def _reduced(numerator: int, denominator: int) -> Ratio:
    if denominator == 1:
        return (numerator, 1)
    divisor = gcd(numerator, denominator)
    if denominator < 0:
        divisor = -divisor
    return (numerator // divisor, denominator // divisor)
