from collections import Counter

import numpy as np
import pytest

from companion import lineages, measures
from companion.experiments.exactly import KINDS, exact_table, first_pairs, solution_spaces
from companion.experiments.rollouts import Plan, family_counts, leaf_counts, rollouts
from companion.lab.evaluation import DECODING, LANGUAGE, families, leaves, spaces
from companion.lab.tokenizer import WORDS
from companion.measures import clopper_pearson
from companion.policies.decoding import Decoding
from companion.policies.exact import entrance_distribution, exact
from companion.policies.transformers import load_policy
from companion.runs import RunStore

N = 3000
ERROR = 1e-9  # of one interval: a few hundred of them, so a right program fails once in millions


@pytest.fixture(scope="module")
def policy():
    """A checkpoint in the middle, where both right and wrong are common."""
    return load_policy(lineages.load("lab-grpo").at(200).folder)


@pytest.fixture(scope="module")
def chosen():
    return (*spaces("held-out", 3, 3), *spaces("held-out", 4, 3))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def table(store, policy, chosen):
    return exact_table(store, policy, chosen, DECODING)


def test_the_table_holds_the_exact_probabilities_bit_for_bit(table, policy, chosen):
    expected = exact(policy, chosen, LANGUAGE, DECODING)
    found = solution_spaces(table, chosen)
    assert [one.space for one in found] == list(chosen)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one.trace, other.trace)
        assert np.array_equal(one.access, other.access)
        assert np.array_equal(one.leaf, other.leaf)
        assert np.array_equal(one.family, other.family)


def test_first_pairs_are_the_entrance_distribution(table, policy, chosen):
    found = first_pairs(table)
    prompts = [LANGUAGE.prompt(one.problem) for one in chosen]
    for i, pairs in enumerate(entrance_distribution(policy, prompts, DECODING)):
        assert found.probabilities[found.problem_of == i].tolist() == list(pairs.values())
        assert sum(pairs.values()) == pytest.approx(1, abs=1e-5)


def test_rows_are_named_by_problem_and_kind(table, chosen):
    assert list(table.columns) == ["problem", "kind", "probability"]
    for i, one in enumerate(chosen):
        count = Counter(table[table["problem"] == i]["kind"])
        assert set(count) == set(KINDS)
        assert (count["trace"], count["access"]) == (len(one.traces), len(one.entrances))


def test_a_second_call_reads_from_disk(table, store, policy, chosen):
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    assert exact_table(store, policy, chosen, DECODING).equals(table)
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before


def test_another_decoding_has_a_run_of_its_own(policy, chosen, tmp_path):
    store = RunStore(tmp_path)
    for runs, decoding in enumerate((DECODING, Decoding(1.0, 0.9, 40), Decoding(0.7, 0.5, 40)), 1):
        found = solution_spaces(exact_table(store, policy, chosen[:2], decoding), chosen[:2])
        for one, other in zip(found, exact(policy, chosen[:2], LANGUAGE, decoding), strict=True):
            assert np.array_equal(one.trace, other.trace)
        assert len(list(store.root.iterdir())) == runs


# Samples against exact values.


@pytest.fixture(scope="module")
def drawn(policy, chosen, store):
    return rollouts(store, policy, chosen, Plan(N, DECODING, seed=5))


def agrees(count, probability):
    """Whether the exact value lies in the Clopper–Pearson interval of the samples."""
    interval = clopper_pearson(int(count), N, level=1 - ERROR)
    return interval.low <= probability + 1e-6 and probability - 1e-6 <= interval.high


def test_every_leaf_and_family_is_sampled_as_often_as_it_should_be(table, drawn, chosen):
    """Which also shows that both list leaves and families in the same order."""
    found = solution_spaces(table, chosen)
    for counts, probabilities in (
        (leaf_counts(drawn, chosen, N), leaves(found)),
        (family_counts(drawn, chosen, N), families(found)),
    ):
        assert np.array_equal(counts.problem_of, probabilities.problem_of)
        for count, p in zip(counts.counts, probabilities.probabilities, strict=True):
            assert agrees(count, p), (count, p)


def test_the_order_matters_for_that_comparison(table, drawn, chosen):
    """With the leaves of each problem in the reverse order, the same comparison fails."""
    counts = leaf_counts(drawn, chosen, N)
    exactly = leaves(solution_spaces(table, chosen))
    reverse = np.concatenate(
        [exactly.probabilities[exactly.problem_of == i][::-1] for i in range(len(chosen))]
    )
    assert not all(agrees(count, p) for count, p in zip(counts.counts, reverse, strict=True))


def test_every_first_pair_is_sampled_as_often_as_it_should_be(drawn, policy, chosen):
    prompts = [LANGUAGE.prompt(one.problem) for one in chosen]
    for i, pairs in enumerate(entrance_distribution(policy, prompts, DECODING)):
        seen = Counter(drawn[drawn["problem"] == i]["entrance"])
        assert set(seen) <= {" ".join(WORDS[token] for token in pair) for pair in pairs}
        for pair, p in pairs.items():
            assert agrees(seen[" ".join(WORDS[token] for token in pair)], p)


def test_measures_agree_within_five_standard_errors(table, drawn, chosen):
    """pass@k and coverage at 16, unbiased from blocks of samples, against the exact values."""
    k, blocks = 16, N // 16
    exactly = leaves(solution_spaces(table, chosen))
    hits = drawn["leaf"].to_numpy().reshape(len(chosen), N)[:, : k * blocks]
    for measure in (measures.pass_at_k, measures.coverage):
        values = np.array(
            [
                measure(
                    measures.Counts.from_samples(
                        list(hits[:, b * k : (b + 1) * k]), [len(s.leaves) for s in chosen], k
                    ),
                    k,
                )
                for b in range(blocks)
            ]
        )
        error = values.std(0, ddof=1) / blocks**0.5 + 1e-3
        assert (np.abs(values.mean(0) - measure(exactly, k)) < 5 * error).all()
