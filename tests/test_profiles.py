"""Profiles are flat parameter files; a damaged one is refused in one sentence."""

from pathlib import Path

import papermill.iorw
import pytest

from companion import profiles
from companion.parameters import ParameterError, TradeOffParameters

CHAPTERS = [TradeOffParameters]


def test_the_lab_profile_says_what_the_notebooks_say() -> None:
    assert profiles.load("lab", CHAPTERS) == TradeOffParameters().model_dump()


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_is_valid_and_carries_its_own_name(name: str) -> None:
    assert TradeOffParameters.checked(profiles.load(name, CHAPTERS)).profile == name


@pytest.mark.parametrize("name", profiles.names())
def test_papermill_reads_the_same_from_the_file(name: str) -> None:
    read = papermill.iorw.read_yaml_file(str(profiles.FOLDER / f"{name}.yaml"))
    assert read == profiles.load(name, CHAPTERS)


def test_smoke_is_smaller_than_lab() -> None:
    smoke = TradeOffParameters.checked(profiles.load("smoke", CHAPTERS))
    lab = TradeOffParameters.checked(profiles.load("lab", CHAPTERS))
    assert smoke.samples < lab.samples
    assert len(smoke.steps) < len(lab.steps)


def test_a_file_of_the_readers_own_is_a_profile(tmp_path: Path) -> None:
    mine = tmp_path / "mein profil.yaml"
    mine.write_text("samples: 64  # größer\nuse_gpu: true\n", encoding="utf-8")
    assert profiles.load(str(mine), CHAPTERS) == {"samples": 64, "use_gpu": True}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"- samples\n- 320\n", "one 'name: value' on each line"),
        (b"320\n", "one 'name: value' on each line"),
        (b"", "one 'name: value' on each line"),
        (b"samples: [320]\n", "one 'name: value' on each line"),
        (b"trade-off:\n  samples: 320\n", "one 'name: value' on each line"),
        (b"samples: 320\nsamples: 640\n", "line 2: samples is given twice"),
        (b"samples: [320\n", "line 2: expected"),
        (b"seed: 1\nsamples 320\n", "line 3: could not find expected ':'"),
        (b"a: b: c\n", "line 1: mapping values are not allowed here"),
        (b"samples: *nothing\n", "line 1: found undefined alias"),
        (b"? [1, 2]\n: 3\n", "line 1: found unhashable key"),
        (b"samples: !!python/object/apply:os.getcwd []\n", "line 1: could not determine"),
        (b"samples: 2026-13-45\n", "it is not YAML"),
        (b"samples: " + b"[" * 1000, "it is not YAML"),
        (b"samples: \x00\n", "it is not YAML"),
        (b"\xff\xfe\x00\xd8", "cannot be read as text"),
        (b"sampels: 320\n", "unknown parameter 'sampels', did you mean 'samples'?"),
        (b"320: samples\n", "unknown parameter 320"),
    ],
)
def test_a_damaged_profile_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes, message: str
) -> None:
    damaged = tmp_path / "damaged.yaml"
    damaged.write_bytes(content)
    with pytest.raises(ParameterError) as caught:
        profiles.load(str(damaged), CHAPTERS)
    assert str(caught.value).startswith(f"profile {damaged}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lba", "did you mean 'lab'"),
        ("", "profiles: lab, smoke"),
        ("absent.yaml", "cannot be read"),
    ],
)
def test_an_absent_profile_is_refused(name: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        profiles.load(name, CHAPTERS)


def test_the_yaml_trap_of_1e_4_is_explained(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("temperature: 1e-4\n", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"temperature must be a number.*1\.0e-4"):
        TradeOffParameters.checked(profiles.load(str(mine), CHAPTERS))
