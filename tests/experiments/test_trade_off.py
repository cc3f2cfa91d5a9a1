import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from companion import lineages, measures
from companion.claims import check, load_claims
from companion.countdown.leaves import leaf
from companion.countdown.space import space
from companion.experiments import rollouts as rollouts_module
from companion.experiments import trade_off, trade_off_text
from companion.experiments import trade_off_figures as figures
from companion.experiments.exactly import exact_table, solution_spaces
from companion.experiments.rollouts import Plan, rollouts
from companion.experiments.trade_off import ALL, LADDER, MEASURES, PAPER_COVERAGE
from companion.lab import world
from companion.measures import Bootstrap, Counts, Exact
from companion.parameters import TradeOffParameters
from companion.policies.decoding import Decoding
from companion.policies.sampling import uniforms
from companion.runs import ENVIRONMENT_VARIABLE, RunStore

SMALL = {"problems": 3, "samples": 16, "resamples": 16, "draws": 200, "every": 400}
WORKER = Path(__file__).with_name("trade_off_worker.py")
TABLES = [
    field.name
    for field in dataclasses.fields(trade_off.TradeOff)
    if field.name not in {"parameters", "claims"}
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def run(root, **changes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT_VARIABLE, str(root))
        return trade_off.run(TradeOffParameters.checked(SMALL | changes))


@pytest.fixture(scope="module")
def results(root):
    return run(root)


def parts(root):
    """Every part in the store with the time it was written."""
    return {path: path.stat().st_mtime_ns for path in root.rglob("part-*.parquet")}


def identities(root):
    """What the runs in the store say of themselves."""
    files = sorted(root.rglob("run.json"))
    return [json.loads(path.read_text(encoding="utf-8"))["identity"] for path in files]


def assert_equal(one, other):
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)
    assert one.claims == other.claims


def reach(leaves, families=None):
    """What a made-up checkpoint reaches, with its measures at as many samples as it has."""
    families = leaves if families is None else families
    n = leaves.n if isinstance(leaves, Counts) else 16
    found = trade_off._reach(leaves, families, np.zeros(leaves.problems), n)
    found.values[PAPER_COVERAGE] = found.values["coverage"]
    found.values["open entrances"] = 0
    return found


# The stored samples and probabilities, read back for calculations by hand.


@pytest.fixture(scope="module")
def stored(root, results):
    """Samples and exact leaf probabilities of the early and the late checkpoint."""
    p = results.parameters
    decoding, store = Decoding(p.temperature, p.top_p, p.max_tokens), RunStore(root)
    chosen, before = trade_off.held_out(p.problems), parts(root)
    found = {}
    for step in (p.early, p.late):
        policy = trade_off.load(p.lineage, step, False)
        plan = Plan(p.samples, decoding, trade_off.seed_at(p, p.lineage, step))
        exactly = solution_spaces(exact_table(store, policy, chosen, decoding), chosen)
        found[step] = rollouts(store, policy, chosen, plan), exactly
    assert parts(root) == before  # it is what the run itself has drawn
    return found


def leaves_seen(table):
    """For each problem, the set of leaves among its samples."""
    seen = defaultdict(set)
    for row in table.itertuples():
        if row.leaf != measures.MISS:
            seen[row.problem].add(row.leaf)
    return seen


def rows(table, **where):
    """The rows of a table that have these values."""
    for column, wanted in where.items():
        table = table[table[column] == wanted]
    return table.to_dict("records")


def value(table, **where):
    """The value of the only row that has these values."""
    [row] = rows(table, **where)
    return row["value"]


# A small run against calculations by hand.


def test_problems_are_held_out_and_described(results):
    expected = [p for size in world.SIZES for p in world.problems("held-out", size, 3)]
    assert results.problems["target"].tolist() == [p.target for p in expected]
    for row, problem in zip(results.problems.itertuples(), expected, strict=True):
        own = space(problem, "whole")
        assert row.numbers == " ".join(map(str, problem.numbers))
        assert row.size == str(len(problem.numbers))
        assert (row.leaves, row.entrances, row.traces) == (
            len(own.leaves),
            len(own.entrances),
            len(own.traces),
        )


def test_without_a_number_all_held_out_problems_are_taken():
    assert len(trade_off.held_out(0)) == 100
    assert trade_off.held_out(2) == (*trade_off.held_out(0)[:2], *trade_off.held_out(0)[50:52])


