"""Missed passages, the checklist, the gaps of the gold set, and other retrieval."""

import asyncio
from typing import get_args

import pytest

from example_run import HOSTILE, estimate, example_run, missing
from misslink.documents import ChecklistItem
from misslink.linking.checklist import build_checklist as answered
from misslink.linking.miss_measurement import measure_misses
from misslink.render.miss_sentences import MISS_LABELS
from misslink.report.diagnosis import (
    check_verdict,
    describe_distance,
    miss_details,
    miss_type_rows,
    missed_passages,
    read_checklist,
    read_missing_labels,
    read_whatif,
)
from misslink.report.glossary import CHECKED
from misslink.report.page import build_page, render_page
from misslink.types import CompetingPassage, Link, MissStatus, MissType, RetrievalMiss
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


def _numbers(run, **numbers):
    row = {"name": "n", "question": "q", "numbers": numbers, "finding": "f", "ok": None}
    summary = {"diagnosis": {"checklist": [row]}}
    found = read_checklist(run.model_copy(update={"summary": summary}))
    return dict(found.checks[0][-1]), found.facts


@pytest.mark.parametrize(
    ("name", "numbers", "state", "why"),
    [
        ("recall", {"recall_in_context": estimate(0.8, 0.7, 0.9), "recall_at_depth": missing("d")},
         "inconclusive", "the interval includes both good and bad values"),
        ("vocabulary", {"median_shared_found": estimate(0.5, 0.4, 0.6), "auroc": missing("empty")},
         "inconclusive", "empty"),
        ("recall", {"recall_in_context": missing("none"), "not_indexed": 0}, "not measured", ""),
        ("of a later version", {"passages": 3}, "inconclusive", "the numbers do not decide it"),
        ("of a later version", {"passages": None, "text": "t"}, "not measured", ""),
        ("recall", {}, "not measured", ""),
    ],
)  # fmt: skip
def test_without_a_verdict_it_says_whether_there_are_numbers_and_why_they_do_not_decide(
    name, numbers, state, why
):
    found = check_verdict(ChecklistItem.read({"name": name, "numbers": numbers}))
    assert found[0] == state
    assert found[1].startswith(why)
    assert bool(found[1]) == (state == "inconclusive")


def test_every_number_of_the_checklist_has_words_and_every_check_knows_what_decides_it():
    found = asyncio.run(measure_misses([], [], 5, embedder=None, corpus=None))
    for item in answered([], [], found, 5):
        row = item.document()
        assert set(row["numbers"]) <= set(CHECKED)
        assert check_verdict(ChecklistItem.read(row)) == ("not measured", "")
        half = estimate(0.5, 0.1, 0.9)
        numbers = dict.fromkeys(row["numbers"], half)
        assert (
            "both good and bad values"
            in check_verdict(ChecklistItem.read(row | {"numbers": numbers}))[1]
        )


