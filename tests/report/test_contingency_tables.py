"""The 2 x 2 tables: each count leads to exactly the cases that it counts."""

from __future__ import annotations

from example_run import estimate
from misslink.report.association import ContingencyCell, contingency_tables
from misslink.types import Case, Link, Run

_FAILURES = {"miss": "retrieval_miss", "hit": "fabricated", "not_needed": "should_have_abstained"}


def _link(number, retrieval, answer):
    bad = answer == "unfaithful"
    return Link(
        case_id=f"c{number}",
        retrieval=retrieval,
        answer=answer,
        failure=_FAILURES.get(retrieval, "inconclusive") if bad else "passed",
        reason="-",
    )


def run_of(*outcomes, share=None, verdicts=()):
    """A run of cases with these outcomes, and the table that they count up to."""
    links = [_link(number, *one) for number, one in enumerate(outcomes, 1)]
    rows = {"miss": "miss", "partial": "hit", "hit": "hit"}
    table = {f"{row}_{x}": 0 for row in ("miss", "hit") for x in ("unfaithful", "faithful")}
    for link in links:
        if link.retrieval in rows and link.answer in ("unfaithful", "faithful"):
            table[f"{rows[link.retrieval]}_{link.answer}"] += 1
    n = sum(table.values())
    return Run(
        manifest={"judge": "heuristic"},
        cases=tuple(Case(id=link.case_id, question="?") for link in links),
        traces=(),
        verdicts=verdicts,
        links=tuple(links),
        summary={
            "link": {
                "table": {**table, "left_out": len(links) - n},
                "attributable_fraction": share or estimate(1.0, 0.22, 1.0, n),
                "risk_given_miss": estimate(0.67, 0.21, 0.94, 3),
                "risk_given_hit": estimate(0.0, 0.0, 0.15, 21),
            }
        },
    )


MISS, GOOD, HIT = ("miss", "unfaithful"), ("hit", "faithful"), ("hit", "unfaithful")
NONE, UNSEEN = ("not_needed", "unfaithful"), ("unknown", "unfaithful")


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
