from collections import Counter

import numpy as np
import pytest

from companion import lineages
from companion.countdown.leaves import leaf
from companion.countdown.parser import parse
from companion.countdown.problems import Problem
from companion.countdown.space import space
from companion.countdown.traces import verify_trace
from companion.experiments import rollouts as module
from companion.experiments.rollouts import (
    Plan,
    entrance_counts,
    family_counts,
    leaf_counts,
    rollouts,
    scored,
)
from companion.lab.evaluation import DECODING, LANGUAGE, spaces
from companion.lab.tokenizer import EOS, encode
from companion.measures import MISS
from companion.policies.protocol import Samples
from companion.policies.transformers import load_policy
from companion.runs import RunStore

N = 300
PLAN = Plan(N, DECODING, seed=11)


@pytest.fixture(scope="module")
def policy():
    return load_policy(lineages.load("lab-grpo").at(400).folder)


@pytest.fixture(scope="module")
def chosen():
    return (*spaces("held-out", 3, 2), *spaces("held-out", 4, 2))


@pytest.fixture(scope="module")
def drawn(policy, chosen, tmp_path_factory):
    """The samples and the store that they lie in."""
    store = RunStore(tmp_path_factory.mktemp("runs"))
    return rollouts(store, policy, chosen, PLAN), store


def parts(store):
    """Every part in the store with the time it was written."""
    return {path: path.stat().st_mtime_ns for path in store.root.rglob("part-*.parquet")}


# Scoring, by hand.

SIXTEEN = Problem((3, 4, 12), 16)
RIGHT = "12 / 3 = 4 , 4 * 4 = 16 , <answer> ( 12 / 3 ) * 4 </answer>"


def completion(text, end=True):
    return (*encode(text), *([EOS] if end else []))


def score(problem, completions, sample_of):
    texts = tuple(completions)
    finished = np.array([tokens[-1] == EOS for tokens in texts])
    samples = Samples(texts, np.array(sample_of), np.zeros(len(texts)), finished)
    return scored(space(problem, "whole"), samples)


def test_only_a_finished_valid_trace_has_a_leaf_and_a_family():
    table = score(
        SIXTEEN,
        [
            completion(RIGHT),
            completion(RIGHT, end=False),
            completion(RIGHT.replace("= 16", "= 17")),  # a wrong line
            completion(RIGHT.replace("( 12 / 3 ) * 4", "4 * 4")),  # not what the lines built
            completion("12 + 4 = 16 , 16 * 3 = 48 , <answer> ( 12 + 4 ) * 3 </answer>"),
            completion(""),
        ],
        range(6),
    )
    assert (table["leaf"] != MISS).tolist() == [True, False, False, False, False, False]
    assert ((table["leaf"] == MISS) == (table["family"] == MISS)).all()
    assert table["finished"].tolist() == [True, False, True, True, True, True]
    assert table["entrance"].tolist() == ["12 /"] * 4 + ["12 +", "<eos>"]
    assert table["text"].tolist()[:2] == [RIGHT, RIGHT]


def test_a_trace_of_another_problem_is_wrong():
    table = score(Problem((3, 4, 12), 24), [completion(RIGHT)], [0])
    assert table[["leaf", "family"]].to_numpy().tolist() == [[MISS, MISS]]


def test_different_orders_are_one_leaf_and_two_families():
    table = score(
        SIXTEEN,
        [
            completion(RIGHT),
            completion("12 * 4 = 48 , 48 / 3 = 16 , <answer> ( 12 * 4 ) / 3 </answer>"),
            completion("4 * 12 = 48 , 48 / 3 = 16 , <answer> ( 4 * 12 ) / 3 </answer>"),
        ],
        [0, 1, 2],
    )
    own = space(SIXTEEN, "whole")
    assert len(set(table["leaf"])) == 1
    doors = [str(own.entrances[family]) for family in table["family"]]
    assert len(set(doors)) == 3, doors


def test_every_sample_has_its_own_row_in_its_order():
    wrong = completion("12 + 4 = 16 , 16 * 3 = 48 , <answer> ( 12 + 4 ) * 3 </answer>")
    table = score(SIXTEEN, [completion(RIGHT), wrong], [1, 0, 0, 1, 0])
    assert table["sample"].tolist() == [0, 1, 2, 3, 4]
    assert (table["leaf"] == MISS).tolist() == [True, False, False, True, False]


