from pathlib import Path

import pytest

from companion.claims import Relation, load_claims
from companion.claims.table import COLUMNS

HEADER = ",".join(COLUMNS)
EARLY = "a.early,trade-off,coverage,step 50,0.4,,,10 problems,,none,,,review"
LATE = "a.late,trade-off,coverage,step 275,0.2,0.1,0.3,10 problems,falls,falls,a.early,,review"


def written(folder: Path, *rows: str) -> Path:
    path = folder / "values.csv"
    path.write_text("\n".join((HEADER, *rows)) + "\n", encoding="utf-8")
    return path


def test_the_package_holds_the_published_values() -> None:
    claims = {claim.id: claim for claim in load_claims()}
    late = claims["tradeoff.grpo.coverage.late"]
    assert (late.value, late.n, late.relation) == (0.268, "135 problems x 320", Relation.FALLS)
    assert late.compared_with == "tradeoff.grpo.coverage.early"
    assert claims["localization.ppo.entrance"].interval == (4.37, 4.62)
    assert claims["tradeoff.grpo.entrance_entropy.late"].written == "0.760"
    assert claims["interventions.allocation.early"].value is None
    assert claims["tradeoff.lost.recovered"].reference == 0


def test_the_direction_in_words_and_the_rule_agree_with_the_papers_own_values() -> None:
    claims = {claim.id: claim for claim in load_claims()}
    for claim in claims.values():
        if claim.relation is Relation.NONE or claim.value is None:
            continue
        other = claims[claim.compared_with].value if claim.compared_with else claim.reference
        assert other is not None
        gap = claim.value - other
        if claim.relation is Relation.NEAR:
            assert abs(gap) <= (claim.tolerance or 0), claim.id
        else:
            upwards = claim.relation in {Relation.RISES, Relation.ABOVE}
            assert gap != 0, claim.id
            assert (gap > 0) == upwards, claim.id


def test_a_rule_is_never_given_without_the_claim_in_words() -> None:
    # relative changes have their word in the same column
    assert all(claim.direction for claim in load_claims() if claim.relation is not Relation.NONE)


def test_one_chapter() -> None:
    chapter = load_claims("trade-off")
    assert {claim.chapter for claim in chapter} == {"trade-off"}
    assert chapter[0].id == "tradeoff.ppo.pass1.base"
    with pytest.raises(ValueError, match=r"chapter: 'tradeoff' is not known; did you mean 'trade-"):
        load_claims("tradeoff")


def test_reads_a_row(tmp_path: Path) -> None:
    early, late = load_claims(path=written(tmp_path, EARLY, LATE))
    assert early.relation is Relation.NONE
    assert early.compared_with is None
    assert (late.value, late.interval, late.compared_with) == (0.2, (0.1, 0.3), "a.early")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([EARLY, EARLY], "line 3: the identifier 'a.early' occurs twice"),
        ([LATE], "a.late is compared with a missing row: 'a.early' is not known"),
        ([LATE.replace("a.early", "a.late")], "a.late is compared with itself"),
        ([EARLY.replace("0.4", "four")], "line 2: value: a finite number"),
        ([EARLY.replace("0.4", "nan")], "line 2: value: a finite number"),
        ([EARLY, LATE.replace("0.1,0.3", "0.3,0.1")], "line 3: ci_low and ci_high"),
        ([EARLY, LATE.replace("0.1,0.3", "0.1,")], "line 3: ci_low and ci_high"),
        ([EARLY, LATE.replace("falls,a.early", "falls,")], "line 3: compared_with"),
        ([EARLY, LATE.replace("falls,a.early", "fall,a.early")], "did you mean 'falls'"),
        ([EARLY, LATE.replace("falls,a.early,", "near,a.early,")], "line 3: tolerance"),
        ([EARLY + ",surplus"], "line 2: a row has 13 fields"),
        (["a.early,trade-off"], "line 2: a row has 13 fields"),
        ([EARLY.replace("a.early", "")], "line 2: id is empty"),
        (['"a.early'], "values.csv: unexpected end of data"),
        ([], "the file has no claims"),
    ],
)
def test_refuses_a_damaged_file(tmp_path: Path, rows: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=r"^values\.csv") as error:
        load_claims(path=written(tmp_path, *rows))
    assert message in str(error.value)


def test_refuses_other_columns_and_other_bytes(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    path.write_text("id,value\na,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="the columns have to be id, chapter"):
        load_claims(path=path)
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ValueError, match="is not UTF-8"):
        load_claims(path=path)
