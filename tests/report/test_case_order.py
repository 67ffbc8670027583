"""The order of the cases: by what is wrong, then by how much, then by place; how many are told."""

from __future__ import annotations

import random

import pytest

from misslink.report.cases import (
    MAX_FULL_PAGE,
    PARTIAL_PAGE_CASES,
    page_size,
    rank_cases,
    run_cutoff,
    select_worst,
)
from misslink.types import Case, Claim, Link, Passage, Run, Trace, Verdict

GOOD, BAD = Claim(text="g", support="supported"), Claim(text="b", support="unsupported")


def link(case_id, failure):
    return Link(case_id=case_id, retrieval="hit", answer="unknown", failure=failure, reason="-")


def faithful(case_id, value, claims=()):
    status = "failed" if value is None else "scored"
    return Verdict(
        case_id=case_id, metric="faithfulness", status=status, value=value, judge="j",
        claims=claims, reason="-",
    )  # fmt: skip


def at_rank(case_id, rank, *, of=6):
    """The needed passage at a rank, 0: nowhere."""
    names = [case_id if place == rank else f"other-{place}" for place in range(1, of + 1)]
    return Trace(
        case_id=case_id,
        answer="-",
        retrieved=tuple(Passage(id=one, text="t", rank=r) for r, one in enumerate(names, 1)),
    )


def ordered(ids, *, links=(), verdicts=(), traces=(), **parts):
    run = Run(
        manifest={}, summary={"k": 5}, links=tuple(links), verdicts=tuple(verdicts),
        cases=tuple(Case(id=one, question="?", relevant={one: 1}) for one in ids),
        traces=tuple(traces), **parts,
    )  # fmt: skip
    return "".join(run.cases[number - 1].id for number in rank_cases(run))


def test_the_cause_comes_first_and_what_is_fine_last():
    failures = {"a": "passed", "b": "inconclusive", "c": "fabricated", "d": "retrieval_miss"}
    said = [faithful("d", 1.0), faithful("a", 0.0)]
    links = [link(*one) for one in failures.items()]
    assert ordered("abcd", links=links, verdicts=said) == "dcba"


def test_a_case_that_no_link_speaks_of_comes_after_all_that_one_does():
    assert ordered("ab", links=[link("b", "passed")], verdicts=[faithful("a", 0.0)]) == "ba"


def test_of_one_cause_the_less_faithful_comes_first_and_the_unknown_last():
    said = [faithful("a", None), faithful("b", 0.75), faithful("c", 0.0), faithful("d", 0.5)]
    assert ordered("abcd", verdicts=said) == "cdba"


def test_of_one_share_more_unfaithful_claims_are_worse():
    said = [faithful("a", 0.5, (GOOD, BAD)), faithful("b", 0.5, (GOOD, BAD, GOOD, BAD))]
    assert ordered("ab", verdicts=said) == "ba"


def test_then_what_was_retrieved_worse_comes_first():
    traces = [at_rank("a", 1), at_rank("b", 6), at_rank("c", 4), at_rank("d", 0)]
    # Recall@5 is 0 for b and d, of which b has the better reciprocal rank.
    assert ordered("abcde", traces=traces) == "dbcae"


def test_what_is_equal_stays_in_the_order_of_the_gold_set():
    ids = "hbxaq"
    assert ordered(ids) == ids


def test_the_order_does_not_depend_on_that_of_the_files():
    draw = random.Random(7)
    ids = "abcdefghij"
    failures = ("retrieval_miss", "distracted", "passed")
    links = [link(one, draw.choice(failures)) for one in ids]
    said = [faithful(one, draw.choice((0.0, 0.5, None))) for one in ids]
    traces = [at_rank(one, draw.randrange(7)) for one in ids]
    expected = ordered(ids, links=links, verdicts=said, traces=traces)
    for _ in range(5):
        for part in (links, said, traces):
            draw.shuffle(part)
        assert ordered(ids, links=links, verdicts=said, traces=traces) == expected


def test_a_case_or_a_trace_given_twice_is_no_obstacle():
    assert ordered("aa", traces=[at_rank("a", 1), at_rank("a", 2)]) == "aa"


def test_of_many_the_worst_are_taken_and_each_other_cause_has_its_worst_there():
    ids = [f"c{place:03}" for place in range(400)]
    failures = ["retrieval_miss"] * 300 + ["passed"] * 60 + ["distracted"] * 39 + ["inconclusive"]
    run = Run(
        manifest={}, summary={}, traces=(), verdicts=(),
        cases=tuple(Case(id=one, question="?") for one in ids),
        links=tuple(link(*one) for one in zip(ids, failures, strict=True)),
    )  # fmt: skip
    order, taken = rank_cases(run), select_worst(run, 200)
    assert len(taken) == 200
    assert list(taken) == [number for number in order if number in set(taken)]
    # A fiftieth of the room for each: four of fine and of distracted, the one that is inconclusive.
    assert taken == (*range(1, 192), *range(361, 365), 400, *range(301, 305))
    assert select_worst(run, 10) == order[:10], "of so few none is kept free"
    assert select_worst(run, 0) == ()
    assert select_worst(run, 400) == select_worst(run, 500) == order


def test_up_to_so_many_cases_all_are_shown_and_of_more_the_worst():
    shown = {cases: page_size(cases) for cases in (0, 1, MAX_FULL_PAGE, MAX_FULL_PAGE + 1, 10**6)}
    assert shown == {
        0: 0,
        1: 1,
        MAX_FULL_PAGE: MAX_FULL_PAGE,
        MAX_FULL_PAGE + 1: PARTIAL_PAGE_CASES,
        10**6: PARTIAL_PAGE_CASES,
    }


@pytest.mark.parametrize(
    ("summary", "manifest", "expected"),
    [({"k": 3}, {"k": 7}, 3), ({}, {"k": 7}, 7), ({"k": None}, {}, 5), ({"k": 0}, {"k": "9"}, 5)],
)
def test_the_cutoff_is_what_the_run_tells(summary, manifest, expected):
    run = Run(manifest=manifest, cases=(), traces=(), verdicts=(), links=(), summary=summary)
    assert run_cutoff(run) == expected
