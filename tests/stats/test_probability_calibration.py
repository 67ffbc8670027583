"""Brier score, calibration error and recalibration."""

import numpy as np
import pytest

from misslink.stats.intervals import proportion
from misslink.stats.probability_calibration import (
    brier_score,
    calibration_error,
    cross_fitted_probabilities,
    fit_isotonic,
    fit_platt,
    reliability_bins,
)


def judged(seed, n=200):
    generator = np.random.default_rng(seed)
    chance = generator.random(n)
    return (generator.random(n) < chance**2).astype(int).tolist(), chance.tolist()


def test_brier_is_that_of_scikit_learn():
    from sklearn.metrics import brier_score_loss

    labels, chance = judged(1)
    found = brier_score(labels, chance)
    assert found.value == pytest.approx(brier_score_loss(labels, chance))
    assert found.low < found.value < found.high


def test_bins_are_those_of_scikit_learn():
    from sklearn.calibration import calibration_curve

    labels, chance = judged(2)
    good, predicted = calibration_curve(labels, chance, n_bins=8)
    bins = reliability_bins(labels, chance, bins=8)
    assert sum(each.n for each in bins) == 200
    assert [each.good.value for each in bins] == pytest.approx(good)
    assert [each.predicted for each in bins] == pytest.approx(predicted)


def test_a_bin_begins_with_its_low_end_and_the_last_holds_one():
    found = reliability_bins([1, 1, 0, 1], [0.3, 0.7, 0.6999, 1.0], bins=10)
    filled = {(each.low, each.high): each.n for each in found if each.n}
    assert filled == {(0.3, 0.4): 1, (0.7, 0.8): 1, (0.6, 0.7): 1, (0.9, 1.0): 1}


def test_an_empty_bin_is_missing_and_not_zero():
    empty = reliability_bins([1], [0.9], bins=2)[0]
    assert (empty.n, empty.predicted, empty.good.value) == (0, None, None)
    assert empty.good.reason_code.code == "no_cases"


def test_calibration_error_worked_by_hand():
    # below one half: 4 cases at 0.25, 2 good; above: 6 at 0.75, 3 good: 0.4*0.25 + 0.6*0.25
    labels, chance = [1, 1, 0, 0] + [1, 0] * 3, [0.25] * 4 + [0.75] * 6
    found = calibration_error(labels, chance, bins=2)
    assert found.value == pytest.approx(0.25)
    assert found.low == 0.0  # ten cases do not show that anything is wrong
    assert found.high < 0.7


def test_gross_overconfidence_is_shown_even_by_the_low_end():
    found = calibration_error([0, 1] * 100, [0.99] * 200)
    assert found.value == pytest.approx(0.49)
    assert found.low == pytest.approx(0.42, abs=0.01)  # a share of 200 is good to 7 points
    assert found.high == pytest.approx(0.56, abs=0.01)


@pytest.mark.slow
def test_probabilities_that_hold_have_an_interval_down_to_zero():
    generator = np.random.default_rng(4)
    held = 0
    for _ in range(60):
        chance = np.round(generator.random(60), 2)
        labels = (generator.random(60) < chance).astype(int)
        found = calibration_error(labels.tolist(), chance.tolist())
        assert found.value > 0.03
        held += found.low == 0
    assert held >= 54


def test_no_cases_are_missing():
    assert brier_score([], []).value is None
    assert calibration_error([], []).reason_code.code == "no_cases"
    assert reliability_bins([], []) == []


@pytest.mark.parametrize("wrong", [-0.1, 1.01, float("nan")])
def test_what_is_no_probability_is_refused(wrong):
    for function in (brier_score, calibration_error, reliability_bins):
        with pytest.raises(ValueError, match=r"between 0 and 1|finite"):
            function([1, 0], [0.5, wrong])


def test_labels_and_bins_that_are_none_are_refused():
    with pytest.raises(ValueError, match="0 or 1"):
        brier_score([0.5], [0.5])
    with pytest.raises(ValueError, match="pair"):
        brier_score([1], [])
    with pytest.raises(ValueError, match="0 bins"):
        reliability_bins([1], [0.5], bins=0)


def test_a_bend_that_is_alike_in_all_bins_is_not_taken_for_gaps_that_differ():
    # each bin of 20 lies 0.2 from what is said: the error is as sure as one share of 100 is
    labels, chance = [], []
    for said in (0.25, 0.35, 0.45, 0.55, 0.65):
        good = round(20 * (said - 0.2))
        labels += [1] * good + [0] * (20 - good)
        chance += [said] * 20
    found = calibration_error(labels, chance)
    assert found.value == pytest.approx(0.2)
    apart = sum(chance) / 100 - proportion(sum(labels), 100).high
    assert found.low == pytest.approx(apart, abs=0.025)


