import dataclasses

import pytest

from companion.claims import Claim, Measured, Relation, Verdict, check, load_claims

EARLY = Claim(
    id="x.early",
    chapter="trade-off",
    quantity="coverage",
    setting="step 50",
    written="0.40",
    value=0.40,
    interval=None,
    n="10 problems",
    direction="",
    relation=Relation.NONE,
    compared_with=None,
    reference=None,
    tolerance=None,
    source="review",
)
FALLS = dataclasses.replace(
    EARLY, id="x.late", written="0.20", value=0.20, relation=Relation.FALLS, compared_with="x.early"
)
CHAPTER = (EARLY, FALLS)
HIGH = Measured(0.90, 0.85, 0.95, 100)
LOW = Measured(0.40, 0.35, 0.45, 100)


def late(claim: Claim, own: Measured, other: Measured | None = HIGH, *, paper_scale: bool = False):
    rows = check((EARLY, claim), {"x.early": other, "x.late": own}, paper_scale=paper_scale)
    return rows[1].verdict, rows[1].reason


def relation(name: Relation, **changes: object) -> Claim:
    return dataclasses.replace(FALLS, relation=name, **changes)  # type: ignore[arg-type]


def test_a_lab_run_earns_the_direction_and_says_that_it_cannot_earn_more() -> None:
    verdict, reason = late(FALLS, LOW)
    assert verdict is Verdict.SAME_DIRECTION
    assert reason == (
        "The difference [−0.600, −0.400] has the claimed sign. "
        "The lab's model can only earn the direction."
    )


def test_a_lab_run_never_earns_reproduced_even_with_the_papers_very_value() -> None:
    exact = Measured(0.20, 0.19, 0.21, 100)
    assert late(FALLS, exact)[0] is Verdict.SAME_DIRECTION
    assert late(FALLS, exact, paper_scale=True)[0] is Verdict.REPRODUCED


def test_the_wrong_direction_is_not_reproduced() -> None:
    verdict, reason = late(FALLS, HIGH, LOW)
    assert verdict is Verdict.NOT_REPRODUCED
    assert reason == "The opposite direction: the difference is [0.400, 0.600]."


def test_an_interval_of_the_difference_that_includes_zero_is_no_clear_difference() -> None:
    # Apart as means, but the separate intervals allow a difference from −0.35 to 0.05.
    own, other = Measured(0.45, 0.30, 0.60, 20), Measured(0.60, 0.55, 0.65, 20)
    verdict, reason = late(FALLS, own, other)
    assert verdict is Verdict.NOT_REPRODUCED
    assert reason == "No clear difference: its interval [−0.350, 0.050] includes zero."


def test_the_paired_interval_decides_where_it_is_given() -> None:
    other = Measured(0.60, 0.55, 0.65, 20)
    clear = Measured(0.45, 0.30, 0.60, 20, difference=(-0.20, -0.10))
    unclear = Measured(0.10, 0.05, 0.15, 20, difference=(-0.60, 0.0))
    assert late(FALLS, clear, other)[0] is Verdict.SAME_DIRECTION
    assert late(FALLS, unclear, other)[0] is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize(
    ("name", "own", "other", "holds"),
    [
        (Relation.RISES, HIGH, LOW, True),
        (Relation.RISES, LOW, HIGH, False),
        (Relation.FALLS, LOW, HIGH, True),
        (Relation.FALLS, HIGH, LOW, False),
        (Relation.ABOVE, HIGH, LOW, True),
        (Relation.ABOVE, LOW, HIGH, False),
        (Relation.BELOW, LOW, HIGH, True),
        (Relation.BELOW, HIGH, LOW, False),
    ],
)
def test_every_direction(name: Relation, own: Measured, other: Measured, holds: bool) -> None:
    expected = Verdict.SAME_DIRECTION if holds else Verdict.NOT_REPRODUCED
    assert late(relation(name), own, other)[0] is expected


def test_a_plain_number_as_the_reference() -> None:
    claim = relation(Relation.ABOVE, compared_with=None, reference=1.0)
    assert late(claim, Measured(1.4, 1.1, 1.7, 10))[0] is Verdict.SAME_DIRECTION
    assert late(claim, Measured(1.4, 0.9, 1.9, 10))[0] is Verdict.NOT_REPRODUCED


