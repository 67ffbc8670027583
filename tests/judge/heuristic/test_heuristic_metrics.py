"""What the metrics read from the heuristic judge, which does not say everything."""

from __future__ import annotations

import misslink
from misslink.judge.backends.heuristic import open_heuristic
from misslink.types import Case, Trace
from scripted_judge import PASSAGES, judged

CASE = Case(
    id="1",
    question="When did the harbour open?",
    relevant=["a"],
    references=["The harbour opened in 1904."],
)
TRACE = Trace(case_id="1", retrieved=PASSAGES, answer="The harbour opened in 1904.")
UNSAID = {
    "context_sufficiency": "the judge does not say whether the passages suffice",
    "helpfulness": "the judge does not say how helpful the answer is",
    "citation_correctness": "the answer cites no passage",
}


def test_what_it_does_not_say_is_skipped_and_everything_else_has_a_value():
    found = judged(CASE, TRACE, open_heuristic())
    skipped = {name: v.reason for name, v in found.items() if v.status == "skipped"}
    assert skipped == UNSAID
    assert {v.status for name, v in found.items() if name not in UNSAID} == {"scored"}


def test_a_summary_says_why_there_is_no_number():
    run = misslink.evaluate(traces=[TRACE], goldset=[CASE], judge="heuristic", cache=None)
    number = run.summary["generation"]["context_sufficiency"]
    assert number["value"] is None
    assert number["reason"] == (
        f"no case has a value (1 of 1 skipped: {UNSAID['context_sufficiency']})"
    )
    assert run.summary["coverage"]["helpfulness"] == {"scored": 0, "skipped": 1, "failed": 0}


def test_a_citation_is_no_number_and_each_is_held_against_its_passage():
    answer = "The harbour opened in 1904 [1]. Ships pay a toll [1]. It has a zoo [9]."
    trace = TRACE.model_copy(update={"answer": answer})
    found = judged(CASE, trace, open_heuristic())
    assert [c.support for c in found["faithfulness"].claims] == [
        *("supported", "supported", "unsupported"),
    ]
    assert found["citation_correctness"].value == 1 / 3
    assert found["citation_correctness"].reason == "it cites what is no passage: 9"
