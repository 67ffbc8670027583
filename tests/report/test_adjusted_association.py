"""The link within groups, by recall, and corrected for the judge's error."""

from __future__ import annotations

import pytest

from example_run import example_run
from misslink.report.association import (
    adjust_associations,
    contingency_tables,
    correct_association,
)
from misslink.report.page import build_page
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _with(run, **link):
    summary = run.summary | {"link": run.summary["link"] | link}
    return run.model_copy(update={"summary": summary})


def test_a_run_of_before_has_none_of_it():
    old = example_run()
    assert adjust_associations(old) == ()
    assert correct_association(old) is None


def test_strata_give_counts_risks_and_the_difference_on_an_axis_through_no_difference(run):
    (table,) = adjust_associations(run)  # that of wrong answers has no strata
    first, second, third = table.strata

    assert (table.bad, table.by) == ("unfaithful", "category")
    assert (first.none, first.all) == ((6, 8), (2, 11))
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
        ("Risk ratio", "not measured", "1.9 times"),
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
    change, heterogeneity, left_out = table.notes
    assert said in heterogeneity
    assert change.startswith("It changes to")
    assert left_out.endswith("1 group (5 cases).")


def test_the_warning_says_on_how_many_cases_the_adjusted_numbers_rest(run):
    (table,) = adjust_associations(run)
    assert table.warning.endswith("The adjusted numbers rest on 31 of 36 cases.")
    calm = run.summary["link"]["adjusted"] | {"warning": None}
    assert adjust_associations(_with(run, adjusted=calm))[0].warning == ""


@pytest.mark.parametrize(
    ("trend", "note"),
    [
        ({"p": 0.0004, "slope": -0.16}, "answers falls as more of the relevant passages"),
        ({"p": 0.0004, "slope": 0.16}, "answers rises as more of the relevant passages"),
        ({"p": 0.4, "method": "exact"}, "No trend beyond chance is seen (p = 0.40, exact)."),
        ({"p": None, "reason": "too few cases"}, "A trend was not tested: too few cases."),
    ],
)
def test_the_trend_stands_under_the_table(run, trend, note):
    assert note in " ".join(contingency_tables(_with(run, trend=trend))[0].notes)


def test_corrected_numbers_stand_beside_those_as_judged_and_the_judge_s_line_says_so(run):
    found = correct_association(run)

    assert (found.rows[0].before.value, found.rows[0].after.value) == ("50%", "61%")
    assert (
        found.brief == "Corrected for the judge's errors, the attributable fraction is 43% [3, 70]."
    )
    assert "do not differ by more than chance would explain (p = 0.40)" in found.note
    judge, _ = build_page(run.model_copy(update={"calibration": None})).judge
    assert "72% of unfaithful ones unfaithful" in judge
