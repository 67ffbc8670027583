"""The headline: what its share is of, what it leaves out, how few, and where its cases are."""

from __future__ import annotations

import pytest

from example_run import estimate, missing
from misslink.report.association import read_headline
from misslink.types import Case, Link, Run, Verdict

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


def test_it_says_what_the_share_is_of_and_which_unfaithful_answers_it_leaves_out():
    said = read_headline(run_of(GOOD, NONE, MISS, MISS, *[GOOD] * 20))

    assert f"{said.share} {said.interval} {said.words}." == (
        "100% [22, 100] of unfaithful answers to questions with a passage to find go with a "
        "retrieval miss."
    )
    left_out = "Unfaithful answers left out: 1 with no passage to find."
    assert said.risks == (
        "2 of 2 came after a miss. After a miss 67% [21, 94] of answers were unfaithful (n = 3), "
        f"after a hit 0% [0, 15] (n = 21). {left_out}"
    )
    assert said.paragraphs[0].startswith("2 of 2 came after a miss. After a miss, when no needed")
    assert said.paragraphs[0].endswith(left_out)


def test_an_answer_whose_retrieval_was_not_seen_is_left_out_for_that_reason():
    assert (
        "left out: 2 with no passage to find, 1 whose retrieval was not seen."
        in read_headline(run_of(MISS, NONE, NONE, UNSEEN)).risks
    )


def test_nothing_left_out_is_not_told():
    said = read_headline(run_of(MISS, GOOD))

    assert "left out" not in said.risks + " ".join(said.paragraphs)


def test_counts_that_are_not_the_share_say_why():
    said = read_headline(run_of(*[MISS] * 2, HIT, GOOD, share=estimate(0.4, 0.1, 0.6, 4)))

    assert said.risks.startswith(
        "2 of 3 came after a miss; the share counts those beyond the rate after hits."
    )


@pytest.mark.parametrize(("unfaithful", "hint"), [(1, True), (29, True), (30, False)])
def test_few_are_the_answers_that_the_share_is_of_however_many_cases_there_are(unfaithful, hint):
    said = read_headline(run_of(*[MISS] * unfaithful, *[GOOD] * 200))

    noun = "unfaithful answer" if unfaithful == 1 else "unfaithful answers"
    assert said.caution == (
        f"This is association, not cause.{f' Only {unfaithful} {noun}: a hint.' if hint else ''}"
    )
    assert ("could be used: take it as a hint" in said.paragraphs[1]) is hint
    assert ("came after a miss" in said.risks) is hint  # many need no counts on the first screen
    assert f"{unfaithful} of {unfaithful} came after a miss" in said.paragraphs[0]


def test_its_share_leads_to_its_cases_with_the_worst_of_them_open():
    def judged(number, value):
        return Verdict(
            case_id=f"c{number}", metric="faithfulness", status="scored", value=value, judge="j"
        )

    run = run_of(NONE, MISS, MISS, GOOD, verdicts=(judged(2, 0.5), judged(3, 0.25), judged(1, 0)))
    assert read_headline(run).fragment == "retrieval=miss&answer=unfaithful&case=3"


def test_a_share_that_is_not_told_leads_nowhere_and_what_is_left_out_is_told_all_the_same():
    none = read_headline(run_of(NONE, GOOD, share=missing("no bad answer to attribute")))
    below = read_headline(run_of(NONE, HIT, MISS, GOOD, share=estimate(-0.2, -0.4, 0.1, 3)))

    assert none.fragment == below.fragment == ""
    left_out = "Unfaithful answers left out: 1 with no passage to find."
    for said in (none, below):
        assert left_out in said.risks
        assert left_out in said.paragraphs[0]
        assert "came after a miss" not in said.risks
    assert "no bad answer to attribute" in none.paragraphs[0]


def test_a_summary_without_links_has_its_share_and_no_view():
    run = run_of(MISS, GOOD).model_copy(update={"links": ()})

    assert (read_headline(run).share, read_headline(run).fragment) == ("100%", "")
