"""Gates on the share that people would call good."""

import json
import re

import pytest

from gated_run import decided, gated_run, numbers_of
from judged_runs import held, keeping
from misslink.calibration.stored_calibration import corrected_shares
from misslink.comparison.run_metrics import metric_value
from misslink.errors import InputError
from misslink.report.gate_reports import junit_xml, pull_request_comment
from misslink.types import Estimate

FAITHFUL = "1" * 60 + "0" * 40
# Of those that the judge calls faithful every sixth is not; of the others every tenth is.
PEOPLE = "".join(
    ("0" if at % 6 == 5 else "1") if mark == "1" else ("1" if at % 10 == 9 else "0")
    for at, mark in enumerate(FAITHFUL)
)
GATE = "name: people, metric: fully_faithful, estimate: corrected"


@pytest.fixture(scope="module")
def run():
    plain = gated_run("1" * 100, FAITHFUL)
    return keeping(plain, held(plain, PEOPLE))


def only(decision):
    (outcome,) = decision.outcomes
    return outcome


def test_the_corrected_share_is_held_against_the_limit(tmp_path, run):
    """The judge says 60% and people 54%."""
    share = corrected_shares(run)["fully_faithful"]
    assert share.estimate.value == pytest.approx(0.54)
    raw, people = (
        only(decided(tmp_path, [f"{gate}, threshold: 0.57"], run))
        for gate in ("name: judge, metric: fully_faithful", GATE)
    )
    assert (raw.passed, people.passed) == (True, False)
    assert people.reason == "fully_faithful (corrected) is 54%, below the floor of 57%"
    assert people.estimate == share.estimate


def test_the_end_of_the_corrected_interval_can_be_asked_for(tmp_path, run):
    low = corrected_shares(run)["fully_faithful"].estimate.low
    for limit, passed in ((low - 0.01, True), (low + 0.01, False)):
        gate = f"{GATE}, threshold: {limit}, on: low"
        assert only(decided(tmp_path, [gate], run)).passed is passed


def test_either_number_stands_beside_the_other_in_every_output(tmp_path, run):
    gates = ["name: judge, metric: fully_faithful, threshold: 0.57", f"{GATE}, threshold: 0.57"]
    decision = decided(tmp_path, gates, run)
    documents = decision.document()["gates"]
    assert [one["estimated"] for one in documents] == ["raw", "corrected"]
    for one in documents:
        assert one["corrected"]["value"] == pytest.approx(0.54)
        assert one["raw"]["value"] == pytest.approx(0.6)
    json.dumps(documents, allow_nan=False)
    for text in (pull_request_comment(decision), junit_xml(decision)):
        assert "By the judge alone it is 60% [" in text.replace("\\", "")
        assert "Corrected for the judge's errors it is 54% [" in text.replace("\\", "")
        assert "by 100 labels" in text


def test_of_numbers_that_are_no_such_share_there_is_no_corrected_one(tmp_path, run):
    for gate in ("name: r, metric: recall@1", "name: c, metric: link.failures.passed"):
        found = only(decided(tmp_path, [f"{gate}, threshold: 0.1"], run))
        assert found.document()["corrected"] is None


@pytest.mark.parametrize(
    ("calibrated", "gate", "said"),
    [
        (False, GATE, "compare the judge with human labels:  misslink cal"),
        (
            True,
            "name: f, metric: faithfulness, estimate: corrected",
            "write  metric: fully_faithful",
        ),
        (True, "name: r, metric: recall@1, estimate: corrected", "recall@1 is not calibrated"),
    ],
)
def test_what_cannot_be_corrected_is_an_error_with_the_way_out(
    tmp_path, run, calibrated, gate, said
):
    held_by = run if calibrated else run.model_copy(update={"calibration": None})
    with pytest.raises(InputError, match=r"criteria\.yaml.*gate '") as refused:
        decided(tmp_path, [f"{gate}, threshold: 0.5"], held_by)
    assert said in str(refused.value)


def test_new_failures_are_counted_and_not_corrected(tmp_path, run):
    with pytest.raises(InputError, match="takes no estimate"):
        decided(tmp_path, ["name: n, new_failures: {}, estimate: corrected"], run)


