"""Detect that the judge's scores have changed since it was calibrated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from misslink.io.numbers import as_finite

_MIN_SCORES = 30  # scores on either side
_ALPHA = 0.01
_MIN_DISTANCE = 0.1  # a smaller difference matters little, however sure it is
_DIGITS = 2


@dataclass(frozen=True)
class ScoreDrift:
    """Scores of one metric whose distribution changed since the judge was calibrated.

    Parameters
    ----------
    metric : str
    distance : float
        Kolmogorov and Smirnov's D: the largest difference of the cumulative shares.
    p : float
    before, now : (int, float)
        Number of scores and their mean, at calibration and now.
    """

    metric: str
    distance: float
    p: float
    before: tuple[int, float]
    now: tuple[int, float]

    @property
    def sentence(self) -> str:
        """The change, with its numbers, and the action to take."""
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"
        return (
            f"The judge's scores of {self.metric} have changed since it was calibrated: their mean "
            f"was {self.before[1]:.2f} over {self.before[0]:,} and is {self.now[1]:.2f} over "
            f"{self.now[0]:,} (Kolmogorov-Smirnov D = {self.distance:.2f}, {p}); the answers or "
            "the judge have changed, so label some new answers."
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, as a run's summary has it."""
        return {
            "distance": self.distance,
            "p": self.p,
            "n_before": self.before[0],
            "mean_before": self.before[1],
            "n": self.now[0],
            "mean": self.now[1],
            "sentence": self.sentence,
        }


def score_distribution(scores: Iterable[float]) -> dict[str, Any]:
    """Count scores, rounded to two digits: ``n``, and ``counts`` by the score as text."""
    counts = Counter(round(score, _DIGITS) for score in scores)
    return {
        "n": counts.total(),
        "counts": {f"{score:g}": counts[score] for score in sorted(counts)},
    }


def detect_drift(document: Mapping[str, Any], scores: Iterable[float]) -> ScoreDrift | None:
    """Compare scores with those that a judge was calibrated on.

    Parameters
    ----------
    document : mapping
        The calibration.
    scores : iterable of float
        Of another run, in [0, 1].

    Returns
    -------
    ScoreDrift or None
        None if the distributions agree (p of 0.01 and more, or D under 0.1), if the calibration
        has no scores, or if either side has fewer than 30.

    References
    ----------
    Smirnov (1948), Table for estimating the goodness of fit of empirical distributions. With ties,
    as of rounded scores, the p-value is too large and never too small.
    """
    before = _score_counts(document.get("scores"))
    now = Counter(round(score, _DIGITS) for score in scores)
    sizes = before.total(), now.total()
    if min(sizes) < _MIN_SCORES:
        return None
    distance, share = 0.0, 0.0
    for score in sorted({*before, *now}):
        share += before[score] / sizes[0] - now[score] / sizes[1]
        distance = max(distance, abs(share))
    from scipy.special import kolmogorov

    p = float(kolmogorov(distance * math.sqrt(sizes[0] * sizes[1] / sum(sizes))))
    if distance < _MIN_DISTANCE or p >= _ALPHA:
        return None
    means = [sum(score * n for score, n in c.items()) / c.total() for c in (before, now)]
    metric = str(document.get("metric") or "")
    return ScoreDrift(metric, distance, p, (sizes[0], means[0]), (sizes[1], means[1]))


def _score_counts(scores: object) -> Counter[float]:
    """How often each score occurred; empty if a document has no valid counts."""
    counts = scores.get("counts") if isinstance(scores, Mapping) else None
    parsed: Counter[float] = Counter()
    for text, count in counts.items() if isinstance(counts, Mapping) else ():
        try:
            score = as_finite(float(text))
        except ValueError:
            return Counter()
        if score is None or not isinstance(count, int) or isinstance(count, bool) or count < 0:
            return Counter()
        parsed[score] += count
    return parsed
