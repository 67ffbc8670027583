"""Abstention: right, over-refused, or should have abstained."""

from __future__ import annotations

import pytest

from misslink.types import Case
from scripted_judge import SUPPORTED, plain, verdicts

NAME = "abstention"
THERE = Case(id="1", question="q", answerable=True)
NOWHERE = Case(id="1", question="q", answerable=False)
ANSWERED, DECLINED = plain(SUPPORTED), plain(response="declines")


@pytest.mark.parametrize(
    ("said", "case", "value", "word", "parts"),
    [
        (ANSWERED, THERE, 1.0, "right:", (0.0, 0.0, None)),
        (DECLINED, THERE, 0.0, "over-refused:", (1.0, 1.0, None)),
        (ANSWERED, NOWHERE, 0.0, "should have abstained:", (0.0, None, 1.0)),
        (DECLINED, NOWHERE, 1.0, "right:", (1.0, None, 0.0)),
    ],
)
def test_the_outcome_is_named_and_each_mistake_counts_among_those_who_can_make_it(
    said, case, value, word, parts
):
    verdict = verdicts(said, case)[0][NAME]
    assert (verdict.value, verdict.label) == (value, value == 1.0)
    assert verdict.reason.startswith(word)
    names = ("declined", "over_refused", "should_have_abstained")
    assert tuple(verdict.parts[name] for name in names) == parts


def test_its_probability_is_that_of_what_would_have_been_right():
    given = {"response": {"answers": 0.5, "partly": 0.1, "evades": 0.1, "declines": 0.3}}
    there = verdicts(ANSWERED, THERE, probabilities=given)[0][NAME]
    nowhere = verdicts(ANSWERED, NOWHERE, probabilities=given)[0][NAME]
    assert there.probability == pytest.approx(0.7)
    assert nowhere.probability == pytest.approx(0.3)


def test_a_judge_that_does_not_weigh_declining_gives_no_probability():
    given = {"response": {"answers": 0.05, "evades": 0.95}}
    assert verdicts(DECLINED, THERE, probabilities=given)[0][NAME].probability is None
