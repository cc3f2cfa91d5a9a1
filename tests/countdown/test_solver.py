"""The solution space against a brute force over permutations, shapes and operators."""

import random
from collections import Counter
from fractions import Fraction

import pytest

from companion.countdown.expressions import Number, Operation, evaluate, numbers_used
from companion.countdown.leaves import leaf
from companion.countdown.parser import parse
from companion.countdown.problems import Problem
from companion.countdown.solver import expressions_by_value, solve

KINDS = {
    "repeated number",
    "zero on the way",
    "negative on the way",
    "fraction on the way",
    "no solution",
    "no solution in whole numbers",
}
CALCULATE = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def calculate(tree):
    """The value of a tree and the results of all its calculations."""
    if isinstance(tree, int):
        return Fraction(tree), ()
    operator, left, right = tree
    (a, before), (b, beside) = calculate(left), calculate(right)
    value = CALCULATE[operator](a, b)
    return value, (*before, *beside, value)


def brute_force(trees):
    """For each mode: value -> the trees that reach it under the mode's rule."""
    reached = {"rational": {}, "whole": {}}
    for tree in trees:
        try:
            value, results = calculate(tree)
        except ZeroDivisionError:
            continue
        reached["rational"].setdefault(value, set()).add(tree)
        if all(result >= 0 and result.denominator == 1 for result in results):
            reached["whole"].setdefault(value, set()).add(tree)
    return reached


def unordered(tree):
    """A tree with the operands of sums and products in one order."""
    if isinstance(tree, int):
        return tree
    operator, *operands = tree
    operands = [unordered(operand) for operand in operands]
    return (operator, *(sorted(operands, key=repr) if operator in "+*" else operands))


def as_tree(expression):
    if isinstance(expression, Number):
        return expression.value
    return expression.operator, as_tree(expression.left), as_tree(expression.right)


def as_expression(tree):
    if isinstance(tree, int):
        return Number(tree)
    return Operation(tree[0], as_expression(tree[1]), as_expression(tree[2]))


def assert_same_space(problem, mode, trees):
    """The solver's space is what the brute force found, each solution once."""
    solutions = solve(problem, mode)
    found = [unordered(as_tree(solution)) for solution in solutions]
    assert len(set(found)) == len(found)
    assert set(found) == {unordered(tree) for tree in trees}
    for equivalence in ("structural", "paper"):
        names = {leaf(as_expression(tree), equivalence) for tree in trees}
        assert {leaf(solution, equivalence) for solution in solutions} == names


def kinds(problem, reached):
    """What a problem has to show that is easily got wrong."""
    trees = reached["rational"].get(problem.target, ())
    results = {result for tree in trees for result in calculate(tree)[1][:-1]}
    if len(set(problem.numbers)) < len(problem.numbers):
        yield "repeated number"
    if 0 in results:
        yield "zero on the way"
    if any(result < 0 for result in results):
        yield "negative on the way"
    if any(result.denominator > 1 for result in results):
        yield "fraction on the way"
    if not trees:
        yield "no solution"
    elif problem.target not in reached["whole"]:
        yield "no solution in whole numbers"


def drawn_targets(rng, values, count):
    """Mostly targets that can be reached, small and large ones, and one of any kind."""
    whole = sorted(int(value) for value in values if value.denominator == 1)
    near = [value for value in whole if -20 <= value <= 100]
    return [*rng.choices(near, k=count - 2), rng.choice(whole), rng.randint(-20, 100)]


def test_500_random_problems_differ_in_nothing_from_the_brute_force(every_tree):
    rng = random.Random("500 problems")
    compared, shown = 0, Counter()
    for size, largest, multisets, targets in ((3, 13, 65, 4), (4, 9, 24, 10)):
        for _ in range(multisets):
            numbers = tuple(rng.randint(1, largest) for _ in range(size))
            key = tuple(sorted(numbers))
            reached = brute_force(every_tree(*key))
            for mode, whole in (("rational", False), ("whole", True)):
                values = {Fraction(*ratio) for ratio in expressions_by_value(key, whole)}
                assert values == reached[mode].keys()
            for target in drawn_targets(rng, reached["rational"], targets):
                problem = Problem(numbers, target)
                for mode, by_value in reached.items():
                    assert_same_space(problem, mode, by_value.get(target, set()))
                compared += 1
                shown.update(kinds(problem, reached))
    assert compared == 500
    assert set(shown) == KINDS
    assert min(shown.values()) >= 25, shown


@pytest.mark.parametrize("numbers", [(2, 2, 2, 3, 3), (1, 1, 1, 1, 6), (5, 5, 5, 5, 5)])
def test_five_numbers_differ_in_nothing_from_the_brute_force(every_tree, numbers):
    reached = brute_force(every_tree(*numbers))
    for mode, by_value in reached.items():
        for target in (*range(-3, 13), 24, 100, 125):
            assert_same_space(Problem(numbers, target), mode, by_value.get(target, set()))


def test_six_equal_numbers_differ_in_nothing_from_the_brute_force(every_tree):
    reached = brute_force(every_tree(2, 2, 2, 2, 2, 2))
    for mode, by_value in reached.items():
        for target in (0, 1, 7, 20, 63, 64):
            assert_same_space(Problem((2,) * 6, target), mode, by_value.get(target, set()))


def test_six_numbers_have_the_famous_solution_and_no_wrong_one():
    problem = Problem((25, 50, 75, 100, 3, 6), 952)
    solutions = solve(problem, "whole")
    famous = parse("((100 + 6) * 3 * 75 - 50) / 25")
    assert leaf(famous) in set(map(leaf, solutions))
    assert len(set(solutions)) == len(solutions)
    for solution in solutions:
        assert evaluate(solution) == 952
        assert sorted(numbers_used(solution)) == sorted(problem.numbers)


@pytest.mark.parametrize(
    ("numbers", "target", "whole", "rational"),
    [
        ((7,), 7, 1, 1),
        ((7,), 8, 0, 0),
        ((7,), -7, 0, 0),  # no unary minus
        ((3, 4), 7, 1, 1),
        ((3, 4), -1, 0, 1),
        ((3, 3), 0, 1, 1),
        ((3, 3), 1, 1, 1),
        ((1, 5, 5, 5), 24, 0, 1),  # 5 * (5 - 1 / 5)
        ((3, 3, 8, 8), 24, 0, 1),  # 8 / (3 - 8 / 3)
        ((1, 1, 1, 1), 24, 0, 0),
    ],
)
def test_problems_whose_solutions_can_be_counted_by_hand(numbers, target, whole, rational):
    problem = Problem(numbers, target)
    assert len(solve(problem, "whole")) == whole
    assert len(solve(problem, "rational")) == rational


def test_order_of_the_numbers_does_not_matter():
    assert solve(Problem((4, 2, 3), 14)) == solve(Problem((2, 3, 4), 14))


def test_unknown_rule_for_intermediates_is_refused():
    with pytest.raises(ValueError, match='intermediates: "rational" or "whole"; got \'integer\''):
        solve(Problem((2, 3), 5), "integer")
