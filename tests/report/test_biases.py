"""Matched pairs beside the regression: the same question, the same label, another length."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, estimate, missing
from misslink.documents import CalibrationDocument
from misslink.report.html import render_page
from misslink.report.judge_notes import read_biases
from misslink.report.page import build_page
from proven_run import proven_run


def _bias(matched, finding=None):
    coefficient = estimate(0.1, -0.2, 0.4, 220, "logistic")
    return {"coefficient": coefficient, "finding": finding, "matched": matched}


PAIRS = {
    "pairs": 210,
    "questions": 48,
    "longer_preferred": estimate(0.63, 0.56, 0.7, 210, "wilson, clustered"),
    "p": 0.0003,
    "finding": HOSTILE[0],
}


def test_pairs_say_which_is_preferred_of_how_many_and_how_surely():
    (row,) = read_biases(CalibrationDocument.model_validate({"bias": {"length": _bias(PAIRS)}}))
    assert row.matched.which == "longer"
    assert row.matched.preferred.brief == "63% [56, 70]"
    assert row.matched.says == "210 pairs of 48 questions, p < 0.001"
    assert row.matched.beyond_chance


def test_a_kind_is_named_by_its_row():
    kind = {"pairs": 1, "questions": 1, "preferred": estimate(1.0, 0.2, 1.0, 1), "p": 1.0}
    (row,) = read_biases(CalibrationDocument.model_validate({"bias": {"model: a": _bias(kind)}}))
    assert row.matched.which == ""
    assert row.matched.says == "1 pair of 1 question, p = 1.00"
    assert not row.matched.beyond_chance


def test_a_finding_of_pairs_alone_brings_its_row_to_the_front():
    found = read_biases(
        CalibrationDocument.model_validate(
            {"bias": {"position": _bias(None), "length": _bias(PAIRS)}}
        )
    )
    assert [row.of for row in found] == ["length", "position"]


@pytest.mark.parametrize(
    "matched",
    [None, {}, {"pairs": 4}, {"longer_preferred": missing("no question has two answers")}],
)
def test_where_nothing_can_be_matched_nothing_is_said_of_it(matched):
    (row,) = read_biases(CalibrationDocument.model_validate({"bias": {"length": _bias(matched)}}))
    assert row.matched is None


def test_the_page_tells_them_and_explains_the_word():
    html = render_page(build_page(proven_run()))
    assert "it scores the longer one better in 63% [56, 70]" in html
    assert "<dt>matched pairs</dt>" in html
