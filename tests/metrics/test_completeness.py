"""Completeness: the share of the best reference's claims, worked out by hand."""

from __future__ import annotations

import pytest

from misslink.types import Case
from scripted_judge import referenced, verdicts

NAME = "completeness"


def case(*references):
    return Case(id="1", question="q", relevant=["a"], references=references)


def test_it_is_the_share_of_the_best_references_claims_that_is_stated():
    said = referenced(
        [("x", "silent")],
        [
            (1, "p", "states"),
            (1, "q", "omits"),
            (1, "r", "contradicts"),
            (2, "s", "states"),
            (2, "t", "states"),
            (2, "u", "omits"),
        ],
    )
    verdict = verdicts(said, case("r1", "r2"))[0][NAME]
    assert verdict.value == pytest.approx(2 / 3)
    assert verdict.label is False
    assert verdict.reason == "1 of 3 reference claims not stated"
    assert [(claim.text, claim.support) for claim in verdict.claims] == [
        ("s", "supported"),
        ("t", "supported"),
        ("u", "unsupported"),
    ]


def test_what_the_answer_says_besides_does_not_matter():
    said = referenced([("x", "contradicts"), ("y", "silent")], [(1, "p", "states")])
    verdict = verdicts(said, case("r"))[0][NAME]
    assert (verdict.value, verdict.label, verdict.reason) == (1.0, True, None)


def test_its_probability_is_that_of_the_claim_stated_least_probably():
    said = referenced([], [(1, "p", "states"), (1, "q", "states")])
    places = {
        "reference_claims.0.answer": {"states": 0.9, "omits": 0.1},
        "reference_claims.1.answer": {"states": 0.6, "omits": 0.4},
    }
    assert verdicts(said, case("r"), probabilities=places)[0][NAME].probability == 0.6
    del places["reference_claims.0.answer"]
    assert verdicts(said, case("r"), probabilities=places)[0][NAME].probability is None


def test_to_decline_states_nothing():
    verdict = verdicts(referenced([], [], response="declines"), case("r"))[0][NAME]
    assert (verdict.value, verdict.label) == (0.0, False)


def test_without_a_word_on_the_references_it_has_failed_and_without_them_there_is_nothing():
    said = referenced([("x", "agrees")], [(7, "p", "states")])
    assert verdicts(said, case("r"))[0][NAME].status == "failed"
    assert verdicts(said, case())[0][NAME].reason == "the case has no reference answer"
    nowhere = Case(id="1", question="q", answerable=False, references=["r"])
    assert verdicts(said, nowhere)[0][NAME].status == "skipped"
