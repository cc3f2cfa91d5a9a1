"""A process that computes one run and reports on it; test_runs_faults.py starts and kills it.

It prints one line of JSON: ``{"values": hash}`` or ``{"error": sentence}``. It notes every part in
a log before it computes it, so that the log outlives a kill.
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from companion import runs

PARTS = list(range(12))
IDENTITY = {"kind": "fault test", "seed": 0}
WRITER = runs._write_atomically.__code__


def rows(part, count=400):
    """The rows of a part: every kind of column, a function of the part alone."""
    generator = np.random.default_rng(part)
    return pd.DataFrame(
        {
            "problem": part,
            "sample": np.arange(count),
            "log_probability": generator.normal(size=count),
            "finished": generator.random(count) < 0.5,
            "text": [f"{number} × 2" for number in generator.integers(99, size=count)],
            "tokens": [
                list(generator.integers(50, size=size))
                for size in generator.integers(6, size=count)
            ],
        }
    )


def logged(path):
    """A computation of rows that notes each part in the log at this path."""

    def compute(part):
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{part}\n")
        return rows(part)

    return compute


def values(table):
    """A hash of every value and type, bit for bit."""
    text = repr(table.dtypes.to_dict()) + repr(table.to_dict("list"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def die_at(call, event, occurrence):
    """Kill this process at the nth time that a built-in such as ``fsync`` is called or returns."""
    seen = 0

    def on_event(frame, what, function):
        nonlocal seen
        if what == event and function.__name__ == call and WRITER in being_executed(frame):
            seen += 1
            if seen == occurrence:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(on_event)


def being_executed(frame):
    """The code of the frame, of its caller, and so on."""
    while frame:
        yield frame.f_code
        frame = frame.f_back


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--kind", default=IDENTITY["kind"])
    parser.add_argument("--die-at", nargs=3, help="such as: fsync c_return 3")
    parser.add_argument("--after", type=Path, help="begin when this file is there")
    arguments = parser.parse_args()

    if arguments.after:
        arguments.log.touch()  # says that this process is ready
        while not arguments.after.exists():
            time.sleep(0.001)
    if arguments.die_at:
        call, event, occurrence = arguments.die_at
        die_at(call, event, int(occurrence))
    try:
        store = runs.RunStore(arguments.root)
        table = store.table(IDENTITY | {"kind": arguments.kind}, PARTS, logged(arguments.log))
    except runs.RunStoreError as error:
        print(json.dumps({"error": str(error)}))
    else:
        print(json.dumps({"values": values(table)}))


if __name__ == "__main__":
    main()
