"""The share of good cases that people would have found, from few labels and many verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from misslink.calibration.judge import counted, weighted
from misslink.calibration.pairs import Pair, Tie, weights
from misslink.stats import (
    Confusion,
    ErrorRates,
    labels_for_share,
    prediction_powered,
    proportion,
    rogan_gladen,
    width_curve,
)
from misslink.types import Estimate

__all__ = ["corrected", "labels_needed"]

_CURVE = (25, 50, 100, 200, 300, 500, 1000, 2000, 5000)
_WIDTHS = (0.2, 0.1, 0.05)
_TIED = 0.5  # the mean label of a case that as many people call good as bad


def corrected(
    pairs: Sequence[Pair],
    scores: Mapping[str, float],
    threshold: float,
    seed: int,
    ties: Sequence[Tie] = (),
) -> dict[str, Any]:
    """Estimate the share of good cases among all verdicts in several ways.

    Parameters
    ----------
    pairs : sequence of Pair
        The labelled cases.
    scores : mapping of str to float
        Of every case with a verdict, labelled or not, by case.
    threshold : float
    seed : int
    ties : sequence of Tie
        Labelled cases that people are tied on. They count as half good: left out, the share would
        be that of the cases that people agree on. The judge's error rates, and so Rogan and
        Gladen's, are of cases with one label and stay without them.

    Returns
    -------
    dict
        ``judge_only`` (as it calls them), ``labelled_only``, ``rogan_gladen`` by the delta method,
        ``rogan_gladen_posterior``, both by the weighted rates where cases were drawn with unequal
        chances, ``prediction_powered``; ``power`` and ``worth`` of the last; ``verdicts`` and
        ``ties``, how many there are. What the labels cannot carry is missing with a reason.
    """
    told: list[Pair | Tie] = [*pairs, *ties]
    everyone = dict(scores) | {one.case_id: one.score for one in told}
    labelled = {one.case_id for one in told}
    others = [score for case_id, score in everyone.items() if case_id not in labelled]
    called = sum(score >= threshold for score in everyone.values())
    powered = prediction_powered(
        [*(float(pair.good) for pair in pairs), *(_TIED for _ in ties)],
        [one.score for one in told],
        others,
        weights=weights(told),
        seed=seed,
    )
    return {
        "judge_only": proportion(called, len(everyone)),
        "labelled_only": powered.labelled_only,
        **_rogan_gladen(pairs, called, len(everyone), threshold, seed),
        "prediction_powered": powered.estimate,
        "power": powered.power,
        "worth": powered.worth,
        "verdicts": len(everyone),
        "ties": len(ties),
    }


def labels_needed(pairs: Sequence[Pair], verdicts: int) -> dict[str, Any]:
    """How wide the interval of the corrected share gets with more labels.

    Parameters
    ----------
    pairs : sequence of Pair
    verdicts : int
        Cases with a verdict, labelled or not.

    Returns
    -------
    dict
        ``share`` and ``correlation`` (of score and label; None where one of them does not vary,
        and the curve then is that of the labels alone) as found on these labels, weighted where
        they are; ``curve`` of
        {labels, width, labelled_only}; ``for_width``, the fewest labels by wanted width, None
        where not even a label on every verdict does it. ``reason`` without labels.
    """
    if not pairs:
        return {"reason": "there is no label to go by", "curve": [], "for_width": {}}
    given = weights(pairs) or [1.0] * len(pairs)
    good = sum(weight for pair, weight in zip(pairs, given, strict=True) if pair.good)
    share = min(good / sum(given), 1.0)
    rho = _correlation(pairs, given)
    gain = 0.0 if rho is None else rho
    sizes = sorted({*(size for size in _CURVE if size < verdicts), len(pairs), verdicts})
    powered = width_curve(sizes, share, correlation=gain, judged=verdicts)
    alone = dict(width_curve(sizes, share))
    curve = [{"labels": n, "width": width, "labelled_only": alone[n]} for n, width in powered]
    wanted = {
        str(width): labels_for_share(share, width, correlation=gain, judged=verdicts)
        for width in _WIDTHS
    }
    return {
        "reason": None,
        "share": share,
        "correlation": rho,
        "verdicts": verdicts,
        "curve": curve,
        "for_width": wanted,
    }


def _rogan_gladen(
    pairs: Sequence[Pair], called: int, n: int, threshold: float, seed: int
) -> dict[str, Estimate]:
    rates = weighted(pairs, threshold)
    judge: Confusion | ErrorRates = counted(pairs, threshold)
    if rates is not None:
        judge = ErrorRates(rates["sensitivity"], rates["specificity"], len(pairs))
    among = rates is None  # of cases drawn with unequal chances, the rest is no random sample
    return {
        "rogan_gladen": rogan_gladen(called, n, judge, among=among),
        "rogan_gladen_posterior": rogan_gladen(
            called, n, judge, among=among, interval="posterior", seed=seed
        ),
    }


def _correlation(pairs: Sequence[Pair], given: Sequence[float]) -> float | None:
    """Pearson's weighted correlation of score and label; None where one of them does not vary."""
    import numpy as np

    w = np.array(given) / sum(given)
    labels = np.array([float(pair.good) for pair in pairs])
    scores = np.array([pair.score for pair in pairs])
    labels, scores = labels - float(w @ labels), scores - float(w @ scores)
    spread = math.sqrt(float(w @ labels**2) * float(w @ scores**2))
    if not spread > math.ulp(1.0):
        return None
    covariance = float(w @ (labels * scores))
    return min(max(covariance / spread, -1.0), 1.0)
