"""What is installed, what an import pulls in, and what must not stand in the code."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
MODULES = sorted((ROOT / "src").rglob("*.py"))


def by_name(texts: list[str]) -> dict[str, Requirement]:
    return {canonicalize_name(Requirement(text).name): Requirement(text) for text in texts}


CORE = by_name(PROJECT["dependencies"])
BOOK = by_name(EXTRAS["book"])


@pytest.mark.parametrize(
    ("name", "works", "breaks"),
    [
        ("jupyter-book", "1.0.4.post1", "2.1.7"),  # 2.x ignores _config.yml and _toc.yml
        ("sphinx", "7.4.7", "8.0.0"),
        ("sphinx-book-theme", "1.2.0", "1.3.0"),  # shows a second header over every page
    ],
)
def test_the_book_tools_have_an_upper_bound(name: str, works: str, breaks: str) -> None:
    assert BOOK[name].specifier.contains(works)
    assert not BOOK[name].specifier.contains(breaks)


def test_the_core_has_room_for_vllm_and_none_of_the_extras() -> None:
    assert CORE["transformers"].specifier.contains("5.19.0")
    assert not CORE["transformers"].specifier.contains("5.20.0")  # fits no vLLM of the gpu extra
    assert not by_name(EXTRAS["gpu"])["vllm"].specifier.contains("0.2.5")
    assert CORE["torch"].specifier.contains("2.14.0")  # what the next vLLM demands
    assert not CORE.keys() & {"jupyter-book", "vllm", "trl", "ray", "pytest"}


def test_the_constraints_are_exact_and_within_the_ranges() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = by_name(lines)
    for requirement in pinned.values():
        assert re.fullmatch(r"==[^+*]+", str(requirement.specifier)), requirement
    assert "companion" not in pinned
    for name, needed in {**CORE, **BOOK, **by_name(EXTRAS["dev"])}.items():
        version = str(pinned[name].specifier).removeprefix("==")
        assert needed.specifier.contains(version, prereleases=True), f"{needed} against {version}"


def test_the_conda_environment_is_in_step_with_the_package() -> None:
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    python, _, pip = yaml.safe_load(text)["dependencies"]
    assert Requirement(python).specifier == Requirement(f"x{PROJECT['requires-python']}").specifier
    *listed, itself = pip["pip"]
    assert itself == "--editable ."
    assert by_name(listed) == {**CORE, **BOOK}
    assert f"# - {EXTRAS['gpu'][0]}" in text


def test_make_and_ci_install_from_the_constraints() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--constraint constraints.txt" in makefile
    steps = (ROOT / ".ci/run").read_text(encoding="utf-8").splitlines()
    assert steps[-3:] == ["make lint", "make test", "make book PROFILE=smoke"]
    assert "set -euo pipefail" in steps


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("companion", {"numpy", "torch", "transformers", "pandas", "pydantic"}),
        ("companion.countdown", {"torch", "transformers", "pandas", "matplotlib", "pyarrow"}),
        ("companion.countdown.parser", {"torch", "transformers", "pandas", "matplotlib"}),
        ("companion.countdown.solver", {"torch", "transformers", "pandas", "matplotlib"}),
        ("companion.measures", {"torch", "transformers", "matplotlib", "pyarrow"}),
        ("companion.claims", {"torch", "transformers", "matplotlib"}),
        ("companion.parameters", {"torch", "transformers", "pandas", "papermill", "nbformat"}),
        ("companion.cli", {"torch", "transformers", "pandas", "papermill", "nbformat"}),
    ],
)
def test_an_import_pulls_in_no_heavy_library(module: str, unwanted: set[str]) -> None:
    program = f"import sys, {module}\nprint(*sorted({unwanted!r} & sys.modules.keys()))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert loaded.stdout.split() == []


def test_ruff_demands_an_encoding_of_every_file() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert {"PLW1514", "S301", "S307"} <= set(tools["ruff"]["lint"]["select"])
    assert tools["ruff"]["lint"]["preview"] is True  # PLW1514 is a preview rule


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_code_is_bound_to_one_system(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    for unwanted in ("SIGALRM", "import fcntl", "os.fork", '"/tmp', '"/dev/', "import pickle"):
        assert unwanted not in text


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_code_draws_from_a_hidden_random_stream(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    hidden = re.compile(
        r"default_rng\(\)|np\.random\.(?!default_rng|Generator|SeedSequence|PCG64|Philox)"
        r"|^import random|random\.(random|randint|choice|shuffle)\("
    )
    assert hidden.search(text) is None
