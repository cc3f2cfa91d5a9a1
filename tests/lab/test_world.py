"""The laboratory's problems, their splits, and the traces to pre-train on."""

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from companion.countdown.entrances import entrance
from companion.countdown.expressions import Number, evaluate, render
from companion.countdown.problems import Problem
from companion.countdown.solver import expressions_by_value
from companion.countdown.traces import Flaw, valid_traces, verify_trace
from companion.lab import world
from companion.lab.tokenizer import completion
from companion.seeds import generator

SPLITS = ("train", "calibration", "held-out")


def test_problems_are_pinned():
    """Every shipped checkpoint was trained on these; a change would disown them all."""
    first = {
        (split, size): [world.problem(split, size, index) for index in range(2)]
        for split in SPLITS
        for size in world.SIZES
    }
    assert first == {
        ("train", 3): [Problem((7, 7, 2), 21), Problem((6, 1, 13), 19)],
        ("train", 4): [Problem((4, 5, 8, 2), 60), Problem((1, 6, 7, 1), 21)],
        ("calibration", 3): [Problem((1, 2, 4), 10), Problem((8, 12, 1), 19)],
        ("calibration", 4): [Problem((4, 1, 2, 2), 10), Problem((4, 2, 2, 3), 26)],
        ("held-out", 3): [Problem((5, 6, 11), 19), Problem((7, 11, 12), 30)],
        ("held-out", 4): [Problem((1, 5, 6, 7), 18), Problem((5, 1, 5, 7), 18)],
    }


def test_demonstrations_are_pinned():
    written = [
        str(world.demonstration(world.problem("train", 4, i), 0.5, generator("pinned", i)))
        for i in range(3)
    ]
    assert written == [
        "4 * 2 = 8 , 8 + 8 = 16 , 16 * 5 = 80 , <answer> ( ( 4 * 2 ) + 8 ) * 5 </answer>",
        "1 + 1 = 2 , 2 + 6 = 8 , 7 * 8 = 56 , <answer> 7 * ( ( 1 + 1 ) + 6 ) </answer>",
        "3 * 7 = 21 , 6 - 3 = 3 , 21 - 3 = 18 , <answer> ( 3 * 7 ) - ( 6 - 3 ) </answer>",
    ]


@pytest.mark.parametrize("size", world.SIZES)
@pytest.mark.parametrize("split", SPLITS)
def test_problems_are_of_this_world(split, size):
    for index in range(40):
        problem = world.problem(split, size, index)
        assert len(problem.numbers) == size
        assert 1 <= min(problem.numbers) <= max(problem.numbers) <= world.LARGEST_NUMBER[size]
        assert problem.target in world.TARGETS
        assert world.split_of(problem) == split
        assert len(world.families(problem)) >= 2


def every_problem(size):
    """All solvable problems of the world, one for each key."""
    for numbers in combinations_with_replacement(range(1, world.LARGEST_NUMBER[size] + 1), size):
        for (value, _), expressions in expressions_by_value(numbers, True).items():
            if value in world.TARGETS:
                yield Problem(numbers, value), expressions


def test_splits_share_the_whole_world_as_intended():
    share = Counter(world.split_of(p) for size in world.SIZES for p, _ in every_problem(size))
    total = sum(share.values())
    assert total > 10_000
    assert share["train"] / total == pytest.approx(0.80, abs=0.01)
    assert share["calibration"] / total == pytest.approx(0.08, abs=0.01)
    assert share["held-out"] / total == pytest.approx(0.12, abs=0.01)


def test_limits_hold_for_every_valid_trace_of_the_world():
    """By listing them all. Values: results lie in an expression's parts, whatever its orientation.

    Length: n - 1 lines of six words with their comma, two tags, the answer and the end token; and
    neither orientation nor the order of the lines changes the number of words.
    """
    largest, lengths = 0, set()
    for size in world.SIZES:
        for _, expressions in every_problem(size):
            for expression in expressions:
                largest = max(largest, *parts(expression))
                lengths.add(6 * (size - 1) + 2 + len(render(expression).split()) + 1)
    assert largest == 448 <= world.LARGEST_VALUE  # 8 * 8 * 7 / 8 = 56
    assert max(lengths) == world.LONGEST_COMPLETION


