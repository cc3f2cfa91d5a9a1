import html
import math
import re

import pytest

from companion.claims import Measured, check, load_claims
from companion.experiments import trade_off_text as text

NAN = (math.nan, math.nan, math.nan)


@pytest.fixture
def said(shown):
    """What a function of the chapter says about some results, as plain sentences."""

    def call(function, *args):
        outputs = shown(function, *args)
        return [html.unescape(output.data["text/markdown"]) for output in outputs]

    return call


@pytest.fixture
def table(shown):
    """The cells of the table that a function shows, row by row."""

    def call(function, *args):
        [output] = shown(function, *args)
        rows = re.findall(r"<tr.*?</tr>", output.data["text/html"], re.DOTALL)
        return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]

    return call


def test_the_world_is_counted(said, made_up):
    assert said(text.world, made_up()) == [
        "This run asks 4 held-out problems (2 of 3 numbers, 2 of 4 numbers). Together they have "
        "15 leaves, 19 entrances and 1,200 valid traces; on average 4.75 entrances a problem. "
        "Tokens are drawn at temperature 0.7 with top-p 0.9."
    ]


# Along the training.


def test_a_gain_and_a_loss_are_called_by_their_names(said, made_up):
    assert said(text.along_training, made_up()) == [
        "From step 0 to step 400, **pass@1 rises** from 0.100 to 0.250 (2.50× as high), while "
        "**coverage at 16 falls** from 0.800 to 0.400 and **family coverage falls** from 0.900 to "
        "0.300."
    ]


def test_the_opposite_is_called_by_its_name_too(said, made_up):
    results = made_up(
        changes={
            ("lab-grpo", "all", "pass@1"): (0.4, 0.1, -0.4, -0.2),
            ("lab-grpo", "all", "coverage"): (0.2, 0.5, 0.1, 0.4),
            ("lab-grpo", "all", "family coverage"): (0.6, 0.5, -0.3, 0.1),
        }
    )
    assert said(text.along_training, results) == [
        "From step 0 to step 400, **pass@1 falls** from 0.400 to 0.100 (0.250× as high), while "
        "**coverage at 16 rises** from 0.200 to 0.500 and **family coverage does not clearly "
        "change** from 0.600 to 0.500."
    ]


def test_nothing_is_times_as_high_as_zero(said, made_up):
    for late in (0.25, 0.0):
        results = made_up(changes={("lab-grpo", "all", "pass@1"): (0.0, late, 0.0, 0.5)})
        [sentence] = said(text.along_training, results)
        assert "as high" not in sentence
        assert "**pass@1 does not clearly change** from 0 to" in sentence


@pytest.mark.parametrize(
    ("coverage", "share"),
    [
        ((0.8, 0.7, -0.2, 0), "−0.100, 25% of what the rewarded lineage loses"),
        ((0.8, 0.2, -0.7, -0.5), "−0.600, 150% of what the rewarded lineage loses"),
        ((0.8, 0.9, 0, 0.2), "+0.100, 0% of what the rewarded lineage loses"),
    ],
)
def test_the_controls_loss_is_a_share_of_the_rewarded_one(said, made_up, coverage, share):
    results = made_up(changes={("lab-random-reward", "all", "coverage"): coverage})
    assert said(text.control, results) == [
        f"The control, trained on a coin toss, moves from 0.800 to 0.{coverage[1] * 1000:.0f} in "
        f"coverage: a change of {share}. Its pass@1 does not clearly change, from 0.100 to 0.090."
    ]


def test_without_a_loss_there_is_no_share_of_it(said, made_up):
    results = made_up(changes={("lab-grpo", "all", "coverage"): (0.4, 0.5, 0.05, 0.2)})
    [sentence] = said(text.control, results)
    assert "a change of −0.100, while the rewarded lineage loses none." in sentence


def test_a_lineage_that_is_its_own_control_is_not_compared(said, made_up):
    results = made_up(parameters={"lineage": "lab-random-reward"})
    assert said(text.control, results) == [
        "In this run the lineage is its own control, so nothing above is the reward's doing."
    ]


def test_each_size_has_its_sentence(said, made_up):
    results = made_up(changes={("lab-grpo", "4", "coverage"): (0.5, 0.6, -0.1, 0.2)})
    assert said(text.sizes, results) == [
        "With **3 numbers**, pass@1 rises (0.100 to 0.250) and coverage falls (0.800 to 0.400); "
        "the control's coverage ends at 0.700, a change of −0.100, 25% of what the rewarded "
        "lineage loses.",
        "With **4 numbers**, pass@1 rises (0.100 to 0.250) and coverage does not clearly change "
        "(0.500 to 0.600); the control's coverage ends at 0.700, a change of −0.100, while the "
        "rewarded lineage loses none.",
    ]


