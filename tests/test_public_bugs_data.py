"""Faults that users of other generated data sets reported, each as a test of its kind.

B52: items of neighbouring seeds are the same items, and a test set shares problems with training.
B53: an item depends on call order, on the number of processes or on a global random stream.
"""

import ast
import multiprocessing
import os
import random
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import companion
from companion.countdown.problems import Problem
from companion.lab import world
from companion.seeds import generator

SPLITS = ("train", "calibration", "held-out")

# B52 (open-thought/reasoning-gym, openai/procgen#100): splits and seeds that overlap


@pytest.mark.parametrize("size", world.SIZES)
def test_b52_a_thousand_items_of_each_split_have_no_problem_in_common(size):
    """Permuted numbers count as the same problem; few small problems exist, so many come again."""
    keys = {split: {world.problem(split, size, i).key for i in range(1000)} for split in SPLITS}
    assert all(len(found) > 100 for found in keys.values())
    assert not keys["train"] & keys["calibration"]
    assert not keys["train"] & keys["held-out"]
    assert not keys["calibration"] & keys["held-out"]


@given(st.lists(st.integers(1, 13), min_size=3, max_size=4), st.integers(10, 60))
def test_b52_a_problem_is_in_one_split_whatever_the_order_of_its_numbers(numbers, target):
    splits = {world.split_of(Problem(order, target)) for order in permutations(numbers)}
    assert len(splits) == 1
    assert splits <= set(SPLITS)


@pytest.mark.parametrize("size", world.SIZES)
def test_b52_a_published_test_set_holds_no_problem_twice(size):
    held_out = world.problems("held-out", size, 100)
    assert len({problem.key for problem in held_out}) == 100


def test_b52_streams_of_neighbouring_seeds_are_not_each_other_one_item_on():
    seeds = range(20)
    items = [generator("item", seed, i).integers(0, 2**63) for seed in seeds for i in range(20)]
    assert len(set(items)) == len(items)


# B53 (kvfrans/lmpo): hidden global randomness inside an item


ITEMS = [(split, size, index) for split in SPLITS for size in world.SIZES for index in range(6)]


@pytest.fixture(scope="module")
def expected():
    return [world.problem(*key) for key in ITEMS]


def test_b53_an_item_does_not_depend_on_what_was_drawn_before(expected):
    backwards = [world.problem(*key) for key in reversed(ITEMS)]
    assert backwards[::-1] == expected
    again = [world.problem(*key) for key in ITEMS for _ in range(2)]
    assert again[::2] == again[1::2] == expected


def test_b53_an_item_does_not_depend_on_the_number_of_workers(expected):
    columns = list(zip(*ITEMS, strict=True))
    for workers in (1, 4):
        with ThreadPoolExecutor(workers) as pool:
            assert list(pool.map(world.problem, *columns)) == expected
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
            assert list(pool.map(world.problem, *columns)) == expected


WRITE_ITEMS = """
from companion.lab import world
from companion.seeds import generator

for index in range(4):
    for split in ("train", "calibration", "held-out"):
        problem = world.problem(split, 4, index)
        print(problem, *map(str, world.families(problem)))
        print(world.demonstration(problem, 0.5, generator("b53", index)))
"""


def test_b53_an_item_does_not_depend_on_the_order_of_sets_in_a_process():
    """Python orders sets of strings anew in every process, by PYTHONHASHSEED."""
    written = {
        subprocess.run(
            [sys.executable, "-c", WRITE_ITEMS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(written) == 1
    assert len(written.pop().splitlines()) == 24


def test_b53_an_item_does_not_depend_on_global_streams_nor_touch_them(expected):
    import torch

    def states():
        return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()

    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        before = states()
        assert [world.problem(*key) for key in ITEMS] == expected
        traces = [world.demonstration(p, 0.5, generator("b53", 0)) for p in expected]
        assert traces == [world.demonstration(p, 0.5, generator("b53", 0)) for p in expected]
        assert states() == before


# What makes a stream of one's own, and what torch draws from the global one.
OWN = {
    *("random.Random", "torch.random.fork_rng", "numpy.random.default_rng"),
    *("numpy.random.Generator", "numpy.random.Philox", "numpy.random.SeedSequence"),
}
TORCH_DRAWS = {
    *("rand", "randn", "randint", "randperm", "normal", "multinomial", "bernoulli", "poisson"),
    *("rand_like", "randn_like", "randint_like", "manual_seed", "seed", "default_generator"),
}
IN_PLACE_DRAWS = {"uniform_", "normal_", "exponential_", "random_", "bernoulli_"}


def hidden_streams(source):
    """The names by which a program draws from a stream that it did not make from a seed."""
    tree = ast.parse(source)
    modules = {}
    for node in ast.walk(tree):
        for alias in getattr(node, "names", ()) if isinstance(node, ast.Import) else ():
            first = alias.name.partition(".")[0]
            modules[alias.asname or first] = alias.name if alias.asname else first
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def full_name(node):
        if isinstance(node, ast.Attribute):
            return f"{full_name(node.value)}.{node.attr}"
        return modules.get(node.id, "") if isinstance(node, ast.Name) else ""

    def visit(node):
        if isinstance(node, ast.With):
            opened = [getattr(item.context_expr, "func", None) for item in node.items]
            if "torch.random.fork_rng" in map(full_name, opened):
                return
        name = full_name(node)
        module, _, attribute = name.rpartition(".")
        if name not in OWN and (
            module in ("random", "numpy.random", "torch.random")
            or (module == "torch" and attribute in TORCH_DRAWS)
        ):
            yield name
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call):
            if any(keyword.arg == "generator" for keyword in node.keywords):
                children.remove(node.func)
            elif getattr(node.func, "attr", "") in IN_PLACE_DRAWS:
                yield node.func.attr
            if full_name(node.func) == "numpy.random.default_rng" and not node.args + node.keywords:
                yield "numpy.random.default_rng()"
        for child in children:
            yield from visit(child)

    return list(visit(tree))


@pytest.mark.parametrize(
    "source",
    [
        "import random\nrandom.shuffle(items)",
        "import random as r\nx = r.random()",
        "from random import choice\nchoice(items)",
        "import numpy as np\nnp.random.seed(0)",
        "import numpy\nnumpy.random.rand(3)",
        "from numpy import random\nrandom.choice(5)",
        "from numpy.random import rand\nrand(3)",
        "import numpy as np\nnp.random.default_rng()",
        "import numpy as np\ndraw = np.random.RandomState(0)",
        "import torch\ntorch.manual_seed(0)",
        "import torch\ntorch.multinomial(p, 1)",
        "from torch import randn\nrandn(3)",
        "weights.normal_()",
    ],
)
def test_b53_hidden_streams_are_found(source):
    assert hidden_streams(source)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.default_rng(7).random()",
        "import numpy as np\ndef draw(rng: np.random.Generator): return rng.choice(5)",
        "import random\nrandom.Random(7).shuffle(items)",
        "import torch\nwith torch.random.fork_rng():\n    torch.manual_seed(7)",
        "import torch\ntorch.multinomial(p, 1, generator=mine)",
        "weights.normal_(generator=mine)",
        "random = 4\nrandom.real",
    ],
)
def test_b53_streams_of_ones_own_are_not(source):
    assert hidden_streams(source) == []


MODULES = sorted(Path(companion.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_b53_no_module_uses_a_hidden_stream(module):
    assert hidden_streams(module.read_text(encoding="utf-8")) == []
