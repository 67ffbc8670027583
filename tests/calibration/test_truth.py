"""The corrected share, and how many labels it takes."""

from __future__ import annotations

import numpy as np
import pytest

from labelled import held, label, table, verdict
from misslink.calibration.corrected_prevalence import correct_prevalence, labels_needed
from misslink.calibration.inter_annotator import LabelPair, TiedLabel
from misslink.calibration.verdicts import JudgedCase


def pair(case, good, score, weight=None):
    return LabelPair(
        case, bool(good), float(good), score, score, weight, JudgedCase(case, score, score)
    )


def test_prediction_powered_is_the_one_worked_out_by_hand():
    """y, f of 20 labelled cases without an error, 70 of 120 called good: 0.5 + b (7/12 - 0.5)."""
    pairs = [pair(f"c{n}", n % 2, float(n % 2)) for n in range(20)]
    scores = {f"o{n}": float(n < 60) for n in range(100)}
    found = correct_prevalence(pairs, scores, 0.5, seed=0)
    b = 0.25 / (70 / 120 * 50 / 120)
    assert found["prediction_powered"].value == pytest.approx(0.5 + b * (70 / 120 - 0.5))
    assert found["power"] == pytest.approx(b * 100 / 120)
    assert found["judge_only"].value == pytest.approx(70 / 120)
    assert found["labelled_only"].value == 0.5


def test_the_correction_undoes_what_the_judge_errs():
    verdicts, labels = table(80, 20, 10, 90)
    # among the others 30 % are good: 0.3 * 0.8 + 0.7 * 0.1 = 31 % are called good
    others = [verdict(f"o{n}", 0.9 if n < 310 else 0.1) for n in range(1000)]
    found = held(verdicts, labels, all_verdicts=others)["corrected"]
    everyone = (80 + 10 + 310) / 1200
    assert found["judge_only"]["value"] == pytest.approx(everyone)
    assert found["rogan_gladen"]["value"] == pytest.approx((everyone - 0.1) / 0.7)
    assert found["rogan_gladen"]["low"] < found["rogan_gladen_posterior"]["value"]


def test_more_labels_never_widen_the_curve():
    verdicts, labels = table()
    others = [verdict(f"o{n}", 0.9) for n in range(2000)]
    found = held(verdicts, labels, all_verdicts=others)["labels_needed"]
    widths = [point["width"] for point in found["curve"]]
    assert widths == sorted(widths, reverse=True)
    assert [point["labels"] for point in found["curve"]] == [
        25, 50, 100, 200, 300, 500, 1000, 2000, 2100,
    ]  # fmt: skip
    assert all(p["width"] <= p["labelled_only"] + 1e-12 for p in found["curve"])
    assert found["for_width"]["0.2"] < found["for_width"]["0.1"]


def test_scores_that_do_not_vary_give_no_correlation_to_plan_with():
    verdicts = [verdict(f"c{n}", 0.9) for n in range(20)]
    found = held(verdicts, [label(f"c{n}", n % 2) for n in range(20)])
    assert found["labels_needed"]["correlation"] is None
    curve = found["labels_needed"]["curve"]
    assert curve
    assert all(point["width"] == point["labelled_only"] for point in curve)
    assert found["corrected"]["prediction_powered"]["value"] == 0.5


def test_without_a_label_there_is_no_curve():
    assert labels_needed([], 10)["curve"] == []


