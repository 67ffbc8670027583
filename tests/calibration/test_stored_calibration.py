"""Calibrations stored in a run, and whether its scores have drifted since."""

import json

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from judged_runs import held as run_calibration
from judged_runs import judged_run, keeping
from labelled import held, table
from misslink.calibration.stored_calibration import (
    corrected_shares,
    detect_drift,
    merge_calibration,
    score_distribution,
    stored_calibrations,
)
from misslink.calibration.verdicts import hash_verdicts
from misslink.calibration_document import CalibrationDocument
from misslink.documents import calibration_of, manifest_of
from misslink.errors import InputError
from misslink.judge.calibration import Calibration
from misslink.stats.classification import ConfusionMatrix
from misslink.stats.prevalence import prediction_powered, rogan_gladen
from misslink.types import Usage

JUDGE = "1" * 60 + "0" * 40  # 100 cases
PEOPLE = "1" * 20 + "0" * 5 + "-" * 35 + "0" * 18 + "1" * 2 + "-" * 20  # 45 of them labelled


@pytest.fixture(scope="module")
def run():
    return judged_run(JUDGE)


@pytest.fixture(scope="module")
def document(run):
    return run_calibration(run, PEOPLE)


def test_without_a_calibration_there_is_nothing_to_correct_with(run):
    assert stored_calibrations(run) == {}
    assert corrected_shares(run) == {}
    assert manifest_of(run).calibration is None


def test_own_labels_give_the_prediction_powered_share(run, document):
    found = corrected_shares(keeping(run, document))["fully_faithful"]
    labelled = [place for place, mark in enumerate(PEOPLE) if mark != "-"]
    oracle = prediction_powered(
        [float(PEOPLE[place]) for place in labelled],
        [float(JUDGE[place]) for place in labelled],
        [float(mark) for place, mark in enumerate(JUDGE) if PEOPLE[place] == "-"],
    )
    assert (found.by, found.own, found.labels) == ("prediction-powered", True, 45)
    assert found.raw.value == 0.6
    assert found.estimate.value == pytest.approx(oracle.estimate.value)


def test_a_calibration_of_another_run_corrects_by_its_error_rates(document):
    other = keeping(judged_run("1" * 30 + "0" * 70), document)
    found = corrected_shares(other)["fully_faithful"]
    judge = ConfusionMatrix(true_positive=20, false_negative=2, false_positive=5, true_negative=18)
    assert (found.by, found.own) == ("rogan-gladen", False)
    assert found.estimate == rogan_gladen(30, 100, judge)
    assert "of another run" in found.note


def test_the_same_verdicts_of_other_answers_are_not_the_runs_own(document):
    """A judge that says the same of everything would else make every run the labelled one."""
    assert not corrected_shares(keeping(judged_run(JUDGE, answer="No."), document))[
        "fully_faithful"
    ].own


def test_what_a_reply_cost_does_not_make_it_another_verdict(run):
    dear = [
        one.model_copy(update={"usage": Usage(prompt_tokens=9, completion_tokens=9), "raw": "{}"})
        for one in run.verdicts
    ]
    again = run.model_copy(update={"verdicts": tuple(reversed(dear))})
    assert hash_verdicts(again, "faithfulness") == hash_verdicts(run, "faithfulness")


def test_a_part_of_the_cases_is_corrected_by_the_error_rates(run, document):
    found = corrected_shares(keeping(run, document), {f"c{at}" for at in range(50, 70)})[
        "fully_faithful"
    ]
    judge = ConfusionMatrix(true_positive=20, false_negative=2, false_positive=5, true_negative=18)
    assert (found.by, found.own, found.raw.n) == ("rogan-gladen", True, 20)
    assert found.estimate == rogan_gladen(10, 20, judge)


