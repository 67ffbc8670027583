"""Scores that have changed since a judge was calibrated, against SciPy's test of two samples."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labelled import held, table
from misslink.calibration.score_drift import detect_drift, score_distribution

stats = pytest.importorskip("scipy.stats")


def calibrated(scores):
    return {"metric": "faithfulness", "scores": score_distribution(scores)}


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
    json.dumps(found.document(), allow_nan=False)


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


@pytest.mark.parametrize(
    "scores",
    [None, [], {"counts": None}, {"counts": {"high": 90}}, {"counts": {"0.9": "many"}},
     {"counts": {"nan": 90}}, {"counts": {"0.9": -90}}],
)  # fmt: skip
def test_a_calibration_that_does_not_say_how_they_were_tells_nothing(scores):
    assert detect_drift({"metric": "faithfulness", "scores": scores}, [0.1] * 90) is None


def test_a_calibration_counts_the_scores_of_all_verdicts_labelled_or_not():
    verdicts, labels = table(40, 10, 20, 30)
    found = held(verdicts, labels[:50])["scores"]
    assert found == {"n": 100, "counts": {"0.1": 30, "0.2": 10, "0.8": 20, "0.9": 40}}