def test_near_needs_the_whole_interval_within_the_tolerance() -> None:
    claim = relation(Relation.NEAR, compared_with=None, reference=0.0, tolerance=0.15)
    verdict, reason = late(claim, Measured(0.0, 0.0, 0.10, 35))
    assert verdict is Verdict.SAME_DIRECTION
    assert reason.startswith("The difference [0, 0.100] stays within 0.150 of it.")
    # Zero of five is near zero, but five problems cannot show it.
    verdict, reason = late(claim, Measured(0.0, 0.0, 0.52, 5))
    assert verdict is Verdict.NOT_REPRODUCED
    assert reason == "The difference [0, 0.520] does not stay within 0.150 of it."


def test_reproduced_needs_the_value_and_the_direction() -> None:
    wide = Measured(0.40, 0.10, 0.90, 10)
    assert late(FALLS, wide, paper_scale=True)[0] is Verdict.NOT_REPRODUCED
    verdict, reason = late(FALLS, LOW, paper_scale=True)
    assert verdict is Verdict.SAME_DIRECTION
    assert reason.endswith("The paper's value lies outside this run's interval.")


def test_at_paper_scale_overlapping_intervals_agree() -> None:
    with_interval = dataclasses.replace(FALLS, interval=(0.15, 0.36))
    assert late(with_interval, LOW, paper_scale=True)[0] is Verdict.REPRODUCED
    apart = dataclasses.replace(FALLS, interval=(0.15, 0.34))
    assert late(apart, LOW, paper_scale=True)[0] is Verdict.SAME_DIRECTION


@pytest.mark.parametrize(
    ("paper_scale", "own", "expected"),
    [
        (False, LOW, Verdict.NOT_MEASURED),
        (True, LOW, Verdict.REPRODUCED),
        (True, HIGH, Verdict.NOT_REPRODUCED),
    ],
)
def test_a_value_without_a_direction(paper_scale: bool, own: Measured, expected: Verdict) -> None:
    (row,) = check((EARLY,), {"x.early": own}, paper_scale=paper_scale)
    assert row.verdict is expected


@pytest.mark.parametrize("measured", [{}, {"x.late": None}, {"x.late": LOW, "x.early": None}])
def test_not_measured(measured: dict[str, Measured | None]) -> None:
    rows = check(CHAPTER, measured, paper_scale=True)
    assert rows[1].verdict is Verdict.NOT_MEASURED


def test_a_paired_difference_does_not_need_the_other_value() -> None:
    own = dataclasses.replace(LOW, difference=(-0.5, -0.4))
    assert late(FALLS, own, None)[0] is Verdict.SAME_DIRECTION


def test_every_claim_stays_in_the_table_in_order() -> None:
    claims = load_claims("trade-off")
    rows = check(claims, {"tradeoff.grpo.coverage.late": LOW, "tradeoff.grpo.coverage.early": HIGH})
    assert [row.claim for row in rows] == list(claims)


def test_rows_of_another_chapter_may_be_compared_with() -> None:
    claims = load_claims("sft-contrast")
    measured = {"sft.k4.coverage": HIGH, "tradeoff.grpo.coverage.late": LOW}
    verdicts = {row.claim.id: row.verdict for row in check(claims, measured)}
    assert verdicts["sft.k4.coverage"] is Verdict.SAME_DIRECTION


def test_a_misspelt_identifier_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'x\.lat' is not known; did you mean 'x\.late'\?"):
        check(CHAPTER, {"x.lat": LOW})
    with pytest.raises(ValueError, match=r"localization\.ppo\.entrance' is not known"):
        check(load_claims("trade-off"), {"localization.ppo.entrance": LOW})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((float("nan"), 0, 1, 10), "finite"),
        ((0.5, 0, float("inf"), 10), "finite"),
        ((0.5, 0.6, 0.4, 10), "low: at most high"),
        ((0.5, 0.4, 0.6, 0), "n: what the value was measured on"),
        ((0.5, 0.4, 0.6, -1), "n: what the value was measured on"),
        ((0.5, 0.4, 0.6, ""), "n: what the value was measured on"),
        ((0.5, 0.4, 0.6, 10, (0.2, 0.1)), "difference: "),
    ],
)
def test_refuses_an_impossible_measurement(values: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Measured(*values)
