"""Entrances: the first calculation of a trace, and the menu of all of them."""

from fractions import Fraction

import pytest

from companion.countdown.entrances import Entrance, entrance, menu, paper_entrance, paper_menu
from companion.countdown.expressions import render
from companion.countdown.parser import parse
from companion.countdown.problems import Problem
from companion.countdown.traces import valid_traces


def by_name(families):
    return {str(first): list(family) for first, family in families.items()}


def test_menu_by_hand():
    """2, 3 and 7 make 42 in one way: the three numbers multiplied, in any order."""
    families = by_name(menu(Problem((2, 3, 7), 42), "whole"))
    assert list(families) == ["2 *", "3 *", "7 *"]
    assert sorted(map(str, families["7 *"])) == [
        "7 * 2 = 14 , 14 * 3 = 42 , <answer> ( 7 * 2 ) * 3 </answer>",
        "7 * 2 = 14 , 3 * 14 = 42 , <answer> 3 * ( 7 * 2 ) </answer>",
        "7 * 3 = 21 , 2 * 21 = 42 , <answer> 2 * ( 7 * 3 ) </answer>",
        "7 * 3 = 21 , 21 * 2 = 42 , <answer> ( 7 * 3 ) * 2 </answer>",
    ]


def test_both_orders_of_a_product_are_on_the_menu():
    """30 = 4 * 7 + 2, and no other way: the reference code has one of the two orders alone."""
    problem = Problem((7, 4, 2), 30)
    assert list(by_name(menu(problem, "whole"))) == ["4 *", "7 *"]
    assert list(by_name(paper_menu(problem, "whole"))) == ["4 *"]


def test_differences_and_quotients_have_one_order():
    assert list(by_name(menu(Problem((5, 9), 4), "whole"))) == ["9 -"]
    assert list(by_name(menu(Problem((2, 8), 4), "whole"))) == ["8 /"]
    assert list(by_name(menu(Problem((5, 9), -4), "rational"))) == ["5 -"]


def test_what_is_calculated_first_is_the_entrance_not_what_stands_first():
    """9 - 4 * 7 begins with the product; the reference code files it under 9 -."""
    problem = Problem((9, 4, 7), -19)
    assert list(by_name(menu(problem))) == ["4 *", "7 *"]
    assert [render(e) for family in paper_menu(problem).values() for e in family] == [
        "9 - ( 4 * 7 )"
    ]
    assert list(by_name(paper_menu(problem))) == ["9 -"]


def test_independent_first_lines_are_all_on_the_menu():
    """(2 + 3) * (8 - 1) may begin with either bracket."""
    families = by_name(menu(Problem((1, 2, 3, 8), 35), "whole"))
    assert {"2 +", "3 +", "8 -"} <= families.keys()
    beginning = "8 - 1 = 7 , 2 + 3 = 5 , 5 * 7 = 35 , <answer> ( 2 + 3 ) * ( 8 - 1 ) </answer>"
    assert beginning in map(str, families["8 -"])


@pytest.mark.parametrize("intermediates", ["whole", "rational"])
@pytest.mark.parametrize("problem", [Problem((2, 2, 4), 16), Problem((1, 3, 4, 6), 24)], ids=str)
def test_menu_files_every_valid_trace_once_in_order(problem, intermediates):
    families = menu(problem, intermediates)
    assert list(families) == sorted(families)
    filed = [trace for family in families.values() for trace in family]
    assert sorted(map(str, filed)) == sorted(map(str, valid_traces(problem, intermediates)))
    for first, family in families.items():
        assert family
        assert {entrance(trace) for trace in family} == {first}
        assert all(str(trace).startswith(f"{first} ") for trace in family)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("9 - 4 * 7", "9 -"),
        ("7 * 4 + 2", "4 *"),  # sorted: ((4*7)+2)
        ("2 + 7 * 4", "4 *"),
        ("4 + 7 - 2", "4 +"),  # opening brackets are passed over: ((4+7)-2)
        ("(3 + 4) * (2 - 1)", "2 -"),  # "(2-1)" sorts before "(3+4)"
        ("9 * (3 + 4)", "3 +"),  # a bracket sorts before any digit
        ("25 + 9 + 10", "10 +"),  # "10" sorts before "25", and that before "9"
        ("8 / (4 / 2)", "8 /"),
        ("7", None),
        ("(-3) + 4", None),  # "(-3)" is no number followed by an operator
    ],
)
def test_entrance_of_the_paper_by_hand(text, first):
    found = paper_entrance(parse(text))
    assert (found and str(found)) == first


def test_a_problem_of_one_number_has_no_entrance():
    assert [entrance(trace) for trace in valid_traces(Problem((7,), 7))] == [None]
    assert menu(Problem((7,), 7)) == paper_menu(Problem((7,), 7)) == {}


def test_entrances_are_compared_by_value_and_come_in_order():
    assert entrance(valid_traces(Problem((4, 5), 20))[0]) == Entrance(Fraction(4), "*")
    shuffled = [Entrance(Fraction(10), "*"), Entrance(Fraction(9), "-"), Entrance(Fraction(9), "*")]
    assert [str(first) for first in sorted(shuffled)] == ["9 *", "9 -", "10 *"]
