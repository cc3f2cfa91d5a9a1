"""The run store without faults: what makes two runs the same, and what comes back."""

import hashlib
import json
import math
import os
import re
import struct
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from companion.runs import (
    ENVIRONMENT_VARIABLE,
    LEFTOVER_SECONDS,
    RunStore,
    content_hash,
    default_root,
)

IDENTITY = {"kind": "test", "seed": 0}


class Squares:
    """A computation that remembers what it was asked for."""

    def __init__(self):
        self.calls = []

    def __call__(self, part):
        self.calls.append(part)
        return pd.DataFrame({"number": part, "square": [number**2 for number in part]})


def never(part):
    raise AssertionError(f"part {part} was computed although it is on disk")


def stored(frame, root, part="all"):
    """The frame after the first call, and after a second one that may only read."""
    store = RunStore(root)
    first = store.table(IDENTITY, [part], lambda _: frame)
    second = RunStore(root).table(IDENTITY, [part], never)
    assert first.dtypes.equals(second.dtypes)
    assert repr(first.to_dict("list")) == repr(
        second.to_dict("list")
    )  # NaN is NaN, -0.0 is not 0.0
    return second


# What identifies a run


def test_the_hash_is_the_sha256_of_canonical_json():
    # Worked by hand, so that it cannot depend on the process, the platform or the key order.
    by_hand = hashlib.sha256(b'{"a":[1,0.7,null,true,"x"],"b":{"c":-3}}').hexdigest()[:32]
    assert content_hash({"b": {"c": -3}, "a": (1.0, 0.7, None, True, "x")}, "value") == by_hand


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"temperature": 1}, {"temperature": 1.0}),
        ({"temperature": 0.0}, {"temperature": -0.0}),
        ({"temperature": 0.7}, {"temperature": np.float64(0.7)}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": {"x": 1, "y": [2]}}, {"a": {"y": (2.0,), "x": 1}}),
        ({"numbers": (1, 2)}, {"numbers": [1, 2]}),
    ],
)
def test_equal_identities_are_one_run(tmp_path, one, other):
    assert RunStore(tmp_path).directory(one) == RunStore(tmp_path).directory(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"temperature": 1}, {"temperature": 1.0000000000000002}),
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": "1"}),
        ({"n": None}, {"n": "null"}),
        ({"n": None}, {}),
        ({"numbers": [1, 2]}, {"numbers": [2, 1]}),
        ({"numbers": [1, 2]}, {"numbers": [12]}),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ({"n": 2**53}, {"n": 2**53 + 1}),
    ],
)
def test_different_identities_are_different_runs(tmp_path, one, other):
    store = RunStore(tmp_path)
    assert store.directory({"kind": "x", **one}) != store.directory({"kind": "x", **other})


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, {1, 2}, Path("weights"), np.int64(3), b"bytes", {1: 2}, object()]
)
def test_a_value_that_json_cannot_hold_is_refused_by_name(tmp_path, value):
    with pytest.raises(ValueError, match=r"^identity\.decoding\.top_p: .* such as 0\.7; got"):
        RunStore(tmp_path).directory({"decoding": {"top_p": value}})
    with pytest.raises(ValueError, match=r"^parts: "):
        RunStore(tmp_path).table(IDENTITY, [value], never)


@pytest.mark.parametrize("identity", [{}, None, "samples", [1]])
def test_an_identity_must_say_something(tmp_path, identity):
    with pytest.raises(ValueError, match=r"^identity: a mapping such as"):
        RunStore(tmp_path).directory(identity)


def test_the_run_says_what_it_is(tmp_path):
    store = RunStore(tmp_path)
    identity = {"kind": "exact", "temperature": 0.7, "numbers": (3, 4)}
    store.table(identity, [[1]], Squares())
    text = (store.directory(identity) / "run.json").read_text(encoding="utf-8")
    assert json.loads(text)["identity"] == {"kind": "exact", "temperature": 0.7, "numbers": [3, 4]}


# Parts


def test_parts_come_back_in_their_order_and_are_computed_once(tmp_path):
    squares = Squares()
    first = RunStore(tmp_path).table(IDENTITY, [[3, 1], [2]], squares)
    assert first.to_dict("list") == {"number": [3, 1, 2], "square": [9, 1, 4]}
    again = RunStore(tmp_path).table(IDENTITY, [[2], [3, 1]], squares)
    assert again.to_dict("list") == {"number": [2, 3, 1], "square": [4, 9, 1]}
    assert squares.calls == [[3, 1], [2]]


