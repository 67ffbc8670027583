"""The judge's probabilities: checked, recalibrated, cut."""

import math

import numpy as np
import pytest

from json_values import as_json
from labelled import held, label, verdict
from misslink.calibration.bias import firth_regression
from misslink.calibration.inter_annotator import LabelPair
from misslink.calibration.judge_accuracy import (
    judge_confusion,
    nested_thresholds,
    probability_measures,
    recalibrate,
    uncertain_band,
)
from misslink.calibration.verdicts import JudgedCase
from misslink.types import Reason

nested_thresholds = as_json(nested_thresholds)
recalibrate = as_json(recalibrate)


def pairs_of(good, chance):
    return [
        LabelPair(f"c{n}", bool(g), float(g), p, p, None, JudgedCase(f"c{n}", p, p))
        for n, (g, p) in enumerate(zip(good, chance, strict=True))
    ]


@pytest.fixture
def overconfident():
    """A judge that says sigmoid(3 z) where sigmoid(z) holds."""
    generator = np.random.default_rng(4)
    z = generator.normal(0, 1.5, size=1500)
    good = generator.random(1500) < 1 / (1 + np.exp(-z))
    return pairs_of(good.tolist(), (1 / (1 + np.exp(-3 * z))).tolist())


@pytest.mark.slow
def test_brier_and_calibration_error_are_those_of_scikit_learn(overconfident):
    metrics = pytest.importorskip("sklearn.metrics")
    good = [pair.good for pair in overconfident]
    chance = [pair.probability for pair in overconfident]
    found = probability_measures(overconfident, seed=0)
    assert found["brier"].value == pytest.approx(metrics.brier_score_loss(good, chance))


@pytest.mark.slow
def test_recalibration_mends_what_is_overconfident(overconfident):
    before = probability_measures(overconfident, seed=0)
    found = recalibrate(overconfident, seed=0)
    for form in ("platt", "isotonic"):
        assert found[form]["ece"]["value"] < before["ece"].value / 2
        assert found[form]["brier"]["value"] < before["brier"].value


def test_a_threshold_is_not_measured_on_what_it_was_fitted_on():
    """Scores that tell nothing: fitted on all cases F1 looks better than it is."""
    generator = np.random.default_rng(2)
    pairs = pairs_of((np.arange(60) % 3 > 0).tolist(), generator.random(60).tolist())
    found = nested_thresholds(pairs, seed=0)
    cut = found["f1"]["threshold"]
    assert found["f1"]["detection"]["f1"]["value"] < judge_confusion(pairs, cut).turned.f1.value
    assert found["precision_0.9"]["threshold"] is None  # no cut reaches it


def test_the_band_is_where_the_curve_lies_around_one_half():
    """P(good) = sigmoid(8 p - 4): 0.4 to 0.6 from 0.5 - ln(1.5) / 8 to 0.5 + ln(1.5) / 8."""
    generator = np.random.default_rng(8)
    chance = generator.random(20_000)
    good = generator.random(20_000) < 1 / (1 + np.exp(4 - 8 * chance))
    band, reason = uncertain_band(pairs_of(good.tolist(), chance.tolist()), 0.6)
    half = math.log(1.5) / 8
    assert band == pytest.approx([0.5 - half, 0.5 + half], abs=0.01)
    assert reason is None


@pytest.mark.parametrize(
    ("good", "chance", "reason"),
    [
        ([1, 0] * 5, [0.9, 0.1] * 5, Reason(code="few_labels_for_band", labels=30, rarer=5)),
        (
            [1] * 40 + [0] * 2,
            [0.9] * 40 + [0.1] * 2,
            Reason(code="few_labels_for_band", labels=30, rarer=5),
        ),
        ([0, 1] * 20, [0.9, 0.1] * 20, Reason(code="band_of_no_use")),
        (
            ([1] * 45 + [0] * 5 + [1] * 46 + [0] * 4),
            [0.2] * 50 + [0.8] * 50,
            Reason(code="certain_everywhere", certainty=0.6),
        ),
    ],
)
def test_where_there_is_no_band_the_reason_is_told(good, chance, reason):
    assert uncertain_band(pairs_of(good, chance), 0.6) == (None, reason)


def test_the_bins_hold_every_case_once():
    rows = [verdict(f"c{n}", n / 100) for n in range(101)]
    document = held(rows, [label(f"c{n}", n > 30) for n in range(101)])
    bins = document["reliability"]
    assert [each["n"] for each in bins] == [10] * 9 + [11]
    assert (bins[0]["low"], bins[-1]["high"]) == (0.0, 1.0)
    assert bins[0]["predicted"] == pytest.approx(0.045)
    assert (bins[0]["good"]["value"], bins[9]["good"]["value"]) == (0.0, 1.0)


