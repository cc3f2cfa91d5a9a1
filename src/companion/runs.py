"""Samples and results on disk: content-addressed, checksummed, atomic, resumable.

A *run* is a table computed in parts (a chunk of problems, a checkpoint). Everything that its values
depend on is its *identity*: a plain mapping, whose hash names the directory. Each finished part is
one parquet file::

    <runs_dir>/5b1c…/run.json                        the identity, for people to read
    <runs_dir>/5b1c…/part-<part>.<checksum>.parquet  hash of the part, checksum of the file

The checksum stands in the file's name because a name and the bytes under it appear in one rename. A
checksum in a second file would need a second rename, and a process killed between the two would
leave a pair that disagrees. It covers the run and the part too, so that a good file copied to the
wrong place is not read either. Nothing parses a file before its checksum holds.

Two processes may compute the same run at once without a lock: temporary names are unique, and both
write equal parts, because a part is a function of its identity alone.
"""

import hashlib
import json
import logging
import math
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

FORMAT = 1  # part of every identity: raise it when the files change their meaning
ENVIRONMENT_VARIABLE = "COMPANION_RUNS"
LEFTOVER_SECONDS = 24 * 3600  # writing takes seconds, so an older temporary file has no writer

Part = TypeVar("Part")
log = logging.getLogger(__name__)


class RunStoreError(OSError):
    """The runs directory cannot be used: full, read-only, or not a folder."""


def default_root() -> Path:
    """Where runs are kept: ``$COMPANION_RUNS``, or else a folder in the user's cache.

    Raises:
        RunStoreError: where the user has no home folder and the variable is not set.
    """
    if named := os.environ.get(ENVIRONMENT_VARIABLE):
        return Path(named)
    cache = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    if Path(cache).is_absolute():  # the XDG specification says to ignore a relative path
        return Path(cache) / "companion" / "runs"
    try:
        return Path.home() / ".cache" / "companion" / "runs"
    except RuntimeError as error:
        raise RunStoreError(
            "runs_dir: this user has no home folder to keep runs in; "
            f"name a folder with runs_dir or the environment variable {ENVIRONMENT_VARIABLE}"
        ) from error


def content_hash(value: object, name: str) -> str:
    """32 hexadecimal digits that are equal for equal JSON values.

    The order of keys, 1 or 1.0, and tuple or list make no difference.

    Args:
        value: None, bool, int, finite float, str, and lists or string-keyed mappings of them.
        name: what the value is, for the error.

    Raises:
        ValueError: for any other value, such as NaN, a set or a path.
    """
    text = json.dumps(_plain(value, name), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


@dataclass(frozen=True)
class RunStore:
    """The runs under one directory, which is made when it is first written to."""

    root: Path = field(default_factory=default_root)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root).expanduser().absolute())

    def directory(self, identity: Mapping[str, object]) -> Path:
        """The directory of the run with this identity, whether or not it exists yet.

        Raises:
            ValueError: for an empty identity or one that :func:`content_hash` refuses.
        """
        if not isinstance(identity, Mapping) or not identity:
            raise ValueError(
                f'identity: a mapping such as {{"kind": "samples", "seed": 0}}; got {identity!r}'
            )
        return self.root / content_hash([FORMAT, identity], "identity")

    def table(
        self,
        identity: Mapping[str, object],
        parts: Iterable[Part],
        compute: Callable[[Part], pd.DataFrame],
    ) -> pd.DataFrame:
        """One table with the rows of every part, in the order of ``parts``.

        Parts that are on disk are read; the others are computed and written one by one, so that a
        killed run goes on where it stopped. New and old parts take the same way through parquet:
        the table is the same whether it was computed, resumed or read. Lists in a cell come back
        as lists; the index is not kept.

        Args:
            identity: everything that the values depend on besides the part.
            parts: what ``compute`` is called with, each a JSON value such as a name or a list of
                problem indices; two different parts have different files.
            compute: the rows of one part, the same columns for every part; must give the same
                values whenever it is called with the same part.

        Raises:
            ValueError: for an identity or part that JSON cannot hold, repeated or no parts, or rows
                that parquet cannot hold.
            RunStoreError: when the directory is full, read-only or not a folder.
        """
        directory = self.directory(identity)
        parts = list(parts)
        names = [f"part-{content_hash(part, 'parts')}" for part in parts]
        if not names or len(set(names)) < len(names):
            raise ValueError("parts: one or more parts, each once, such as [[0, 1], [2, 3]]")
        with self._clear_errors():
            _describe(directory, identity)
            _remove_leftovers(directory)
        tables = [
            self._part(directory, name, part, compute)
            for name, part in zip(names, parts, strict=True)
        ]
        return _joined(tables)

    def _part(
        self, directory: Path, name: str, part: Part, compute: Callable[[Part], pd.DataFrame]
    ) -> pa.Table:
        with self._clear_errors():
            data = _finished(directory, name)
        if data is None:
            data = _to_parquet(compute(part))
            with self._clear_errors():
                _write_atomically(directory / _file_name(directory, name, data), data)
        return pq.read_table(pa.BufferReader(data))

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunStoreError(
                f"runs_dir: cannot use the folder {self.root} ({error.strerror or error}); make "
                "room or allow writing there, or name another folder with runs_dir or the "
                f"environment variable {ENVIRONMENT_VARIABLE}"
            ) from error


