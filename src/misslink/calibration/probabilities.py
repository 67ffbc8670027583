"""Check and recalibrate the judge's probabilities, and fit thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from misslink.calibration.inter_annotator import LabelPair
from misslink.stats.classification import ThresholdAim, nested_threshold
from misslink.stats.probability_calibration import (
    brier_score,
    calibration_error,
    cross_fitted_probabilities,
    fit_isotonic,
    fit_platt,
    reliability_bins,
)
from misslink.types import Estimate

_MIN_LABELS = 30  # to fit the uncertain band
_MIN_RARER_LABELS = 5  # of either label; a curve through fewer is chance
TARGET_RATE = 0.9  # precision, and recall, that fitted thresholds are to reach


def probability_measures(pairs: Sequence[LabelPair], seed: int) -> dict[str, Estimate]:
    """Return Brier score and expected calibration error; missing if there is no probability."""
    return _probability_errors(*_labelled_probabilities(pairs), seed)


def _probability_errors(
    good: Sequence[bool], chance: Sequence[float], seed: int
) -> dict[str, Estimate]:
    return {
        "brier": brier_score(good, chance, seed=seed),
        "ece": calibration_error(good, chance, seed=seed),
    }


def reliability_diagram(pairs: Sequence[LabelPair]) -> list[dict[str, Any]]:
    """Return the reliability diagram: ten bins, empty ones too; none without probabilities."""
    return [dict(vars(each)) for each in reliability_bins(*_labelled_probabilities(pairs))]


def recalibrate(pairs: Sequence[LabelPair], seed: int) -> dict[str, Any]:
    """Return Brier score and calibration error after recalibration, cross-fitted, and the curves.

    Returns
    -------
    dict
        By form 'platt' and 'isotonic': ``brier``, ``ece`` (Estimates) and ``curve``, fitted on all
        labels. ``reason`` if there is nothing to fit on.
    """
    good, chance = _labelled_probabilities(pairs)
    reason = _too_few_reason(good, "the judge gives no probability")
    if reason:
        return {"reason": reason}
    platt, steps = fit_platt(good, chance), fit_isotonic(good, chance)
    curves: dict[Literal["platt", "isotonic"], dict[str, Any]] = {
        "platt": dict(vars(platt)),
        "isotonic": dict(vars(steps)),
    }
    document: dict[str, Any] = {"reason": None}
    for form, curve in curves.items():
        recalibrated = cross_fitted_probabilities(good, chance, method=form, seed=seed)
        document[form] = {**_probability_errors(good, recalibrated, seed), "curve": curve}
    return document


def nested_thresholds(
    pairs: Sequence[LabelPair], seed: int, target: float = TARGET_RATE
) -> dict[str, Any]:
    """Return thresholds fitted for finding bad cases, with their cross-fitted performance.

    Parameters
    ----------
    pairs : sequence of LabelPair
    seed : int
    target : float
        In (0, 1]: the precision that one threshold is to reach, and the recall of another.

    Returns
    -------
    dict
        By aim 'f1', 'precision_0.9', 'recall_0.9' (or another target): ``threshold`` (None: none
        reaches it), ``of_folds`` and ``detection``, cross-fitted. ``reason`` if there is nothing
        to fit on.
    """
    good, scores = [pair.good for pair in pairs], [pair.score for pair in pairs]
    reason = _too_few_reason(good, "no labelled case has a verdict")
    document: dict[str, Any] = {"reason": reason}
    if reason:
        return document
    aims: tuple[tuple[str, ThresholdAim, float | None], ...] = (
        ("f1", "f1", None),
        (f"precision_{target:g}", "precision", target),
        (f"recall_{target:g}", "sensitivity", target),
    )
    for name, aim, rate in aims:
        nested = nested_threshold(good, scores, aim=aim, target=rate, find=False, seed=seed)
        bad = nested.measured.turned
        document[name] = {
            "threshold": nested.threshold,
            "of_folds": list(nested.of_folds),
            "detection": {"precision": bad.precision, "recall": bad.sensitivity, "f1": bad.f1},
        }
    return document


def uncertain_band(
    pairs: Sequence[LabelPair], certainty: float
) -> tuple[list[float] | None, str | None]:
    """Return the probabilities at which either call would be wrong too often.

    Parameters
    ----------
    pairs : sequence of LabelPair
    certainty : float
        Share of calls that must be correct, in (0.5, 1).

    Returns
    -------
    band : [low, high] or None
        Where a Platt curve through the labels gives a good case a probability between
        1 - `certainty` and `certainty`.
    reason : str or None
        Why there is none.
    """
    good, chance = _labelled_probabilities(pairs)
    if len(good) < _MIN_LABELS or min(sum(good), len(good) - sum(good)) < _MIN_RARER_LABELS:
        least = f"{_MIN_LABELS} labels with a probability, {_MIN_RARER_LABELS} of either kind"
        return None, f"a band needs {least}"
    curve = fit_platt(good, chance)
    if curve.slope <= 0:
        return None, "good cases have no higher probability than bad ones, so no band helps"
    logit = math.log(certainty / (1 - certainty))
    low = max((-logit - curve.intercept) / curve.slope, 0.0)
    high = min((logit - curve.intercept) / curve.slope, 1.0)
    if low >= high:
        return None, f"at every probability the better call is correct in {100 * certainty:.0f}%"
    return [low, high], None


def _labelled_probabilities(pairs: Sequence[LabelPair]) -> tuple[list[bool], list[float]]:
    both = [(pair.good, pair.probability) for pair in pairs if pair.probability is not None]
    return [good for good, _ in both], [chance for _, chance in both]


def _too_few_reason(good: Sequence[bool], none: str) -> str | None:
    if not good:
        return none
    rarer = min(sum(good), len(good) - sum(good))
    if rarer < 2:
        return f"the rarer label has {rarer} cases; fitting and measuring needs 2 or more"
    return None
