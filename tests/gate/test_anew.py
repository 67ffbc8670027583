"""New failures: an inconclusive case is not one that did not fail."""

from __future__ import annotations

import pytest

from gated_run import decided, gated_run
from misslink.compare.run_metrics import metric_value

TEN = "1111111100"


def one(tmp_path, gate, run, baseline):
    (found,) = decided(tmp_path, [gate], run, baseline).outcomes
    return found


def test_a_case_that_is_undecided_now_and_was_decided_may_have_failed(tmp_path):
    run, before = gated_run(TEN, "1111111u00"), gated_run(TEN)
    found = one(tmp_path, "new_failures: {at_most: 0}", run, before)
    assert (found.passed, found.cases) == (False, ("c7",))
    assert (
        "1 question was decided before and is inconclusive now, and may be among them"
        in found.reason
    )
    assert "the judge's verdicts do not settle the failure mode" in found.reason
    assert one(tmp_path, "new_failures: {at_most: 1}", run, before).passed, "even if it is one"
    assert one(tmp_path, "new_failures: {category: even}", run, before).passed, "c7 is odd"


def test_a_crash_may_be_a_lost_passage(tmp_path):
    found = one(
        tmp_path, "new_failures: {retrieval: miss}", gated_run("x" + TEN[1:]), gated_run(TEN)
    )
    assert (found.passed, found.cases) == (False, ("c0",))
    assert "(the app failed on 1 question)" in found.reason


def test_who_failed_before_or_was_undecided_before_does_not_fail_anew(tmp_path):
    undecided = gated_run(TEN, "11111111uu")
    assert one(tmp_path, "new_failures: {}", undecided, gated_run(TEN)).passed
    assert (
        one(tmp_path, "new_failures: {}", gated_run(TEN, "u111111100"), undecided).passed is False
    )
    assert one(tmp_path, "new_failures: {}", undecided, gated_run(TEN, "11111111u0")).passed


def test_where_all_are_undecided_nothing_passes(tmp_path):
    run = gated_run("1" * 10, "u" * 10)
    for gate in ("new_failures: {at_most: 99}", "new_failures: {failure: fabricated, at_most: 99}"):
        found = one(tmp_path, gate, run, gated_run(TEN, "u" * 10))
        assert not found.passed
        assert "the failure mode of every case is unknown" in found.reason


def test_a_lost_passage_counts_though_the_answer_is_right_all_the_same(tmp_path):
    run, before = gated_run("0" + TEN[1:], TEN), gated_run(TEN)
    assert run.links[0].failure == "passed"
    assert one(tmp_path, "new_failures: {failure: retrieval_miss}", run, before).passed
    found = one(tmp_path, "new_failures: {retrieval: miss}", run, before)
    assert (found.passed, found.cases, found.gate.name) == (False, ("c0",), "new_failures_miss")
    assert found.reason.startswith("1 question has the retrieval outcome miss now and had not")


@pytest.mark.parametrize(
    ("name", "value", "n"),
    [
        ("link.failures.retrieval_miss", 0.25, 8),
        ("link.failures.inconclusive", 0.2, 10),
        ("link.answers.unfaithful", 0.25, 8),
        ("link.answers.unknown", 0.2, 10),
        ("link.retrieval.miss", 2 / 9, 9),
        ("link.retrieval.unknown", 0.1, 10),
    ],
)
def test_a_share_is_of_the_decided(name, value, n):
    found = metric_value(gated_run("11111100x1", "11111100xu"), name).estimate
    assert (found.value, found.n) == (pytest.approx(value), n)


def test_a_share_of_which_nothing_is_known_fails(tmp_path):
    run = gated_run("1" * 10, "u" * 10)
    gates = [
        "metric: link.failures.retrieval_miss, at_most: 0.05",
        "metric: link.answers.unfaithful, at_most: 0.1",
    ]
    found = decided(tmp_path, gates, run).outcomes
    assert [gate.passed for gate in found] == [False, False]
    assert "the failure mode of every case is unknown" in found[0].reason


def test_a_baseline_whose_judging_was_stopped_invents_no_new_failures(tmp_path):
    run = gated_run(TEN)  # c8 and c9 fail
    failures = {"c8": "inconclusive", "c9": "inconclusive"}
    before = gated_run(TEN, "11111111--", manifest={"unfinished": 2})
    links = tuple(
        link.model_copy(
            update={"failure": failures.get(link.case_id, link.failure), "answer": "unknown"}
        )
        for link in before.links
    )
    before = before.model_copy(update={"links": links})
    found = one(tmp_path, "new_failures: {}", run, before)
    assert not found.passed
    assert found.reason == (
        "the judging of the baseline was stopped early (2 questions left), so who failed "
        "before is not known; run the same  misslink evaluate  command again"
    )
    worse = one(tmp_path, "new_failures: {}", gated_run("0" + TEN[1:]), before)
    assert worse.cases == ("c0", "c8", "c9"), "c0 is one whatever the others are"
    assert worse.reason.startswith("3 questions have a failure mode now and had not")
    assert any("the baseline was stopped early (2 questions" in n for n in worse.notes)
    assert one(tmp_path, "new_failures: {at_most: 2}", run, before).passed, "even if both are new"


def test_a_selection_beside_new_failures_is_one_of_them(tmp_path):
    run, before = gated_run("0011111100"), gated_run(TEN)
    for gate in ("new_failures: {at_most: 1}, tier: A", "new_failures: {tier: A, at_most: 1}"):
        found = one(tmp_path, gate, run, before)
        assert (found.passed, found.cases) == (True, ("c0",))
        assert found.document()["selection"]["tier"] == "A"
    found = one(tmp_path, "new_failures: {tier: A}, category: odd", run, before)
    assert found.reason == "no question of the run has tier 'A' and category 'odd'"