def test_the_curve_has_every_point_once(results):
    keys = ["lineage", "step", "size", "measure", "kind"]
    assert not results.curve.duplicated(keys).any()
    points = {(row.lineage, row.step, row.kind) for row in results.curve.itertuples()}
    assert points == {
        (name, step, kind)
        for kind in ("exact", "sampled")
        for name in ("lab-grpo", "lab-random-reward")
        for step in (0, 400)
    } - {("lab-random-reward", 0, "sampled")}
    assert set(results.curve["measure"]) == set(MEASURES)
    assert set(results.curve["size"]) == {"3", "4", ALL}


def test_curve_values_are_those_of_the_samples_and_the_probabilities(results, stored):
    for step, (table, exactly) in stored.items():
        seen = leaves_seen(table)
        right = (table["leaf"] != measures.MISS).mean()
        covered = np.mean([len(seen[i]) / len(one.space.leaves) for i, one in enumerate(exactly)])
        solved = np.mean([one.trace.sum() for one in exactly])
        reached = np.mean([np.mean(1 - (1 - one.leaf) ** 16) for one in exactly])
        doors = np.mean([np.mean(1 - (1 - one.family) ** 16) for one in exactly])
        where = {"lineage": "lab-grpo", "step": step, "size": ALL}
        for kind, measure, by_hand in (
            ("sampled", "pass@1", right),
            ("sampled", "coverage", covered),
            ("exact", "pass@1", solved),
            ("exact", "coverage", reached),
            ("exact", "family coverage", doors),
        ):
            found = value(results.curve, kind=kind, measure=measure, **where)
            assert found == pytest.approx(by_hand, abs=1e-9), (kind, measure)


def test_survivors_are_the_problems_with_a_right_sample_at_both(results, stored):
    early, late = (leaves_seen(stored[step][0]) for step in (0, 400))
    both = sorted(set(early) & set(late))
    assert 1 < len(both) < 6  # else this run would put nothing to the test
    for when, step in (("early", 0), ("late", 400)):
        exactly = [stored[step][1][i] for i in both]
        by_hand = np.mean([np.mean(1 - (1 - one.leaf) ** 16) for one in exactly])
        [row] = rows(results.survivors, kind="exact", when=when)
        assert (row["problems"], row["value"]) == (len(both), pytest.approx(by_hand))
    found = {when: value(results.survivors, kind="exact", when=when) for when in ("early", "late")}
    change = value(results.survivors, kind="exact", when="change")
    assert change == pytest.approx(found["late"] - found["early"])
    seen = [len(early[i]) / len(stored[0][1][i].space.leaves) for i in both]
    assert value(results.survivors, kind="sampled", when="early") == pytest.approx(np.mean(seen))


def test_retention_counts_leaves_and_problems_found_again(results, stored):
    early, late = (leaves_seen(stored[step][0]) for step in (0, 400))
    kept = sum(len(early[i] & late[i]) for i in list(early))
    leaves = sum(map(len, early.values()))
    found = {
        what: value(results.retention, kind="sampled", what=what, again="late")
        for what in ("leaf", "problem")
    }
    assert found["leaf"] == pytest.approx(kept / leaves)
    assert found["problem"] == pytest.approx(len(set(early) & set(late)) / len(early))


def test_exact_retention_is_the_chance_of_being_found_both_times(results, stored):
    reached = {
        step: [1 - (1 - one.leaf) ** 16 for one in exactly] for step, (_, exactly) in stored.items()
    }
    solved = {
        step: [1 - (1 - one.trace.sum()) ** 16 for one in exactly]
        for step, (_, exactly) in stored.items()
    }
    for again, step in (("late", 400), ("early once more", 0)):
        kept = sum((a * b).sum() for a, b in zip(reached[0], reached[step], strict=True))
        leaves = value(results.retention, kind="exact", what="leaf", again=again)
        assert leaves == pytest.approx(kept / sum(a.sum() for a in reached[0]))
        kept = sum(a * b for a, b in zip(solved[0], solved[step], strict=True))
        problems = value(results.retention, kind="exact", what="problem", again=again)
        assert problems == pytest.approx(kept / sum(solved[0]))


