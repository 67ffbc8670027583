"""Whether the judge's probabilities hold, how to mend them, and where they are no guide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from misslink.calibration.pairs import Pair
from misslink.stats import (
    brier,
    calibration_error,
    cross_fitted,
    fit_isotonic,
    fit_platt,
    nested_threshold,
    reliability_bins,
)

__all__ = ["WANTED", "nested", "probability", "recalibration", "reliability", "uncertain_band"]

_FEWEST = 30  # labels to find a band with
_FEWEST_OF_EITHER = 5  # of either label; fewer make a curve of chance
_TWO = 2  # of either label, for folds
_FORMS = ("platt", "isotonic")
WANTED = 0.9  # of precision, and of recall, where a threshold is to reach that much


def probability(pairs: Sequence[Pair], seed: int) -> dict[str, Any]:
    """Brier score and expected calibration error, with their intervals beside.

    Returns
    -------
    dict
        ``numbers`` {brier, ece} without intervals, ``intervals`` with; None and missing where the
        judge gives no probability.
    """
    good, chance = _known(pairs)
    found = {
        "brier": brier(good, chance, seed=seed),
        "ece": calibration_error(good, chance, seed=seed),
    }
    return {
        "numbers": {name: estimate.value for name, estimate in found.items()},
        "intervals": found,
    }


def reliability(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """The reliability diagram: ten bins, empty ones too; none without probabilities."""
    return [
        {
            "low": each.low,
            "high": each.high,
            "n": each.n,
            "predicted": each.predicted,
            "good": each.good,
        }
        for each in reliability_bins(*_known(pairs))
    ]


def recalibration(pairs: Sequence[Pair], seed: int) -> dict[str, Any]:
    """Brier score and calibration error after recalibration, cross-fitted, and the curve itself.

    Returns
    -------
    dict
        By form 'platt' and 'isotonic': ``brier``, ``ece`` (Estimates) and ``curve``, fitted on all
        labels. ``reason`` where there is nothing to fit on.
    """
    good, chance = _known(pairs)
    reason = _too_few(good, "the judge gives no probability")
    if reason:
        return {"reason": reason}
    found: dict[str, Any] = {"reason": None}
    for form in _FORMS:
        mended = cross_fitted(good, chance, method=form, seed=seed)  # type: ignore[arg-type]
        found[form] = {
            "brier": brier(good, mended, seed=seed),
            "ece": calibration_error(good, mended, seed=seed),
        }
    platt, steps = fit_platt(good, chance), fit_isotonic(good, chance)
    found["platt"]["curve"] = {"slope": platt.slope, "intercept": platt.intercept}
    found["isotonic"]["curve"] = {
        "scores": list(steps.scores),
        "probabilities": list(steps.probabilities),
    }
    return found


def nested(pairs: Sequence[Pair], seed: int, wanted: float = WANTED) -> dict[str, Any]:
    """Thresholds fitted for finding bad cases, and how each does on cases it was not fitted on.

    Parameters
    ----------
    pairs : sequence of Pair
    seed : int
    wanted : float
        In (0, 1]: the precision that one threshold is to reach, and the recall of another.

    Returns
    -------
    dict
        By aim 'f1', 'precision_0.9', 'recall_0.9' (or what is wanted): ``threshold`` (None: none
        reaches it), ``of_folds`` and ``detection``, cross-fitted. ``reason`` where there is nothing
        to fit on.
    """
    good = [pair.good for pair in pairs]
    reason = _too_few(good, "no labelled case has a verdict")
    found: dict[str, Any] = {"reason": reason}
    if reason:
        return found
    scores = [pair.score for pair in pairs]
    aims: tuple[tuple[str, Any, float | None], ...] = (
        ("f1", "f1", None),
        (f"precision_{wanted:g}", "precision", wanted),
        (f"recall_{wanted:g}", "sensitivity", wanted),
    )
    for name, aim, least in aims:
        fitted = nested_threshold(good, scores, aim=aim, wanted=least, find=False, seed=seed)
        bad = fitted.measured.turned
        found[name] = {
            "threshold": fitted.threshold,
            "of_folds": list(fitted.of_folds),
            "detection": {"precision": bad.precision, "recall": bad.sensitivity, "f1": bad.f1},
        }
    return found


def uncertain_band(pairs: Sequence[Pair], sure: float) -> tuple[list[float] | None, str | None]:
    """The probabilities at which either call would be wrong too often.

    Parameters
    ----------
    pairs : sequence of Pair
    sure : float
        Share of calls that must be right, in (0.5, 1).

    Returns
    -------
    band : [low, high] or None
        Where a Platt curve through the labels gives a good case a probability between 1 - `sure`
        and `sure`.
    reason : str or None
        Why there is none.
    """
    good, chance = _known(pairs)
    if len(good) < _FEWEST or min(sum(good), len(good) - sum(good)) < _FEWEST_OF_EITHER:
        least = f"{_FEWEST} labels with a probability, {_FEWEST_OF_EITHER} of either kind"
        return None, f"a band needs {least}"
    curve = fit_platt(good, chance)
    if curve.slope <= 0:
        return None, "good cases have no higher probability than bad ones, so no band helps"
    ends = [(math.log(s / (1 - s)) - curve.intercept) / curve.slope for s in (1 - sure, sure)]
    low, high = max(ends[0], 0.0), min(ends[1], 1.0)
    if low >= high:
        return None, f"at every probability the better call is right in {100 * sure:.0f} %"
    return [low, high], None


def _known(pairs: Sequence[Pair]) -> tuple[list[bool], list[float]]:
    known = [(pair.good, pair.probability) for pair in pairs]
    return (
        [good for good, chance in known if chance is not None],
        [chance for _, chance in known if chance is not None],
    )


def _too_few(good: Sequence[bool], none: str) -> str | None:
    if not good:
        return none
    rarer = min(sum(good), len(good) - sum(good))
    if rarer < _TWO:
        return f"the rarer label has {rarer} cases; fitting and measuring needs {_TWO} or more"
    return None
