"""When two solutions are the same one: by hand, by a rational-function oracle, by rewriting."""

import random
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.countdown.expressions import Negation, Number, Operation, evaluate
from companion.countdown.leaves import leaf
from companion.countdown.parser import parse

# Pairs of answers; the first flag is equality under "structural", the second under "paper".
PAIRS = [
    # Sums and products in another order or with other brackets
    ("3 + 4", "4 + 3", True, True),
    ("3 * 4", "4 * 3", True, True),
    ("(3 + 4) + 5", "3 + (5 + 4)", True, True),
    ("2 * (3 * 4)", "(4 * 2) * 3", True, True),
    ("2 * (3 + 4)", "(4 + 3) * 2", True, True),
    ("3 * 4 + 5 * 6", "6 * 5 + 4 * 3", True, True),
    # Sums with differences, products with quotients
    ("7 - 2 + 4", "7 + 4 - 2", True, False),
    ("7 - 2 + 4", "7 - (2 - 4)", True, False),
    ("9 - 3 - 2", "9 - 2 - 3", True, False),
    ("9 - 3 - 2", "9 - (3 + 2)", True, False),
    ("8 / 4 * 3", "8 * 3 / 4", True, False),
    ("8 / 4 * 3", "8 / (4 / 3)", True, False),
    ("8 / 4 / 2", "8 / 2 / 4", True, False),
    ("8 / 4 / 2", "8 / (4 * 2)", True, False),
    ("1 / (2 / (3 / 4))", "1 * 3 / (2 * 4)", True, False),
    ("(1 / 2) / (3 / 4)", "(1 * 4) / (2 * 3)", True, False),
    ("5 - 3", "3 - 5", False, False),
    ("8 / 4", "4 / 8", False, False),
    # Signs pulled out of products and quotients
    ("(7 - 2) * (9 - 4)", "(2 - 7) * (4 - 9)", True, False),
    ("(7 - 2) / (9 - 4)", "(2 - 7) / (4 - 9)", True, False),
    ("(7 - 2) * (9 - 4)", "(2 - 7) * (9 - 4)", False, False),
    ("8 + 2 * (7 - 3)", "8 - 2 * (3 - 7)", True, False),
    ("8 - (7 - 3) / 2", "8 + (3 - 7) / 2", True, False),
    ("8 - 2 * (7 - 3)", "8 - 2 * (3 - 7)", False, False),
    # Where a difference is its own opposite, its sign means nothing
    ("7 + (3 - 3) * 5", "7 - (3 - 3) * 5", True, False),
    ("7 - 5 / (4 - 2 + 2 - 4)", "7 + 5 / (4 - 2 + 2 - 4)", True, False),
    ("7 + (3 - 2) * 5", "7 - (3 - 2) * 5", False, False),
    # Unary minus, which only answers have
    ("-(-3)", "3", True, False),
    ("-3 + 4", "4 - 3", True, False),
    ("-(3 - 4)", "4 - 3", True, False),
    ("(-3) * (-4)", "3 * 4", True, False),
    ("(-3) * 4", "3 * (-4)", True, False),
    ("(-3) * 4", "3 * 4", False, False),
    ("5 - (-3)", "5 + 3", True, False),
    ("6 / (-3)", "-(6 / 3)", True, False),
    ("-(3 - 4) * 5", "(4 - 3) * 5", True, False),
    # One value, but another calculation
    ("3 * 1", "3 / 1", False, False),
    ("2 + 2", "2 * 2", False, False),
    ("2 * (3 + 4)", "2 * 3 + 2 * 4", False, False),
    ("(6 + 4) / 2", "6 / 2 + 4 / 2", False, False),
    ("5 + 3 - 3", "5 * 3 / 3", False, False),
    ("7 + (5 - 2 - 3) * 4", "7 - (5 - 2 - 3) * 4", False, False),
    # Equal numbers are interchangeable
    ("(3 + 3) * 5", "5 * (3 + 3)", True, True),
    ("5 * 3 - 3", "3 * 5 - 3", True, True),
]


