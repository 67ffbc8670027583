"""The share of good cases that people would have found, from few labels and many verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from misslink.calibration.judge import counted
from misslink.calibration.pairs import Pair, weights
from misslink.stats import (
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


def corrected(
    pairs: Sequence[Pair], scores: Mapping[str, float], threshold: float, seed: int
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

    Returns
    -------
    dict
        ``judge_only`` (as it calls them), ``labelled_only``, ``rogan_gladen`` by the delta method,
        ``rogan_gladen_posterior``, ``prediction_powered``; ``power`` and ``worth`` of the last;
        ``verdicts``, how many there are. What the labels cannot carry is missing with a reason.
    """
    everyone = dict(scores) | {pair.case_id: pair.score for pair in pairs}
    labelled = {pair.case_id for pair in pairs}
    others = [score for case_id, score in everyone.items() if case_id not in labelled]
    called = sum(score >= threshold for score in everyone.values())
    unequal = weights(pairs)
    powered = prediction_powered(
        [float(pair.good) for pair in pairs],
        [pair.score for pair in pairs],
        others,
        weights=unequal,
        seed=seed,
    )
    return {
        "judge_only": proportion(called, len(everyone)),
        "labelled_only": powered.labelled_only,
        **_rogan_gladen(pairs, called, everyone, threshold, unequal is not None, seed),
        "prediction_powered": powered.estimate,
        "power": powered.power,
        "worth": powered.worth,
        "verdicts": len(everyone),
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
        and the curve then is that of the labels alone) as found on these labels; ``curve`` of
        {labels, width, labelled_only}; ``for_width``, the fewest labels by wanted width, None
        where not even a label on every verdict does it. ``reason`` without labels.
    """
    if not pairs:
        return {"reason": "there is no label to go by", "curve": [], "for_width": {}}
    share = sum(pair.good for pair in pairs) / len(pairs)
    rho = _correlation(pairs)
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
    pairs: Sequence[Pair],
    called: int,
    everyone: Mapping[str, float],
    threshold: float,
    weighted: bool,
    seed: int,
) -> dict[str, Estimate]:
    n = len(everyone)
    if weighted:
        reason = (
            "the labelled cases were drawn with unequal chances, by which the judge's error rates "
            "on them are not those on all; prediction_powered takes the weights into account"
        )
        nothing = Estimate.missing(reason, n=n, method="rogan-gladen")
        return {"rogan_gladen": nothing, "rogan_gladen_posterior": nothing}
    judge = counted(pairs, threshold)
    among = all(pair.case_id in everyone for pair in pairs)
    return {
        "rogan_gladen": rogan_gladen(called, n, judge, among=among),
        "rogan_gladen_posterior": rogan_gladen(
            called, n, judge, among=among, interval="posterior", seed=seed
        ),
    }


def _correlation(pairs: Sequence[Pair]) -> float | None:
    """Pearson's correlation of score and label; None where one of them does not vary."""
    import numpy as np

    labels = np.array([float(pair.good) for pair in pairs])
    scores = np.array([pair.score for pair in pairs])
    spread = float(labels.std() * scores.std())
    if not spread > math.ulp(1.0):
        return None
    covariance = float(((labels - labels.mean()) * (scores - scores.mean())).mean())
    return min(max(covariance / spread, -1.0), 1.0)
