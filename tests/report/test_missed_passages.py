"""Why passages were missed: the table of the run, and what was measured of each."""

from __future__ import annotations

from typing import get_args

import pytest

from example_run import HOSTILE, example_run
from misslink.linking.miss_types import MISS_LABELS
from misslink.report.diagnosis import (
    describe_distance,
    miss_details,
    miss_type_rows,
    missed_passages,
)
from misslink.report.page import build_page
from misslink.types import CompetingPassage, Link, MissStatus, MissType, RetrievalMiss
from proven_run import proven_run


@pytest.fixture(scope="module")
def run():
    return proven_run()


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
    assert first.share.brief == "17% [3, 56]"  # Wilson for 1 of 6
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
    assert missed_passages([]) == ()


def test_a_run_without_subtypes_has_no_table():
    run = example_run()
    links = tuple(
        link.model_copy(
            update={"missed": tuple(RetrievalMiss(passage_id=m.passage_id) for m in link.missed)}
        )
        for link in run.links
    )
    assert miss_type_rows(run.model_copy(update={"links": links})) == ()


def test_a_missed_passage_shows_its_reason_distance_measurements_and_rivals_once(run):
    (row, unknown) = _case(run, "with-exit").missed
    (detail,) = row.details  # two evidences, measured alike

    assert detail["reason"].startswith("it shares 25%")
    assert detail["also"] == ["ranked too low"]
    assert detail["distance"] == "12 ranks below the cutoff"
    assert dict(detail["measured"]) == {
        "cosine to the question": "0.41",
        "cosine of the last passage given": "0.63",
        "known pairs with a lower cosine": "8%",
        "question's words that it holds": "25%",
        "known pairs that share fewer words": "12%",
        "rank by embedding": "17",
        "rank by words (BM25)": "212",
        "passages ranked": "594",
        "near-duplicates in the context": "1",
    }
    first, second = detail["above"]
    assert (first["rank"], first["score"], first["cosine"]) == (1, "0.800", "0.71")
    assert second["duplicate_of"] == "pass#0"
    assert unknown.details == []


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


def test_a_claim_names_who_judged_how_sure_and_how_far_the_passage_was(run):
    claims = _case(run, "with-exit").claims

    assert claims[0].needed[0].where == "rank 17 of 100 searched, 12 ranks below the cutoff"
    assert claims[0].needed[0].words == (
        "would have contradicted this claim, by openai:some-model, P(supports) 0.08"
    )
    assert claims[3].needed[0].words == f"says nothing about this claim, by {HOSTILE[0]}"


def test_every_cause_stands_with_its_evidence_the_primary_one_first(run):
    case = _case(run, "with-exit")

    assert [label for label, _ in case.also] == ["Fabricated"]
    assert [row.ranks for row in case.missed] == [(17, 212, 17), (None, None, None)]
    assert case.summary == (
        "2 relevant passages never reached the prompt (rank 17; the prompt takes 5).",
        "3 of 4 claims unsupported. A missed passage would contradict 1 of them.",
    )
    assert case.fix is not None
    assert case.basis == "Confirmed by replay."


def test_the_primary_cause_comes_first_in_whatever_order_the_file_has_them(run):
    links = tuple(
        link.model_copy(update={"reasons": dict(reversed(link.reasons.items()))})
        for link in run.links
    )
    case = _case(run.model_copy(update={"links": links}), "with-exit")
    assert [label for label, _ in case.also] == ["Fabricated"]