def test_the_control_stands_beside_survivors_and_retention(results, root):
    """Where the lineage is its own control, the control's rows are the lineage's."""
    found = run(root, lineage="lab-random-reward")
    for kind in ("exact", "sampled"):
        for what in ("leaf", "problem"):
            pair = [
                value(found.retention, kind=kind, what=what, again=f"late{who}")
                for who in ("", " control")
            ]
            assert pair[0] == pair[1]
        for one, other in (("late", "late control"), ("change", "change of the control")):
            [row], [control] = (
                rows(found.survivors, kind=kind, when=when) for when in (one, other)
            )
            assert {**row, "when": ""} == {**control, "when": ""}
    late = rows(results.retention, kind="exact", again="late")
    assert late != rows(results.retention, kind="exact", again="late control")
    assert not rows(results.retention, kind="sampled", again="early once more")


def test_the_crossing_is_the_first_k_at_which_the_early_one_is_ahead(results, stored):
    p = {step: np.array([one.trace.sum() for one in stored[step][1]]) for step in (0, 400)}
    for size, mine in (("3", slice(0, 3)), ("4", slice(3, 6)), (ALL, slice(0, 6))):
        ahead = [
            k
            for k in range(1, 2049)
            if np.mean(1 - (1 - p[0][mine]) ** k) > np.mean(1 - (1 - p[400][mine]) ** k) + 1e-12
        ]
        [row] = rows(results.crossing, size=size)
        assert row["k"] == (ahead[0] if ahead else 0)
        gap = np.mean((1 - p[0][mine]) ** 16 - (1 - p[400][mine]) ** 16)
        assert row["value"] == pytest.approx(gap)


def test_changes_are_late_minus_early_and_late_over_early(results):
    for row in results.changes.to_dict("records"):
        if row["measure"] != PAPER_COVERAGE:
            where = {k: row[k] for k in ("lineage", "size", "measure")} | {"kind": "exact"}
            early, late = (value(results.curve, step=step, **where) for step in (0, 400))
            assert (row["early"], row["late"]) == (pytest.approx(early), pytest.approx(late))
        assert row["value"] == pytest.approx(row["late"] - row["early"])
        assert row["ratio"] == pytest.approx(row["late"] / row["early"])
        assert row["low"] <= row["value"] <= row["high"]
    assert len(results.changes) == 2 * 3 * (len(MEASURES) + 1)


def test_the_papers_leaves_are_told_apart_by_its_own_rule(results, stored):
    for when, step in (("early", 0), ("late", 400)):
        shares = []
        for one in stored[step][1]:
            chance = defaultdict(float)
            for trace, p in zip(one.space.traces, one.trace, strict=True):
                chance[leaf(trace.expression, "paper")] += p
            assert len(chance) >= len(one.space.leaves)
            shares.append(np.mean([1 - (1 - p) ** 16 for p in chance.values()]))
        where = {"lineage": "lab-grpo", "size": ALL, "measure": PAPER_COVERAGE}
        [row] = rows(results.changes, **where)
        assert row[when] == pytest.approx(np.mean(shares))


def test_pass_at_k_goes_up_the_ladder_as_far_as_there_are_samples(results, stored):
    for kind, most in (("exact", 2048), ("sampled", 16)):
        found = rows(results.pass_at_k, kind=kind, lineage="lab-grpo", step=400, size=ALL)
        assert [row["k"] for row in found] == [k for k in LADDER if k <= most]
        values = [row["value"] for row in found]
        assert values == sorted(values)
    table, exactly = stored[400]
    where = {"lineage": "lab-grpo", "step": 400, "size": ALL}
    for k in (1, 8, 16):
        by_hand = np.mean([1 - (1 - one.trace.sum()) ** k for one in exactly])
        assert value(results.pass_at_k, kind="exact", k=k, **where) == pytest.approx(by_hand)
        right = table.groupby("problem")["leaf"].apply(lambda leaf: (leaf != measures.MISS).sum())
        by_hand = np.mean([1 - math.comb(16 - c, k) / math.comb(16, k) for c in right])
        assert value(results.pass_at_k, kind="sampled", k=k, **where) == pytest.approx(by_hand)


def test_claims_are_known_finite_and_those_of_the_tables(results):
    known = {claim.id for claim in load_claims("trade-off")}
    assert set(results.claims) <= known
    assert all(identifier.split(".")[1] != "ppo" for identifier in results.claims)
    given = {name: m for name, m in results.claims.items() if m is not None}
    for name, measured in given.items():
        numbers = (measured.value, measured.low, measured.high, *(measured.difference or ()))
        assert all(map(math.isfinite, numbers)), name
    [paired] = rows(results.changes, lineage="lab-grpo", size=ALL, measure="coverage")
    late = given["tradeoff.grpo.coverage.late"]
    assert late.value == paired["late"]
    assert late.difference == (paired["low"], paired["high"])
    relative = given["tradeoff.grpo.coverage.relative"]
    assert relative.value == pytest.approx(paired["late"] / paired["early"] - 1)
    leaves = value(results.retention, kind="sampled", what="leaf", again="late")
    assert given["tradeoff.retention.leaf"].value == leaves
    assert len(check(load_claims("trade-off"), results.claims)) == len(known)