@pytest.mark.parametrize(
    ("name", "number", "written"),
    [
        ("places_lost_to_duplicates", estimate(0.05, 0.01, 0.1, 9, "bootstrap"),
         "0.05 [0.01, 0.10], n = 9"),
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


def test_of_very_many_gaps_the_page_has_the_first_and_says_how_many_there_are(run):
    gaps = run.summary["diagnosis"]["missing_labels"]
    many = {**gaps, "holes": gaps["holes"] * 300}
    summary = {**run.summary, "diagnosis": {**run.summary["diagnosis"], "missing_labels": many}}
    large = run.model_copy(update={"summary": summary})
    found = read_missing_labels(large)
    assert (len(found.rows), found.count) == (500, 600)
    assert "600 passages, the first 500 of them here" in render_page(build_page(large))
    assert "of them here" not in render_page(build_page(run))


def _case(run, case_id):
    return next(case for case in build_page(run).cases.entries if case.id == case_id)


def test_every_subtype_has_words():
    assert {*get_args(MissType), *get_args(MissStatus)} - {"not_retrieved"} == set(MISS_LABELS)


def test_misses_are_counted_by_subtype_with_shares_advice_and_an_example(run):
    rows = miss_type_rows(run)
    passages = {(link.case_id, one.passage_id) for link in run.links for one in link.missed}
    first = next(row for row in rows if row.label == "worded differently from the question")

    assert [row.count for row in rows] == [1, 1, 1, 3]
    assert sum(row.count for row in rows) == len(passages) == 6
    assert first.share.brief == "1 of 6"
    assert first.failed == 1
    assert first.advice.startswith("Expand queries")
    assert (first.example, first.example_at) == (
        "it shares 25% of the question's words, and BM25 puts it at rank 212 of 594", "case=14",
    )  # fmt: skip
    assert first.fragment == "miss_type=vocabulary_mismatch"
    assert rows[-1].label == "not known"
    assert rows[-1].fragment == ""
    assert "--depth" in rows[-1].advice


def test_a_passage_that_two_evidences_of_a_case_need_is_one_miss_with_its_subtype():
    twice = (
        RetrievalMiss(passage_id="a"), RetrievalMiss(passage_id="b"),
        RetrievalMiss(passage_id="a", miss_type="ranked_low"), RetrievalMiss(passage_id="a", status="not_indexed"),
    )  # fmt: skip
    links = [
        Link(
            case_id=case, retrieval="miss", answer="unfaithful", failure="retrieval_miss",
            reason="r", missed=twice,
        )
        for case in ("one", "two")
    ]  # fmt: skip
    found = [
        (link.case_id, lost.passage_id, lost.miss_type) for link, lost in missed_passages(links)
    ]
    assert found == [
        ("one", "a", "ranked_low"), ("one", "b", None), ("two", "a", "ranked_low"), ("two", "b", None),
    ]  # fmt: skip
    assert not list(missed_passages([]))


def test_a_run_without_subtypes_has_no_table():
    run = example_run()
    links = tuple(
        link.model_copy(
            update={"missed": tuple(RetrievalMiss(passage_id=m.passage_id) for m in link.missed)}
        )
        for link in run.links
    )
    assert miss_type_rows(run.model_copy(update={"links": links})) == ()


def test_what_differs_between_two_evidences_of_a_passage_is_shown_twice():
    ones = [
        RetrievalMiss(passage_id="a", reason="one"),
        RetrievalMiss(passage_id="a", reason="two"),
    ]
    assert [detail["reason"] for detail in miss_details(ones)] == ["one", "two"]


def test_what_was_not_measured_is_not_there():
    (detail,) = miss_details(
        [RetrievalMiss(passage_id="a", above=(CompetingPassage(passage_id="b", rank=1),))]
    )
    assert detail == {"above": [{"rank": 1, "id": "b"}]}


@pytest.mark.parametrize("distance", [None, 0, -3])
def test_a_passage_within_the_cut_off_has_no_distance(distance):
    assert describe_distance(distance) == ""


def test_the_primary_cause_comes_first_in_whatever_order_the_file_has_them(run):
    links = tuple(
        link.model_copy(update={"reasons": dict(reversed(link.reasons.items()))})
        for link in run.links
    )
    case = _case(run.model_copy(update={"links": links}), "with-exit")
    assert [mode.name for mode in case.also] == ["Fabricated"]


def _with(run, **parts):
    return run.model_copy(update={"whatif": run.whatif | parts})


def test_only_what_was_tested_is_better_or_worse(run):
    verdicts = [(option.main.verdict, option.main.p) for option in read_whatif(run).options]
    assert verdicts == [
        ("better", "p = 0.004"), ("no detectable difference", "p = 0.40"), ("worse", "p = 0.010"),
    ]  # fmt: skip
    untested = dict(run.whatif["options"][1])
    untested["metrics"] = {"recall@5": {"p_holm": None, "winner": None}}
    (option,) = read_whatif(_with(run, options=[untested])).options
    assert (option.main.verdict, option.main.p) == ("not tested", "")
    assert not option.main.option.measured


def test_the_cases_that_were_run_again_are_counted(run):
    rows = dict(read_whatif(run).check)
    assert rows["Cases that it changes"] == ("12 of 20 cases run again: 9 failed before, 3 after")
    assert rows["Not run again"] == "the new answer was not judged"
    assert read_whatif(_with(run, check=None)).check == ()


def test_without_a_corpus_it_says_so(run):
    assert read_whatif(_with(run, corpus=None)).facts.startswith("No corpus was given")


def test_the_paired_value_of_today_and_the_cutoff_of_the_option_are_shown(run):
    row = dict(run.whatif["options"][0])
    recall = row["metrics"]["recall@5"]
    paired = recall["difference"] | {"value": 0.7, "low": 0.5, "high": 0.9}
    row["metrics"] = {"recall@5": recall | {"at": 10, "a": paired}}
    row |= {"newly_retrieved": None, "reached": None}
    found = read_whatif(_with(run, options=[row], context_passages=5))
    (option,) = found.options
    assert found.heading == "Recall in the context (today 5 passages)"
    assert (option.main.today.value, option.main.at) == ("70%", "at 10 under the option")
    assert "<td>not known</td>" in render_page(build_page(_with(run, options=[row])))
    assert read_whatif(_with(run, context_passages=7)).heading == ""
    assert read_whatif(run).options[0].main.at == ""