def test_each_size_of_a_lineage_that_is_its_own_control(said, made_up):
    results = made_up(parameters={"lineage": "lab-random-reward"})
    assert said(text.sizes, results)[0] == (
        "With **3 numbers**, pass@1 does not clearly change (0.100 to 0.090) and coverage falls "
        "(0.800 to 0.700); the control's coverage ends at 0.700, a change of −0.100."
    )


def test_the_papers_leaves(said, made_up):
    assert said(text.paper_leaves, made_up()) == [
        "The paper's rule tells more solutions apart than ours. Under it the exact coverage falls "
        "from 0.700 to 0.350; the control ends at 0.650."
    ]


def test_the_first_choice(said, made_up):
    assert said(text.entrances, made_up()) == [
        "The entrance entropy falls: from 2.00 nats to 1.25 nats, a change of −0.750 (−0.900 to "
        "−0.600). The control ends at 1.90 nats."
    ]
    results = made_up(changes={("lab-grpo", "all", "entrance entropy"): (1, 1.5, *NAN[:2])})
    assert said(text.entrances, results) == [
        "The entrance entropy does not clearly change: from 1.00 nats to 1.50 nats, a change of "
        "+0.500. The control ends at 1.90 nats."
    ]


# Crossing.


def test_every_kind_of_crossing(said, made_up):
    assert said(text.crossing, made_up()) == [
        "- **3 numbers**: the early checkpoint overtakes the late one at 7 samples. At 16 samples "
        "pass@k late minus early is −0.200 (−0.300 to −0.100).",
        "- **4 numbers**: the early checkpoint is never ahead, up to 2,048 samples. At 16 samples "
        "pass@k late minus early is +0.100 (−0.100 to +0.200).",
        "- **all problems**: the early checkpoint is ahead already at the first sample. At 16 "
        "samples pass@k late minus early is −0.100 (−0.200 to 0).",
    ]


def test_a_gap_of_one_problem_has_no_interval(said, made_up):
    results = made_up({"samples": 1}, crossing={"3": (0, 0.25, math.nan, math.nan)})
    assert said(text.crossing, results)[0] == (
        "- **3 numbers**: the early checkpoint is never ahead, up to 2,048 samples. At 1 sample "
        "pass@k late minus early is +0.250."
    )


# Survivors, retention, lost problems.


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            (3, 0.7, 0.5, -0.3, -0.1),
            "the exact coverage falls, from 0.700 to 0.500, a change of −0.200 (−0.300 to "
            "−0.100). The control's goes to 0.650 on the same problems. Forgotten problems alone "
            "do not explain the loss.",
        ),
        (
            (3, 0.7, 0.6, -0.3, 0.1),
            "the exact coverage does not clearly change, from 0.700 to 0.600, a change of −0.100 "
            "(−0.300 to +0.100). The control's goes to 0.650 on the same problems. In this run "
            "the survivors alone show no clear loss.",
        ),
        (
            (3, 0.5, 0.7, 0.1, 0.3),
            "the exact coverage rises, from 0.500 to 0.700, a change of +0.200 (+0.100 to "
            "+0.300). The control's goes to 0.650 on the same problems. In this run the survivors "
            "alone show no clear loss.",
        ),
    ],
)
def test_survivors(said, made_up, change, sentence):
    assert said(text.survivors, made_up(survivors=change)) == [
        f"3 of 4 problems are solved at both checkpoints. On these survivors {sentence}"
    ]


@pytest.mark.parametrize(("count", "how_many"), [(0, "None"), (1, "Only 1")])
def test_fewer_than_two_survivors_say_nothing(said, made_up, count, how_many):
    few = (count, *([math.nan] * 4 if count == 0 else [0.5, 0.4, math.nan, math.nan]))
    assert said(text.survivors, made_up(survivors=few)) == [
        f"{how_many} of 4 problems is solved at both checkpoints: too few to say anything about "
        "survivors."
    ]


def test_leaves_beside_problems(said, made_up):
    assert said(text.retention, made_up()) == [
        "Exactly: of the early leaves the late checkpoint finds 50% (40% to 60%) again, and of "
        "the early-solved problems it solves 90% (80% to 95%).",
        "In samples: of the early leaves the late checkpoint finds 40% (30% to 50%) again, and of "
        "the early-solved problems it solves 100% (100% to 100%).",
        "What to compare this with: the early checkpoint itself, drawn a second time, finds 85% "
        "of its leaves and 98% of its problems again, and the late control 75% and 97%.",
    ]