def test_another_split_into_parts_never_reads_the_old_parts(tmp_path):
    squares = Squares()
    RunStore(tmp_path).table(IDENTITY, [[0, 1], [2, 3]], squares)
    table = RunStore(tmp_path).table(IDENTITY, [[0, 1, 2], [3]], squares)
    assert table["number"].tolist() == [0, 1, 2, 3]
    assert squares.calls == [[0, 1], [2, 3], [0, 1, 2], [3]]


def test_a_failed_part_keeps_the_finished_ones_and_its_own_error(tmp_path):
    def fails_at_two(part):
        if part == [2]:
            raise FileNotFoundError("checkpoint is missing")
        return Squares()(part)

    with pytest.raises(FileNotFoundError, match=r"^checkpoint is missing$"):
        RunStore(tmp_path).table(IDENTITY, [[1], [2], [3]], fails_at_two)
    squares = Squares()
    RunStore(tmp_path).table(IDENTITY, [[1], [2], [3]], squares)
    assert squares.calls == [[2], [3]]


@pytest.mark.parametrize("parts", [[], [[1], [1]], [[1], (1.0,)], ["a", "b", "a"]])
def test_no_parts_or_a_repeated_part_is_refused(tmp_path, parts):
    with pytest.raises(ValueError, match=r"^parts: one or more parts, each once"):
        RunStore(tmp_path).table(IDENTITY, parts, never)


def test_an_empty_part_changes_no_type(tmp_path):
    def compute(part):
        return pd.DataFrame({"tokens": part, "length": [len(tokens) for tokens in part]})

    table = RunStore(tmp_path).table(IDENTITY, [[], [[1, 2], []], [[]]], compute)
    assert table["tokens"].tolist() == [[1, 2], [], []]
    assert table["length"].dtype == "int64"
    empty = RunStore(tmp_path).table({"kind": "empty"}, [[]], compute)
    assert list(empty.columns) == ["tokens", "length"]
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("second", "named"),
    [({"a": [1.5]}, "same column types"), ({"b": [1]}, "same columns")],
)
def test_parts_that_do_not_fit_together_are_refused(tmp_path, second, named):
    frames = {"one": pd.DataFrame({"a": [1]}), "two": pd.DataFrame(second)}
    with pytest.raises(ValueError, match=f"^compute: every part has the {named}"):
        RunStore(tmp_path).table(IDENTITY, ["one", "two"], frames.__getitem__)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, "x"]}),
        pd.DataFrame({"a": [object()]}),
        pd.DataFrame({"a": [2**70]}),
        pd.DataFrame({"a": [1 + 2j]}),
        pd.DataFrame({"a": [{}]}),
        pd.DataFrame({"a": [[1], "x"]}),
        pd.DataFrame({"a": pd.Series(["\ud800"], dtype=object)}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": [1]}, index=pd.Index([5], name="problem")),
        [{"a": 1}],
        None,
    ],
)
def test_rows_that_would_not_survive_are_refused_and_leave_no_part(tmp_path, frame):
    with pytest.raises(ValueError, match=r"^compute: ") as caught:
        RunStore(tmp_path).table(IDENTITY, ["all"], lambda _: frame)
    assert "\n" not in str(caught.value)
    assert [path.name for path in RunStore(tmp_path).directory(IDENTITY).iterdir()] == ["run.json"]


# Values


def test_every_kind_of_column_comes_back_as_it_was(tmp_path):
    frame = pd.DataFrame(
        {
            "problem": np.array([0, 2**62 + 1, -5], dtype="int64"),
            "log_probability": [0.1 + 0.2, math.nan, -math.inf],
            "zero": [0.0, -0.0, 5e-324],
            "small": np.array([0.1, 1.5, math.nan], dtype="float32"),
            "finished": [True, False, True],
            "text": ["7 × 4 = 28", "", None],
            "verdict": [True, None, False],
            "count": pd.array([2**60 + 1, None, 3], dtype="Int64"),
        }
    )
    back = stored(frame, tmp_path)
    pd.testing.assert_frame_equal(back, frame, check_exact=True)
    assert np.signbit(back["zero"].to_numpy()).tolist() == [False, True, False]
    assert back["verdict"].tolist() == [True, None, False]


