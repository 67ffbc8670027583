"""The planted kinds of failure in small: modes and owners are those that the facts show."""

from __future__ import annotations

import pytest

pytest.importorskip("chromadb")
pytest.importorskip("sklearn")

from faults.facts import FERRIES, PUMPS
from faults.kinds import KINDS
from owners import meets_target, run_round


def test_a_judge_that_knows_the_facts_gives_every_kind_its_mode_and_owner():
    results = run_round(FERRIES, 0, "chain", "oracle")
    assert {result.kind.name for result in results} == {kind.name for kind in KINDS}
    wrong = [
        (result.kind.name, result.link.failure, result.owner, result.link.reason)
        for result in results
        if not result.right or result.owner != result.kind.owner
    ]
    assert wrong == []


def test_each_failure_names_its_passage_or_says_that_none_is_there():
    for result in run_round(PUMPS, 0, "traces", "oracle"):
        for item in result.link.evidence:
            alone = {"context_insufficient", "nothing_in_corpus", "claim_unsupported"}
            alone |= {"nothing_used", "declined", "answered", "from_memory"}
            assert item.passage_id or item.reason_code in alone


@pytest.mark.slow
def test_owners_hold_with_a_judge_that_errs():
    results = [
        result
        for domain in (FERRIES, PUMPS)
        for number in range(2)
        for result in run_round(domain, number, "traces", "noisy oracle")
    ]
    assert meets_target("noisy oracle", results)
