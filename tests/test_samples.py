"""Tables of samples: the identity, the plan and pooling (public bugs B13, B14, B17, B40, B49)."""

import pandas as pd
import pytest

from companion.runs import RunStore
from companion.samples import POOLABLE, check_sampling_plan, pool, sampling_identity

FIELDS = {
    "checkpoint": "9f2c",
    "prompts": [[1, 2, 3], [4, 5]],
    "temperature": 0.6,
    "top_p": 0.9,
    "top_k": None,
    "seed": 0,
    "first_sample": 0,
    "n": 8,
    "max_tokens": 32,
    "backend": "transformers",
    "log_probability_mode": "processed",
    "library": "0.1.0",
}
FLIPPED = {
    "checkpoint": "9f2d",
    "prompts": [[1, 2], [3, 4, 5]],
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 20,
    "seed": 1,
    "first_sample": 8,
    "n": 9,
    "max_tokens": 33,
    "backend": "vllm",
    "log_probability_mode": "raw",
    "library": "0.1.1",
}


def samples(problems=(0, 1), n=8, correct=()):
    """One row a sample; ``correct`` holds the pairs (problem, sample) that are right."""
    pairs = [(problem, sample) for problem in problems for sample in range(n)]
    return pd.DataFrame(pairs, columns=["problem", "sample"]).assign(
        correct=[pair in correct for pair in pairs]
    )


# B40: the cache key


@pytest.mark.parametrize("name", FIELDS)
def test_a_flip_of_any_field_misses_the_cache(tmp_path, name):
    store = RunStore(tmp_path)
    calls = []

    def compute(part):
        calls.append(part)
        return samples()

    store.table(sampling_identity(**FIELDS), ["all"], compute)
    store.table(sampling_identity(**FIELDS), ["all"], compute)
    assert len(calls) == 1
    store.table(sampling_identity(**FIELDS | {name: FLIPPED[name]}), ["all"], compute)
    assert len(calls) == 2


@pytest.mark.parametrize("name", FIELDS)
def test_no_field_can_be_forgotten(name):
    with pytest.raises(TypeError, match=name):
        sampling_identity(**{key: value for key, value in FIELDS.items() if key != name})


def test_prompts_are_known_by_their_token_ids():
    one = sampling_identity(**FIELDS | {"prompts": [(1, 2), (3,)]})
    assert one == sampling_identity(**FIELDS | {"prompts": [[1, 2], [3]]})
    assert one != sampling_identity(**FIELDS | {"prompts": [[3], [1, 2]]})
    with pytest.raises(ValueError, match=r"^prompts: "):
        sampling_identity(**FIELDS | {"prompts": [[1, float("nan")]]})


# B13: every sample is kept


def test_all_eight_samples_come_back_when_only_the_sixth_is_right(tmp_path):
    identity = sampling_identity(**FIELDS)
    fresh = RunStore(tmp_path).table(identity, ["all"], lambda _: samples([7], 8, {(7, 5)}))
    reread = RunStore(tmp_path).table(identity, ["all"], lambda _: samples([7], 0))
    for table in (fresh, reread):
        check_sampling_plan(table, [7], 8)
        assert table["correct"].tolist() == [False] * 5 + [True] + [False] * 2
        assert table["correct"].mean() == 0.125  # pass@1; pass@8 is 1, since any is right
        assert table["correct"].any()


# B49: n is the plan's


def test_a_complete_table_fulfils_the_plan_in_any_order():
    check_sampling_plan(samples([3, 9], 64), [3, 9], 64)
    check_sampling_plan(samples([3, 9], 64).sample(frac=1, random_state=0), [9, 3], 64)
    check_sampling_plan(samples(["a", "b"], 2), ["b", "a"], 2)


@pytest.mark.parametrize(
    ("table", "named"),
    [
        # 60 of 64 samples were unparseable and somebody dropped them.
        (samples([3, 9], 64).drop(index=range(4, 64)), "sample 4 of problem 3 is missing"),
        # The hard problem vanished from the average altogether.
        (samples([3], 64), "sample 0 of problem 9 is missing"),
        # Duplicates stand in for the missing ones, so that n still looks right.
        (samples([3, 9], 64).replace({"sample": {63: 0}}), "sample 63 of problem 3 is missing"),
        (pd.concat([samples([3, 9], 64)] * 2), "sample 0 of problem 3 occurs twice"),
        (samples([3, 9], 65), "sample 64 of problem 3 is not in the plan"),
        (samples([3, 8, 9], 64), "sample 0 of problem 8 is not in the plan"),
        (samples([], 64), "sample 0 of problem 3 is missing"),
    ],
)
def test_a_table_that_departs_from_the_plan_is_refused(table, named):
    with pytest.raises(ValueError, match=f"^table: {named}; each problem has samples 0 to 63 once"):
        check_sampling_plan(table, [3, 9], 64)


@pytest.mark.parametrize(("problems", "n"), [([], 8), ([3], 0), ([3], -1)])
def test_a_plan_of_nothing_is_refused(problems, n):
    with pytest.raises(ValueError, match=r"^n, problems: at least 1"):
        check_sampling_plan(samples([3], 8), problems, n)


# B14 and B17: what may be pooled


def run(**changes):
    return sampling_identity(**FIELDS | changes), samples()


def test_two_runs_with_default_arguments_are_one_run_and_do_not_pool(tmp_path):
    store = RunStore(tmp_path)
    for _ in range(2):
        table = store.table(sampling_identity(**FIELDS), ["all"], lambda _: samples())
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ValueError, match="sample 0 of problem 0 at seed 0 occurs twice"):
        pool([(sampling_identity(**FIELDS), table)] * 2)


def test_a_larger_n_at_the_same_seed_holds_the_old_samples_again():
    larger = sampling_identity(**FIELDS | {"n": 2048}), samples(n=2048)
    with pytest.raises(ValueError, match="occurs twice; give each pooled run its own seed"):
        pool([run(), larger])


def test_more_samples_of_the_same_seed_pool_and_fulfil_the_larger_plan():
    more = samples().assign(sample=lambda table: table["sample"] + 8)
    pooled = pool([run(), (sampling_identity(**FIELDS | {"first_sample": 8}), more)])
    check_sampling_plan(pooled, [0, 1], 16)


def test_other_seeds_and_other_problems_pool():
    other_problems = sampling_identity(**FIELDS | {"prompts": [[9]]}), samples([2])
    pooled = pool([run(), run(seed=1), other_problems])
    assert len(pooled) == 16 + 16 + 8
    assert pooled.groupby(["problem", "seed"]).size().to_dict() == {
        (0, 0): 8,
        (0, 1): 8,
        (1, 0): 8,
        (1, 1): 8,
        (2, 0): 8,
    }


@pytest.mark.parametrize("name", sorted(FIELDS.keys() - POOLABLE))
def test_runs_that_were_sampled_otherwise_do_not_pool(name):
    with pytest.raises(ValueError, match=f"^runs: pooled runs have one {name}; got"):
        pool([run(), run(seed=1, **{name: FLIPPED[name]})])


def test_pooling_nothing_is_refused():
    with pytest.raises(ValueError, match=r"^runs: at least one pair"):
        pool([])
