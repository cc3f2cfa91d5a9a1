"""The README: its links lead somewhere, its commands exist, its list of the library is whole."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import lineages
from companion.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LIBRARY = ROOT / "src" / "companion"


def test_every_link_and_image_of_this_repository_exists() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README)
    local = [target for target in targets if not target.startswith("https://")]
    assert "book/_static/trade-off.svg" in local
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_the_first_screen_has_the_figure_and_the_two_commands() -> None:
    first = README.splitlines()[:30]
    assert any(line.startswith("![") for line in first)
    for command in ("make book", "make test"):
        assert any(line.startswith(command) for line in first)


def test_nothing_was_left_to_fill_in() -> None:
    assert re.findall(r"TODO|TBD|FIXME|XXX|\?\?\?|<[a-z ]+ here>", README) == []


def test_every_module_of_the_library_is_listed_and_nothing_else() -> None:
    listing = re.search(r"```\nsrc/companion/\n(.*?)```", README, re.DOTALL)
    assert listing
    named = set()
    for line in listing[1].splitlines():
        names = re.match(r"  (\w+/|\w+(?:, \w+)*)(?:  |$)", line)
        assert names, line
        named |= {name.strip("/") for name in names[1].split(", ")}
    modules = {
        path.stem if path.suffix == ".py" else path.name
        for path in LIBRARY.iterdir()
        if (path.suffix == ".py" and not path.stem.startswith("__"))
        or (path / "__init__.py").exists()
    }
    assert named == modules


@pytest.mark.parametrize("command", sorted(set(re.findall(r"(?:`|bin/)companion (\w+)", README))))
def test_every_command_that_it_names_exists(command: str) -> None:
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_the_figure_description_has_the_numbers_of_the_manifest() -> None:
    """pass@1 of the README's first figure is what the shipped checkpoints were measured to have."""
    late = lineages.load("lab-grpo").checkpoints[-1].record.measured
    both = sum(late[size]["pass@1"] for size in late) / len(late)
    found = re.search(r"pass@1 goes from ([\d.]+) to ([\d.]+) with the reward", README)
    assert found
    assert float(found[2]) == pytest.approx(both, abs=6e-4)
