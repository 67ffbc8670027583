"""The checklist and the gaps of the gold set."""

from __future__ import annotations

import asyncio
import re

import pytest

from example_run import HOSTILE, estimate, example_run, missing
from misslink.documents import ChecklistItem
from misslink.linking.checklist import build_checklist as answered
from misslink.linking.miss_measurement import measure_misses
from misslink.report.diagnosis import check_verdict, read_checklist, read_missing_labels
from misslink.report.glossary import CHECKED
from misslink.report.page import build_page, render_page
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _numbers(run, **numbers):
    row = {"name": "n", "question": "q", "numbers": numbers, "finding": "f", "ok": None}
    summary = {"diagnosis": {"checklist": [row]}}
    found = read_checklist(run.model_copy(update={"summary": summary}))
    return dict(found.checks[0][-1]), found.facts


def test_a_run_of_before_has_neither():
    assert read_checklist(example_run()) is None
    assert read_missing_labels(example_run()) is None


def test_checks_say_ok_not_ok_or_that_their_numbers_do_not_decide(run):
    assert [state for _, state, _, _ in read_checklist(run).checks] == [
        "not ok",
        "ok",
        "no verdict",
    ]
    assert "594 passages" in read_checklist(run).facts


@pytest.mark.parametrize(
    ("name", "numbers", "state", "why"),
    [
        ("recall", {"recall_in_context": estimate(0.8, 0.7, 0.9), "recall_at_depth": missing("d")},
         "no verdict", "the interval includes both good and bad values"),
        ("vocabulary", {"median_shared_found": estimate(0.5, 0.4, 0.6), "auroc": missing("empty")},
         "no verdict", "empty"),
        ("recall", {"recall_in_context": missing("none"), "not_indexed": 0}, "not measured", ""),
        ("of a later version", {"passages": 3}, "no verdict", "the numbers do not decide it"),
        ("of a later version", {"passages": None, "text": "t"}, "not measured", ""),
        ("recall", {}, "not measured", ""),
    ],
)  # fmt: skip
def test_without_a_verdict_it_says_whether_there_are_numbers_and_why_they_do_not_decide(
    name, numbers, state, why
):
    found = check_verdict(ChecklistItem(name=name, numbers=numbers))
    assert found[0] == state
    assert found[1].startswith(why)
    assert bool(found[1]) == (state == "no verdict")


def test_every_number_of_the_checklist_has_words_and_every_check_knows_what_decides_it():
    found = asyncio.run(measure_misses([], [], 5, embedder=None, corpus=None))
    for row in answered([], [], found, 5):
        assert set(row["numbers"]) <= set(CHECKED)
        assert check_verdict(ChecklistItem(**row)) == ("not measured", "")
        half = estimate(0.5, 0.1, 0.9)
        numbers = dict.fromkeys(row["numbers"], half)
        assert (
            "both good and bad values"
            in check_verdict(ChecklistItem(**row | {"numbers": numbers}))[1]
        )


@pytest.mark.parametrize(
    ("name", "number", "written"),
    [
        ("places_lost_to_duplicates", estimate(0.05, 0.01, 0.1, 9, "bootstrap"),
         "5% [1, 10], n = 9"),
        ("near_duplicates", estimate(0.11, 0.09, 0.13, 594), "11% [9, 13], n = 594"),
        ("recall_at_depth", estimate(0.9, 0.8, 1.0, 40, "bootstrap"), "90% [80, 100], n = 40"),
        ("median_characters", estimate(812, 790, 836.2, 594, "ranks"), "812 [790, 836], n = 594"),
        ("auroc", estimate(0.9, 0.85, 0.951, 30, "delong"), "0.90 [0.85, 0.95], n = 30"),
        ("auroc", missing("one group is empty"), "not measured: one group is empty"),
        ("lower_quartile_characters", 640.25, "640"),
        ("lower_quartile_characters", None, "not measured"),
        ("share", 0.3, "30%"),
        ("passages", 12345, "12,345"),
        ("whole", True, "yes"),
    ],
)  # fmt: skip
def test_a_number_is_written_in_its_unit(run, name, number, written):
    assert _numbers(run, **{name: number})[0] == {CHECKED.get(name, name): written}


def test_without_embedding_and_corpus_it_says_so(run):
    assert _numbers(run)[1].startswith("No embedding was given; no corpus was given")


def test_a_gap_points_at_its_passage_in_its_case(run):
    first, second = read_missing_labels(run).rows
    anchors = {
        f"case={case.number}&passage={place}": row.id
        for case in build_page(run).cases.entries
        for place, row in enumerate(case.retrieved, 1)
    }

    assert anchors[first[1]] == "try#4"
    assert anchors[second[1]] == HOSTILE[5]
    assert (first[0].rank, first[0].question) == (2, "What creates a function without a name?")


def test_a_gap_of_a_case_that_is_gone_gets_no_link(run):
    rows = read_missing_labels(run.model_copy(update={"cases": (), "traces": ()})).rows
    assert [href for _, href in rows] == ["", ""]


def test_metrics_stand_without_and_with_the_gaps(run):
    html = (
        render_page(build_page(run)).partition("without and with them")[2].partition("</table>")[0]
    )
    assert re.findall(r"<code>(.*?)</code>|<b>(.*?)</b>", html) == [
        ("recall@5", ""), ("", "54%"), ("", "60%"), ("mrr", ""), ("", "0.51"), ("", "0.55"),
    ]  # fmt: skip


def test_of_very_many_gaps_the_page_has_the_first_and_says_how_many_there_are(run):
    gaps = run.summary["diagnosis"]["missing_labels"]
    many = {**gaps, "holes": gaps["holes"] * 300}
    summary = {**run.summary, "diagnosis": {**run.summary["diagnosis"], "missing_labels": many}}
    large = run.model_copy(update={"summary": summary})
    found = read_missing_labels(large)
    assert (len(found.rows), found.count) == (500, 600)
    assert "600 passages, the first 500 of them here" in render_page(build_page(large))
    assert "of them here" not in render_page(build_page(run))