def _plain(value: object, name: str) -> object:
    """The value as JSON has it, with one form for values that are equal."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, f"{name}.{key}") for key, item in value.items()}
    raise ValueError(
        f"{name}: only None, bool, int, finite float, str, and lists or string-keyed mappings of "
        f"them can identify a run, such as 0.7; got {value!r}"
    )


def _file_name(directory: Path, name: str, data: bytes) -> str:
    checksum = hashlib.sha256(f"{directory.name}/{name}\n".encode())
    checksum.update(data)
    return f"{name}.{checksum.hexdigest()[:32]}.parquet"


def _finished(directory: Path, name: str) -> bytes | None:
    """The file of a part once its checksum holds; damaged ones are moved aside on the way."""
    for path in sorted(directory.glob(f"{name}.*.parquet")):
        data = _read(path)
        if data is None:
            continue
        if path.name == _file_name(directory, name, data):
            return data
        _move_aside(path)
    return None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # never written, or just moved aside by another process
        return None


def _move_aside(path: Path) -> None:
    evidence = path.with_name(f"{path.name}.{secrets.token_hex(4)}.damaged")
    with suppress(FileNotFoundError):  # another process saw the damage first
        path.rename(evidence)
        log.warning("%s is damaged: kept as %s, and made again", path, evidence.name)


def _describe(directory: Path, identity: Mapping[str, object]) -> None:
    """Write ``run.json`` unless it is there and right."""
    content = {"format": FORMAT, "identity": _plain(identity, "identity")}
    data = (json.dumps(content, indent=2, sort_keys=True) + "\n").encode("utf-8")
    path = directory / "run.json"
    present = _read(path)
    if present == data:
        return
    if present is not None:
        _move_aside(path)
    _write_atomically(path, data)


def _write_atomically(path: Path, data: bytes) -> None:
    """After a kill or a power cut at any point, ``path`` holds all of ``data`` or what it held."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        # Windows refuses to replace a file that another process is reading. Names are content
        # addresses, so the file that is there is as good as ours if its bytes are the same.
        if not isinstance(error, PermissionError) or _read(path) != data:
            raise


def _remove_leftovers(directory: Path) -> None:
    """Remove temporary files of processes that died; one in use is never that old."""
    for leftover in directory.glob("*.tmp"):
        with suppress(OSError):  # another process removed it, or the folder is read-only
            if time.time() - leftover.stat().st_mtime > LEFTOVER_SECONDS:
                leftover.unlink()


def _to_parquet(frame: pd.DataFrame) -> bytes:
    if not isinstance(frame, pd.DataFrame) or frame.index.names != [None]:
        raise ValueError(
            "compute: returns a pandas DataFrame without a named index (reset_index())"
        )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        for position, column in enumerate(table.schema):
            if pa.types.is_list(column.type):  # from_pandas would turn NaN inside a list into None
                cells = pa.array(frame[column.name].tolist(), column.type, from_pandas=False)
                table = table.set_column(position, column, cells)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise ValueError(
            "compute: each column has its own name and holds one kind of value, such as int, float,"
            f" bool, str or lists of int ({error})"
        ) from error
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _joined(tables: list[pa.Table]) -> pd.DataFrame:
    # A part without rows, such as a chunk with nothing to report, does not know its types.
    tables = [table for table in tables if table.num_rows] or tables[:1]
    for table in tables:
        if table.column_names != tables[0].column_names:
            raise ValueError(
                "compute: every part has the same columns; "
                f"got {tables[0].column_names} and {table.column_names}"
            )
    try:
        joined = pa.concat_tables(tables, promote_options="default")
    except pa.ArrowTypeError as error:
        raise ValueError(f"compute: every part has the same column types ({error})") from error
    frame: pd.DataFrame = joined.to_pandas()
    for column in joined.schema:
        if pa.types.is_list(column.type):
            frame[column.name] = joined[column.name].to_pylist()
    return frame
