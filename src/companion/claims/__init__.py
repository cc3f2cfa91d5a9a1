"""The paper's figures beside this run's, each with a verdict.

A chapter loads its claims, checks them against what it measured, and shows the table::

    rows = check(load_claims("trade-off"), {"tradeoff.grpo.coverage.late": Measured(...)})
    show(rows)
"""

from companion.claims.display import MIME_TYPE, as_frame, as_html, collect, show, write_scoreboard
from companion.claims.table import Claim, Relation, load_claims
from companion.claims.verdicts import Checked, Measured, Verdict, check

__all__ = [
    "MIME_TYPE",
    "Checked",
    "Claim",
    "Measured",
    "Relation",
    "Verdict",
    "as_frame",
    "as_html",
    "check",
    "collect",
    "load_claims",
    "show",
    "write_scoreboard",
]