@pytest.mark.parametrize(("one", "other", "structural", "paper"), PAIRS)
def test_pairs_worked_by_hand(one, other, structural, paper):
    first, second = parse(one), parse(other)
    assert (leaf(first) == leaf(second)) is structural
    assert (leaf(first, "paper") == leaf(second, "paper")) is paper


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("9 + 25 + 10", "(10+25+9)"),  # sorted as text, not as numbers
        ("9 * (3 + 4)", "((3+4)*9)"),  # a bracket comes before any digit
        ("(9 + 8) + (7 + 6)", "(6+7+8+9)"),
        ("9 * (2 * (3 + 4 * 5))", "(((4*5)+3)*2*9)"),
        ("9 - (7 - 2)", "(9-(7-2))"),  # differences and quotients keep their order and brackets
        ("8 / (4 / 2)", "(8/(4/2))"),
        ("3 + 4 - 5 + 6", "(((3+4)-5)+6)"),
        ("-(4 + 3)", "(-(3+4))"),
        ("5 - (-3)", "(5-(-3))"),
        ("7", "7"),
    ],
)
def test_canonical_form_of_the_paper(text, canonical):
    assert leaf(parse(text), "paper") == canonical


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("7", "7"),
        ("4 + 7 - 2", "4+7-2"),
        ("8 / 2 * 3 / 4", "3*8/2/4"),
        ("2 - 4 - 7", "-(4+7-2)"),  # of a sum and its opposite, the one with fewer minus signs
        ("(7 - 2) * (4 - 9)", "-((2-7)*(4-9))"),
    ],
)
def test_structural_names_can_be_read(text, name):
    assert leaf(parse(text)) == name


def test_unknown_equivalence_is_refused():
    with pytest.raises(ValueError, match='equivalence: "structural" or "paper"; got \'exact\''):
        leaf(Number(3), "exact")


# The oracle. Every tree is a function of formal symbols, one a position. Two trees are the same
# leaf exactly if their functions are equal once equal numbers may change places: since each symbol
# occurs once, no distributive law can make two different structures the same function. Functions
# are compared by their values at random points of a prime field.

PRIME = 2**61 - 1


MULTISETS = [
    *((7, 8), (7, 7), (7, 8, 9), (7, 7, 9), (7, 7, 7)),
    *((2, 7, 8, 9), (7, 7, 8, 9), (7, 7, 8, 8), (7, 7, 7, 8), (7, 7, 7, 7)),
]


def rational(operator, a, b):
    if operator == "+":
        return (a + b) % PRIME
    if operator == "-":
        return (a - b) % PRIME
    return a * (b if operator == "*" else pow(b, -1, PRIME)) % PRIME


def free(operator, a, b):
    """Differences and quotients that obey no law at all, as in the paper's rule."""
    if operator in "-/":
        return (pow(a, 3 if operator == "-" else 5, PRIME) * b + pow(b, 7, PRIME)) % PRIME
    return rational(operator, a, b)


def value_at(tree, point, calculate):
    if isinstance(tree, int):
        return point[tree]
    operator, left, right = tree
    a, b = value_at(left, point, calculate), value_at(right, point, calculate)
    return calculate(operator, a, b)


def as_expression(tree, numbers):
    if isinstance(tree, int):
        return Number(numbers[tree])
    operator, left, right = tree
    return Operation(operator, as_expression(left, numbers), as_expression(right, numbers))


def points_for(numbers):
    """One random point, and every permutation of it among equal numbers."""
    point = random.Random(str(numbers)).choices(range(1, PRIME), k=len(numbers))
    places = range(len(numbers))
    return [
        [point[place] for place in order]
        for order in permutations(places)
        if all(numbers[order[place]] == numbers[place] for place in places)
    ]


def partition(keyed):
    """The sets of indices that share a key."""
    cells = {}
    for index, key in enumerate(keyed):
        cells.setdefault(key, set()).add(index)
    return {frozenset(cell) for cell in cells.values()}


@pytest.mark.parametrize(("equivalence", "calculate"), [("structural", rational), ("paper", free)])
@pytest.mark.parametrize("numbers", MULTISETS, ids=str)
def test_leaves_are_exactly_the_different_functions(every_tree, numbers, equivalence, calculate):
    trees = every_tree(*range(len(numbers)))
    points = points_for(numbers)
    functions = [min(value_at(tree, point, calculate) for point in points) for tree in trees]
    names = [leaf(as_expression(tree, numbers), equivalence) for tree in trees]
    assert partition(names) == partition(functions)


@pytest.mark.parametrize(("count", "published"), [(1, 1), (2, 6), (3, 68), (4, 1170)])
def test_structural_leaves_of_different_numbers_are_as_many_as_published(
    every_tree, count, published
):
    """OEIS A140606, the number of inequivalent expressions of n operands."""
    numbers = range(11, 11 + count)
    names = {leaf(as_expression(tree, numbers)) for tree in every_tree(*range(count))}
    assert len(names) == published