# Tables of made-up checkpoints.


def test_lost_problems_are_solved_early_and_not_late():
    early = reach(Counts.of([[1, 0], [2], [0], [0, 3]], n=4))
    late = reach(Counts.of([[0, 2], [0], [1], [0, 0]], n=4))
    masks = trade_off.survivor_masks(early, late)
    assert masks.both.tolist() == [True, False, False, False]
    assert masks.lost.tolist() == [False, True, False, True]
    with pytest.raises(TypeError, match="survivors are chosen by samples"):
        trade_off.survivor_masks(early, reach(Exact.of([[0.1, 0], [0.2], [0], [0]])))


def test_lost_problems_are_drawn_again_from_the_late_checkpoint(tmp_path):
    p = TradeOffParameters.checked(SMALL | {"resamples": 200})
    chosen, store = trade_off.held_out(3), RunStore(tmp_path)
    decoding = Decoding(p.temperature, p.top_p, p.max_tokens)
    policy = trade_off.load(p.lineage, p.late, False)
    late = trade_off.exact_reach(store, policy, chosen, decoding, p.samples)
    lost = np.array([False, True, False, False, True, True])
    found = trade_off.draw_lost_again(store, chosen, lost, late, p, decoding)
    assert found["place"].tolist() == [1, 4, 5]
    seed = trade_off.seed_at(p, p.lineage, p.late, "lost")
    again = rollouts(store, policy, [chosen[i] for i in (1, 4, 5)], Plan(200, decoding, seed))
    for row, place in zip(found.itertuples(), (1, 4, 5), strict=True):
        problem = chosen[place].problem
        assert (row.numbers, row.target) == (" ".join(map(str, problem.numbers)), problem.target)
        solve = late.leaves.probabilities[late.leaves.problem_of == place].sum()
        assert row.chance == pytest.approx(1 - (1 - min(solve, 1)) ** 200)
        mine = again[again["problem"] == (1, 4, 5).index(place)]
        assert row.solved == (mine["leaf"] != measures.MISS).sum()
        assert (row.solved > 0) or row.chance < 1 - 1e-9
    exactly = solution_spaces(exact_table(store, policy, chosen, decoding), chosen)
    taken = [int((exactly[i].access > 0).sum()) for i in (1, 4, 5)]
    assert found["open entrances"].tolist() == taken


def test_without_lost_problems_the_table_is_empty_and_has_its_columns(tmp_path):
    p = TradeOffParameters.checked(SMALL)
    chosen, decoding = trade_off.held_out(1), Decoding(0.7, 0.9, 40)
    late = reach(Exact.of([[0.5] * len(one.leaves) for one in chosen[:1]]))
    nothing = np.zeros(1, dtype=bool)
    found = trade_off.draw_lost_again(RunStore(tmp_path), chosen[:1], nothing, late, p, decoding)
    assert len(found) == 0
    columns = {"numbers", "target", "entrances", "open entrances", "chance", "solved"}
    assert columns <= set(found.columns)
    assert trade_off.recovered(found) is None
    assert parts(tmp_path) == {}


def test_recovered_is_the_share_of_lost_problems_with_a_right_fresh_sample():
    share = trade_off.recovered(pd.DataFrame({"solved": [0, 3, 0, 1]}))
    exactly = measures.clopper_pearson(2, 4)
    assert (share.value, share.low, share.high) == (0.5, exactly.low, exactly.high)


