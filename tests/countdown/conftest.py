"""A brute force that shares nothing with the solver: permutations, shapes and operators."""

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import pytest


@pytest.fixture(scope="session")
def every_tree() -> Callable[..., list[Any]]:
    """All trees over the given numbers, each used once, in every order, shape and operator.

    A tree is a number or ``(operator, left, right)``; four different numbers have 7,680 trees.
    """

    def trees(*numbers: int) -> list[Any]:
        orders = sorted(set(permutations(numbers)))
        return [tree for order in orders for tree in shaped(order)]

    def shaped(order: tuple[int, ...]) -> Iterator[Any]:
        if len(order) == 1:
            yield order[0]
        for cut in range(1, len(order)):
            for left in shaped(order[:cut]):
                for right in shaped(order[cut:]):
                    for operator in "+-*/":
                        yield operator, left, right

    return trees
