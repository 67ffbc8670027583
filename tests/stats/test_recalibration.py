"""Isotonic and Platt against scikit-learn; cross-fitting must not see the held-out labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from misslink.stats.probability_calibration import (
    brier_score,
    cross_fitted_probabilities,
    fit_isotonic,
    fit_platt,
)


def scored(seed, n=150):
    generator = np.random.default_rng(seed)
    labels = (generator.random(n) < 0.6).astype(int)
    return labels.tolist(), np.round(labels + generator.normal(size=n), 1).tolist()


@pytest.mark.parametrize("seed", range(3))
def test_isotonic_is_that_of_scikit_learn_with_ties_and_beyond_the_ends(seed):
    labels, scores = scored(seed)
    oracle = IsotonicRegression(out_of_bounds="clip").fit(scores, labels)
    asked = np.linspace(-6, 7, 200)
    assert fit_isotonic(labels, scores)(asked) == pytest.approx(oracle.predict(asked).tolist())


@pytest.mark.parametrize("scale", [1, 1000])
def test_platt_is_that_of_scikit_learn_on_any_scale(scale):
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
