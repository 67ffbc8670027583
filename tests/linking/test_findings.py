"""Errors of a run, and what a better retrieval would fix."""

from __future__ import annotations

import pytest

from misslink.linking.findings import count_errors, rank_fixes
from misslink.stats import proportion
from misslink.types import Case, Estimate, Link, RetrievalMiss, Run, Trace, Verdict


def test_a_case_that_app_and_judge_failed_on_is_one_error():
    failed = Verdict(case_id="a", metric="faithfulness", status="failed", reason="r", judge="j")
    traces = [Trace(case_id="a", error="boom"), Trace(case_id="b"), Trace(case_id="c", answer="x")]
    assert count_errors(traces, [failed]) == {"app": 1, "judge": 0, "no_answer": 1}


def links(count, retrieval, failed, *missed):
    """So many cases, of which the first `failed` failed."""
    return [
        Link(
            case_id="", retrieval=retrieval, answer="faithful", reason="planted", missed=missed,
            failure="retrieval_miss" if number < failed else "passed",
        )
        for number in range(count)
    ]  # fmt: skip


def run_missing(*groups, corpus=100, **parts):
    rows = [link for group in groups for link in group]
    rows = [row.model_copy(update={"case_id": f"c{n}"}) for n, row in enumerate(rows)]
    cases = tuple(Case(id=row.case_id, question="Which?") for row in rows)
    summary = {"k": 5, "diagnosis": {"corpus": corpus}}
    given = {"manifest": {}, "traces": (), "verdicts": (), "summary": summary}
    return Run(**given, cases=cases, links=tuple(rows), **parts)


WORDS = RetrievalMiss(passage_id="w", true_rank=80, bm25_rank=2, miss_type="keyword_match")
BELOW = RetrievalMiss(passage_id="b", true_rank=7, miss_type="below_cutoff")
FAR = RetrievalMiss(passage_id="f", true_rank=30, miss_type="ranked_low")


def test_the_forecast_gain_goes_before_the_number_of_passages():
    run = run_missing(
        links(20, "miss", 18, BELOW), links(10, "miss", 9, WORDS), links(100, "hit", 10)
    )
    hybrid, *others = rank_fixes(run)
    assert (hybrid.name, hybrid.retrieves, hybrid.missed) == ("hybrid_search", 10, 30)
    assert (hybrid.basis, hybrid.evidence.code) == ("measured_rank", "fix_gains")
    assert hybrid.avoided.value == pytest.approx(9 - 10 * 0.1)
    assert hybrid.cases == tuple(f"c{n}" for n in range(20, 30))
    larger, rerank = sorted(others, key=lambda fix: fix.name)
    assert (larger.name, larger.retrieves, larger.basis) == ("larger_k", 20, "measured_rank")
    assert larger.avoided.reason_code.code == "longer_context_unchecked"
    assert (rerank.retrieves, rerank.basis) == (20, "at_most")


def test_a_rank_by_words_among_the_passages_of_traces_is_a_bound():
    run = run_missing(links(20, "miss", 18, WORDS), links(100, "hit", 10), corpus=None)
    fixes = {fix.name: (fix.basis, fix.avoided.value) for fix in rank_fixes(run)}
    assert fixes == {"hybrid_search": ("at_most", None)}


def test_a_run_whose_misses_fail_no_more_than_its_hits_has_not_enough_data():
    run = run_missing(links(10, "miss", 2, WORDS, BELOW), links(40, "hit", 8))
    assert {fix.evidence.code for fix in rank_fixes(run)} == {"not_enough_data"}


@pytest.mark.parametrize(("bound", "first"), [(4, "hybrid_search"), (6, "rerank"), (7, "rerank")])
def test_an_upper_bound_comes_first_only_if_it_is_at_least_twice_a_measured_gain(bound, first):
    both = WORDS.model_copy(update={"true_rank": 30})
    run = run_missing(
        links(3, "miss", 2, both), links(bound - 3, "miss", 1, FAR), links(9, "hit", 5)
    )
    fixes = {fix.name: fix.retrieves for fix in rank_fixes(run)}
    assert fixes == {"hybrid_search": 3, "rerank": bound}
    assert next(iter(fixes)) == first


def test_no_fix_is_advised_against_the_runs_own_evidence():
    run = run_missing(links(40, "miss", 2, WORDS, BELOW, FAR), links(40, "hit", 35))
    assert rank_fixes(run) == ()


def test_without_verdicts_passages_are_counted_and_nothing_is_forecast():
    rows = [row.model_copy(update={"failure": None}) for row in links(5, "miss", 0, WORDS, FAR)]
    fixes = rank_fixes(run_missing(rows))
    assert [(fix.name, fix.retrieves) for fix in fixes] == [("hybrid_search", 5), ("rerank", 5)]
    assert all(fix.avoided.value is None for fix in fixes)


@pytest.mark.parametrize(
    ("low", "high", "winner", "code"),
    [
        (2, 9, "option", "fix_gains"),
        (-1, 9, "option", "not_enough_data"),
        (2, 9, None, "not_enough_data"),
        (-9, -2, "option", None),
        (2, 9, "today", None),
    ],
)
def test_what_was_tried_decides(low, high, winner, code):
    avoided = Estimate(value=(low + high) / 2, low=low, high=high, n=50, method="rerun")
    option = {
        "name": "k=10", "newly_retrieved": 12, "failures_avoided": avoided.model_dump(),
        "metrics": {"recall@5": {"b": proportion(4, 5).model_dump(), "winner": winner}},
    }  # fmt: skip
    run = run_missing(
        links(20, "miss", 18, BELOW), links(50, "hit", 5), whatif={"options": [option]}
    )
    larger = next((fix for fix in rank_fixes(run) if fix.name == "larger_k"), None)
    assert (larger and larger.evidence.code) == code
    if larger:
        assert (larger.retrieves, larger.basis, larger.option) == (12, "whatif", "k=10")
