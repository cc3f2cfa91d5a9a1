"""The run store under real faults: kills, damage, rival writers, full and read-only disks."""

import errno
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from companion.runs import RunStore, RunStoreError

WORKER = Path(__file__).with_name("run_worker.py")
spec = importlib.util.spec_from_file_location("run_worker", WORKER)
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)

PATIENCE_SECONDS = 120  # for a busy machine; no expectation
needs_kill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")


def command(root, log, *options):
    return [sys.executable, str(WORKER), str(root), str(log), *map(str, options)]


def run_worker(root, log, *options):
    """What a worker process printed, or None when it was killed."""
    done = subprocess.run(
        command(root, log, *options),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if done.returncode < 0:
        assert done.returncode == -signal.SIGKILL, done.stderr
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def computed(log):
    """The parts that workers have begun to compute, in order."""
    return [int(line) for line in log.read_text(encoding="utf-8").split()] if log.exists() else []


def files(root, pattern="*"):
    """Name and bytes of the files of the one run under the root, but for leftovers of the dead."""
    found = RunStore(root).directory(worker.IDENTITY).glob(pattern)
    return {path.name: path.read_bytes() for path in found if path.suffix != ".tmp"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run that nothing happened to: its report and its files."""
    root = tmp_path_factory.mktemp("undisturbed")
    report = run_worker(root / "runs", root / "log")
    assert computed(root / "log") == worker.PARTS
    return report, files(root / "runs")


# Killed


def resume_and_compare(root, log, undisturbed, kills=1):
    """A killed run resumes bit for bit, computing nothing but what it had not written."""
    before = computed(log)
    written = len(files(root, "part-*.parquet"))
    table = RunStore(root).table(worker.IDENTITY, worker.PARTS, worker.logged(log))
    again = computed(log)[len(before) :]
    assert worker.values(table) == undisturbed[0]["values"]
    assert files(root) == undisturbed[1]
    assert again == worker.PARTS[written:]
    assert written <= len(before) <= written + kills  # a kill loses the part that it hit at most


@needs_kill
@pytest.mark.parametrize("event", ["c_call", "c_return"], ids=["before", "after"])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_a_run_killed_at_any_step_of_writing_resumes(tmp_path, undisturbed, call, event):
    write = random.Random(call + event).randint(
        1, 1 + len(worker.PARTS)
    )  # run.json, then the parts
    died = run_worker(tmp_path / "runs", tmp_path / "log", "--die-at", call, event, write)
    assert died is None
    resume_and_compare(tmp_path / "runs", tmp_path / "log", undisturbed)


@needs_kill
def test_a_run_killed_again_and_again_comes_to_its_end(tmp_path, undisturbed):
    draw = random.Random(0)
    for _ in range(2):
        step = draw.choice(["open", "write", "fsync", "replace"]), "c_return", draw.randint(1, 4)
        assert run_worker(tmp_path / "runs", tmp_path / "log", "--die-at", *step) is None
    resume_and_compare(tmp_path / "runs", tmp_path / "log", undisturbed, kills=2)


@needs_kill
@pytest.mark.parametrize("seed", range(2))
def test_a_run_killed_from_outside_resumes(tmp_path, undisturbed, seed):
    log = tmp_path / "log"
    wanted = random.Random(seed).randint(1, len(worker.PARTS))
    process = subprocess.Popen(command(tmp_path / "runs", log), stdout=subprocess.DEVNULL)
    while len(computed(log)) < wanted and process.poll() is None:
        time.sleep(0.0001)
    process.kill()
    process.wait()
    resume_and_compare(tmp_path / "runs", log, undisturbed)


# Damaged


def flip_a_bit(seed):
    def flipped(data):
        position, bit = random.Random(seed).randrange(len(data)), seed % 8
        return data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]

    return flipped


DAMAGES = {
    "empty": lambda data: b"",
    "truncated to half": lambda data: data[: len(data) // 2],
    "last byte lost": lambda data: data[:-1],
    "first byte lost": lambda data: data[1:],
    "a byte too many": lambda data: data + b"\0",
    "zeros, as after a power cut": lambda data: bytes(len(data)),
    "garbage": lambda data: random.Random(0).randbytes(len(data)),
    "text": lambda data: b"<html>503 Service Unavailable</html>",
    **{f"bit flipped, seed {seed}": flip_a_bit(seed) for seed in range(8)},
}


@pytest.fixture
def finished(tmp_path):
    """A store with a finished run of three parts, its table, and a way to compute it."""
    calls = []

    def compute(part):
        calls.append(part)
        return worker.rows(part, count=20)

    def table():
        return RunStore(tmp_path).table(worker.IDENTITY, [0, 1, 2], compute)

    values = worker.values(table())
    calls.clear()
    return RunStore(tmp_path).directory(worker.IDENTITY), values, table, calls


def part_files(directory, table, calls):
    """The file of each part, found by taking one away at a time and seeing what is recomputed."""
    found = {}
    for path in directory.glob("part-*.parquet"):
        path.unlink()
        table()
        found[calls.pop()] = path
    return found


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_reported_kept_and_computed_again(finished, caplog, damage):
    directory, values, table, calls = finished
    path = part_files(directory, table, calls)[1]
    good = path.read_bytes()
    bad = DAMAGES[damage](good)
    assert bad != good
    path.write_bytes(bad)

    assert worker.values(table()) == values
    assert calls == [1]
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert str(path) in record.getMessage()
    assert "\n" not in record.getMessage()
    [evidence] = directory.glob("*.damaged")
    assert evidence.read_bytes() == bad
    assert evidence.name in record.getMessage()
    assert path.read_bytes() == good

    assert worker.values(table()) == values
    assert calls == [1]
    assert len(caplog.records) == 1


def test_a_good_file_in_the_wrong_place_is_not_read(finished, caplog):
    directory, values, table, calls = finished
    paths = part_files(directory, table, calls)
    checksum = paths[0].name.split(".", 1)[1]
    misplaced = directory / f"{paths[1].name.split('.')[0]}.{checksum}"
    paths[0].replace(misplaced)  # part 0 under the name of part 1, with its own right checksum
    paths[1].unlink()
    assert worker.values(table()) == values
    assert calls == [0, 1]
    assert len(caplog.records) == 1


def test_a_file_of_another_run_is_not_read(finished, caplog, tmp_path):
    directory, _, _, _ = finished
    other = RunStore(tmp_path).directory({"kind": "other"})
    directory.rename(other)
    frame = pd.DataFrame({"answer": [42]})
    table = RunStore(tmp_path).table({"kind": "other"}, [0], lambda _: frame)
    assert table.to_dict("list") == {"answer": [42]}
    assert len(caplog.records) == 2  # its run.json and its part 0


@pytest.mark.parametrize(
    "bad", [b"", b"{", b'{"format": 1, "identity": {"kind": "lie"}}\n', b"\xff"]
)
def test_a_damaged_description_is_reported_kept_and_written_again(finished, caplog, bad):
    directory, values, table, calls = finished
    good = (directory / "run.json").read_bytes()
    (directory / "run.json").write_bytes(bad)
    assert worker.values(table()) == values
    assert calls == []
    assert (directory / "run.json").read_bytes() == good
    [evidence] = directory.glob("run.json.*.damaged")
    assert evidence.read_bytes() == bad
    assert len(caplog.records) == 1


def test_the_warning_is_one_line_on_stderr_without_any_set_up(tmp_path, undisturbed):
    root, log = tmp_path / "runs", tmp_path / "log"
    run_worker(root, log)
    first = sorted(RunStore(root).directory(worker.IDENTITY).glob("part-*.parquet"))[0]
    first.write_bytes(b"")
    done = subprocess.run(
        command(root, log), capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert json.loads(done.stdout)["values"] == undisturbed[0]["values"]
    [line] = done.stderr.splitlines()
    assert line.startswith(f"{first} is damaged: kept as {first.name}.")


# Two processes at once


@pytest.mark.parametrize("damaged", [False, True], ids=["fresh", "with damaged parts"])
def test_two_processes_at_once_get_the_same_table(tmp_path, undisturbed, damaged):
    root, log = tmp_path / "runs", tmp_path / "log"
    if damaged:
        run_worker(root, log)
        for path in RunStore(root).directory(worker.IDENTITY).glob("part-*.parquet"):
            path.write_bytes(path.read_bytes()[:-1])
    processes = [
        subprocess.Popen(
            command(root, tmp_path / f"log-{i}", "--after", tmp_path / "go"), stdout=subprocess.PIPE
        )
        for i in range(2)
    ]
    while not all((tmp_path / f"log-{i}").exists() for i in range(2)):
        assert all(process.poll() is None for process in processes)
        time.sleep(0.001)
    (tmp_path / "go").touch()
    reports = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert {json.loads(report)["values"] for report in reports} == {undisturbed[0]["values"]}
    assert {n: d for n, d in files(root).items() if not n.endswith("damaged")} == undisturbed[1]
    assert not list(RunStore(root).directory(worker.IDENTITY).glob("*.tmp"))
    # Whatever they left is complete: a third process computes nothing.
    run_worker(root, tmp_path / "log-2")
    assert computed(tmp_path / "log-2") == []


# Full and read-only disks


def assert_clear(message, root, code):
    assert message == (
        f"runs_dir: cannot use the folder {root} ({os.strerror(code)}); make room or allow writing "
        "there, or name another folder with runs_dir or the environment variable COMPANION_RUNS"
    )


def on_a_small_disk(tmp_path, script):
    """Run shell lines in a private mount namespace with a 64 KiB disk at $DISK; stdout by lines."""
    disk = tmp_path / "disk"
    disk.mkdir()
    begin = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-e", "-c"]
    mount = 'mount -t tmpfs -o size=64k none "$DISK"\n'
    environment = os.environ | {"DISK": str(disk), "LOG": str(tmp_path / "log")}
    environment |= {"WORKER": f"{sys.executable} {WORKER} {disk} {tmp_path / 'log'}"}
    try:
        subprocess.run([*begin, mount], env=environment, check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this system lets no test mount a disk ({error})")
    done = subprocess.run(
        [*begin, mount + script],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_gives_one_sentence_and_loses_no_finished_part(tmp_path, undisturbed):
    full, leftovers, resumed = on_a_small_disk(
        tmp_path,
        """
        $WORKER
        find "$DISK" -name '*.tmp' | wc -l
        echo resume >> "$LOG"
        mount -o remount,size=8m none "$DISK"
        $WORKER
        """,
    )
    assert_clear(json.loads(full)["error"], tmp_path / "disk", errno.ENOSPC)
    assert int(leftovers) == 0
    assert json.loads(resumed)["values"] == undisturbed[0]["values"]
    first, second = (tmp_path / "log").read_text(encoding="utf-8").split("resume\n")
    first, second = first.split(), second.split()
    assert 1 < len(first) < len(worker.PARTS)
    assert first[:-1] + second == [str(part) for part in worker.PARTS]


def test_a_read_only_disk_is_read_but_gives_one_sentence_before_computing(tmp_path, undisturbed):
    _, read, refused = on_a_small_disk(
        tmp_path,
        """
        mount -o remount,size=8m none "$DISK"
        $WORKER
        rm "$LOG"
        mount -o remount,ro none "$DISK"
        $WORKER
        $WORKER --kind other
        """,
    )
    assert json.loads(read)["values"] == undisturbed[0]["values"]
    assert_clear(json.loads(refused)["error"], tmp_path / "disk", errno.EROFS)
    assert computed(tmp_path / "log") == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on the size of a file")
def test_a_file_size_limit_gives_one_sentence(tmp_path):
    limited = subprocess.run(
        [
            "sh",
            "-c",
            'ulimit -f 4 && exec "$@"',
            "sh",
            *command(tmp_path / "runs", tmp_path / "log"),
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert_clear(json.loads(limited.stdout)["error"], tmp_path / "runs", errno.EFBIG)
    assert list(files(tmp_path / "runs")) == ["run.json"]
    assert not list((tmp_path / "runs").rglob("*.tmp"))


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="Windows and root ignore a folder's mode"
)
def test_a_folder_without_write_permission_gives_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RunStoreError) as caught:
            RunStore(tmp_path / "runs").table(worker.IDENTITY, [0], worker.rows)
    finally:
        tmp_path.chmod(0o700)
    assert_clear(str(caught.value), tmp_path / "runs", errno.EACCES)


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_root_that_is_a_file_gives_one_sentence_before_computing(tmp_path, below):
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    root = tmp_path / "file" / below
    calls = []
    with pytest.raises(
        RunStoreError, match=r"^runs_dir: cannot use the folder .* COMPANION_RUNS$"
    ) as caught:
        RunStore(root).table(worker.IDENTITY, [0], calls.append)
    assert str(root) in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)
    assert calls == []