def test_lists_come_back_as_lists_of_python_numbers(tmp_path):
    frame = pd.DataFrame(
        {
            "tokens": [(5, 1), [], np.array([7])],
            "log_probabilities": [[-0.25, math.nan], None, [-math.inf]],
            "parents": [[3, None], [1], []],
            "lines": [[[1, 2], [3]], [[]], []],
            "words": [["a", "b"], [""], []],
        }
    )
    back = stored(frame, tmp_path)
    assert back["tokens"].tolist() == [[5, 1], [], [7]]
    assert back["parents"].tolist() == [[3, None], [1], []]
    assert back["lines"].tolist() == [[[1, 2], [3]], [[]], []]
    assert back["words"].tolist() == [["a", "b"], [""], []]
    (quarter, nan), none, (infinity,) = back["log_probabilities"].tolist()
    assert (quarter, math.isnan(nan), none, infinity) == (-0.25, True, None, -math.inf)
    assert {type(token) for tokens in back["tokens"] for token in tokens} == {int}


def bits(number):
    return struct.pack("<d", number)


ROWS = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.booleans(),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        st.lists(st.integers(0, 2**31), max_size=5),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=30, deadline=None)
@given(ROWS, st.integers(0, 10))
def test_values_survive_whatever_they_are_and_however_they_are_cut(rows, cut):
    names = ["integer", "float", "bool", "text", "tokens"]
    pieces = {"first": rows[:cut], "second": rows[cut:]}
    with tempfile.TemporaryDirectory() as root:
        back = RunStore(Path(root)).table(
            IDENTITY, pieces, lambda name: pd.DataFrame(pieces[name], columns=names)
        )
    returned = list(back.itertuples(index=False, name=None))
    assert [(a, bits(b), c, d, e) for a, b, c, d, e in returned] == [
        (a, bits(b), c, d, e) for a, b, c, d, e in rows
    ]


# The directory


def test_the_files_of_a_run(tmp_path):
    store = RunStore(tmp_path)
    store.table(IDENTITY, ["a", "b"], lambda part: pd.DataFrame({"part": [part]}))
    names = sorted(path.name for path in store.directory(IDENTITY).iterdir())
    assert names[-1] == "run.json"
    assert len(names) == 3
    assert all(re.fullmatch(r"part-[0-9a-f]{32}\.[0-9a-f]{32}\.parquet", n) for n in names[:-1])
    readable = [pd.read_parquet(store.directory(IDENTITY) / name) for name in names[:-1]]
    assert sorted(frame["part"].item() for frame in readable) == ["a", "b"]


def test_a_run_directory_may_be_moved_to_another_root(tmp_path):
    RunStore(tmp_path / "old").table(IDENTITY, [[1]], Squares())
    (tmp_path / "old").rename(tmp_path / "new")
    assert RunStore(tmp_path / "new").table(IDENTITY, [[1]], never)["square"].tolist() == [1]


def test_only_old_leftovers_are_removed(tmp_path):
    store = RunStore(tmp_path)
    store.table(IDENTITY, [[1]], Squares())
    ages = {"dead": LEFTOVER_SECONDS + 60, "writing": LEFTOVER_SECONDS - 600, "future": -86400}
    for name, age in ages.items():
        leftover = store.directory(IDENTITY) / f"part-x.{name}.tmp"
        leftover.write_bytes(b"half a part")
        os.utime(leftover, (time.time() - age,) * 2)
    store.table(IDENTITY, [[1]], never)
    left = sorted(path.name for path in store.directory(IDENTITY).glob("*.tmp"))
    assert left == ["part-x.future.tmp", "part-x.writing.tmp"]


def test_the_root_is_fixed_when_the_store_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = RunStore("runs")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.table(IDENTITY, [[1]], Squares())
    assert store.root == tmp_path / "runs"
    assert store.root.is_dir()


def test_default_root_prefers_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path / "chosen"))
    assert default_root() == tmp_path / "chosen"
    assert RunStore().root == tmp_path / "chosen"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "~/chosen")
    assert RunStore().root == Path.home() / "chosen"


def test_default_root_is_else_the_users_cache(tmp_path, monkeypatch):
    cache = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "")
    monkeypatch.setenv(cache, str(tmp_path))
    assert default_root() == tmp_path / "companion" / "runs"
    for unusable in ("", "relative/cache"):
        monkeypatch.setenv(cache, unusable)
        assert default_root() == Path.home() / ".cache" / "companion" / "runs"
