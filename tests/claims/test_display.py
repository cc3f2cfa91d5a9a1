import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from IPython.utils.capture import RichOutput

from companion.claims import (
    MIME_TYPE,
    Checked,
    Measured,
    Verdict,
    as_frame,
    as_html,
    check,
    collect,
    load_claims,
    show,
    write_scoreboard,
)

Shown = Callable[..., list[RichOutput]]

MEASURED = {
    "tradeoff.grpo.coverage.early": Measured(0.98, 0.97, 0.99, 100),
    "tradeoff.grpo.coverage.late": Measured(
        0.43, 0.38, 0.48, "100 problems x 320", difference=(-0.6, -0.5)
    ),
    "tradeoff.grpo.pass1.early": Measured(0.20, 0.10, 0.30, 100),
    "tradeoff.grpo.pass1.late": Measured(0.22, 0.12, 0.32, 100),
}


@pytest.fixture
def checked() -> list[Checked]:
    return check(load_claims("trade-off"), MEASURED)


@pytest.fixture
def notebook(tmp_path: Path, checked: list[Checked], shown: Shown) -> Path:
    return executed(tmp_path / "01-trade-off.ipynb", shown(show, checked))


def executed(path: Path, displayed: list[RichOutput]) -> Path:
    """A notebook with these outputs in its only code cell."""
    outputs = [
        {"output_type": "display_data", "data": output.data, "metadata": output.metadata}
        for output in displayed
    ]
    cells = [{"cell_type": "markdown", "source": "# Title"}, {"outputs": outputs}]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}), encoding="utf-8")
    return path


def row_of(html: str, identifier: str) -> str:
    row = BeautifulSoup(html, "html.parser").find(id=f"claim-{identifier}")
    return row.get_text(" ") if row else ""


def test_the_frame_has_both_values_both_intervals_and_both_n(checked: list[Checked]) -> None:
    frame = as_frame(checked).set_index("id")
    late = frame.loc["tradeoff.grpo.coverage.late"]
    assert (late["paper"], late["paper_compared"], late["paper_n"]) == (
        0.268,
        0.467,
        "135 problems x 320",
    )
    assert (late["value"], late["low"], late["high"]) == (0.43, 0.38, 0.48)
    assert (late["compared_value"], late["n"]) == (0.98, "100 problems x 320")
    assert (late["difference_low"], late["difference_high"]) == (-0.6, -0.5)
    assert late["verdict"] == "same direction"
    assert len(frame) == len(checked)


def test_the_table_shows_values_intervals_n_and_verdict(checked: list[Checked]) -> None:
    html = as_html(checked)
    late = row_of(html, "tradeoff.grpo.coverage.late")
    assert "0.467 → 0.268" in late
    assert "135 problems × 320" in late
    assert "0.980 [0.970, 0.990] → 0.430 [0.380, 0.480]" in late
    assert "The difference [−0.600, −0.500]" in late
    assert "100 problems × 320" in late
    assert "◐ same direction" in late
    assert "never “reproduced”" in html


def test_a_claim_that_fails_stays_and_an_unmeasured_one_is_said_to_be(
    checked: list[Checked],
) -> None:
    html = as_html(checked)
    assert "○ not reproduced" in row_of(html, "tradeoff.grpo.pass1.late")
    assert "– not measured in this profile" in row_of(html, "tradeoff.retention.leaf")


def test_an_early_value_stands_in_the_row_that_compares_with_it(checked: list[Checked]) -> None:
    assert not row_of(as_html(checked), "tradeoff.grpo.coverage.early")
    judged = check(load_claims("trade-off"), MEASURED, paper_scale=True)
    assert "not reproduced" in row_of(as_html(judged), "tradeoff.grpo.coverage.early")
    assert "never “reproduced”" not in as_html(judged)


def test_text_is_escaped(checked: list[Checked]) -> None:
    claim = dataclasses.replace(checked[0].claim, quantity="<script>alert(1)</script>", n="a & b")
    measured = Measured(0.5, 0.4, 0.6, "<b>ten</b>")
    html = as_html(
        [dataclasses.replace(checked[0], claim=claim, measured=measured, reason="x < y")]
    )
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "a &amp; b" in html
    assert "x &lt; y" in html


def test_the_notebook_gives_back_what_it_showed(notebook: Path, checked: list[Checked]) -> None:
    collected = {row.claim.id: row for row in collect([notebook])}
    assert list(collected) == [claim.id for claim in load_claims()]
    for row in checked:
        assert collected[row.claim.id] == dataclasses.replace(row, notebook="01-trade-off.ipynb")
    assert collected["localization.ppo.entrance"].verdict is Verdict.NOT_MEASURED
    assert collected["localization.ppo.entrance"].notebook == ""


def test_without_notebooks_nothing_is_measured() -> None:
    collected = collect([])
    assert len(collected) == len(load_claims())
    assert {row.verdict for row in collected} == {Verdict.NOT_MEASURED}


def test_a_claim_checked_twice_is_refused(notebook: Path) -> None:
    second = notebook.with_name("02-copy.ipynb")
    second.write_bytes(notebook.read_bytes())
    with pytest.raises(ValueError, match=r"01-trade-off\.ipynb and 02-copy\.ipynb both check"):
        collect([notebook, second])


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json", '{"cells": [3]}'])
def test_something_else_than_a_notebook_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "01-trade-off.ipynb"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"01-trade-off\.ipynb is not an executed notebook"):
        collect([path])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "tradeoff.grpo.coverage.lat"),
        ("verdict", "proved"),
        ("measured", {"value": 1}),
        ("measured", {"value": float("nan"), "low": 0, "high": 1, "n": 1, "difference": None}),
        ("measured", 3),
    ],
)
def test_damaged_claims_are_refused(notebook: Path, field: str, value: object) -> None:
    content = json.loads(notebook.read_text(encoding="utf-8"))
    content["cells"][1]["outputs"][0]["metadata"][MIME_TYPE]["rows"][0][field] = value
    notebook.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"the claims in 01-trade-off\.ipynb are damaged"):
        collect([notebook])


def test_the_scoreboard_counts_the_verdicts_and_holds_every_table(
    tmp_path: Path, notebook: Path
) -> None:
    page = tmp_path / "_generated" / "scoreboard-table.md"
    write_scoreboard(page, collect([notebook]))
    text = page.read_text(encoding="utf-8")
    head, trade_off = text.splitlines()[0], text.splitlines()[2]
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == [
        "● reproduced",
        "◐ same direction",
        "○ not reproduced",
        "– not measured",
    ]
    # 22 rows, of which 8 early values stand in the row that compares with them.
    assert trade_off == "| The trade-off | 0 | 1 | 1 | 12 |"
    assert "Checked in [01-trade-off](chapters/01-trade-off.ipynb)." in text
    assert "## Localization" in text
    assert row_of(text, "localization.ppo.entrance")
