"""The tables by exposure: each count leads to exactly the cases that it counts."""

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
    rows = {"miss": "none", "partial": "some", "hit": "all"}
    table = {name: {"bad": 0, "good": 0} for name in rows.values()}
    for link in links:
        if link.retrieval in rows and link.answer in ("unfaithful", "faithful"):
            table[rows[link.retrieval]]["bad" if link.answer == "unfaithful" else "good"] += 1
    n = sum(sum(row.values()) for row in table.values())
    return Run(
        manifest={"judge": "heuristic"},
        cases=tuple(Case(id=link.case_id, question="?") for link in links),
        traces=(),
        verdicts=verdicts,
        links=tuple(links),
        summary={
            "link": {
                "exposure": "labels",
                "table": {**table, "left_out": len(links) - n},
                "attributable_fraction": share or estimate(1.0, 0.22, 1.0, n),
                "risk_given_none": estimate(0.67, 0.21, 0.94, 3),
                "risk_given_all": estimate(0.0, 0.0, 0.15, 21),
            }
        },
    )


MISS, GOOD, HIT = ("miss", "unfaithful"), ("hit", "faithful"), ("hit", "unfaithful")
NONE, UNSEEN = ("not_needed", "unfaithful"), ("unknown", "unfaithful")


PART = ("partial", "unfaithful")


def test_a_count_leads_to_its_cases():
    (cross,) = contingency_tables(run_of(MISS, MISS, PART, *[GOOD] * 10, HIT, NONE))
    none, some, all_ = cross.rows

    assert none[:3] == (
        "None of them",
        ContingencyCell(2, "ids=1,2"),
        ContingencyCell(0, ""),
    )
    assert some[1] == ContingencyCell(1, "ids=3")
    assert all_[1] == ContingencyCell(1, "ids=14")
    assert cross.left_out == 1


def test_a_count_that_the_links_do_not_bear_out_leads_nowhere():
    run = run_of(MISS, *[GOOD] * 10)
    table = {"none": {"bad": 5, "good": 0}, "all": {"bad": 0, "good": 10}}
    summary = {"link": {**run.summary["link"], "table": table}}

    (cross,) = contingency_tables(run.model_copy(update={"summary": summary}))
    assert cross.rows[0][1] == ContingencyCell(5, "")
    assert cross.rows[2][2].fragment.startswith("ids=2,3")


def test_wrong_answers_lead_to_what_is_wrong_by_the_reference():
    run = run_of(MISS, *[GOOD] * 10)
    links = tuple(
        link.model_copy(update={"correct": link.retrieval == "hit"}) for link in run.links
    )
    table = {"none": {"bad": 1, "good": 0}, "all": {"bad": 0, "good": 10}}
    summary = {"link_correctness": {"exposure": "labels", "table": table}}
    run = run.model_copy(update={"links": links, "summary": summary})

    (wrong,) = contingency_tables(run)
    assert (wrong.bad, wrong.good) == ("Wrong", "Right")
    assert wrong.rows[0][1] == ContingencyCell(1, "ids=1")


def test_a_run_without_a_table_has_none():
    assert contingency_tables(run_of()) == ()
