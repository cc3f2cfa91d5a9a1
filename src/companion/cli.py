"""The command line: run chapters, build the book, look at what is here.

Everything heavy is imported inside the commands, so that help and mistakes answer at once.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from companion import profiles
from companion.chapters import CELL_SECONDS, CHAPTERS, Chapter, chapter_named, find_project, resolve
from companion.parameters import ParameterError, known_lineages, typed

console = Console(highlight=False)
error_console = Console(stderr=True, highlight=False)


class OneLineErrors(TyperGroup):
    """Commands whose own exceptions end in their message instead of a stack.

    An exception that this package defines explains itself. Any other one is a bug, and keeps its
    stack. Exit code 2 is a mistake in what was typed, 1 a run or a build that failed.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not type(error).__module__.startswith("companion."):
                raise
            error_console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
            raise typer.Exit(2 if isinstance(error, ParameterError) else 1) from None


app = typer.Typer(
    name="companion",
    cls=OneLineErrors,
    help="An executable companion book: where RL with verifiable rewards narrows solution space.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

ProjectOption = Annotated[
    Path | None, typer.Option("--project", help="The project's folder, if you are not inside it.")
]


@app.command()
def run(
    chapter: Annotated[str | None, typer.Argument(help="Such as trade-off.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every chapter.")] = False,
    profile: Annotated[
        str, typer.Option(help="A name, or the path of a YAML file.")
    ] = profiles.DEFAULT,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="Such as samples=320; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write here instead of book/chapters/.")
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Leave out chapters that the book would take as is.")
    ] = False,
    cell_seconds: Annotated[
        int, typer.Option(min=1, help="Longest time for one cell.")
    ] = CELL_SECONDS,
    project: ProjectOption = None,
) -> None:
    """Execute one chapter, or all of them, for the book."""
    if (chapter is None) != everything or (everything and output):
        names = ", ".join(known.name for known in CHAPTERS)
        raise ParameterError(f"name one chapter ({names}), or use --all without --output")
    folder = find_project(project or Path.cwd())
    chosen = CHAPTERS if chapter is None else (chapter_named(chapter),)
    overrides = {one: _typed(one, parameter or []) for one in chosen}
    for one, own in list(overrides.items()):
        resolve(one, profile, own)  # refuse a mistake before saying that anything runs
        if stale and not own and _up_to_date(one, profile, folder):
            del overrides[one]
    if chapter is None:
        _run_all(overrides, profile, folder, cell_seconds)
        return
    from companion.execution import execute

    for one, own in overrides.items():
        path = execute(
            one, profile, own, folder, output=output, cell_seconds=cell_seconds, progress=True
        )
        say(f"{one.name}: {path}")


@app.command()
def build(
    profile: Annotated[
        str | None, typer.Option(help="Also demand that every chapter ran in this profile.")
    ] = None,
    project: ProjectOption = None,
) -> None:
    """Build the book from the executed chapters; refuse what is stale, failed or broken."""
    from companion import book

    say(f"the book: {book.build(find_project(project or Path.cwd()), profile).as_uri()}")


@app.command()
def train(
    what: Annotated[str, typer.Argument(help="lab: the shipped lineages, from nothing.")],
    work: Annotated[
        Path | None, typer.Option(help="Resumable states and logs; by default with the runs.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Checkpoints and manifest; by default inside --work.")
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Put the result in the place of the shipped lab.")
    ] = False,
) -> None:
    """Train the laboratory, or finish a training that was interrupted."""
    if what != "lab":
        raise ParameterError(f"there is only one thing to train, lab; got {what!r}")
    from companion.train_lab import train_lab

    train_lab(work, output, install, say)


@app.command("list")
def show_contents() -> None:
    """Show the chapters with their parameters, the profiles and the lineages."""
    for chapter in CHAPTERS:
        table = Table("parameter", "type", "default", "", title=f"{chapter.name}: {chapter.title}")
        for name, field in chapter.parameters.model_fields.items():
            kind = type(field.default).__name__
            table.add_row(name, kind, str(field.default), field.description)
        console.print(table)
    say(f"profiles: {', '.join(profiles.names())}, or the path of a YAML file")
    for name, steps in sorted(known_lineages().items()):
        say(f"lineage {name}: steps {', '.join(map(str, sorted(steps)))}")


@app.command()
def doctor(project: ProjectOption = None) -> None:
    """Check what is installed, the checkpoints and the folders; say how long chapters take."""
    from companion.doctor import examine

    findings = examine(project or Path.cwd())
    table = Table("", "what", "found", show_header=False)
    for finding in findings:
        table.add_row("ok" if finding.good else "!!", finding.what, finding.found)
    console.print(table)
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


def say(text: str) -> None:
    """Print one line, whatever its width and the brackets in it."""
    console.print(text, markup=False, soft_wrap=True)


def _typed(chapter: Chapter, given: list[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise ParameterError(f"-p takes name=value, such as -p samples=320; got {item!r}")
        values[name.strip()] = typed(chapter.parameters, name.strip(), text)
    return values


def _up_to_date(chapter: Chapter, profile: str, project: Path) -> bool:
    from companion.freshness import reasons

    fresh = not reasons(chapter, project, profile)
    if fresh:
        say(f"{chapter.name}: up to date")
    return fresh


def _run_all(
    overrides: dict[Chapter, dict[str, object]], profile: str, project: Path, cell_seconds: int
) -> None:
    from companion.execution import execute_all

    failed = False
    for chapter, result in execute_all(overrides, profile, project, cell_seconds=cell_seconds):
        say(f"{chapter.name}: {result}")
        failed |= isinstance(result, Exception)
    if failed:
        raise typer.Exit(1)
