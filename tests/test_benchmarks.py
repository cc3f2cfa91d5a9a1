"""Both sides of every benchmark do the same work."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.enumerator import plain_leaves
from benchmarks.generation import generate
from benchmarks.verifier import sympy_correct
from companion import lineages
from companion.countdown.answers import judge
from companion.countdown.leaves import leaf
from companion.countdown.problems import Problem
from companion.countdown.solver import solve
from companion.lab.tokenizer import EOS, prompt
from companion.policies.decoding import Decoding
from companion.policies.transformers import load_policy


@pytest.mark.parametrize(
    "problem",
    [Problem((1, 2, 3, 4), 24), Problem((3, 3, 8, 8), 24), Problem((5, 5, 5, 5), 0)],
)
def test_the_plain_enumerator_finds_the_same_leaves(problem: Problem) -> None:
    assert plain_leaves(problem) == {leaf(found) for found in solve(problem)}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("( 3 + 4 ) * 2", True),
        ("3 * 4 + 2", True),
        ("2 + 3 * 4", True),
        ("3 + 4 * 2", False),  # another value
        ("7 * 2", False),  # other numbers
        ("3 * 4 + 2 + 2 - 2", False),  # a number too often
        ("3 / ( 4 - 4 )", False),
        ("3 +", False),
    ],
)
def test_both_verifiers_give_one_verdict(text: str, right: bool) -> None:
    problem = Problem((2, 3, 4), 14)
    assert sympy_correct(text, problem) is right
    assert judge(text, problem).correct is right


def test_greedy_generation_and_greedy_sampling_write_the_same() -> None:
    policy = load_policy(lineages.load("lab-grpo").at(0).folder)
    prompts = [prompt(Problem((3, 4, 2), 14)), prompt(Problem((5, 6, 7, 8), 30))]
    decoding = Decoding(temperature=1.0, top_p=1e-6, max_tokens=40)
    theirs = generate(policy, prompts, 2, decoding, seed=0)
    ours = policy.sample(prompts, 2, decoding, seed=0)
    for mine, other in zip(ours, theirs, strict=True):
        assert set(other) == set(mine.completions)
        assert all(tokens[-1] == EOS for tokens in other)
