"""Noise sensitivity and its parts, worked out by hand after RAGChecker's definitions."""

from __future__ import annotations

import pytest

from misslink.registry import judged_metrics
from misslink.types import Case
from scripted_judge import referenced, verdicts

NAME = "noise_sensitivity"
OPENED = ("The harbour opened in 1904.", "supported", "harbour opened in 1904")
TOLL = ("Ships pay a toll.", "supported", "Ships pay a toll")
CASINO = ("It has a casino.", "unsupported", None)
STATED = [(1, "r", "states")]


def case(**more):
    return Case(id="1", question="When?", references=["r"], **more)


def test_it_is_the_share_of_claims_that_no_reference_agrees_with_and_a_passage_supports():
    said = referenced([(*OPENED, "agrees"), (*TOLL, "silent"), (*CASINO, "contradicts")], STATED)
    verdict = verdicts(said, case(relevant=["a"]))[0][NAME]
    assert verdict.value == pytest.approx(1 / 3), "the casino is wrong, but no passage says so"
    assert verdict.label is False
    assert [claim.text for claim in verdict.claims] == [TOLL[0]]
    assert verdict.parts["relevant"] == 0.0
    assert verdict.parts["irrelevant"] == pytest.approx(1 / 3), "b, which the gold set leaves out"
    assert verdict.parts["contradicted"] == 0.0


def test_a_wrong_claim_from_a_relevant_passage_counts_there():
    said = referenced([(*OPENED, "contradicts"), (*TOLL, "agrees")], STATED)
    verdict = verdicts(said, case(relevant=["a"]))[0][NAME]
    assert verdict.value == 0.5
    assert verdict.parts == {"relevant": 0.5, "irrelevant": 0.0, "contradicted": 0.5}


def test_every_sufficient_set_makes_its_passages_relevant():
    said = referenced([(*OPENED, "silent"), (*TOLL, "silent")], STATED)
    either = case(relevant_any=[["a"], ["b"]])
    assert verdicts(said, either)[0][NAME].parts["relevant"] == 1.0


def test_without_gold_passages_the_judge_says_which_are_relevant():
    claims = [(*OPENED, "silent"), (*TOLL, "silent")]
    said = referenced(claims, STATED, passages=[(1, True), (2, False)])
    parts = verdicts(said, case())[0][NAME].parts
    assert (parts["relevant"], parts["irrelevant"]) == (0.5, 0.5)


def test_where_nobody_says_whether_a_passage_is_relevant_the_parts_are_unknown():
    said = referenced([(*OPENED, "silent"), (*TOLL, "silent")], STATED, passages=[(1, True)])
    verdict = verdicts(said, case())[0][NAME]
    assert verdict.value == 1.0
    assert (verdict.parts["relevant"], verdict.parts["irrelevant"]) == (None, None)


def test_the_label_is_good_when_there_is_none_and_lower_is_better():
    said = referenced([(*OPENED, "agrees"), (*CASINO, "contradicts")], STATED)
    verdict = verdicts(said, case(relevant=["a"]))[0][NAME]
    assert (verdict.value, verdict.label) == (0.0, True)
    assert judged_metrics.get(NAME).better == "low"


def test_without_a_reference_a_claim_or_an_answer_there_is_nothing_to_count():
    nothing = referenced([], STATED)
    assert verdicts(nothing, case())[0][NAME].reason == "the answer makes no claim"
    declined = referenced([(*TOLL, "silent")], STATED, response="declines")
    assert verdicts(declined, case())[0][NAME].reason == "the answer declines"
    alone = Case(id="1", question="q")
    assert verdicts(nothing, alone)[0][NAME].reason == "the case has no reference answer"
    nowhere = case(answerable=False)
    assert verdicts(nothing, nowhere)[0][NAME].status == "skipped"