@pytest.mark.slow
@pytest.mark.parametrize("prevalence", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("n", [50, 100, 300])
def test_the_intervals_hold_the_truth_and_are_narrower_than_the_labels_alone(n, prevalence):
    generator = np.random.default_rng(round(1000 * prevalence) + n)
    held_by = {"prediction_powered": 0, "rogan_gladen": 0, "labelled_only": 0}
    given = dict.fromkeys(held_by, 0)
    width = dict.fromkeys(held_by, 0.0)
    for _ in range(1000):
        truth = generator.random(3000) < prevalence
        right = generator.random(3000) < np.where(truth, 0.9, 0.85)
        call = np.where(right, truth, ~truth)
        scores = np.where(call, 0.9, 0.1)
        pairs = [pair(f"c{i}", truth[i], float(scores[i])) for i in range(n)]
        others = {f"c{i}": float(scores[i]) for i in range(n, 3000)}
        found = correct_prevalence(pairs, others, 0.5, seed=0)
        for name in held_by:
            each = found[name]
            if each.value is not None:
                given[name] += 1
                held_by[name] += each.low <= prevalence <= each.high
                width[name] += each.high - each.low
    for name in ("prediction_powered", "labelled_only"):
        assert given[name] == 1000
        assert held_by[name] >= 930
    assert held_by["rogan_gladen"] >= 0.93 * given["rogan_gladen"]
    assert width["prediction_powered"] < width["labelled_only"]


def test_ties_of_people_count_half_and_leave_the_error_rates_alone():
    pairs = [pair(f"c{n}", n % 2, float(n % 2)) for n in range(20)]
    tied = [TiedLabel(f"t{n}", 1.0) for n in range(5)]
    scores = {f"o{n}": float(n < 60) for n in range(100)} | {one.case_id: 1.0 for one in tied}
    found, without = (correct_prevalence(pairs, scores, 0.5, 0, some) for some in (tied, ()))
    assert found["labelled_only"].value == pytest.approx((10 + 2.5) / 25)
    assert found["prediction_powered"].n == 25
    assert (found["ties"], found["verdicts"]) == (5, 125)
    assert found["prediction_powered"].value < without["prediction_powered"].value
    for way in ("rogan_gladen", "rogan_gladen_posterior", "judge_only"):
        assert found[way] == without[way]


def test_left_out_ties_would_bias_the_share_that_people_would_find():
    """Half of the answers are good, a tenth split two people, and the judge calls those good."""
    pairs = [pair(f"c{n}", n < 200, float(n < 200)) for n in range(360)]
    tied = [TiedLabel(f"t{n}", 1.0) for n in range(40)]
    found = correct_prevalence(pairs, {}, 0.5, 0, tied)["prediction_powered"]
    assert found.value == pytest.approx((200 + 20) / 400)


def by_weight(generator, n=400):
    """Of 4,000 cases, of which the judge calls 1,000 bad: half of the labels are of those."""
    truth = generator.random(4000) < np.where(np.arange(4000) < 1000, 0.3, 0.9)
    scores = np.where(np.arange(4000) < 1000, 0.1, 0.9)
    drawn = [*generator.choice(1000, n // 2, replace=False),
             *(1000 + generator.choice(3000, n // 2, replace=False))]  # fmt: skip
    weights = [1000 / (n // 2)] * (n // 2) + [3000 / (n // 2)] * (n // 2)
    pairs = [
        pair(f"c{at}", truth[at], float(scores[at]), weight)
        for at, weight in zip(drawn, weights, strict=True)
    ]
    return truth, pairs, {f"c{at}": float(scores[at]) for at in range(4000)}


def test_with_unequal_weights_rogan_and_gladen_go_by_the_weighted_rates():
    _, pairs, scores = by_weight(np.random.default_rng(3))
    found = correct_prevalence(pairs, scores, 0.5, 0)
    good = [(p.weight, p.score > 0.5) for p in pairs if p.good]
    bad = [(p.weight, p.score < 0.5) for p in pairs if not p.good]
    sensitivity, specificity = (
        sum(w for w, right in side if right) / sum(w for w, _ in side) for side in (good, bad)
    )
    wanted = (0.75 - 1 + specificity) / (sensitivity + specificity - 1)
    assert found["rogan_gladen"].value == pytest.approx(wanted)
    assert found["rogan_gladen"].low < wanted < found["rogan_gladen"].high
    assert found["rogan_gladen_posterior"].value == pytest.approx(wanted)


@pytest.mark.slow
def test_the_weighted_interval_of_rogan_and_gladen_holds_the_truth():
    generator, held_by, draws = np.random.default_rng(5), 0, 300
    for _ in range(draws):
        truth, pairs, scores = by_weight(generator, 200)
        found = correct_prevalence(pairs, scores, 0.5, 0)["rogan_gladen"]
        held_by += found.low <= truth.mean() <= found.high
    assert held_by / draws >= 0.93


def test_labels_needed_go_by_the_weighted_share_and_correlation():
    _, pairs, scores = by_weight(np.random.default_rng(3))
    found = labels_needed(pairs, len(scores))
    w = np.array([one.weight for one in pairs])
    good, said = (np.array([float(getattr(p, name)) for p in pairs]) for name in ("good", "score"))
    covariance = np.cov(good, said, aweights=w)
    assert found["share"] == pytest.approx(np.average(good, weights=w))
    assert found["share"] > good.mean() + 0.1
    rho = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found["correlation"] == pytest.approx(rho)
