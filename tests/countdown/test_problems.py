import dataclasses

import numpy as np
import pytest

from companion.countdown.problems import Problem


def test_key_is_the_same_in_any_order_and_keeps_repeated_numbers():
    assert Problem((3, 9, 3), 6).key == Problem((9, 3, 3), 6).key == ((3, 3, 9), 6)
    assert Problem((3, 9), 6).key != Problem((3, 3, 9), 6).key
    assert Problem((3, 9), 6).key != Problem((3, 9), 12).key


def test_problems_are_compared_by_what_is_shown():
    assert Problem([3, 9], 6) == Problem((3, 9), 6)
    assert len({Problem((3, 9), 6), Problem([3, 9], 6), Problem((9, 3), 6)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Problem((3, 9), 6).target = 7


def test_numbers_from_a_table_make_the_same_problem():
    problem = Problem(np.array([3, 9]), np.int32(6))
    assert problem == Problem((3, 9), 6)
    assert [type(number) for number in (*problem.numbers, problem.target)] == [int, int, int]


@pytest.mark.parametrize("target", [0, -7, 10**18 - 1, 1 - 10**18])
def test_any_whole_target_of_18_digits(target):
    assert Problem((10**18 - 1,) * 6, target).target == target


@pytest.mark.parametrize(
    ("numbers", "target", "message"),
    [
        ((), 7, r"numbers: a problem has 1 to 6 numbers, such as \(3, 5, 7\); got 0"),
        ((1,) * 7, 7, "numbers: a problem has 1 to 6 numbers, .*; got 7"),
        (7, 7, r"numbers: a sequence of whole numbers such as \(3, 5, 7\); got 7"),
        ((3, 0), 7, "numbers: each is at least 1; got 0"),
        ((3, -4), 7, "numbers: each is at least 1; got -4"),
        ((3, 4.0), 7, r"numbers: whole numbers such as 7; got 4\.0"),
        ((3, True), 7, "numbers: whole numbers such as 7; got True"),
        ((3, None), 7, "numbers: whole numbers such as 7; got None"),
        ("34", 7, "numbers: whole numbers such as 7; got '3'"),
        (((3, 4),), 7, r"numbers: whole numbers such as 7; got \(3, 4\)"),
        ((3, 4), "7", "target: whole numbers such as 7; got '7'"),
        ((3, 4), 7.5, r"target: whole numbers such as 7; got 7\.5"),
        ((3, 4), False, "target: whole numbers such as 7; got False"),
        ((3, 10**18), 7, "numbers: at most 18 digits, such as 952; got more"),
        ((3, 10**5000), 7, "numbers: at most 18 digits"),  # too long for Python to print
        ((3, 4), -(10**18), "target: at most 18 digits, such as 952; got more"),
    ],
)
def test_bad_input_is_refused_with_a_valid_value(numbers, target, message):
    with pytest.raises(ValueError, match=message):
        Problem(numbers, target)
