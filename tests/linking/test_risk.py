"""The association of misses and bad answers, on a table counted by hand."""

from __future__ import annotations

import pytest

from misslink.linking.association import summarize_association
from misslink.types import Link


def links(retrieval, answer, count, *, correct=None, failure="passed"):
    return [
        Link(
            case_id=f"{retrieval}-{answer}-{i}",
            retrieval=retrieval,
            answer=answer,
            correct=correct,
            failure=failure,
            reason="made",
        )
        for i in range(count)
    ]


@pytest.fixture
def table():
    return [
        *links("miss", "unfaithful", 12, failure="retrieval_miss", correct=False),
        *links("miss", "faithful", 8),
        *links("hit", "unfaithful", 7, failure="fabricated"),
        *links("partial", "unfaithful", 3, failure="retrieval_miss"),
        *links("hit", "faithful", 70, correct=True),
        *links("none_needed", "unfaithful", 4),
        *links("miss", "abstained", 5),
        *links("hit", "unknown", 1, failure="inconclusive"),
    ]


def test_a_partial_hit_counts_as_a_hit_and_what_cannot_be_placed_is_left_out(table):
    found = summarize_association(table)
    assert found["table"] == {
        "miss_unfaithful": 12,
        "miss_faithful": 8,
        "hit_unfaithful": 10,
        "hit_faithful": 70,
        "left_out": 10,
    }
    assert sum(found["table"].values()) == len(table)


def test_the_risks_are_those_of_the_table(table):
    found = summarize_association(table)
    assert found["risk_given_miss"]["value"] == pytest.approx(12 / 20)
    assert found["risk_given_hit"]["value"] == pytest.approx(10 / 80)
    assert found["risk_difference"]["value"] == pytest.approx(12 / 20 - 10 / 80)
    assert found["risk_ratio"]["value"] == pytest.approx((12 / 20) / (10 / 80))
    overall = 22 / 100
    assert found["attributable_fraction"]["value"] == pytest.approx((overall - 10 / 80) / overall)
    for name in ("risk_given_miss", "risk_given_hit", "risk_difference", "attributable_fraction"):
        assert found[name]["low"] < found[name]["value"] < found[name]["high"]


def test_wrong_answers_have_their_own_table(table):
    wrong = summarize_association(table)["wrong"]
    assert wrong["table"] == {
        "miss_wrong": 12,
        "miss_right": 0,
        "hit_wrong": 0,
        "hit_right": 70,
        "left_out": 28,
    }


def test_causes_are_counted_and_only_those_that_occur(table):
    assert summarize_association(table)["failures"] == {
        "retrieval_miss": 15,
        "fabricated": 7,
        "inconclusive": 1,
        "passed": 87,
    }


def test_the_order_of_cases_does_not_matter(table):
    assert summarize_association(table, seed=3) == summarize_association(table[::-1], seed=3)


def test_no_case_at_all_gives_missing_estimates_that_say_why():
    found = summarize_association([])
    for name in ("risk_given_miss", "risk_ratio", "attributable_fraction"):
        assert found[name]["value"] is None
        assert found[name]["reason"]
