"""A Sphinx extension: ``{paper}`tradeoff.grpo.coverage.late``` writes the paper's value of a claim.

The pages of the book quote the paper in this way only, so that a quotation cannot drift from
``paper_values.csv``. An unknown identifier is a warning, and the book is built with warnings as
errors.
"""

from typing import Any

from docutils import nodes  # type: ignore[import-untyped]

from companion.claims.table import load_claims, unknown


def setup(app: Any) -> dict[str, bool]:
    """Register the role with Sphinx."""
    app.add_role("paper", paper_role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def paper_role(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any
) -> tuple[list[Any], list[Any]]:
    """The nodes of ``text``, a claim's identifier: its value with the digits of the source."""
    written = {claim.id: claim.written for claim in load_claims() if claim.written}
    if text not in written:
        problem = f"{name}: {unknown(text, tuple(written))}"
        message = inliner.reporter.error(problem, line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [nodes.inline(rawtext, written[text].replace("-", "−"), classes=["paper-value"])], []
