"""The link within groups, by recall, and corrected for the judge's error."""

from __future__ import annotations

import pytest

from example_run import estimate, example_run
from misslink.linking.association import dose_response
from misslink.report.association import (
    adjust_associations,
    correct_association,
    dose_responses,
)
from misslink.report.page import build_page
from misslink.types import Link
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _with(run, **link):
    summary = run.summary | {"link": run.summary["link"] | link}
    return run.model_copy(update={"summary": summary})


def test_a_run_of_before_has_none_of_it():
    old = example_run()
    assert adjust_associations(old) == dose_responses(old) == ()
    assert correct_association(old) is None


def test_strata_give_counts_risks_and_the_difference_on_an_axis_through_no_difference(run):
    (table,) = adjust_associations(run)  # that of wrong answers has no strata
    first, second, third = table.strata

    assert (table.bad, table.by) == ("unfaithful", "category")
    assert (first.miss, first.hit) == ((6, 8), (2, 11))
    assert first.risks[0].brief == "75% [45, 100]"
    assert first.difference.brief == "+57 points [22, 87]"
    assert (first.difference.bar.value, first.difference.bar.signed) == (78.5, True)
    assert second.difference.bar.value < 50 < first.difference.bar.low
    assert third.risks[0].brief == "not measured: no case of this group is a miss"
    assert third.difference.bar is None


def test_pooled_numbers_stand_beside_the_crude_ones(run):
    (table,) = adjust_associations(run)
    assert [(row.label, row.before.value, row.after.value) for row in table.pooled] == [
        ("Risk difference", "+10 points", "+22 points"),
        ("Risk ratio", "1.2 times", "1.9 times"),
        ("Attributable fraction", "38%", "21%"),
    ]


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (
            {"p": 0.03, "method": "m"},
            "differs between the groups by more than chance would explain (p = 0.030, m)",
        ),
        (
            {"p": 0.3, "method": "m"},
            "differs between the groups no more than chance would explain (p = 0.30, m)",
        ),
        (
            {"p": None, "reason": "one group"},
            "Whether the risk difference differs between the groups was not tested: one group",
        ),
    ],
)
def test_heterogeneity_is_said_in_words(run, test, said):
    document = run.summary["link"]["adjusted"] | {"heterogeneity": test}
    (table,) = adjust_associations(_with(run, adjusted=document))
    assert said in table.notes[0]
    assert "the risk difference differs between the groups" in table.notes[0].lower()
    assert table.notes[1].endswith("1 group (5 cases).")


def test_the_warning_says_on_how_many_cases_the_adjusted_numbers_rest(run):
    (table,) = adjust_associations(run)
    assert table.warning.endswith("The adjusted numbers rest on 31 of 36 cases.")
    calm = run.summary["link"]["adjusted"] | {"warning": None}
    assert adjust_associations(_with(run, adjusted=calm))[0].warning == ""


def test_doses_run_from_none_to_all_with_the_trend(run):
    unfaithful, wrong = dose_responses(run)

    assert [(label, risk.brief) for label, risk in unfaithful.groups] == [
        ("none of them", "58% [31, 81]"),
        ("some of them", "40% [12, 77]"),
        ("all of them", "26% [12, 49]"),
    ]
    assert unfaithful.trend == (
        "The share of unfaithful answers falls as more of what was needed arrives "
        "(p < 0.001, Cochran-Armitage)."
    )
    assert wrong.trend == "A trend was not tested: too few cases."


def test_a_trend_that_chance_explains_is_none(run):
    document = run.summary["link"]["dose_response"] | {"trend": {"p": 0.4, "method": "exact"}}
    assert dose_responses(_with(run, dose_response=document))[0].trend == (
        "No trend beyond chance is seen (p = 0.40, exact)."
    )


def test_a_trend_the_other_way_is_told_as_such(run):
    document = run.summary["link"]["dose_response"]
    turned = document | {
        "groups": list(reversed(document["groups"])), "trend": {"p": 0.0004, "slope": 0.16},
    }  # fmt: skip
    assert "rises as more" in dose_responses(_with(run, dose_response=turned))[0].trend


def test_a_trend_of_an_older_run_without_a_slope_goes_by_its_ends(run):
    document = run.summary["link"]["dose_response"]
    for groups, turns in ((document["groups"], "falls"), (document["groups"][::-1], "rises")):
        older = {"groups": groups, "trend": {"p": 0.0004}}
        assert f"{turns} as more" in dose_responses(_with(run, dose_response=older))[0].trend


def test_a_trend_has_the_direction_that_was_tested_not_that_of_its_ends(run):
    """No miss of 1 is bad, 40 of 60 partial hits and 10 of 60 hits are: the risk falls."""
    counts = {"miss": (0, 1), "partial": (40, 60), "hit": (10, 60)}
    links = [
        Link(
            case_id=f"{retrieval}{at}", retrieval=retrieval, failure="passed", reason="r",
            answer="unfaithful" if at < bad else "faithful",
        )
        for retrieval, (bad, n) in counts.items()
        for at in range(n)
    ]  # fmt: skip
    document = dose_response(links, lambda link: link.answer == "unfaithful")
    assert document["trend"]["slope"] < 0
    assert "falls as more" in dose_responses(_with(run, dose_response=document))[0].trend


def test_corrected_numbers_stand_beside_those_as_judged_and_the_badge_says_so(run):
    found = correct_association(run)

    assert (found.rows[0].before.value, found.rows[0].after.value) == ("54%", "61%")
    assert [row.before.n for row in found.rows] == [13, 26, 39, 39, 39]  # not the crude table's 36
    assert found.sensitivity.text == "91% [85, 95], n = 140"
    badge = build_page(run.model_copy(update={"calibration": None})).badge
    assert badge.text == "compared with human labels"
    assert "72% [61, 81] of unfaithful ones unfaithful" in badge.note
    assert build_page(example_run()).badge.text == "heuristic judge"


def test_uncertain_cases_are_said_to_be_corrected_and_to_be_left_out_of_the_table(run):
    assert correct_association(run).note == (
        "Of the 39 cases, 3 have verdicts too uncertain for the link: both columns count them as "
        "the judge calls them, the table leaves them out."
    )
    sure = _with(run, corrected=run.summary["link"]["corrected"] | {"uncertain": 0})
    assert correct_association(sure).note == ""


def test_a_correction_that_could_not_be_made_does_not_calm_the_badge(run):
    gone = {"value": None, "low": None, "high": None, "n": 0, "method": "none", "reason": "r"}
    document = {"sensitivity": gone, "specificity": estimate(0.7, 0.6, 0.8)}
    unheld = run.model_copy(update={"calibration": None})
    assert build_page(_with(unheld, corrected=document)).badge.text == "heuristic judge"
