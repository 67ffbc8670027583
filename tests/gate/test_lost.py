"""An app that fails on its hard questions does not look better by it."""

from __future__ import annotations

import pytest

from gated_run import decided, gated_run, numbers_of
from misslink.compare.missing_values import unmeasured_cases
from misslink.compare.run_metrics import metric_value
from misslink.gate.criteria import read_criteria
from misslink.gate.decision import decide_gates

TEN = "1111111100"  # recall@1 0.8
CRASHED = "11111111xx"  # as if it were 1.0


def one(tmp_path, gate, run, baseline=None):
    (found,) = decided(tmp_path, [gate], run, baseline).outcomes
    return found


@pytest.mark.parametrize("test", ["value", "paired"])
def test_a_regression_fails_where_the_app_failed_on_questions_that_had_a_value(tmp_path, test):
    gate = f"name: recall_at_1, regression_max: 0.03, regression_test: {test}"
    found = one(tmp_path, gate, gated_run(CRASHED), gated_run(TEN))
    assert found.estimate.value == 1.0, "it looks better"
    assert not found.passed
    assert found.reason == (
        "2 questions have no value of recall@1 now that had one: the app failed on 2 questions"
    )
    assert found.cases == ("c8", "c9")
    assert found.document()["lost"] == ["c8", "c9"]


def test_a_regression_of_a_number_that_is_no_mean_fails_too(tmp_path):
    gate = "metric: link.risk_given_all, regression_max: 0.03"
    run, before = gated_run("1111111111xx"), gated_run("111111111111")
    found = one(tmp_path, gate, run, before)
    assert not found.passed
    assert "the app failed on 2 questions" in found.reason
    assert one(tmp_path, gate, gated_run("111111111100"), before).passed


def test_against_numbers_alone_fewer_questions_with_a_failed_app_fail(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("gates: [{metric: recall@1, regression_max: 0.1}]", encoding="utf-8")
    (found,) = decide_gates(
        gated_run(CRASHED), read_criteria(path), numbers_of(gated_run(TEN))
    ).outcomes
    assert not found.passed
    assert found.reason == (
        "recall@1 is over 8 questions now and was over 10: the app failed on 2 questions"
    )
    same = decide_gates(gated_run(TEN), read_criteria(path), numbers_of(gated_run("1111111000")))
    assert same.passed


def test_a_question_on_which_the_app_failed_before_too_is_not_lost(tmp_path):
    gate = "name: recall_at_1, regression_max: 0.03, regression_test: paired"
    assert one(
        tmp_path, gate, gated_run("11111110xx"), gated_run("11111110xx"[:8] + "0x")
    ).change.unmeasured == {"c8": "the app failed on"}
    run = gated_run("11111111xx")
    assert one(tmp_path, gate, run, gated_run("11111110xx")).passed


def test_what_is_left_out_is_noted_at_every_gate_that_leaves_it_out(tmp_path):
    gates = [
        "metric: recall@1, threshold: 0.5",
        "metric: fully_faithful, threshold: 0.5",
        "metric: link.failures.retrieval_miss, at_most: 0.5",
        "metric: errors, at_most: 0.5",
    ]
    notes = [gate.notes for gate in decided(tmp_path, gates, gated_run(CRASHED)).outcomes]
    for name, told in zip(
        ("recall@1", "fully_faithful", "link.failures.retrieval_miss"), notes, strict=False
    ):
        assert f"The app failed on 2 questions; {name} leaves them out." in told
    assert notes[3] == ()


def test_errors_are_a_share_that_is_good_when_low(tmp_path):
    value = metric_value(gated_run(CRASHED), "errors")
    assert (value.estimate.value, value.estimate.n, value.estimate.method) == (0.2, 10, "wilson")
    assert value.lower_is_better
    found = one(tmp_path, "name: errors, at_most: 0.05", gated_run(CRASHED))
    assert found.reason == "errors is 20%, above the ceiling of 5%"
    assert one(tmp_path, "name: errors, at_most: 0.05", gated_run(TEN)).passed


def test_what_the_app_failed_on_is_not_covered():
    """8 scored, 1 whose app failed, 1 with nothing to judge: 8 of 9."""
    run = gated_run("111111111x", "11111111-x")
    value = metric_value(run, "coverage.faithfulness").estimate
    assert (value.value, value.n) == (pytest.approx(8 / 9), 9)


def test_why_there_was_nothing_to_measure():
    run = gated_run("11x")
    traces = (run.traces[0].model_copy(update={"unmeasured": "no retriever seen"}), run.traces[2])
    found = unmeasured_cases(run.model_copy(update={"traces": traces}))
    assert found == {
        "c0": "retrieval is unknown for",
        "c1": "there is no trace of",
        "c2": "the app failed on",
    }
