"""Self-knowledge, worked out by hand after RAGChecker's definition."""

from __future__ import annotations

import pytest

from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.types import Case, Trace
from scripted_judge import ScriptedJudge, judged, referenced, verdicts

NAME = "self_knowledge"
OPENED = ("The harbour opened in 1904.", "supported", "harbour opened in 1904")
CASINO = ("It has a casino.", "unsupported", None)
ZOO = ("It has a zoo.", "supported", "it has a zoo")
CASE = Case(id="1", question="When?", references=["r"])
STATED = [(1, "r", "states")]


def test_it_is_the_share_of_claims_that_are_right_and_rest_on_no_passage():
    said = referenced([(*OPENED, "agrees"), (*CASINO, "agrees"), (*CASINO, "silent")], STATED)
    verdict = verdicts(said, CASE)[0][NAME]
    assert verdict.value == pytest.approx(1 / 3)
    assert verdict.label is False
    assert [(claim.text, claim.correct) for claim in verdict.claims] == [(CASINO[0], True)]


def test_a_claim_whose_quote_is_nowhere_rests_on_no_passage():
    said = referenced([(*ZOO, "agrees"), (*OPENED, "agrees")], STATED)
    assert verdicts(said, CASE)[0][NAME].value == 0.5


def test_what_is_wrong_is_no_knowledge_and_lower_is_better():
    said = referenced([(*CASINO, "contradicts"), (*OPENED, "agrees")], STATED)
    verdict = verdicts(said, CASE)[0][NAME]
    assert (verdict.value, verdict.label) == (0.0, True)
    assert judged_metrics.get(NAME).better == "low"


def test_without_any_passage_all_that_is_right_is_the_models_own():
    said = referenced([(*OPENED, "agrees"), (*CASINO, "silent")], STATED)
    trace = Trace(case_id="1", answer="It opened in 1904. It has a casino.")
    judge = ScriptedJudge(Reply(said, "{}"))
    found = judged(CASE, trace, judge, NAME, "noise_sensitivity")
    assert found[NAME].value == 0.5
    assert found["noise_sensitivity"].reason == "no passage reached the context"
