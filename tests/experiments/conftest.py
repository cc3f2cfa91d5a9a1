import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Sums of another number of threads may differ in their last digit."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def interval(value: float, low: float, high: float, problems: int = 4) -> dict[str, float]:
    return {"value": value, "low": low, "high": high, "problems": problems}


@pytest.fixture(scope="session")
def made_up() -> Callable[..., Any]:
    """Chapter 1's results, written by hand: two problems of each size, every number chosen.

    Each argument replaces some of it: ``parameters``; ``changes`` by (lineage, size, measure),
    each (early, late, low, high); ``crossing`` by size, each (k, gap, low, high); ``survivors``
    as (problems, early, late, low, high); ``retention`` by (kind, who finds it again), each two
    (value, low, high); ``lost`` as one (open entrances, chance, solved) a problem.
    """
    import pandas as pd

    from companion.experiments.trade_off import MEASURES, PAPER_COVERAGE, TradeOff
    from companion.parameters import TradeOffParameters

    usual = {
        "pass@1": (0.1, 0.25, 0.1, 0.2),
        "coverage": (0.8, 0.4, -0.5, -0.3),
        "family coverage": (0.9, 0.3, -0.7, -0.5),
        "entrance entropy": (2.0, 1.25, -0.9, -0.6),
        PAPER_COVERAGE: (0.7, 0.35, -0.45, -0.25),
    }
    noise = {
        "pass@1": (0.1, 0.09, -0.03, 0.01),
        "coverage": (0.8, 0.7, -0.2, -0.05),
        "family coverage": (0.9, 0.85, -0.1, -0.01),
        "entrance entropy": (2.0, 1.9, -0.2, -0.05),
        PAPER_COVERAGE: (0.7, 0.65, -0.1, -0.01),
    }

    def change_rows(parameters: Any, given: dict[Any, Any]) -> Any:
        return pd.DataFrame(
            {"lineage": name, "size": size, "measure": measure, "early": early, "late": late}
            | interval(late - early, low, high)
            | {"ratio": late / early if early else math.inf if late else math.nan}
            for name, values in {parameters.lineage: usual, parameters.control: noise}.items()
            for size in ("3", "4", "all")
            for measure in values
            for early, late, low, high in [given.get((name, size, measure), values[measure])]
        )

    def curve_rows(changes: Any) -> Any:
        return pd.DataFrame(
            {"lineage": row.lineage, "step": step, "size": row.size, "measure": row.measure}
            | {"kind": kind}
            | interval(value, value - 0.05, value + 0.05)
            for row in changes[changes["measure"].isin(MEASURES)].itertuples()
            for step, value in ((0, row.early), (200, (row.early + row.late) / 2), (400, row.late))
            for kind in ("exact", "sampled")
        )

    def pass_rows(changes: Any) -> Any:
        return pd.DataFrame(
            {"lineage": row.lineage, "step": step, "size": row.size, "k": k, "kind": kind}
            | interval(value, value - 0.05, value + 0.05)
            for row in changes[changes["measure"] == "pass@1"].itertuples()
            for step, p in ((0, row.early), (400, row.late))
            for kind, most in (("exact", 2048), ("sampled", 16))
            for k in (1, 4, 16, 2048)
            if k <= most
            for value in [1 - (1 - p) ** k]
        )

    def make(
        parameters: dict[str, Any] | None = None,
        changes: dict[Any, Any] | None = None,
        crossing: dict[str, Any] | None = None,
        survivors: tuple[float, ...] = (3, 0.7, 0.5, -0.3, -0.1),
        retention: dict[str, Any] | None = None,
        lost: list[tuple[int, float, int]] | None = None,
    ) -> TradeOff:
        p = TradeOffParameters.checked({"samples": 16} | (parameters or {}))
        changed = change_rows(p, changes or {})
        crossed = {"3": (7, -0.2, -0.3, -0.1), "4": (0, 0.1, -0.1, 0.2), "all": (1, -0.1, -0.2, 0)}
        count, before, after, low, high = survivors
        kept = {
            ("exact", "late"): ((0.5, 0.4, 0.6), (0.9, 0.8, 0.95)),
            ("exact", "late control"): ((0.75, 0.7, 0.8), (0.97, 0.9, 1.0)),
            ("exact", "early once more"): ((0.85, 0.8, 0.9), (0.98, 0.9, 1.0)),
            ("sampled", "late"): ((0.4, 0.3, 0.5), (1.0, 1.0, 1.0)),
            ("sampled", "late control"): ((0.7, 0.6, 0.8), (1.0, 1.0, 1.0)),
        }
        lost = [(1, 0.0, 0), (2, 0.5, 12)] if lost is None else lost
        return TradeOff(
            parameters=p,
            problems=pd.DataFrame(
                {
                    "size": ["3", "3", "4", "4"],
                    "numbers": ["3 5 7", "1 2 9", "1 2 3 4", "2 2 5 8"],
                    "target": [26, 18, 24, 33],
                    "leaves": [1, 2, 7, 5],
                    "entrances": [2, 3, 8, 6],
                    "traces": [2, 6, 150, 1042],
                }
            ),
            curve=curve_rows(changed),
            pass_at_k=pass_rows(changed),
            crossing=pd.DataFrame(
                {"size": size, "k": k} | interval(*gap)
                for size, (k, *gap) in (crossed | (crossing or {})).items()
            ),
            changes=changed,
            survivors=pd.DataFrame(
                {"kind": kind, "when": when} | row
                for kind in ("exact", "sampled")
                for when, row in (
                    ("early", interval(before, before, before, int(count))),
                    ("late", interval(after, after, after, int(count))),
                    ("change", interval(after - before, low, high, int(count))),
                    ("late control", interval(0.65, 0.6, 0.7, int(count))),
                    ("change of the control", interval(0.65 - before, -0.1, 0, int(count))),
                )
            ),
            retention=pd.DataFrame(
                {"kind": kind, "again": again, "what": what} | interval(*values)
                for (kind, again), pair in (kept | (retention or {})).items()
                for what, values in zip(("leaf", "problem"), pair, strict=True)
            ),
            lost=pd.DataFrame(
                [("3 5 7", 26, 2, *one) for one in lost],
                columns=["numbers", "target", "entrances", "open entrances", "chance", "solved"],
            ),
            claims={},
        )

    return make
