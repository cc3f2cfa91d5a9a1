"""Copy the first figure of the executed trade-off chapter to the README's figure.

Run after ``make book``: ``.venv/bin/python tools/readme_figure.py``. The README's figure is the
chapter's own, byte for byte, with the description that the chapter gives it.
"""

import base64
import re
from html import unescape
from pathlib import Path

from companion.chapters import chapter_named, code_cells, find_project, read_notebook

FIGURE = Path("book", "_static", "trade-off.svg")
IMAGE = re.compile(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]*)"')


def main() -> None:
    """Write the figure, and its description into the README."""
    project = find_project(Path.cwd())
    notebook = read_notebook(chapter_named("trade-off").executed(project))
    html = "".join(
        output.data["text/html"]
        for cell in code_cells(notebook)
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    )
    first = IMAGE.search(html)
    if first is None:
        raise SystemExit("the executed chapter has no SVG figure: run 'make book' first")
    (project / FIGURE).write_bytes(base64.b64decode(first[2]))
    readme = project / "README.md"
    text = readme.read_text(encoding="utf-8")
    alt = unescape(first[1]).replace("[", "(").replace("]", ")")
    text = re.sub(
        r"!\[[^\]]*\]\(" + FIGURE.as_posix() + r"\)", f"![{alt}]({FIGURE.as_posix()})", text
    )
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