@pytest.mark.parametrize(
    ("early", "late", "k"),
    [
        ([0.1], [0.3], 0),  # one problem: never ahead
        ([0.3], [0.1], 1),  # ahead from the start
        ([0.2], [0.2], 0),  # equal is not ahead
        ([0.1, 0.1], [0.5, 0.0], 7),  # 2 (1 - 0.9^k) > 1 - 0.5^k from k = 7
        ([0.0], [0.0], 0),
        ([1.0], [0.5], 1),
    ],
)
def test_the_crossing_of_made_up_checkpoints(early, late, k):
    p = TradeOffParameters.checked(SMALL)
    sizes = np.array(["3"] * len(early))
    one, other = (reach(Exact.of([[x] for x in values])) for values in (early, late))
    found = trade_off.crossing_table(one, other, sizes, p, Bootstrap(1, draws=100))
    assert found["size"].tolist() == ["3", ALL]
    assert found["k"].tolist() == [k, k]
    gap = np.mean((1 - np.array(early)) ** 16 - (1 - np.array(late)) ** 16)
    assert found["value"].tolist() == pytest.approx([gap, gap])


def test_more_samples_than_the_ladder_is_long_have_a_gap_too():
    p = TradeOffParameters.checked(SMALL | {"samples": 5000})
    one, other = (reach(Exact.of([[x], [x]])) for x in (1e-4, 1e-3))
    sizes = np.array(["3", "3"])
    found = trade_off.crossing_table(one, other, sizes, p, Bootstrap(1, draws=100))
    assert found["value"].iloc[0] == pytest.approx((1 - 1e-4) ** 5000 - (1 - 1e-3) ** 5000)


def test_changes_are_paired_over_problems():
    """Two problems that lose the same leave no doubt, however different they are."""
    p = TradeOffParameters.checked(SMALL)
    before, after = reach(Exact.of([[0.9], [0.2]])), reach(Exact.of([[0.8], [0.1]]))
    exactly = {(name, 0): before for name in (p.lineage, p.control)}
    exactly |= {(name, 400): after for name in (p.lineage, p.control)}
    found = trade_off.change_table(exactly, p, np.array(["3", "4"]), Bootstrap(1, draws=200))
    where = {"lineage": "lab-grpo", "measure": "pass@1"}
    [row] = rows(found, size=ALL, **where)
    assert (row["low"], row["value"], row["high"]) == pytest.approx((-0.1, -0.1, -0.1))
    assert row["ratio"] == pytest.approx(0.9 / 1.1)
    [alone] = rows(found, size="3", **where)
    assert alone["value"] == pytest.approx(-0.1)
    assert math.isnan(alone["low"])  # one problem says nothing about others


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.1, 0.3, "rises"),
        (-0.3, -0.1, "falls"),
        (-0.1, 0.1, "does not clearly change"),
        (0.0, 0.2, "does not clearly change"),
        (-0.2, 0.0, "does not clearly change"),
        (0.0, 0.0, "does not clearly change"),
        (math.nan, math.nan, "does not clearly change"),
    ],
)
def test_a_direction_needs_an_interval_on_one_side_of_zero(low, high, said):
    assert trade_off.direction({"value": (low + high) / 2, "low": low, "high": high}) == said


def test_a_value_without_an_interval_is_not_measured():
    row = {"value": 0.5, "low": math.nan, "high": math.nan, "problems": 1}
    assert trade_off._measured(row, "exact") is None
    finite = {"value": 0.5, "low": 0.4, "high": 0.6, "problems": 2}
    assert trade_off._measured(finite, "exact", row).difference is None
    assert trade_off._measured(finite, "exact", finite).difference == (0.4, 0.6)


# Seeds.


def test_no_two_checkpoints_share_their_random_numbers(results, root):
    sampled = [one for one in identities(root) if one["kind"] == "samples"]
    assert len(sampled) >= 3
    seeds = [one["seed"] for one in sampled]
    assert len(set(seeds)) == len(seeds)
    assert len({one["checkpoint"] for one in sampled}) == 3
    streams = [uniforms(seed, (17, 19, 5, 2), 0, 0, 1000) for seed in seeds]
    together = np.concatenate(streams)
    assert len(set(together.tolist())) == len(together)


def test_seeds_depend_on_all_that_they_should():
    p, other = TradeOffParameters.checked(SMALL), TradeOffParameters.checked(SMALL | {"seed": 2})
    given = [
        (p, "lab-grpo", 0),
        (p, "lab-grpo", 400),
        (p, "lab-random-reward", 400),
        (p, "lab-grpo", 400, "lost"),
        (other, "lab-grpo", 0),
    ]
    seeds = [trade_off.seed_at(*one) for one in given]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)


# Stored, killed, and missing.


def test_a_second_run_computes_nothing_and_gives_the_same(results, root, stored):
    before = parts(root)
    assert_equal(run(root), results)
    assert parts(root) == before


