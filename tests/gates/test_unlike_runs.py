"""A gate decides over what is alike: the same questions, labels and judge."""

import json
from pathlib import Path

import pytest

from gated_run import decided, gated_run, numbers_of
from misslink.gates.baseline_diff import GateBaseline, diff_against_baseline
from misslink.gates.criteria import ShipCriteria, read_criteria
from misslink.gates.decision import decide_gates
from misslink.report.gate_reports import pull_request_comment
from misslink.types import Estimate, Reason

RECALL = "name: recall_at_1, regression_max: 0.05"
PAIRED = f"{RECALL}, regression_test: paired"
FAITHFUL = "metric: fully_faithful, regression_max: 0.05"


def grown(found, kept):
    """A run whose first `kept` cases are those of the baseline."""
    return gated_run(found, ids=[f"c{at}" if at < kept else f"new{at}" for at in range(len(found))])


def labelled(run, labels):
    """The run by other labels of some cases."""
    cases = (c.model_copy(update={"relevant": labels.get(c.id, c.relevant)}) for c in run.cases)
    return run.model_copy(update={"cases": tuple(cases)})


@pytest.mark.parametrize("gate", [RECALL, PAIRED])
def test_easy_new_questions_hide_no_loss_on_the_shared_ones(tmp_path, gate):
    """Found: 30 shared questions lost 20 points, 30 easy new ones were added, and it passed."""
    before = gated_run("1" * 30)
    run = grown("0" * 6 + "1" * 24 + "1" * 30, 30)
    decision = decided(tmp_path, [gate], run, before)
    (found,) = decision.outcomes
    assert not found.passed
    assert found.change.drop == pytest.approx(0.2)
    assert found.change.means == (1.0, pytest.approx(0.8))
    assert found.reasons[0].code == "regressed"
    assert found.reasons[0].parameters["n"] == 30
    assert decision.document()["comparable"] == {
        "judge": True,
        "questions": 30,
        "of": 60,
        "labels": True,
    }
    assert "30 ask the same in both, of 60 in the run" in decision.scope[0]
    comment = pull_request_comment(decision)
    assert comment.index("30 ask the same in both") < comment.index("recall")


def test_a_number_of_the_whole_run_is_not_compared_over_a_part_of_it(tmp_path):
    run = grown("1" * 20, 10)
    run, before = (
        one.model_copy(update={"summary": {**one.summary, "usage": {"calls": calls}}})
        for one, calls in ((run, 40), (gated_run("1" * 10), 20))
    )
    (found,) = decided(tmp_path, ["metric: usage.calls, regression_max: 100"], run, before).outcomes
    assert not found.passed
    assert found.reasons[0].code == "not_of_shared"


def test_hard_new_questions_are_no_loss(tmp_path):
    run = grown("1" * 10 + "0" * 10, 10)
    (found,) = decided(tmp_path, [RECALL], run, gated_run("1" * 10)).outcomes
    assert found.passed
    assert found.change.drop == 0
    assert "over the shared questions it was" in found.reason


@pytest.mark.parametrize("gate", [RECALL, PAIRED])
def test_the_labels_of_the_run_score_the_ranking_of_the_baseline(tmp_path, gate):
    """Found: recall fell from 1.0 to 0.67, and the baseline was of other labels."""
    labels = {f"c{at}": {"noise": 1} for at in range(30)}
    run = gated_run("0" * 20 + "1" * 10)  # finds noise where it does not find gold
    before = labelled(gated_run("1" * 30), labels)  # by its own labels it found nothing
    decision = decided(tmp_path, [gate], run, before)
    (found,) = decision.outcomes
    assert not found.passed
    assert (found.baseline.value, found.change.drop) == (1.0, pytest.approx(2 / 3))
    assert decision.comparable["labels"] is False
    assert "the labels of the run score both rankings" in decision.scope[0]
    turned = decided(tmp_path, [gate], labelled(run, labels), gated_run("1" * 30)).outcomes[0]
    assert (turned.passed, turned.baseline.value) == (True, 0.0)


def with_ids(run, prefix):
    """The run as if its store called every passage otherwise, and its labels, too."""
    traces = (
        trace.model_copy(
            update={
                "retrieved": tuple(
                    passage.model_copy(update={"id": f"{prefix}{passage.id}"})
                    for passage in trace.retrieved
                )
            }
        )
        for trace in run.traces
    )
    run = run.model_copy(update={"traces": tuple(traces)})
    return labelled(run, {c.id: {f"{prefix}{name}": 1 for name in c.relevant} for c in run.cases})


def test_a_ranking_by_ids_of_another_kind_is_no_ranking_of_nothing(tmp_path):
    """Its recall by this run's labels would be 0, and nothing could be worse."""
    run, before = gated_run("0" * 5 + "1" * 5), with_ids(gated_run("1" * 10), "store-2/")
    (found,) = decided(tmp_path, [f"{RECALL}"], run, before).outcomes
    assert (found.passed, found.baseline.value) == (False, None)
    assert "'store-2/gold0'" in found.reason
    told = Reason(code="ids_unmatched", passage="a", label="b", key=None)
    unmatched = tuple(t.model_copy(update={"unmatched": told}) for t in gated_run("1" * 10).traces)
    before = labelled(gated_run("1" * 10), {f"c{at}": {"other": 1} for at in range(10)})
    before = before.model_copy(update={"traces": unmatched})
    (found,) = decided(tmp_path, [f"{RECALL}"], run, before).outcomes
    assert (found.passed, found.baseline.value) == (False, 1.0), "by these labels they match"


