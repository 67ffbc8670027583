"""Helpfulness: the judge's grade as a share, worked out by hand."""

from __future__ import annotations

import pytest

from misslink.types import Case
from scripted_judge import SUPPORTED, plain, verdicts

NAME = "helpfulness"


@pytest.mark.parametrize(
    ("grade", "value", "label"),
    [(1, 0.0, False), (2, 0.25, False), (3, 0.5, False), (4, 0.75, True), (5, 1.0, True)],
)
def test_a_grade_of_1_to_5_is_0_to_1_and_good_from_4(grade, value, label):
    verdict = verdicts(plain(SUPPORTED, helpful=grade))[0][NAME]
    assert (verdict.value, verdict.label) == (value, label)


def test_its_probability_is_that_of_the_good_grades_together():
    given = {"helpful": {"1": 0.1, "2": 0.1, "3": 0.2, "4": 0.4, "5": 0.2}}
    verdict = verdicts(plain(SUPPORTED, helpful=3), probabilities=given)[0][NAME]
    assert verdict.probability == pytest.approx(0.6)


def test_without_a_grade_it_has_no_value():
    verdict = verdicts(plain(SUPPORTED))[0][NAME]
    assert (verdict.status, verdict.value) == ("skipped", None)
    assert verdict.reason == "the judge does not say how helpful the answer is"


def test_who_rightly_declines_is_not_graded_and_who_wrongly_declines_is():
    said = plain(response="declines", helpful=1)
    nowhere = Case(id="1", question="q", answerable=False)
    assert verdicts(said, nowhere)[0][NAME].status == "skipped"
    there = Case(id="1", question="q", answerable=True)
    assert verdicts(said, there)[0][NAME].value == 0.0