# Real samples.


def test_there_are_n_rows_a_problem_with_what_the_policy_drew(drawn, policy, chosen):
    table, _ = drawn
    prompts = [LANGUAGE.prompt(one.problem) for one in chosen]
    for i, samples in enumerate(policy.sample(prompts, N, DECODING, PLAN.seed)):
        mine = table[table["problem"] == i]
        assert mine["sample"].tolist() == list(range(N))
        expected = scored(chosen[i], samples)
        assert mine["text"].tolist() == expected["text"].tolist()
    assert len(table) == N * len(chosen)


def test_a_sample_is_right_where_the_verifier_says_so(drawn, chosen):
    """Against reading the text line by line, which shares nothing with looking traces up."""
    table, _ = drawn
    seen = Counter()
    for row in table.drop_duplicates(["problem", "text", "finished"]).itertuples():
        own = chosen[row.problem]
        right = row.finished and verify_trace(row.text, own.problem, "whole").correct
        assert right == (row.leaf != MISS)
        seen[bool(right)] += 1
        if right:
            answer = row.text.split("<answer>")[1].split("</answer>")[0]
            assert own.leaves[row.leaf] == leaf(parse(answer), "structural")
            door = own.entrances[row.family]
            assert row.text.split()[:2] == [str(door.operand), door.operator]
    assert min(seen[True], seen[False]) >= 5  # the samples put both to the test


def test_counts_are_those_of_plain_counters(drawn, chosen):
    table, _ = drawn
    leaves, families = leaf_counts(table, chosen, N), family_counts(table, chosen, N)
    doors = entrance_counts(table, len(chosen), N)
    for i, own in enumerate(chosen):
        rows = [row for row in table.itertuples() if row.problem == i]
        for outcomes, column, names in (
            (leaves, "leaf", own.leaves),
            (families, "family", own.entrances),
        ):
            counted = Counter(getattr(row, column) for row in rows)
            found = outcomes.counts[outcomes.problem_of == i].tolist()
            assert found == [counted[place] for place in range(len(names))]
        first = Counter(row.entrance for row in rows)
        assert sorted(doors.counts[doors.problem_of == i]) == sorted(first.values())
        assert sum(first.values()) == N
    assert leaves.n == families.n == doors.n == N  # wrong samples stay in n


# On disk.


def test_a_second_call_reads_and_writes_nothing(drawn, policy, chosen):
    table, store = drawn
    before = parts(store)
    assert rollouts(store, policy, chosen, PLAN).equals(table)
    assert parts(store) == before
    assert len(before) == 1


def test_only_a_missing_part_is_drawn_again(policy, chosen, tmp_path, monkeypatch, drawn):
    monkeypatch.setattr(module, "PROBLEMS_A_PART", 1)
    store = RunStore(tmp_path)
    table = rollouts(store, policy, chosen, PLAN)
    assert table.equals(drawn[0])  # the same samples, whatever the size of a part
    written = parts(store)
    assert len(written) == len(chosen)
    removed = sorted(written)[2]
    removed.unlink()
    assert rollouts(store, policy, chosen, PLAN).equals(table)
    again = parts(store)
    assert again.keys() == written.keys()
    assert [path for path in again if again[path] != written[path]] == [removed]


def test_what_the_samples_depend_on_has_a_run_of_its_own(policy, chosen, tmp_path):
    store, few = RunStore(tmp_path), Plan(2, DECODING, seed=1)
    other = load_policy(lineages.load("lab-grpo").at(0).folder)
    hotter = Plan(2, DECODING.__class__(1.0, 0.9, 40), seed=1)
    rollouts(store, policy, chosen[:1], few)
    for one, problems, plan in (
        (other, chosen[:1], few),
        (policy, chosen[1:2], few),
        (policy, chosen[:1], Plan(2, DECODING, seed=2)),
        (policy, chosen[:1], Plan(3, DECODING, seed=1)),
        (policy, chosen[:1], hotter),
    ):
        before = len(parts(store))
        rollouts(store, one, problems, plan)
        assert len(parts(store)) == before + 1