def test_where_nothing_is_found_early_nothing_can_be_found_again(said, made_up):
    nothing = "the early checkpoint finds nothing that could be found again."
    results = made_up(retention={("sampled", "late"): (NAN, NAN)})
    sentences = said(text.retention, results)
    assert len(sentences) == 3
    assert sentences[1] == f"In samples: {nothing}"
    everywhere = {
        (kind, who): (NAN, NAN)
        for kind in ("exact", "sampled")
        for who in ("late", "late control", "early once more")
    }
    assert said(text.retention, made_up(retention=everywhere)) == [
        f"Exactly: {nothing}",
        f"In samples: {nothing}",
    ]


def test_shares_of_one_problem_have_no_interval(said, made_up):
    alone = ((0.5, math.nan, math.nan), (1.0, math.nan, math.nan))
    assert said(text.retention, made_up(retention={("exact", "late"): alone}))[0] == (
        "Exactly: of the early leaves the late checkpoint finds 50% again, and of the "
        "early-solved problems it solves 100%."
    )


def test_lost_problems(said, made_up):
    assert said(text.lost, made_up({"resamples": 2048})) == [
        "2 problems are solved at step 0 and not at step 400. With 2,048 fresh samples of each, 1 "
        "of 2 are solved (50%, 1.3% to 99%). The exact probability is zero for 1 of them: every "
        "valid trace needs a token that this decoding never draws. On 1 of these the policy still "
        "takes an entrance of the menu, and strays behind it."
    ]


def test_lost_problems_behind_shut_doors(said, made_up):
    [sentence] = said(text.lost, made_up(lost=[(0, 0.0, 0), (2, 0.0, 0), (0, 0.0, 0)]))
    assert "The exact probability is zero for 3 of them" in sentence
    assert "On 1 of these the policy still takes an entrance of the menu" in sentence


def test_one_lost_problem_that_was_only_bad_luck(said, made_up):
    assert said(text.lost, made_up({"resamples": 1}, lost=[(2, 0.5, 1)])) == [
        "1 problem is solved at step 0 and not at step 400. With 1 fresh sample of each, 1 of 1 is "
        "solved (100%, 2.5% to 100%). The exact probability is zero for none of them."
    ]


def test_no_lost_problem(said, table, made_up):
    results = made_up(lost=[])
    assert said(text.lost, results) == [
        "No problem is solved early and not late: there is nothing to draw again."
    ]
    assert table(text.lost_problems, results) == [
        ["numbers", "target", "entrances", "open entrances", "chance", "solved"]
    ]


# Tables and the verdict.


def test_lost_problems_are_listed(table, made_up):
    assert table(text.lost_problems, made_up()) == [
        ["numbers", "target", "entrances", "open entrances", "chance", "solved"],
        ["3 5 7", "26", "2", "1", "0", "0"],
        ["3 5 7", "26", "2", "2", "0.500", "12"],
    ]


def test_the_table_of_changes_has_every_measure_of_both_lineages(table, made_up):
    header, *rows = table(text.changes, made_up())
    assert header == [
        "lineage", "size", "measure", "early", "late", "change", "low", "high", "ratio"
    ]  # fmt: skip
    assert len(rows) == 2 * 3 * 5
    assert ["lab-grpo", "3", "coverage", "0.800", "0.400", "−0.400", "−0.500", "−0.300",
            "0.500"] in rows  # fmt: skip


def test_what_is_not_defined_is_a_dash(table, made_up):
    results = made_up(changes={("lab-grpo", "3", "pass@1"): (0.0, 0.5, math.nan, math.nan)})
    rows = table(text.changes, results)
    assert ["lab-grpo", "3", "pass@1", "0", "0.500", "0.500", "–", "–", "–"] in rows


def test_showing_a_table_leaves_the_results_alone(shown, made_up):
    results = made_up()
    before = results.lost.copy()
    shown(text.lost_problems, results)
    assert results.lost.equals(before)


def test_the_verdict_counts_what_the_table_says(said):
    claims = load_claims("trade-off")
    names = ("tradeoff.grpo.pass1", "tradeoff.grpo.coverage")
    measured = {}
    for name, early, late in zip(names, (0.1, 0.4), (0.3, 0.6), strict=True):
        measured[f"{name}.early"] = Measured(early, early - 0.01, early + 0.01, 4)
        measured[f"{name}.late"] = Measured(late, late - 0.01, late + 0.01, 4)
    [sentence] = said(text.verdict, check(claims, measured))
    assert sentence == (
        f"Of the paper's {len(claims)} figures in this chapter, 1 have a direction that this run "
        "shares and 1 one that it does not: solution coverage at 320 (public GRPO step 450); "
        f"{len(claims) - 2} are not measured in this profile."
    )
    [sentence] = said(text.verdict, check(claims, {}))
    assert "0 have a direction that this run shares and 0 one that it does not;" in sentence