def test_labels_that_say_too_little_fail_the_gate_with_the_reason(tmp_path):
    plain = gated_run("1" * 20, "1" * 20)
    labelled = gated_run("11", "10")
    few = keeping(plain, held(labelled, "10"))
    found = only(decided(tmp_path, [f"{GATE}, threshold: 0.1"], few))
    assert not found.passed
    assert found.reason.startswith(
        "fully_faithful (corrected) could not be computed: 2 labels do not"
    )


def test_a_selection_is_corrected_by_the_error_rates(tmp_path, run):
    gate = f"{GATE}, threshold: 0.1, category: even"
    found = only(decided(tmp_path, [gate], run))
    even = {case.id for case in run.cases if case.category == "even"}
    assert found.estimate == corrected_shares(run, even)["fully_faithful"].estimate
    assert found.estimate.method.startswith("rogan-gladen")


REGRESSION = f"{GATE}, regression_max: 0.15"


def test_a_change_is_larger_for_people_than_for_a_judge_that_errs(tmp_path, run):
    """70% before and 60% now by the judge, whose rates add up to 1.74."""
    before = gated_run("1" * 100, "1" * 70 + "0" * 30)
    found = only(decided(tmp_path, [REGRESSION], run, before))
    gain = 50 / 54 + 36 / 46 - 1
    assert found.change.drop == pytest.approx(0.1 / gain)
    assert found.passed
    strict = only(decided(tmp_path, [f"{GATE}, regression_max: 0.12"], run, before))
    assert not strict.passed
    assert "fully_faithful (corrected) dropped from" in strict.reason
    raw = only(
        decided(tmp_path, ["name: j, metric: fully_faithful, regression_max: 0.12"], run, before)
    )
    assert raw.passed, "the judge alone sees 10 points"


def test_a_paired_change_is_decided_by_its_corrected_interval(tmp_path, run):
    before = gated_run("1" * 100, "1" * 70 + "0" * 30)
    gate = f"{GATE}, regression_max: 0.05, regression_test: paired"
    found = only(decided(tmp_path, [gate], run, before))
    assert not found.passed
    assert found.change.loss.method.startswith("rogan-gladen")
    same = only(decided(tmp_path, [gate], run, gated_run("1" * 100, FAITHFUL, questions={0: "?"})))
    assert same.passed


@pytest.mark.parametrize(
    ("manifest", "said"),
    [({"judge": "openai:n"}, "judged by openai:n, the other by heuristic")],
)
def test_a_baseline_of_another_judge_is_refused(tmp_path, run, manifest, said):
    before = gated_run("1" * 100, "1" * 70 + "0" * 30, manifest=manifest)
    with pytest.raises(InputError, match=said):
        decided(tmp_path, [REGRESSION], run, before)
    limit = only(decided(tmp_path, [f"{GATE}, threshold: 0.5"], run, before))
    assert limit.passed, "a limit needs no baseline"
    assert limit.baseline is None


def test_a_summary_alone_has_no_cases_to_correct(tmp_path, run):
    before = numbers_of(gated_run("1" * 100, "1" * 70 + "0" * 30))
    path = tmp_path / "criteria.yaml"
    path.write_text(f"gates:\n  - {{{REGRESSION}}}\n", encoding="utf-8")
    from misslink.gates.criteria import read_criteria
    from misslink.gates.decision import decide_gates

    with pytest.raises(
        InputError, match="no fully_faithful that could be corrected; name its run fold"
    ):
        decide_gates(run, read_criteria(path), before)


def test_the_summarys_corrected_share_is_that_of_the_calibration_kept_now(run):
    assert metric_value(run, "corrected.fully_faithful.estimate").estimate.value == pytest.approx(
        0.54
    )


@pytest.fixture(scope="module")
def linked():
    """60 of 100 questions were found; of those 54 answers are faithful, of the others 6."""
    run = gated_run("1" * 60 + "0" * 40, "1" * 54 + "0" * 6 + "1" * 6 + "0" * 34)
    rate = Estimate(value=0.9, low=0.83, high=0.94, n=100, method="wilson").model_dump()
    rates = {"sensitivity": rate, "specificity": rate}
    calibration = {
        "metric": "faithfulness",
        "threshold": 0.5,
        "n": 200,
        "agreement": rates,
        "by_exposure": dict.fromkeys(("none", "some", "all"), rates),
    }
    return run.model_copy(update={"calibration": calibration})


LINK = "name: a, metric: link.risk_given_none"