@pytest.mark.parametrize(("count", "published"), [(1, 2), (2, 10), (3, 94)])
def test_leaves_with_unary_minus_are_as_many_as_published(every_tree, count, published):
    """OEIS A182173, the number of inequivalent expressions of n operands with unary minus."""

    def signed(tree):
        if isinstance(tree, int):
            return [Number(tree), Negation(Number(tree))]
        pairs = product(signed(tree[1]), signed(tree[2]))
        plain = [Operation(tree[0], left, right) for left, right in pairs]
        return plain + [Negation(expression) for expression in plain]

    numbers = range(11, 11 + count)
    names = {leaf(expression) for tree in every_tree(*numbers) for expression in signed(tree)}
    assert len(names) == published


@pytest.mark.parametrize("equivalence", ["structural", "paper"])
@pytest.mark.parametrize("numbers", [(1, 2, 3, 4), (2, 2, 3, 6), (3, 3, 3, 3)], ids=str)
def test_one_leaf_has_one_value(every_tree, numbers, equivalence):
    values = {}
    for tree in every_tree(*range(len(numbers))):
        expression = as_expression(tree, numbers)
        try:
            value = evaluate(expression)
        except ZeroDivisionError:
            continue
        assert values.setdefault(leaf(expression, equivalence), value) == value


# Laws of arithmetic that use each operand once on either side; 1, 2, 3 stand for any expression.
LAWS = [
    ("1 + 2", "2 + 1"),
    ("1 * 2", "2 * 1"),
    ("(1 + 2) + 3", "1 + (2 + 3)"),
    ("(1 * 2) * 3", "1 * (2 * 3)"),
    ("1 - (2 - 3)", "(1 - 2) + 3"),
    ("(1 - 2) - 3", "1 - (2 + 3)"),
    ("(1 + 2) - 3", "1 + (2 - 3)"),
    ("1 / (2 / 3)", "(1 * 3) / 2"),
    ("(1 / 2) / 3", "1 / (2 * 3)"),
    ("(1 * 2) / 3", "1 * (2 / 3)"),
    ("(1 - 2) * (3 - 4)", "(2 - 1) * (4 - 3)"),
    ("1 - 2", "-(2 - 1)"),
    ("1 - 2", "1 + (-2)"),
    ("1", "-(-1)"),
    ("(-1) * 2", "-(1 * 2)"),
    ("(-1) / 2", "-(1 / 2)"),
    ("1 / (-2)", "-(1 / 2)"),
]
RULES = [tuple(map(parse, law)) for law in LAWS]
RULES += [(right, left) for left, right in RULES]


def matches(pattern, expression, operands):
    """Whether an expression has the form of a pattern; notes what its numbers stand for."""
    if isinstance(pattern, Number):
        operands[pattern.value] = expression
        return True
    if type(pattern) is not type(expression):
        return False
    if isinstance(pattern, Negation):
        return matches(pattern.operand, expression.operand, operands)
    return (
        pattern.operator == expression.operator
        and matches(pattern.left, expression.left, operands)
        and matches(pattern.right, expression.right, operands)
    )


def filled(pattern, operands):
    if isinstance(pattern, Number):
        return operands[pattern.value]
    if isinstance(pattern, Negation):
        return Negation(filled(pattern.operand, operands))
    return Operation(
        pattern.operator, filled(pattern.left, operands), filled(pattern.right, operands)
    )


def rewritten(expression):
    """Every expression that one law, used at one place, makes of this one."""
    for before, after in RULES:
        operands = {}
        if matches(before, expression, operands):
            yield filled(after, operands)
    if isinstance(expression, Negation):
        yield from map(Negation, rewritten(expression.operand))
    if isinstance(expression, Operation):
        operator, left, right = expression.operator, expression.left, expression.right
        yield from (Operation(operator, other, right) for other in rewritten(left))
        yield from (Operation(operator, left, other) for other in rewritten(right))


def value_of(expression):
    try:
        return evaluate(expression)
    except ZeroDivisionError:
        return None


EXPRESSIONS = st.recursive(
    st.integers(1, 5).map(Number),
    lambda inner: (
        st.builds(Operation, st.sampled_from("+-*/"), inner, inner) | st.builds(Negation, inner)
    ),
    max_leaves=7,
)


@given(EXPRESSIONS, st.data())
def test_laws_of_arithmetic_change_neither_leaf_nor_value(expression, data):
    name, value = leaf(expression), value_of(expression)
    for _ in range(6):
        expression = data.draw(st.sampled_from(list(rewritten(expression))))
        assert leaf(expression) == name
        # 1/(2/x) divides by zero where 1*x/2 does not: a value may come or go, but not change.
        assert None in (value, value_of(expression)) or value_of(expression) == value
