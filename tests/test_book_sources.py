"""The sources of the book before a build: links, words, quotations and the offline rule."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from companion import profiles
from companion.claims import load_claims
from companion.countdown.answers import judge
from companion.countdown.problems import Problem
from companion.parameters import TradeOffParameters

PROJECT = Path(__file__).parent.parent
BOOK = PROJECT / "book"
PAGES = sorted(BOOK.glob("*.md"))
OWN_STATIC = [path for path in (BOOK / "_static").glob("*") if path.suffix in {".css", ".svg"}]


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture(params=PAGES, ids=lambda page: page.stem)
def page(request: pytest.FixtureRequest) -> str:
    return text_of(request.param)


@pytest.fixture
def config() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(text_of(PROJECT / "_config.yml"))
    return loaded


def files_in(contents: object) -> list[str]:
    if isinstance(contents, list):
        return [name for item in contents for name in files_in(item)]
    if isinstance(contents, dict):
        own = [str(contents[key]) for key in ("root", "file") if key in contents]
        return own + [n for value in contents.values() for n in files_in(value)]
    return []


def test_the_table_of_contents_lists_every_page_and_nothing_else() -> None:
    listed = files_in(yaml.safe_load(text_of(PROJECT / "_toc.yml")))
    chapters = {name for name in listed if name.startswith("book/chapters/")}
    assert {f"book/{page.stem}" for page in PAGES} == set(listed) - chapters
    notebooks = {path.stem for path in (PROJECT / "notebooks").glob("*.ipynb")}
    assert {name.removeprefix("book/chapters/") for name in chapters} == notebooks
    assert len(listed) == len(set(listed))


def test_every_image_has_a_description_and_exists(page: str) -> None:
    for options, target in re.findall(r"```\{(?:figure|image)\} (\S+)\n(.*?)```", page, re.DOTALL):
        assert (BOOK / options).is_file()
        alt = yaml.safe_load(re.match(r"---\n(.*?)---", target, re.DOTALL)[1])["alt"]
        assert len(alt) > 20
    for alt, target in re.findall(r"!\[(.*?)\]\((.*?)\)", page):
        assert len(alt) > 20
        assert (BOOK / target).is_file()
    assert "<img" not in page


def test_no_measured_number_is_typed_by_hand(page: str) -> None:
    """The paper is quoted with the role ``paper`` only; this run's numbers belong to chapters."""
    prose = re.sub(r"```.*?```|`[^`]*`|https?://\S+", "", page, flags=re.DOTALL)
    assert re.findall(r"\d+\.\d+|\d+ ?%", prose.replace("Python 3.11", "").replace("95%", "")) == []


def test_every_quoted_claim_exists(page: str) -> None:
    known = {claim.id for claim in load_claims() if claim.written}
    assert set(re.findall(r"\{paper\}`(.*?)`", page)) <= known


def test_every_citation_is_in_the_bibliography(page: str) -> None:
    keys = re.findall(r"^@\w+\{(.+?),$", text_of(BOOK / "references.bib"), re.MULTILINE)
    assert len(keys) == len(set(keys)) > 0
    cited = {k for group in re.findall(r"\{cite[^}]*\}`(.*?)`", page) for k in group.split(",")}
    assert cited <= set(keys)


def test_every_term_is_in_the_glossary(page: str) -> None:
    glossary = text_of(BOOK / "glossary.md").split("```{glossary}")[1].split("```")[0]
    words = set(re.findall(r"^(\S.*)$", glossary, re.MULTILINE))
    used = {match[1] or match[0] for match in re.findall(r"\{term\}`([^`<]+?)(?: <(.+?)>)?`", page)}
    assert used <= words


def test_the_glossary_is_in_alphabetical_order() -> None:
    glossary = text_of(BOOK / "glossary.md").split("```{glossary}")[1].split("```")[0]
    words = re.findall(r"^(\S.*)$", glossary, re.MULTILINE)
    assert words == sorted(words, key=str.lower)


def test_the_table_of_parameters_is_the_one_that_the_chapter_checks() -> None:
    section = (
        text_of(BOOK / "how-to-run.md").split("## Parameters of chapter 1")[1].split("\n## ")[0]
    )
    rows = re.findall(r"^\| `(.+?)` \| `(.+?)` \| (.+?) \|$", section, re.MULTILINE)
    fields = TradeOffParameters.model_fields.items()
    assert rows == [(name, str(field.default), field.description) for name, field in fields]


def test_every_profile_is_described() -> None:
    section = text_of(BOOK / "how-to-run.md").split("## Profiles")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(.+?)` ", section, re.MULTILINE)) == set(profiles.names())


def test_every_door_of_the_drawing_leads_to_24() -> None:
    drawing = text_of(BOOK / "_static" / "doors.svg")
    answers = re.findall(r">([^<]*[×−+] ?[^<]*\d\)?)</text>", drawing)
    assert len(answers) == 5
    assert [a for a in answers if not judge(a, Problem((4, 5, 7, 9), 24)).correct] == []


def test_the_build_executes_nothing_and_fails_on_a_failed_cell(config: dict[str, Any]) -> None:
    sphinx = config["sphinx"]["config"]
    assert config["execute"]["execute_notebooks"] == "off"
    assert sphinx["nb_execution_raise_on_error"] is True
    assert sphinx["nb_render_markdown_format"] == "myst"
    assert sphinx["nb_output_stderr"] == "remove"
    assert "suppress_warnings" not in sphinx


def test_a_reader_needs_no_network(config: dict[str, Any]) -> None:
    assert re.findall(r"https?://|//\w", text_of(PROJECT / "_config.yml")) == []
    assert config["launch_buttons"] == {"thebe": False}
    script = BOOK / "_static" / config["sphinx"]["config"]["mathjax_path"]
    assert script.is_file()
    assert config["sphinx"]["config"]["mathjax3_config"]["options"]["enableMenu"] is False
    fonts = script.parent / "output" / "chtml" / "fonts" / "woff-v2"
    needed = set(re.findall(r"MathJax_[\w-]+\.woff", text_of(script)))
    assert needed
    assert needed <= {font.name for font in fonts.iterdir()}
    assert "Apache License" in text_of(script.parent / "LICENSE")
    for file in OWN_STATIC:
        # Names of namespaces, the type of the document and its metadata are never fetched.
        names = r'xmlns(:\w+)?="[^"]*"|<!DOCTYPE[^>]*>|(?s:<metadata>.*?</metadata>)'
        fetched = re.sub(names, "", text_of(file))
        assert re.findall(r"https?:|@import|url\((?!#)|<script", fetched) == []
    for page in PAGES:
        assert re.findall(r"<script|<iframe|<link", text_of(page)) == []


def test_drawings_name_what_they_show() -> None:
    for name in ("logo.svg", "logo-dark.svg", "doors.svg"):
        assert re.search(r"<title>.{10,}</title>", text_of(BOOK / "_static" / name))