def test_failed_verdicts_are_in_neither_share(document):
    found = corrected_shares(keeping(judged_run("1" * 30 + "0" * 50 + "f" * 20), document))[
        "fully_faithful"
    ]
    assert (found.raw.value, found.raw.n, found.estimate.n) == (30 / 80, 80, 80)


def test_labels_that_say_nothing_leave_the_share_missing_with_the_reason():
    few = keeping(judged_run("1" * 9), run_calibration(judged_run("10"), "10"))
    found = corrected_shares(few)["fully_faithful"]
    assert found.estimate.value is None
    assert "do not show that the judge is better than chance" in found.estimate.reason


def test_weighted_rates_come_before_the_plain_table(document):
    """They are of all cases, the table of those that were drawn."""
    rate = {"value": 0.8, "low": 0.7, "high": 0.9, "n": 50, "method": "wilson, weighted"}
    other = keeping(judged_run("1" * 50 + "0" * 50), document)
    other.calibration["agreement"] = {"sensitivity": rate, "specificity": rate}
    other.calibration["label_weights"] = {"a": 1.0, "b": 2.0}
    assert corrected_shares(other)["fully_faithful"].estimate.value == pytest.approx(
        (0.5 - 0.2) / 0.6
    )


def test_a_document_without_a_threshold_gives_a_missing_share():
    run = judged_run("10").model_copy(update={"calibration": {"metric": "faithfulness"}})
    found = corrected_shares(run)["fully_faithful"]
    assert found.estimate.value is None
    assert found.estimate.reason


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ({"threshold": "high"}, "threshold"),
        ({"threshold": 0.5, "confusion": {"true_good": -1}}, "confusion.true_good"),
        ({"threshold": 0.5, "agreement": {"sensitivity": {"value": 2}}}, "agreement.sensitivity"),
    ],
)
def test_a_document_that_somebody_edited_is_an_error_that_names_the_field(broken, field):
    calibration = {"metric": "faithfulness", **broken}
    run = judged_run("10").model_copy(update={"calibration": calibration})
    with pytest.raises(InputError, match=rf"calibration\.json, field '{field}"):
        corrected_shares(run)


@pytest.mark.parametrize("broken", [{}, {"metric": 3}, {"others": [1]}, {"others": {"a": 1}}])
def test_what_is_no_calibration_is_none(broken):
    assert stored_calibrations(judged_run("1").model_copy(update={"calibration": broken})) == {}


def test_faithfulness_is_on_top_whichever_came_first(run, document):
    other = {"metric": "correctness", "n": 3}
    for kept in (
        merge_calibration(merge_calibration(None, document), other),
        merge_calibration(merge_calibration(None, other), document),
    ):
        assert kept["metric"] == "faithfulness"
        assert kept["others"] == {"correctness": other}
        assert stored_calibrations(run.model_copy(update={"calibration": kept})).keys() == {
            "faithfulness",
            "correctness",
        }


def test_a_metric_labelled_again_takes_the_place_of_its_document():
    kept = merge_calibration(
        merge_calibration(None, {"metric": "correctness", "n": 3}), {"metric": "a", "n": 1}
    )
    assert merge_calibration(kept, {"metric": "correctness", "n": 9}) == {
        "metric": "correctness", "n": 9, "others": {"a": {"metric": "a", "n": 1}}
    }  # fmt: skip


def test_links_are_by_the_document_that_is_kept_or_by_another(run, document):
    used = Calibration.from_document(document, "c.json").model_dump(mode="json")
    linked = run.model_copy(update={"manifest": {**run.manifest, "calibration": used}})
    used = manifest_of(linked).calibration
    same = calibration_of(keeping(linked, document))
    assert same.linking_inputs == used.linking_inputs
    later = run_calibration(run, "0" * 5 + "1" * 20 + "-" * 35 + "0" * 20 + "-" * 20)
    other = calibration_of(keeping(linked, later))
    assert other.linking_inputs != used.linking_inputs
    assert (used.metric, used.threshold) == ("faithfulness", 0.5)
    assert used.sensitivity.value == pytest.approx(20 / 22)