@pytest.mark.parametrize("wanted", [0.5, 0.8])
def test_the_precision_and_the_recall_that_are_wanted_are_reached_on_the_labels(wanted):
    """Fitted on all cases the threshold reaches what was asked; cross-fitted it may not."""
    generator = np.random.default_rng(3)
    good = np.arange(200) % 2 == 0
    chance = np.clip(generator.normal(np.where(good, 0.62, 0.42), 0.18), 0, 1)
    pairs = pairs_of(good.tolist(), chance.tolist())
    found = nested_thresholds(pairs, seed=0, target=wanted)
    assert set(found) == {"reason", "f1", f"precision_{wanted}", f"recall_{wanted}"}
    for name, cells in (("precision", 0), ("recall", 1)):
        cut = found[f"{name}_{wanted}"]["threshold"]
        called = [pair for pair in pairs if pair.score < cut]
        caught = sum(not pair.good for pair in called)
        assert caught / (len(called), 100)[cells] >= wanted


CHI2_95 = 3.841458820694124


def test_a_two_by_two_table_gives_the_log_odds_ratio_with_half_a_case_more():
    outcome = [1] * 12 + [0] * 5 + [1] * 3 + [0] * 20
    number = [1] * 17 + [0] * 23
    found = firth_regression(outcome, number)
    expected = math.log((12.5 * 20.5) / (5.5 * 3.5))
    assert found.coefficient.value / np.std(number) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_many_cases_give_what_maximum_likelihood_gives():
    sm = pytest.importorskip("statsmodels.api")
    generator = np.random.default_rng(5)
    x, other = generator.normal(size=4000), generator.normal(size=4000)
    y = generator.random(4000) < 1 / (1 + np.exp(1 - 0.4 * x - other))
    found = firth_regression(y.tolist(), x.tolist(), [other.tolist()])
    design = sm.add_constant(np.column_stack([(x - x.mean()) / x.std(), other]))
    oracle = sm.Logit(y.astype(float), design).fit(disp=0)
    assert found.coefficient.value == pytest.approx(oracle.params[1], abs=2e-3)
    assert [found.coefficient.low, found.coefficient.high] == pytest.approx(
        list(oracle.conf_int()[1]), abs=4e-3
    )


def test_the_ends_are_where_the_penalised_likelihood_has_dropped():
    from scipy.optimize import minimize

    x = np.array([0.1, 0.5, 0.9, 1.3, 2.0, 2.2, 3.1, 3.3, 4.0, 4.1])
    y = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 1])
    z = (x - x.mean()) / x.std()

    def loss(intercept, slope):
        line = intercept + slope * z
        chance = 1 / (1 + np.exp(-line))
        design = np.column_stack([np.ones(10), z])
        information = design.T @ (design * (chance * (1 - chance))[:, None])
        likelihood = (y * line - np.logaddexp(0, line)).sum()
        return -(likelihood + np.linalg.slogdet(information)[1] / 2)

    best = minimize(lambda at: loss(*at), [0, 0], method="Nelder-Mead", options={"xatol": 1e-9})
    found = firth_regression(y.tolist(), x.tolist()).coefficient
    assert found.value == pytest.approx(best.x[1], abs=1e-3)
    for end in (found.low, found.high):
        profile = minimize(lambda at, end=end: loss(at[0], end), [0.0], method="Nelder-Mead")
        assert 2 * (profile.fun - best.fun) == pytest.approx(CHI2_95, abs=1e-2)


def test_full_separation_has_a_finite_value_and_an_interval_off_zero():
    found = firth_regression([0] * 10 + [1] * 10, list(range(20)))
    assert 0 < found.coefficient.low < found.coefficient.value < 20
    assert found.p < 1e-4


def test_turning_the_outcome_turns_the_sign():
    x, y = [1, 2, 3, 4, 5, 6], [0, 1, 0, 1, 1, 1]
    one, other = (
        firth_regression(y, x).coefficient,
        firth_regression([1 - each for each in y], x).coefficient,
    )
    assert one.value == pytest.approx(-other.value)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-4)


@pytest.mark.parametrize(
    ("outcome", "number", "others", "reason"),
    [
        ([], [], (), "no case"),
        ([1, 1, 1], [1, 2, 3], (), "the outcome is the same"),
        ([1, 0, 1], [2, 2, 2], (), "the number is the same"),
        ([1, 0, 1, 0], [1, 2, 3, 4], ([2, 4, 6, 8],), "is determined by another"),
    ],
)
def test_what_cannot_be_fitted_is_missing_and_says_why(outcome, number, others, reason):
    found = firth_regression(outcome, number, others)
    assert (found.coefficient.value, found.p) == (None, None)
    assert reason in found.coefficient.reason


def test_other_lengths_are_refused():
    with pytest.raises(ValueError, match="not of the same cases"):
        firth_regression([1, 0], [1])


@pytest.mark.slow
def test_the_interval_holds_the_true_slope_in_95_of_100_samples():
    generator = np.random.default_rng(11)
    held, draws = 0, 200
    for _ in range(draws):
        x = generator.normal(size=60)
        y = generator.random(60) < 1 / (1 + np.exp(1.5 - 0.8 * x))
        if y.any() and not y.all():
            found = firth_regression(y.tolist(), x.tolist()).coefficient
            held += found.low / x.std() <= 0.8 <= found.high / x.std()
    assert 0.92 <= held / draws <= 0.98  # two standard errors