def test_a_run_reads_what_is_stored(results, root, tmp_path):
    """A store in which a checkpoint solves nothing: the run believes it."""
    copy = RunStore(tmp_path / "runs")
    for identity in identities(root):
        lost = identity["kind"] == "samples"
        source = next(RunStore(root).directory(identity).glob("part-*.parquet"))
        table = pd.read_parquet(source)
        if lost:
            table["leaf"] = table["family"] = measures.MISS
        part = list(range(6)) if lost else "all problems"
        copy.table(identity, [part], lambda _, table=table: table)
    found = run(copy.root)
    assert (
        value(found.curve, kind="sampled", lineage="lab-grpo", step=400, size=ALL, measure="pass@1")
        == 0
    )
    pd.testing.assert_frame_equal(found.changes, results.changes)


def test_a_killed_run_goes_on_and_ends_as_an_undisturbed_one(results, tmp_path, monkeypatch):
    def samples():
        """The parts of the sampled runs: one part a problem, so six of each."""
        runs = [i for i in identities(tmp_path) if i["kind"] == "samples"]
        return [p for i in runs for p in RunStore(tmp_path).directory(i).glob("part-*.parquet")]

    process = subprocess.Popen(
        [sys.executable, WORKER, json.dumps(SMALL)],
        env={**os.environ, ENVIRONMENT_VARIABLE: str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    while len(samples()) < 8 and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.communicate()
    assert process.returncode != 0
    drawn = {path: path.stat().st_mtime_ns for path in samples()}
    assert 8 <= len(drawn) < 18

    monkeypatch.setattr(rollouts_module, "PROBLEMS_A_PART", 1)
    assert_equal(run(tmp_path), results)
    after = parts(tmp_path)
    assert {path: after[path] for path in drawn} == drawn  # none was drawn again
    assert len(samples()) >= 18


def test_a_damaged_checkpoint_stops_the_run_before_it_is_used(tmp_path, monkeypatch):
    shutil.copytree(lineages.LAB, tmp_path / "lab", ignore=shutil.ignore_patterns("*.py"))
    weights = lineages.load("lab-grpo").at(400).folder.relative_to(lineages.LAB)
    path = tmp_path / "lab" / weights / lineages.WEIGHTS
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    monkeypatch.setattr(lineages, "LAB", tmp_path / "lab")
    lineages.manifest.cache_clear()
    with pytest.raises(lineages.LineageError, match=r"lab-grpo step 400: .* is damaged"):
        run(tmp_path / "runs")
    lineages.manifest.cache_clear()


# Unusual parameters: the whole chapter, every sentence and every figure.


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lineage": "lab-random-reward"},
        {"problems": 1},
        {"problems": 1, "samples": 1, "resamples": 1},
        {"temperature": 0.0},
        {"top_p": 1e-9},
    ],
    ids=str,
)
def test_the_whole_chapter_works(root, shown, changes):
    found = run(root, **changes)
    for name in (
        "world",
        "along_training",
        "control",
        "sizes",
        "changes",
        "paper_leaves",
        "lost_problems",
        "entrances",
        "crossing",
        "survivors",
        "retention",
        "lost",
    ):
        outputs = shown(getattr(trade_off_text, name), found)
        assert outputs
        assert "nan" not in str([output.data for output in outputs]).lower()
    shown(trade_off_text.verdict, check(load_claims("trade-off"), found.claims))
    for _, words in (
        figures.along_training(found, MEASURES[:3]),
        figures.by_size(found, "entrance entropy"),
        figures.pass_at_k(found),
    ):
        assert words
        assert "nan" not in words


def test_a_lineage_that_is_its_own_control_has_each_row_once(root):
    found = run(root, lineage="lab-random-reward")
    assert set(found.curve["lineage"]) == {"lab-random-reward"}
    keys = ["lineage", "size", "measure"]
    assert not found.changes.duplicated(keys).any()
    assert not found.curve.duplicated([*keys, "step", "kind"]).any()


def test_greedy_decoding_gives_every_problem_one_answer(root):
    found = run(root, temperature=0.0)
    curve = found.curve[found.curve["size"] == ALL]
    exact, sampled = (curve[curve["kind"] == kind] for kind in ("exact", "sampled"))
    assert (exact[exact["measure"] == "entrance entropy"]["value"] == 0).all()
    both = exact.merge(sampled, on=["lineage", "step", "measure"])
    assert (both["value_x"] == both["value_y"]).all()  # nothing is left to chance
