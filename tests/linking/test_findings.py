"""Errors of a run, and what a better retrieval would fix."""

from __future__ import annotations

import pytest

from misslink.documents import ErrorCounts
from misslink.linking.findings import count_errors, rank_fixes
from misslink.report.summary import first_step
from misslink.stats import proportion
from misslink.types import Case, Estimate, Link, Need, RetrievalMiss, Run, Trace, Verdict


def test_a_case_that_app_and_judge_failed_on_is_one_error():
    failed = Verdict(case_id="a", metric="faithfulness", status="failed", reason="r", judge="j")
    traces = [Trace(case_id="a", error="boom"), Trace(case_id="b"), Trace(case_id="c", answer="x")]
    assert count_errors(traces, [failed])[0] == ErrorCounts(app=1, judge=0, no_answer=1)


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


def test_fixes_count_the_failed_cases_that_get_all_they_lost():
    run = run_missing(
        links(20, "miss", 18, BELOW), links(10, "miss", 9, WORDS), links(4, "miss", 4, BELOW, WORDS),
        links(100, "hit", 0),
    )  # fmt: skip
    larger, hybrid, rerank = rank_fixes(run)
    assert (larger.name, larger.retrieves, larger.missed, larger.k) == ("larger_k", 18, 31, 7)
    assert (larger.basis, larger.owner) == ("measured_rank", "retriever")
    assert larger.avoided.reason_code.code == "longer_context_unchecked"
    assert (hybrid.name, hybrid.retrieves, hybrid.basis) == ("hybrid_search", 9, "measured_rank")
    assert hybrid.cases == tuple(f"c{n}" for n in range(20, 29))
    assert (rerank.retrieves, rerank.basis) == (18, "at_most")
    step = first_step(run)
    assert (step.fix, step.owner, step.cases) == ("larger_k", "retriever", 18)


def test_only_the_passages_of_lost_needs_count():
    need = Need(text="t", source="reference", lost_at="rank", passage_id="b", by="judge")
    told = need.model_copy(update={"lost_at": "answer", "passage_id": "w"})
    gone = need.model_copy(update={"passage_id": None, "lost_at": "unknown"})
    row = links(1, "miss", 1, BELOW, WORDS)[0]
    for needs, names in (
        ((need, told), ["larger_k", "rerank"]),
        ((need, gone), []),
        ((told,), []),
    ):
        run = run_missing([row.model_copy(update={"needs": needs})])
        assert [fix.name for fix in rank_fixes(run)] == names


def test_nothing_ranked_helps_against_a_filter():
    hidden = WORDS.model_copy(
        update={"miss_type": "filtered_out", "true_rank": None, "also": ("keyword_match",)}
    )
    (fix,) = rank_fixes(run_missing(links(5, "miss", 5, hidden)))
    assert (fix.name, fix.basis, fix.retrieves) == ("check_filter", "measured_rank", 5)


def test_what_is_measured_goes_before_a_larger_upper_bound():
    run = run_missing(links(3, "miss", 3, WORDS), links(9, "miss", 9, FAR))
    assert [(fix.name, fix.retrieves) for fix in rank_fixes(run)] == [
        ("hybrid_search", 3),
        ("rerank", 9),
    ]


def test_a_rank_by_words_among_the_passages_of_traces_is_a_bound():
    run = run_missing(links(20, "miss", 18, WORDS), links(100, "hit", 10), corpus=None)
    fixes = {fix.name: (fix.basis, fix.avoided.value) for fix in rank_fixes(run)}
    assert fixes == {"hybrid_search": ("at_most", None)}


def test_the_first_step_is_for_the_owner_of_most_failures():
    rows = [*links(4, "miss", 4, BELOW), *links(9, "hit", 9)]
    rows[4:] = [row.model_copy(update={"failure": "over_refused"}) for row in rows[4:]]
    step = first_step(run_missing(rows))
    assert (step.fix, step.owner, step.cases) == ("over_refused", "generator", 9)
    assert [fix.retrieves for fix in rank_fixes(run_missing(rows))] == [4, 4]


def test_without_verdicts_all_that_was_missed_counts():
    rows = [row.model_copy(update={"failure": None}) for row in links(5, "miss", 0, WORDS)]
    fixes = rank_fixes(run_missing(rows))
    assert [(fix.name, fix.retrieves) for fix in fixes] == [("hybrid_search", 5)]
    assert all(fix.avoided.value is None for fix in fixes)


def option_of(name, reached, *, rise=0.2, avoided=(2, 9), winner="option"):
    low, high = avoided
    estimate = Estimate(value=(low + high) / 2, low=low, high=high, n=50, method="rerun")
    difference = Estimate(value=rise, low=rise, high=rise, n=50, method="made")
    return {
        "name": name, "newly_retrieved": 30, "reached": [f"c{n}" for n in range(reached)],
        "passages": int(name.removeprefix("k=")) if name.startswith("k=") else 5,
        "failures_avoided": estimate.model_dump(),
        "metrics": {
            "recall@5": {
                "b": proportion(4, 5).model_dump(), "winner": winner,
                "difference": difference.model_dump(),
            }
        },
    }  # fmt: skip


def tried(*options):
    rows = links(20, "miss", 18, BELOW), links(50, "hit", 5)
    return {
        fix.name: fix for fix in rank_fixes(run_missing(*rows, whatif={"options": list(options)}))
    }


@pytest.mark.parametrize(
    ("avoided", "rise", "winner", "code"),
    [
        ((2, 9), 0.2, "option", "fix_gains"),
        ((-1, 9), 0.2, "option", "not_enough_data"),
        ((2, 9), 0.2, None, "not_enough_data"),
        ((-9, -2), 0.2, "option", None),
        ((2, 9), -0.2, "today", None),
        ((2, 9), 0.0, None, None),
    ],
)
def test_what_was_tried_decides(avoided, rise, winner, code):
    option = option_of("k=10", 18, rise=rise, avoided=avoided, winner=winner)
    larger = tried(option).get("larger_k")
    assert (larger and larger.evidence.code) == code
    if larger:
        assert (larger.retrieves, larger.basis, larger.option) == (18, "whatif", "k=10")


def test_of_the_numbers_tried_the_smallest_that_reaches_most_counts():
    options = [option_of(f"k={k}", reached) for k, reached in ((20, 18), (10, 18), (6, 12))]
    assert tried(*options)["larger_k"].option == "k=10"
    larger = tried(options[2])["larger_k"]  # the ranks know of a k that reaches more
    assert (larger.basis, larger.k, larger.retrieves) == ("measured_rank", 7, 18)


def test_a_bound_stands_after_what_was_tried_and_a_larger_reach_before_a_smaller_change():
    fixes = tried(option_of("k=10", 18), option_of("hybrid", 18, winner=None, avoided=(-1, 9)))
    assert [(fix.name, fix.basis) for fix in fixes.values()] == [
        ("larger_k", "whatif"), ("hybrid_search", "whatif"), ("rerank", "at_most"),
    ]  # fmt: skip
    rows = links(3, "miss", 3, BELOW), links(9, "miss", 9, WORDS)
    assert [fix.name for fix in rank_fixes(run_missing(*rows))] == [
        "hybrid_search",
        "larger_k",
        "rerank",
    ]
