"""Judging an answer with sympy, as a user would write it, to be measured against."""

from collections import Counter

from sympy import Integer
from sympy.parsing.sympy_parser import parse_expr

from companion.countdown.problems import Problem


def sympy_correct(text: str, problem: Problem) -> bool:
    """Whether sympy reads the answer as the target, from exactly the given numbers."""
    try:
        tree = parse_expr(text, evaluate=False)
        used = Counter(int(atom) for atom in _numbers(tree))
        return used == Counter(problem.numbers) and tree.doit() == problem.target
    except Exception:  # sympy raises whatever its tokenizer and eval stumble over
        return False


def _numbers(tree: object) -> list[object]:
    """The whole numbers that the tree was written with; sympy writes a - b as a + -1 * b."""
    arguments = getattr(tree, "args", ())
    if not arguments:
        return [tree] if isinstance(tree, Integer) and tree > 0 else []
    return [number for argument in arguments for number in _numbers(argument)]