def test_bins_of_one_case_have_an_interval_within_zero_and_one():
    found = calibration_error([1, 0, 1], [0.05, 0.95, 0.45])
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert calibration_error([1], [0.0]).high == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 300])
@pytest.mark.parametrize("bend", [0.0, 0.15])
def test_the_interval_of_the_calibration_error_covers_the_truth(n, bend):
    """Probabilities that hold, and such as are up to 0.15 too high.

    The truth of those that hold is 0, at the end of what can be, so that the interval errs on one
    side only: 97.5%. Of 50 cases an error of 0.15 is hardly larger than what chance makes of none,
    so that the interval reaches down to it and holds the truth in 99%. 150 draws have a standard
    error of 1.4 to 2.1%; two of it are granted.
    """
    generator = np.random.default_rng([n, int(100 * bend)])
    truth = np.mean(np.minimum(np.arange(0, 1, 1e-4), bend))
    held = 0
    draws = 150
    for _ in range(draws):
        chance = generator.random(n)
        labels = generator.random(n) < chance - bend
        found = calibration_error(labels.tolist(), chance.tolist())
        held += found.low <= truth <= found.high
    assert held / draws >= 0.93 - 2 * 0.021
    assert held / draws <= (0.97 if bend and n > 50 else 1) + 2 * 0.014


@pytest.mark.parametrize(
    ("labels", "chance", "least"),
    [([1] * 50, 1.0, 0.01), ([1, 0] * 25, 0.5, 0.1), ([1], 1.0, 0.5)],
)
def test_an_error_of_zero_by_chance_is_not_zero_for_certain(labels, chance, least):
    """With a truth of 0.6, probabilities of 0.5 meet 25 of 50 in one sample of twenty-five."""
    found = calibration_error(labels, [chance] * len(labels))
    assert (found.value, found.low) == (0, 0)
    assert found.high > least


def scored(seed, n=150):
    generator = np.random.default_rng(seed)
    labels = (generator.random(n) < 0.6).astype(int)
    return labels.tolist(), np.round(labels + generator.normal(size=n), 1).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_isotonic_is_that_of_scikit_learn_with_ties_and_beyond_the_ends(seed):
    from sklearn.isotonic import IsotonicRegression

    labels, scores = scored(seed)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    asked = np.linspace(-6, 7, 200)
    assert fit_isotonic(labels, scores)(asked) == pytest.approx(oracle.predict(asked).tolist())


@pytest.mark.parametrize("scale", [1, 1000])
def test_platt_is_that_of_scikit_learn_on_any_scale(scale):
    from sklearn.calibration import _SigmoidCalibration

    labels, scores = scored(5)
    scores = [scale * score + 3 for score in scores]
    oracle = _SigmoidCalibration().fit(np.array(scores), np.array(labels))
    found = fit_platt(labels, scores)
    assert found.slope == pytest.approx(-oracle.a_, rel=1e-4)
    assert found.intercept == pytest.approx(-oracle.b_, rel=1e-4)


def test_scores_that_part_the_labels_fully_make_no_endless_slope():
    found = fit_platt([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    assert 0 < found.slope < 100
    assert found([0.1])[0] > 0.1  # (N- + 1 labels pulled to 1 / 4)


def test_scores_that_are_all_alike_give_the_share():
    found = fit_platt([1, 1, 1, 0], [0.5] * 4)
    # targets 4/5 three times and 1/3 once: their mean
    assert found([0.5])[0] == pytest.approx((3 * 4 / 5 + 1 / 3) / 4)
    assert fit_isotonic([1, 1, 1, 0], [0.5] * 4)([0.0, 0.5, 1.0]) == [0.75] * 3


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_a_cross_fitted_probability_does_not_know_its_own_label(method):
    generator = np.random.default_rng(8)
    labels = (generator.random(300) < 0.5).astype(int).tolist()
    noise = generator.normal(size=300).tolist()
    fit = {"isotonic": fit_isotonic, "platt": fit_platt}[method]
    assert (
        brier_score(labels, fit(labels, noise)(noise)).value < 0.25
    )  # what is fitted looks better
    assert (
        brier_score(labels, cross_fitted_probabilities(labels, noise, method=method)).value > 0.25
    )


def test_cross_fitting_mends_overconfidence_and_takes_a_seed():
    generator = np.random.default_rng(9)
    said = generator.random(600)
    labels = (generator.random(600) < 0.3 + 0.4 * said).astype(int).tolist()
    fitted = cross_fitted_probabilities(labels, said.tolist(), seed=1)
    assert brier_score(labels, fitted).value < brier_score(labels, said.tolist()).value - 0.01
    assert fitted == cross_fitted_probabilities(labels, said.tolist(), seed=1)
    assert fitted != cross_fitted_probabilities(labels, said.tolist(), seed=2)


@pytest.mark.parametrize("function", [fit_isotonic, fit_platt, cross_fitted_probabilities])
def test_labels_that_teach_nothing_are_refused(function):
    for labels in ([1, 1, 1], []):
        with pytest.raises(ValueError, match="nothing to fit"):
            function(labels, [0.5] * len(labels))
    with pytest.raises(ValueError, match="pair up"):
        function([1, 0], [0.5])
    with pytest.raises(ValueError, match="finite"):
        function([1, 0], [0.5, float("inf")])


def test_a_single_case_of_a_label_cannot_be_cross_fitted():
    with pytest.raises(ValueError, match="rarer label has 1 case"):
        cross_fitted_probabilities([1, 1, 1, 0], [0.1, 0.2, 0.3, 0.4])
