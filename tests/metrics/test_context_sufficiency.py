"""Context sufficiency: what the judge says of the passages, by hand."""

from __future__ import annotations

import pytest

from misslink.judge.protocol import Reply
from misslink.types import Case, Trace
from scripted_judge import SUPPORTED, ScriptedJudge, judged, plain, verdicts

NAME = "context_sufficiency"


@pytest.mark.parametrize(
    ("said", "value", "label"), [("yes", 1.0, True), ("partly", 0.5, False), ("no", 0.0, False)]
)
def test_yes_partly_and_no_are_1_a_half_and_0(said, value, label):
    verdict = verdicts(plain(SUPPORTED, sufficient=said))[0][NAME]
    assert (verdict.value, verdict.label) == (value, label)


def test_its_probability_is_that_of_yes_whatever_was_said():
    given = {"sufficient": {"yes": 0.2, "partly": 0.3, "no": 0.5}}
    found, _ = verdicts(plain(SUPPORTED, sufficient="no"), probabilities=given)
    assert found[NAME].probability == pytest.approx(0.2)
    assert verdicts(plain(SUPPORTED, sufficient="no"))[0][NAME].probability is None


def test_where_the_judge_does_not_say_there_is_no_value():
    verdict = verdicts(plain(SUPPORTED))[0][NAME]
    assert (verdict.status, verdict.value) == ("skipped", None)
    assert verdict.reason == "the judge does not say whether the passages suffice"


def test_it_is_scored_of_an_unanswerable_question_and_of_a_declining_answer_too():
    nowhere = Case(id="1", question="q", answerable=False)
    said = plain(response="declines", sufficient="yes")
    assert verdicts(said, nowhere)[0][NAME].value == 1.0


def test_nothing_retrieved_is_not_sufficient_whatever_the_judge_knows_by_itself():
    case, trace = Case(id="1", question="q"), Trace(case_id="1", answer="In 1904.")
    judge = ScriptedJudge(Reply(plain(sufficient="yes"), "{}"))
    verdict = judged(case, trace, judge, NAME)[NAME]
    assert (verdict.value, verdict.reason) == (0.0, "no passage reached the context")


def test_passages_that_were_not_seen_are_not_judged():
    trace = Trace(case_id="1", answer="In 1904.", unmeasured="no retriever was called")
    judge = ScriptedJudge(Reply(plain(sufficient="yes"), "{}"))
    verdict = judged(Case(id="1", question="q"), trace, judge, NAME)[NAME]
    assert verdict.status == "skipped"
    assert judge.asked == []
