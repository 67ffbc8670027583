"""The cases of `benchmarks/linking/attribution_kinds.py` are what they say: each need is lost where planted."""

from functools import cache

import pytest

import attribution_kinds as bench
from unseen.kinds import KINDS
from unseen.planted import WORLDS
from unseen.runs import RUNS

pytestmark = pytest.mark.source


@cache
def planted():
    """The cases of every world, each with its app."""
    apps = [bench.plant(world, KINDS) for world in WORLDS]
    return [(app, case) for app, cases in apps for case in cases]


def states_all(held, case):
    """Whether what texts hold is everything that a right answer has to state."""
    return all(value in held.get(fact, {}) for fact, value in case.needs)


@cache
def held_by_index(app):
    return app.held(list(app.corpus.values()))


def test_there_are_at_least_thirty_kinds_with_ten_cases_in_ten_domains():
    assert len(KINDS) >= 30
    assert len(WORLDS) >= 10
    assert len({case.case_id for _, case in planted()}) * len(WORLDS) == len(planted())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_needs_are_lost_where_they_were_planted(kind):
    for app, case in planted():
        if case.kind != kind or not case.needs:
            continue
        shown = states_all(app.held(app.shown(case)), case)
        retrieved = states_all(app.held([app.corpus[one] for one in case.retrieved]), case)
        indexed = states_all(held_by_index(app), case)
        if case.lost in (None, "answer", "data"):
            assert shown, case
        else:
            assert not shown, case
        if case.lost in ("rank", "filter", "search"):
            assert (indexed, retrieved) == (True, False), case
        if case.lost == "prompt":
            assert retrieved, case
        if case.lost == "index":  # a stale text is that of the index, not of the documents
            assert bool(case.texts) or not indexed, case


def test_answers_without_a_failure_are_right_or_decline_rightly():
    for _, case in planted():
        said = {fact: value for one in case.answer for fact, value in one.stated or ()}
        right = all(said.get(fact) == value for fact, value in case.needs)
        invents = any(one.stated is None for one in case.answer)
        if case.owner in ("none", "gold_set"):
            assert (right, invents) == (True, False), case
            assert case.response == ("answers" if case.needs else "declines"), case
        else:
            assert not right or invents or not case.needs, case


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_most_failures_of_a_small_run_have_its_owner(run):
    _, cases = run.plant(WORLDS[0], 1)
    failed = [case.owner for case in cases if case.owner != "none"]
    assert 10 <= len(cases) <= 40
    assert failed.count(run.owner) > len(failed) / 2