def test_a_failure_by_other_labels_is_not_new(tmp_path):
    before, run = gated_run("1" * 10), gated_run("0" + "1" * 9)
    gate = "new_failures: {failure: retrieval_miss}"
    assert decided(tmp_path, [gate], run, before).outcomes[0].cases == ("c0",)
    by_other = labelled(before, {"c0": {"other": 1}})
    assert decided(tmp_path, [gate], run, by_other).outcomes[0].passed
    retrieval = "new_failures: {retrieval: miss}"
    assert decided(tmp_path, [retrieval], run, by_other).outcomes[0].cases == ("c0",)
    share = "metric: link.failures.retrieval_miss, regression_max: 0"
    assert decided(tmp_path, [share], run, by_other).outcomes[0].passed


@pytest.mark.parametrize(
    "changed",
    [
        {"judge": "openai:large"},
        {"judge_epoch": {"rules": "f00"}},
        {"inputs": {"judge_identity.temperature": "1"}},
        {"prompts": [{"name": "examination", "version": 2, "sha256": "cd" * 32}]},
    ],
)
def test_another_epoch_of_the_judge_decides_no_change(tmp_path, changed):
    """Found: it decided by the verdicts of two judges, while compare names no winner."""
    run = gated_run("1" * 10, manifest={"judge_epoch": {"rules": "abc"}})
    before = gated_run("1" * 10, manifest={"judge_epoch": {"rules": "abc"}, **changed})
    gates = [
        FAITHFUL,
        "new_failures: {}",
        RECALL,
        "name: floor, metric: fully_faithful, threshold: 0.5",
    ]
    decision = decided(tmp_path, gates, run, before)
    assert [outcome.passed for outcome in decision.outcomes] == [False, False, True, True]
    codes = [outcome.document()["reason_code"]["code"] for outcome in decision.outcomes[:2]]
    assert codes == ["judge_differs"] * 2
    assert "misslink rejudge base --judge heuristic" in decision.outcomes[0].reason
    assert decision.comparable["judge"] is False


def test_a_judge_of_ones_own_is_named_as_rejudge_opens_it(tmp_path):
    """Found: by the name it has in the run, which no command takes."""
    run = gated_run("1" * 10, manifest={"judge": "mine", "judging": {"spec": "own.py:judge"}})
    before = gated_run("1" * 10, manifest={"judge": "mine", "judge_epoch": {"rules": "abc"}})
    reason = decided(tmp_path, [FAITHFUL], run, before).outcomes[0].reason
    assert "judged by mine with another setting, prompt or rules than this run" in reason
    assert "misslink rejudge base --judge own.py:judge --out FOLDER" in reason


def summarized(run, **more):
    return run.model_copy(update={"summary": {**run.summary, **more}})


def test_a_summary_says_by_hashes_whether_it_is_alike(tmp_path):
    hashes = {"questions": "q", "labels": "l"}
    run = summarized(gated_run("1" * 10), hashes=hashes, judge_epoch={"rules": "a"})
    path = tmp_path / "c.yaml"
    path.write_text(f"gates:\n  - {{{RECALL}}}\n  - {{{FAITHFUL}}}\n", encoding="utf-8")

    def against(**more):
        before = numbers_of(summarized(run, **more))
        decision = decide_gates(run, read_criteria(path), before)
        codes = [gate.reasons[0].code for gate in decision.outcomes]
        return codes, json.loads(json.dumps(decision.comparable))

    alike = {"judge": True, "questions": 10, "of": 10, "labels": True}
    assert against() == (["met", "met"], alike)
    assert against(hashes={**hashes, "labels": "m"}) == (
        ["labels_differ", "met"],
        {**alike, "labels": False},
    )
    assert against(hashes={**hashes, "questions": "r"})[0] == ["questions_differ"] * 2
    assert against(judge_epoch={"rules": "b"})[0] == ["met", "judge_differs"]
    assert against(hashes=None) == (
        ["met", "met"],
        {**alike, "questions": None, "labels": None},
    )


@pytest.mark.parametrize(
    ("metric", "judged"),
    [
        ("link_correctness.attributable_fraction", True),
        ("conversations_passed", True),
        ("slices.tier.A.metrics.correctness", True),
        ("slices.tier.A.metrics.recall@1", False),
        ("link.retrieval.miss", False),
        ("latency", False),
        ("usage.calls", False),
        ("errors", False),
    ],
)
def test_every_number_of_verdicts_needs_one_judge(metric, judged):
    criteria = ShipCriteria("c", Path("c.yaml"), (), {})
    run, before = gated_run("11"), gated_run("10", manifest={"judge": "openai:large"})
    diff = diff_against_baseline(run, criteria, GateBaseline(Path("main"), before, {}))
    found = diff.unlike(metric)
    assert (found.code if found else None) == ("judge_differs" if judged else None)


def test_a_number_of_a_document_is_not_compared_over_other_labels(tmp_path):
    slices = {"tier": {"A": {"n": 5, "metrics": {"recall@1": Estimate.missing("-").model_dump()}}}}
    run, before = (
        summarized(one, slices=slices, usage={"calls": 10})
        for one in (gated_run("1" * 10), labelled(gated_run("0" + "1" * 9), {"c0": {"noise": 1}}))
    )
    gates = ["name: usage, metric: usage.calls, regression_max: 5", f"{RECALL}, tier: A"]
    assert [one.passed for one in decided(tmp_path, gates, run, before).outcomes] == [True, True]
    slice_ = "name: slice, metric: slices.tier.A.n, at_most: 9"
    assert decided(tmp_path, [slice_], run, before).passed, "of the run itself it is known"


def test_without_a_baseline_nothing_is_compared(tmp_path):
    decision = decided(tmp_path, ["name: recall_at_1, threshold: 0.5"], gated_run("1" * 10))
    assert decision.document()["comparable"] is None