def test_a_calibration_that_names_no_verdicts_may_be_of_this_run_or_not(run, document):
    """As an older misslink wrote it."""
    old = {name: value for name, value in document.items() if name != "verdicts_sha256"}
    found = corrected_shares(keeping(run, old))["fully_faithful"]
    assert (found.by, found.own) == ("rogan-gladen", False)
    assert "45 labels of this run or of another; valid if" in found.note


def calibrated(scores):
    document = {"metric": "faithfulness", "scores": score_distribution(scores)}
    return CalibrationDocument.read(document)


def drawn(a, b, n, seed=0):
    return np.random.default_rng(seed).beta(a, b, n).round(2).tolist()


def test_the_distance_is_scipys_and_the_p_value_its_asymptotic_one():
    before, now = drawn(4, 2, 300), drawn(3, 3, 200, seed=1)
    found = detect_drift(calibrated(before), now)
    wanted = stats.ks_2samp(before, now, method="asymp")
    assert found.distance == pytest.approx(wanted.statistic)
    assert found.p == pytest.approx(wanted.pvalue, rel=0.15)
    assert found.before == (300, pytest.approx(np.mean(before)))
    assert found.now == (200, pytest.approx(np.mean(now)))


def test_the_sentence_has_both_means_and_what_to_do():
    found = detect_drift(calibrated([0.9] * 60 + [0.1] * 40), [0.9] * 30 + [0.1] * 70)
    assert found.sentence == (
        "The judge's scores of faithfulness have changed since it was calibrated: their mean was "
        "0.58 over 100 and is 0.34 over 100 (Kolmogorov-Smirnov D = 0.30, p < 0.001); the answers "
        "or the judge have changed, so label some new answers."
    )
    json.dumps(found.summary_entry().document(), allow_nan=False)


def test_scores_of_the_same_judge_on_such_answers_seldom_count_as_moved():
    before = calibrated(drawn(4, 2, 200))
    told = sum(
        detect_drift(before, drawn(4, 2, 200, seed=seed)) is not None for seed in range(1, 201)
    )
    assert told <= 6  # of 200; 2 expected


def test_a_sure_difference_that_is_small_is_not_worth_naming():
    before, now = [0.9] * 5000 + [0.1] * 5000, [0.9] * 5500 + [0.1] * 4500
    assert stats.ks_2samp(before, now).pvalue < 1e-6
    assert detect_drift(calibrated(before), now[:]) is None


@pytest.mark.parametrize("sizes", [(29, 500), (500, 29), (0, 500), (500, 0)])
def test_few_scores_on_either_side_say_nothing(sizes):
    assert detect_drift(calibrated([0.9] * sizes[0]), [0.1] * sizes[1]) is None
    assert detect_drift(calibrated([0.9] * 30), [0.1] * 30) is not None


@pytest.mark.parametrize("scores", [None, {}])
def test_a_calibration_that_does_not_say_how_they_were_tells_nothing(scores):
    document = CalibrationDocument.read({"metric": "faithfulness", "scores": scores})
    assert detect_drift(document, [0.1] * 90) is None


@pytest.mark.parametrize(
    "scores",
    [
        [],
        {"counts": {"high": 90}},
        {"counts": {"0.9": "many"}},
        {"counts": {"nan": 90}},
    ],
)
def test_score_counts_that_somebody_edited_are_an_error(scores):
    with pytest.raises(ValidationError):
        CalibrationDocument.read({"metric": "faithfulness", "scores": scores})


def test_a_calibration_counts_the_scores_of_all_verdicts_labelled_or_not():
    verdicts, labels = table(40, 10, 20, 30)
    found = held(verdicts, labels[:50])["scores"]
    assert found == {"n": 100, "counts": {"0.1": 30, "0.2": 10, "0.8": 20, "0.9": 40}}
