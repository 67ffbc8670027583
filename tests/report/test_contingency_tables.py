"""The 2 x 2 tables: each count leads to exactly the cases that it counts."""

from __future__ import annotations

from test_association import GOOD, HIT, MISS, NONE, run_of  # beside this file

from misslink.report.association import ContingencyCell, contingency_tables

PART = ("partial", "unfaithful")


def test_a_count_leads_to_its_cases_by_filters_where_these_say_it_exactly():
    (cross,) = contingency_tables(run_of(MISS, MISS, GOOD, HIT, NONE))

    assert cross.miss == (
        ContingencyCell(2, "retrieval=miss&answer=unfaithful"),
        ContingencyCell(0, ""),
    )
    assert cross.hit == (
        ContingencyCell(1, "retrieval=hit&answer=unfaithful"), ContingencyCell(1, "retrieval=hit&answer=faithful"),
    )  # fmt: skip
    assert cross.left_out == 1


def test_partial_hits_are_hits_and_then_their_cases_are_named():
    assert contingency_tables(run_of(PART, GOOD, HIT))[0].hit[0] == ContingencyCell(2, "ids=1,3")
    assert contingency_tables(run_of(PART, GOOD))[0].hit[0] == ContingencyCell(
        1, "retrieval=partial&answer=unfaithful"
    )


def test_a_count_that_the_links_do_not_bear_out_leads_nowhere():
    run = run_of(MISS, GOOD)
    summary = {"link": {**run.summary["link"], "table": {"miss_unfaithful": 5, "hit_faithful": 1}}}

    (cross,) = contingency_tables(run.model_copy(update={"summary": summary}))
    assert cross.miss[0] == ContingencyCell(5, "")
    assert cross.hit[1] == ContingencyCell(1, "retrieval=hit&answer=faithful")


def test_wrong_answers_lead_to_what_is_wrong_by_the_reference():
    run = run_of(MISS, GOOD)
    links = tuple(
        link.model_copy(update={"correct": right})
        for link, right in zip(run.links, (False, True), strict=True)
    )
    table = {"miss_wrong": 1, "miss_right": 0, "hit_wrong": 0, "hit_right": 1}
    run = run.model_copy(update={"links": links, "summary": {"link": {"wrong": {"table": table}}}})

    (wrong,) = contingency_tables(run)
    assert (wrong.bad, wrong.good) == ("Wrong", "Right")
    assert wrong.miss[0] == ContingencyCell(1, "retrieval=miss&correct=no")
    assert wrong.hit[1] == ContingencyCell(1, "retrieval=hit&correct=yes")


def test_a_run_without_a_table_has_none():
    assert contingency_tables(run_of()) == ()
