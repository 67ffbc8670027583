"""The counts of all cases by filter are those of the page that holds all of them."""

from __future__ import annotations

from collections import Counter

import pytest
from example_run import example_run
from proven_run import proven_run

from misslink.report.cases import case_entries
from misslink.report.facets import counted
from misslink.types import Run


@pytest.mark.parametrize("run", [example_run(), proven_run()])
def test_they_are_what_the_entries_of_all_cases_say(run):
    """The entries are made for the list, by code of their own."""
    entries = case_entries(run, 5)
    each = {
        "cause": lambda one: [one.cause],
        "retrieval": lambda one: [one.retrieval],
        "answer": lambda one: [one.answered],
        "correct": lambda one: [one.correct],
        "subtype": lambda one: one.subtypes,
        "category": lambda one: [one.category],
        "tier": lambda one: [one.tier],
        "tag": lambda one: one.tags,
        "metric": lambda one: one.bad,
        "people": lambda one: one.people,
    }
    found = counted(run)
    assert list(found) == list(each)
    for name, of in each.items():
        assert found[name] == Counter(value for one in entries for value in of(one) if value), name


def test_the_most_frequent_stands_first():
    for counts in counted(proven_run()).values():
        assert list(counts.values()) == sorted(counts.values(), reverse=True)


def test_what_belongs_to_no_case_of_the_run_is_not_counted():
    run = proven_run().model_copy(update={"cases": ()})
    assert not any(counted(run).values())
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert not any(counted(empty).values())