def parts(expression):
    """The values of an expression and of all its parts, in whole numbers."""
    if isinstance(expression, Number):
        return [expression.value]
    left, right = parts(expression.left), parts(expression.right)
    a, b = left[-1], right[-1]
    value = {"+": a + b, "-": a - b, "*": a * b, "/": a // b if b else None}[expression.operator]
    return [*left, *right, value]


@pytest.mark.parametrize("size", world.SIZES)
def test_lengths_counted_by_hand_are_those_of_the_tokenizer(size):
    for index in range(20):
        for trace in valid_traces(world.problem("train", size, index), "whole"):
            words = 6 * (size - 1) + 2 + len(render(trace.expression).split()) + 1
            assert len(completion(trace)) == words <= world.LONGEST_COMPLETION
            assert max(max(line.left, line.right, line.result) for line in trace.lines) <= max(
                parts(trace.expression)
            )


def test_problems_of_a_split_are_different_and_in_order():
    found = world.problems("held-out", 4, 60)
    assert len({problem.key for problem in found}) == 60
    assert found[:30] == world.problems("held-out", 4, 30)
    assert found[0] == world.problem("held-out", 4, 0)
    assert world.problems("held-out", 4, 0) == []


def test_more_problems_than_a_split_holds_are_refused():
    """The calibration split holds 170 problems of three numbers with two entrances."""
    with pytest.raises(ValueError, match="problems: the calibration split has fewer than 171"):
        world.problems("calibration", 3, 171)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test", 3, 0), "split: one of train, calibration, held-out; got 'test'"),
        (("train", 5, 0), "size: 3 or 4 numbers; got 5"),
        (("train", 3, -1), "index: 0, 1, 2, …; got -1"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        world.problem(*arguments)


@pytest.mark.parametrize("size", world.SIZES)
def test_a_demonstration_calculates_rightly_and_writes_what_it_did(size):
    """At worst the target is missed: nothing else is ever wrong with a trace to learn from."""
    rng = generator("test demonstration", size)
    hits = 0
    for index in range(300):
        problem = world.problem("train", size, index % 50)
        trace = world.demonstration(problem, 0.1, rng)
        verdict = verify_trace(str(trace), problem, "whole")
        assert verdict.correct or verdict.flaw is Flaw.TARGET_MISSED
        hits += verdict.correct
        value = evaluate(trace.expression)
        assert (
            verify_trace(str(trace), Problem(problem.numbers, int(value)), "whole").trace == trace
        )
        assert all(line.result <= world.LARGEST_VALUE for line in trace.lines)
    assert 15 <= hits <= 90  # a tenth by intent, and some by luck


def test_an_intended_hit_is_spread_evenly_over_the_entrances_then_the_family():
    """A big family is no likelier than a small one: each of m doors about 1 / m of the time."""
    problem = Problem((1, 2, 3, 8), 35)
    families = world.families(problem)
    sizes = sorted(len(family) for family in families.values())
    assert sizes[0] < sizes[-1]
    rng = generator("test doors")
    count = 400 * len(families)
    drawn = [world.demonstration(problem, 1.0, rng) for _ in range(count)]
    doors = Counter(entrance(trace) for trace in drawn)
    assert doors.keys() == families.keys()
    assert all(abs(times - 400) < 4 * 400**0.5 for times in doors.values())
    assert set(drawn) == {trace for family in families.values() for trace in family}


def test_a_random_calculation_is_drawn_evenly_over_the_allowed_ones():
    rng = generator("test random trace")
    drawn = Counter(str(world.random_trace((2, 6), rng).lines[0]) for _ in range(7000))
    allowed = {
        *("2 + 6 = 8", "6 + 2 = 8", "2 * 6 = 12", "6 * 2 = 12"),
        *("6 - 2 = 4", "6 / 2 = 3"),
    }
    assert drawn.keys() == allowed
    assert all(abs(times - 7000 / 6) < 4 * (7000 / 6) ** 0.5 for times in drawn.values())


def test_a_random_calculation_never_writes_a_number_outside_the_vocabulary():
    rng = generator("test large values")
    drawn = [world.random_trace((8, 8, 8, 8), rng) for _ in range(2000)]
    results = {line.result for trace in drawn for line in trace.lines}
    assert max(results) == world.LARGEST_VALUE
    assert all(isinstance(result, Fraction) and result.denominator == 1 for result in results)
