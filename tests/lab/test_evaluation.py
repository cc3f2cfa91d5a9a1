import math

import pytest
import torch

from companion import lineages
from companion.countdown.leaves import leaf
from companion.countdown.solver import solve
from companion.lab import evaluation, world
from companion.lab.evaluation import DECODING, LANGUAGE, PROBLEMS, SAMPLES, measured, spaces
from companion.lab.tokenizer import completion, prompt
from companion.policies.decoding import Decoding
from companion.policies.exact import exact
from companion.policies.transformers import load_policy

MEASURES = ("pass@1", "coverage", "family coverage", "entrance entropy")
SAME = 1e-4  # of a measure: single precision, on another machine


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ends(name):
    """The first and the last checkpoint of a lineage."""
    return lineages.load(name).checkpoints[0], lineages.load(name).checkpoints[-1]


@pytest.fixture(scope="module")
def fresh():
    """What the ends of both lineages measure now on the held-out problems, by folder."""
    folders = {c.folder for name in ("lab-grpo", "lab-random-reward") for c in ends(name)}
    return {folder: measured(load_policy(folder)) for folder in folders}


@pytest.fixture(scope="module")
def mean(fresh):
    """A measure of a checkpoint over both sizes, which have the same number of problems."""
    return lambda checkpoint, measure: (
        sum(values[measure] for values in fresh[checkpoint.folder].values()) / len(world.SIZES)
    )


# The shipped phenomenon, exactly, on the held-out problems.


def test_pass_at_1_at_least_doubles(mean):
    base, late = ends("lab-grpo")
    assert mean(late, "pass@1") >= 2 * mean(base, "pass@1")


@pytest.mark.parametrize("measure", ["coverage", "family coverage"])
def test_coverage_falls_by_at_least_a_third(mean, measure):
    base, late = ends("lab-grpo")
    assert mean(late, measure) <= 2 / 3 * mean(base, measure)


def test_the_control_gains_nothing_and_loses_less_than_half_as_much(mean):
    base, control = ends("lab-random-reward")
    _, late = ends("lab-grpo")
    assert mean(control, "pass@1") <= mean(base, "pass@1")
    for measure in ("coverage", "family coverage"):
        loss, noise = (mean(base, measure) - mean(end, measure) for end in (late, control))
        assert noise < loss / 2, measure


@pytest.mark.parametrize("size", [str(size) for size in world.SIZES])
def test_either_size_of_problem_gains_and_loses_on_its_own(fresh, size):
    base, late = (fresh[checkpoint.folder][size] for checkpoint in ends("lab-grpo"))
    control = fresh[ends("lab-random-reward")[1].folder][size]
    assert late["pass@1"] > base["pass@1"] >= control["pass@1"]
    for measure in ("coverage", "family coverage", "entrance entropy"):
        assert late[measure] < min(base[measure], control[measure]), measure


@pytest.mark.parametrize("name", ["lab-grpo", "lab-random-reward"])
def test_the_manifest_says_what_a_fresh_measurement_finds(fresh, name):
    for checkpoint in ends(name):
        now, said = fresh[checkpoint.folder], checkpoint.record.measured
        assert now.keys() == said.keys() == set(map(str, world.SIZES))
        for size in now:
            assert now[size].keys() == said[size].keys() == set(MEASURES)
            for measure in MEASURES:
                assert now[size][measure] == pytest.approx(said[size][measure], abs=SAME)


# What is measured, and on what.


def test_the_headline_numbers_are_the_papers():
    assert Decoding(temperature=0.7, top_p=0.9, max_tokens=40) == DECODING
    assert SAMPLES == 320
    assert PROBLEMS == {"calibration": 25, "held-out": 50}


@pytest.mark.parametrize("size", world.SIZES)
def test_spaces_are_the_first_problems_of_the_split_under_whole_intermediates(size):
    found = spaces("held-out", size, 4)
    assert [one.problem for one in found] == world.problems("held-out", size, 4)
    for one in found:
        solved = {leaf(expression, "structural") for expression in solve(one.problem, "whole")}
        assert set(one.leaves) == solved
        lines = [line for trace in one.traces for line in trace.lines]
        assert all(line.result.denominator == 1 for line in lines)


def test_splits_do_not_share_a_problem():
    keys = [
        {one.problem.key for size in world.SIZES for one in spaces(split, size, 20)}
        for split in PROBLEMS
    ]
    assert not keys[0] & keys[1]


@pytest.mark.parametrize("split", ["calibration", "held-out"])
def test_measured_is_the_mean_over_problems_of_what_the_formulas_say(monkeypatch, split):
    """Against the formulas written out, from every trace's and every first pair's probability."""
    monkeypatch.setitem(PROBLEMS, split, 2)
    policy = load_policy(ends("lab-grpo")[0].folder)
    found = measured(policy, split)
    for size in world.SIZES:
        chosen = spaces(split, size, 2)
        by_hand = [written_out(policy, one) for one in chosen]
        for place, measure in enumerate(MEASURES):
            expected = sum(values[place] for values in by_hand) / 2
            assert found[str(size)][measure] == pytest.approx(expected, abs=1e-5), measure


def written_out(policy, space):
    """pass@1, coverage, family coverage and entrance entropy of one problem, in plain loops."""
    given = prompt(space.problem)
    leaves, families = {}, {}
    for index, trace in enumerate(space.traces):
        p = math.exp(sum(policy.score([given], [[completion(trace)]], DECODING)[0][0]))
        name = space.leaf_of[index]
        leaves[name] = leaves.get(name, 0) + p
        door = (trace.lines[0].left, trace.lines[0].operator)
        families[door] = families.get(door, 0) + p
    first = policy.next_token_distribution([given], DECODING)[0]
    pairs = [
        math.exp(one + other)
        for token, one in enumerate(first)
        if one > -math.inf
        for other in policy.next_token_distribution([(*given, token)], DECODING)[0]
        if other > -math.inf
    ]
    return (
        sum(leaves.values()),
        sum(1 - (1 - p) ** 320 for p in leaves.values()) / len(space.leaves),
        sum(1 - (1 - p) ** 320 for p in families.values()) / len(families),
        -sum(p * math.log(p) for p in pairs),
    )


def test_leaves_and_families_keep_the_order_of_the_solution_space():
    policy = load_policy(ends("lab-grpo")[1].folder)
    chosen = spaces("held-out", 4, 3)
    found = exact(policy, chosen, LANGUAGE, DECODING)
    leaves, families = evaluation.leaves(found), evaluation.families(found)
    for index, (one, space) in enumerate(zip(found, chosen, strict=True)):
        for outcomes, names, group_of in (
            (leaves, space.leaves, space.leaf_of),
            (families, space.entrances, space.entrance_of),
        ):
            own = outcomes.probabilities[outcomes.problem_of == index]
            by_hand = [sum(one.trace[group_of == group]) for group in range(len(names))]
            assert own == pytest.approx(by_hand, abs=1e-12)
