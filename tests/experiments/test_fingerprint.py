import shutil
from pathlib import Path

import pytest

import companion
from companion.experiments import fingerprint
from companion.experiments.fingerprint import sampler_hash


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package's code, to be edited."""
    root = tmp_path / "companion"
    only_code = shutil.ignore_patterns("checkpoints", "__pycache__")
    shutil.copytree(Path(companion.__file__).parent, root, ignore=only_code)
    monkeypatch.setattr(fingerprint.companion, "__file__", str(root / "__init__.py"))
    sampler_hash.cache_clear()
    yield root
    sampler_hash.cache_clear()


def after_editing(path):
    path.write_text(path.read_text(encoding="utf-8") + "# edited\n", encoding="utf-8")
    sampler_hash.cache_clear()
    return sampler_hash()


@pytest.mark.parametrize(
    "source",
    [
        "seeds.py",
        "policies/sampling.py",
        "policies/decoding.py",
        "countdown/space.py",
        "lab/tokenizer.py",
        "experiments/rollouts.py",
        "experiments/exactly.py",
    ],
)
def test_edited_code_never_reads_what_other_code_has_made(package, source):
    before = sampler_hash()
    assert after_editing(package / source) != before


@pytest.mark.parametrize(
    "source", ["plots.py", "measures/coverage.py", "experiments/trade_off_figures.py"]
)
def test_code_that_only_reads_samples_lets_them_stay(package, source):
    before = sampler_hash()
    assert after_editing(package / source) == before
