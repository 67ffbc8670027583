"""The link within groups, by recall, and corrected for the judge's error."""

from __future__ import annotations

import pytest
from example_run import estimate, example_run
from proven_run import proven_run

from misslink.report.adjusted import adjusted, corrected, doses
from misslink.report.page import build


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _with(run, **link):
    summary = run.summary | {"link": run.summary["link"] | link}
    return run.model_copy(update={"summary": summary})


def test_a_run_of_before_has_none_of_it():
    old = example_run()
    assert adjusted(old) == doses(old) == ()
    assert corrected(old) is None


def test_strata_give_counts_risks_and_the_difference_on_an_axis_through_no_difference(run):
    (table,) = adjusted(run)  # that of wrong answers has no strata
    first, second, third = table.strata

    assert (table.bad, table.by) == ("unfaithful", "category")
    assert (first.miss, first.hit) == ((6, 8), (2, 11))
    assert first.risks[0].brief == "75 % [45, 100]"
    assert first.difference.brief == "+57 points [22, 87]"
    assert (first.difference.bar.value, first.difference.bar.signed) == (78.5, True)
    assert second.difference.bar.value < 50 < first.difference.bar.low
    assert third.risks[0].brief == "not measured: no case of this group is a miss"
    assert third.difference.bar is None


def test_pooled_numbers_stand_beside_the_crude_ones(run):
    (table,) = adjusted(run)
    assert [(row.label, row.before.value, row.after.value) for row in table.pooled] == [
        ("Risk difference", "+10 points", "+22 points"),
        ("Risk ratio", "1.2 times", "1.9 times"),
        ("Attributable share", "38 %", "21 %"),
    ]


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ({"p": 0.03, "method": "m"}, "differ by more than chance would explain (p = 0.030, m)"),
        ({"p": 0.3, "method": "m"}, "differ no more than chance would explain (p = 0.30, m)"),
        ({"p": None, "reason": "one group"}, "Whether the groups differ was not tested: one group"),
    ],
)
def test_heterogeneity_is_said_in_words(run, test, said):
    document = run.summary["link"]["adjusted"] | {"heterogeneity": test}
    (table,) = adjusted(_with(run, adjusted=document))
    assert said in table.notes[0]
    assert table.notes[1].endswith("1 group (5 cases).")


def test_doses_run_from_none_to_all_with_the_trend(run):
    unfaithful, wrong = doses(run)

    assert [(label, risk.brief) for label, risk in unfaithful.groups] == [
        ("none of them", "58 % [31, 81]"),
        ("some of them", "40 % [12, 77]"),
        ("all of them", "26 % [12, 49]"),
    ]
    assert unfaithful.trend == (
        "The share of unfaithful answers falls as more of what was needed arrives "
        "(p < 0.001, Cochran-Armitage)."
    )
    assert wrong.trend == "A trend was not tested: too few cases."


def test_a_trend_that_chance_explains_is_none(run):
    document = run.summary["link"]["dose_response"] | {"trend": {"p": 0.4, "method": "exact"}}
    assert doses(_with(run, dose_response=document))[0].trend == (
        "No trend beyond chance is seen (p = 0.40, exact)."
    )


def test_a_trend_the_other_way_is_told_as_such(run):
    document = run.summary["link"]["dose_response"]
    turned = document | {"groups": list(reversed(document["groups"]))}
    assert "rises as more" in doses(_with(run, dose_response=turned))[0].trend


def test_corrected_numbers_stand_beside_those_as_judged_and_the_badge_says_so(run):
    found = corrected(run)

    assert (found.rows[0].before.value, found.rows[0].after.value) == ("50 %", "61 %")
    assert found.sensitivity.text == "91 % [85, 95], n = 140"
    badge = build(run).badge
    assert badge.text == "compared with human labels"
    assert "72 % [61, 81] of unfaithful ones unfaithful" in badge.note
    assert build(example_run()).badge.text == "heuristic judge"


def test_a_correction_that_could_not_be_made_does_not_calm_the_badge(run):
    gone = {"value": None, "low": None, "high": None, "n": 0, "method": "none", "reason": "r"}
    document = {"sensitivity": gone, "specificity": estimate(0.7, 0.6, 0.8)}
    assert build(_with(run, corrected=document)).badge.text == "heuristic judge"
