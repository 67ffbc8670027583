"""The counts of all cases by filter are those of the page that holds all of them."""

from __future__ import annotations

from collections import Counter

import pytest

from example_run import example_run
from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.report.cases import build_case_entries
from misslink.report.explorer import count_facets
from misslink.types import Run
from proven_run import proven_run


@pytest.mark.parametrize("run", [example_run(), proven_run()])
def test_they_are_what_the_entries_of_all_cases_say(run):
    """The entries are made for the list, by code of their own."""
    entries = build_case_entries(run, 5)
    each = {
        "state": lambda one: [
            "failed"
            if one.failure in FAILURES
            else "inconclusive"
            if one.failure == "inconclusive"
            else one.failure and "passed"
        ],
        "owner": lambda one: [one.failure in FAILURES and FAILURE_MODES[one.failure].owner],
        "failure": lambda one: [one.failure],
        "retrieval": lambda one: [one.retrieval],
        "answer": lambda one: [one.answered],
        "correct": lambda one: [one.correct],
        "miss_type": lambda one: one.miss_types,
        "category": lambda one: [one.category],
        "tier": lambda one: [one.tier],
        "tag": lambda one: one.tags,
        "metric": lambda one: one.bad,
        "people": lambda one: one.people,
    }
    found = count_facets(run)
    assert list(found) == list(each)
    for name, of in each.items():
        assert found[name] == Counter(value for one in entries for value in of(one) if value), name


def test_the_most_frequent_stands_first():
    for counts in count_facets(proven_run()).values():
        assert list(counts.values()) == sorted(counts.values(), reverse=True)


def test_what_belongs_to_no_case_of_the_run_is_not_counted():
    run = proven_run().model_copy(update={"cases": ()})
    assert not any(count_facets(run).values())
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert not any(count_facets(empty).values())
