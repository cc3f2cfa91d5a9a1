"""The book is built whole from fresh chapters, or not at all."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from companion import book
from companion.book import BookError, build, chapters_of, check_fresh
from companion.chapters import CHAPTERS, Chapter, read_notebook
from companion.execution import execute

ROOT = Path(__file__).parents[1]
FIGURE = (
    "from companion import plots\nfrom matplotlib.figure import Figure\n\n"
    "figure = Figure()\nfigure.subplots().plot([1, 2])\nplots.show(figure, 'A rising line.')"
)
PICTURE = "import matplotlib.pyplot as plt\n\nplt.plot([1, 2]);"
CLAIMS = (
    "from companion.claims import check, load_claims, show\n\n"
    "show(check(load_claims('trade-off'), {}))"
)
WARNING = "import sys\n\nprint('noise', file=sys.stderr)"

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def executed(
    tmp_path_factory: pytest.TempPathFactory, small_project: Make, small_chapter: Chapter
) -> Path:
    """A small project with an executed chapter that shows every kind of output, not yet built."""
    cells = ("print('words')", FIGURE, PICTURE, CLAIMS, WARNING)
    project = small_project(tmp_path_factory.mktemp("a book"), *cells)
    execute(small_chapter, "smoke", {}, project)
    return project


@pytest.fixture(scope="module")
def built(executed: Path, tmp_path_factory: pytest.TempPathFactory, small_chapter: Chapter) -> Path:
    """The same project with its book."""
    project = Path(shutil.copytree(executed, tmp_path_factory.mktemp("built") / "a book"))
    build(project, "smoke", [small_chapter])
    return project


@pytest.fixture
def copy(executed: Path, tmp_path: Path) -> Path:
    """The executed project, to be spoilt."""
    return Path(shutil.copytree(executed, tmp_path / "copy"))


def test_the_first_page_and_the_chapter_are_there(built: Path) -> None:
    assert (built / "_build/html/index.html").is_file()
    assert (built / "_build/html/book/chapters/01-small.html").is_file()
    assert "not measured" in (built / book.SCOREBOARD).read_text(encoding="utf-8")


def test_the_page_shows_every_output_and_figure_of_the_run(
    built: Path, small_chapter: Chapter
) -> None:
    wanted = book.shown_outputs(read_notebook(small_chapter.executed(built)))
    assert wanted == (5, 2)
    assert book.page_outputs(built / "_build/html/book/chapters/01-small.html") == wanted


def test_a_second_build_shows_the_same(built: Path, small_chapter: Chapter) -> None:
    page = built / "_build/html/book/chapters/01-small.html"
    before = book.page_outputs(page)
    build(built, None, [small_chapter])
    assert book.page_outputs(page) == before == (5, 2)


def test_no_path_of_this_machine_is_published(built: Path) -> None:
    private = (str(built), str(ROOT), f"{Path.home()}/")
    for path in (built / "_build/html").rglob("*"):
        if path.suffix in (".html", ".ipynb", ".md", ".js", ".txt") and path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not any(place in text for place in private), path


def test_dead_references_citations_and_figures_fail_the_build(
    copy: Path, small_chapter: Chapter
) -> None:
    (copy / "book/references.bib").write_text(
        "@article{known, title={Title}, author={A. Uthor}, year={2026}, journal={J}}",
        encoding="utf-8",
    )
    config = copy / "_config.yml"
    config.write_text(
        config.read_text(encoding="utf-8") + "bibtex_bibfiles: [book/references.bib]\n",
        encoding="utf-8",
    )
    (copy / "book/welcome.md").write_text(
        "# Welcome\n\n{ref}`no-such-label` {cite}`nobody2026` {term}`no-such-term`\n\n"
        "![A figure](no-such-figure.png)\n\n[A link](no-such-page.md)\n",
        encoding="utf-8",
    )
    with pytest.raises(BookError) as caught:
        build(copy, None, [small_chapter])
    for dead in ("no-such-label", "nobody2026", "no-such-term", "no-such-figure", "no-such-page"):
        assert any("WARNING" in line and dead in line for line in str(caught.value).splitlines())
    assert "welcome.md" in str(caught.value)


def test_a_page_that_lost_outputs_is_named(
    built: Path, small_chapter: Chapter, tmp_path: Path
) -> None:
    spoilt = Path(shutil.copytree(built, tmp_path / "spoilt"))
    page = spoilt / "_build/html/book/chapters/01-small.html"
    text = page.read_text(encoding="utf-8")
    page.write_text(
        text.replace('class="cell_output', 'class="lost', 1).replace("<img", "<p", 99), "utf-8"
    )
    [fault] = book.missing_outputs(small_chapter, spoilt)
    assert "shows 4 outputs and 0 figures, its notebook holds 5 and 2" in fault


def test_a_stale_chapter_is_not_built(copy: Path, small_chapter: Chapter) -> None:
    source = small_chapter.notebook(copy)
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("words", "other words"), encoding="utf-8")
    with pytest.raises(BookError) as caught:
        build(copy, None, [small_chapter])
    assert str(caught.value) == (
        "chapter small: its source notebook changed since it was executed; "
        "run 'companion run small'"
    )
    assert not (copy / "_build").exists()


def test_a_chapter_in_another_profile_is_not_built(copy: Path, small_chapter: Chapter) -> None:
    with pytest.raises(BookError, match="profile lab"):
        build(copy, "lab", [small_chapter])


def test_a_chapter_without_a_run_is_not_built(
    tmp_path: Path, small_project: Make, small_chapter: Chapter
) -> None:
    with pytest.raises(BookError, match="chapter small: it has not been executed"):
        check_fresh(small_project(tmp_path), None, [small_chapter])


def test_the_contents_are_read_at_any_depth(tmp_path: Path, small_chapter: Chapter) -> None:
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/welcome\nparts:\n- caption: Chapters\n  chapters:\n"
        "  - file: book/other\n    sections:\n    - file: book/chapters/01-small.ipynb\n",
        encoding="utf-8",
    )
    assert chapters_of(tmp_path, [small_chapter]) == [small_chapter]


def test_the_contents_of_this_book_hold_every_chapter() -> None:
    assert chapters_of(ROOT) == list(CHAPTERS)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ("chapters: [\n", "_toc.yml cannot be read"),
        ("root: book/chapters/99-none\n", "_toc.yml lists book/chapters/99-none: no such chapter"),
    ],
)
def test_damaged_contents_are_named(tmp_path: Path, contents: str, message: str) -> None:
    (tmp_path / "_toc.yml").write_text(contents, encoding="utf-8")
    with pytest.raises(BookError, match=message):
        chapters_of(tmp_path)
