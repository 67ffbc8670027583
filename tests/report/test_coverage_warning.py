"""A gold set that says little of what was retrieved: the report warns, and says what that means."""

from __future__ import annotations

import pytest

import misslink
from misslink.report.overview import metric_levels
from misslink.report.page import build_page, render_markdown, render_page


def run(relevant):
    """One question and two retrieved passages, of which `relevant` says something."""
    trace = {"case_id": "a", "retrieved": [{"id": "p"}, {"id": "q"}], "answer": "Yes."}
    gold = [{"id": "a", "question": "Why?", "relevant": relevant}]
    return misslink.evaluate(traces=[trace], goldset=gold, judge="none", k=2)


def test_few_judged_passages_are_told_beside_the_rank_metrics():
    given = run({"p": 1})
    assert given.summary["judged"]["judged@2"]["value"] == 0.5
    retrieval, *others = metric_levels(given)
    assert "of only 50%" in retrieval.warning
    assert "first 2 passages" in retrieval.warning
    assert not any(level.warning for level in others)
    page = build_page(given)
    assert retrieval.warning in render_page(page)
    assert "of only 50%" in render_markdown(page)


def test_a_gold_set_that_judged_everything_has_no_warning():
    given = run({"p": 1, "q": 0})
    assert given.summary["judged"]["judged@2"]["value"] == 1
    assert metric_levels(given)[0].warning == ""


@pytest.mark.parametrize("summary", [{}, {"judged": None}])
def test_a_run_that_does_not_say_has_no_warning(summary):
    given = run({"p": 1})
    told = {name: value for name, value in given.summary.items() if name != "judged"} | summary
    assert metric_levels(given.model_copy(update={"summary": told}))[0].warning == ""


def test_what_was_judged_is_no_metric_to_compare_or_gate():
    assert not any(name.startswith("judged") for name in run({"p": 1}).summary["retrieval"])
