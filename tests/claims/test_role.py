from typing import Any

import pytest

nodes = pytest.importorskip("docutils.nodes")

from docutils.utils import Reporter, new_document  # noqa: E402

from companion.claims.role import paper_role  # noqa: E402


class Inliner:
    def __init__(self) -> None:
        self.reporter: Reporter = new_document("page").reporter
        self.reporter.report_level = 5
        self.reporter.halt_level = 6

    def problematic(self, text: str, raw: str, message: Any) -> Any:
        return nodes.problematic(raw, text)


def run(text: str) -> tuple[list[Any], list[Any]]:
    return paper_role("paper", f"{{paper}}`{text}`", text, 3, Inliner(), {}, [])


def test_writes_the_value_with_the_digits_of_the_source() -> None:
    made, messages = run("tradeoff.grpo.entrance_entropy.late")
    assert [node.astext() for node in made] == ["0.760"]
    assert not messages
    assert run("tradeoff.ppo.coverage.relative")[0][0].astext() == "−0.67"


@pytest.mark.parametrize("text", ["tradeoff.grpo.coverage.lat", "interventions.allocation.early"])
def test_an_unknown_identifier_or_a_row_without_a_number_is_an_error(text: str) -> None:
    made, messages = run(text)
    assert isinstance(made[0], nodes.problematic)
    assert f"{text!r} is not known" in messages[0].astext()