def test_the_corrected_risk_stands_beside_the_links_own(tmp_path, linked):
    """After a miss 85% are unfaithful by the judge, so (0.85 - 0.1) / 0.8 by people."""
    found = only(decided(tmp_path, [f"{LINK}, at_most: 0.9"], linked))
    document = found.document()
    assert (document["value"], document["raw"]["value"]) == (0.85, 0.85)
    assert document["corrected"]["value"] == pytest.approx(0.75 / 0.8)
    assert found.passed
    (note,) = [one for one in document["notes"] if "Corrected" in one]
    assert note.startswith("Corrected for the judge's errors it is 94% [")
    assert note.endswith(", by 200 labels.")


def test_a_corrected_risk_is_asked_for_by_its_own_name(tmp_path, linked):
    with pytest.raises(InputError, match=r"metric: link\.corrected\.risk_given_none"):
        decided(tmp_path, [f"{LINK}, at_most: 0.9, estimate: corrected"], linked)
    own = "name: a, metric: link.corrected.risk_given_none, at_most: 0.9"
    assert not only(decided(tmp_path, [own], linked)).passed


def test_a_share_found_in_another_way_than_its_baseline_is_no_change(tmp_path):
    """The run's own labels give one number, and error rates another one for both runs alike."""
    now, before = (gated_run("1" * 100, FAITHFUL) for _ in range(2))
    some = "".join(mark if at % 2 else "-" for at, mark in enumerate(PEOPLE))
    run = keeping(now, held(now, some))
    found = only(decided(tmp_path, [f"{GATE}, regression_max: 0.05"], run, before))
    assert found.passed
    was, is_now = found.change.means
    assert was == is_now != found.estimate.value
    told = re.findall(r"(\d+%)", found.reason.partition("error rates alone")[2])[:2]
    assert len(told) == 2
    assert told[0] == told[1]


def test_a_corrected_share_is_told_with_its_labels_and_not_as_so_many_questions(tmp_path):
    plain = gated_run("1" * 100, FAITHFUL)
    some = "".join(mark if at % 2 else "-" for at, mark in enumerate(PEOPLE))
    some = keeping(plain, held(plain, some))
    found = only(decided(tmp_path, [f"{GATE}, threshold: 0.3, min_cases: 100"], some))
    labels = some.calibration["n"]
    assert labels < 100
    assert found.estimate.n == labels, "prediction-powered inference counts labels"
    assert found.passed
    assert found.reason.endswith(f" over 100 questions, by {labels} labels")


def test_a_share_corrected_for_a_judge_not_to_be_used_is_warned_of_everywhere(tmp_path, run):
    bad = run.model_copy(update={"calibration": {**run.calibration, "verdict": "do not use"}})
    gates = [f"{GATE}, threshold: 0.1", "name: judge, metric: fully_faithful, threshold: 0.1"]
    decision = decided(tmp_path, gates, bad)
    said = "Warning: its calibration of faithfulness says 'do not use'"
    told, raw = decision.document()["gates"]
    assert any(note.startswith(said) for note in told["notes"])
    assert not any(said in note for note in raw["notes"])
    assert pull_request_comment(decision).replace("\\", "").count(said) == 1
    fine = decided(tmp_path, gates, run).document()["gates"]
    assert not any(said in note for one in fine for note in one["notes"])


@pytest.mark.parametrize("verdict", ["do not use", "not enough labels", "caution"])
def test_the_rates_of_a_judge_that_is_not_proven_pass_no_gate(tmp_path, run, verdict):
    """A kappa of 1.0 over a few labels is no trust."""
    reasons = ["Labelled cases: 19; at least 30 are needed to use it at all."]
    calibration = {**run.calibration, "verdict": verdict, "reasons": reasons}
    (found,) = decided(
        tmp_path,
        ["metric: trust.kappa, threshold: -0.9"],
        run.model_copy(update={"calibration": calibration}),
    ).outcomes
    assert found.passed == (verdict == "caution")
    assert found.estimate.value == pytest.approx(run.metrics["trust.kappa"].value)
    if not found.passed:
        (reason,) = found.reasons
        assert (reason.code, reason.verdict) == ("judge_unproven", verdict)


def test_a_calibration_of_another_judge_corrects_no_gate(tmp_path, run):
    document = {**run.calibration, "judge": "openai:other"}
    with pytest.raises(InputError, match="the calibration is of the judge openai:other, and the "):
        decided(
            tmp_path, [f"{GATE}, threshold: 0.1"], run.model_copy(update={"calibration": document})
        )
