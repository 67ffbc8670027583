"""Have the judge's scores moved since it was calibrated? Its errors may have, too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from misslink.files.numbers import finite

__all__ = ["Moved", "distribution", "moved"]

_FEWEST = 30  # scores on either side
_LEVEL = 0.01
_WORTH = 0.1  # a smaller difference matters little, however sure it is
_DIGITS = 2


@dataclass(frozen=True)
class Moved:
    """Scores of one metric that are not distributed as when the judge was calibrated.

    Parameters
    ----------
    metric : str
    distance : float
        Kolmogorov and Smirnov's D: the largest difference of the shares of scores up to any one
        score.
    p : float
    before, now : (int, float)
        How many scores there were and are, and their mean.
    """

    metric: str
    distance: float
    p: float
    before: tuple[int, float]
    now: tuple[int, float]

    @property
    def sentence(self) -> str:
        """What happened, with its numbers, and what to do."""
        p = "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"  # noqa: PLR2004
        return (
            f"The judge's scores of {self.metric} have moved since it was calibrated: their mean "
            f"was {self.before[1]:.2f} over {self.before[0]:,} and is {self.now[1]:.2f} over "
            f"{self.now[0]:,} (Kolmogorov-Smirnov D = {self.distance:.2f}, {p}); the answers or "
            "the judge are others, so label some new answers."
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


def distribution(scores: Iterable[float]) -> dict[str, Any]:
    """Count scores, rounded to two digits.

    Parameters
    ----------
    scores : iterable of float
        In [0, 1]. None: ``n`` is 0.

    Returns
    -------
    dict
        ``n`` and ``counts``, how often each occurs, by the score as text.
    """
    counts = Counter(round(score, _DIGITS) for score in scores)
    return {"n": counts.total(), "counts": {f"{one:g}": counts[one] for one in sorted(counts)}}


def moved(document: Mapping[str, Any], scores: Iterable[float]) -> Moved | None:
    """Compare scores with those that a judge was calibrated on.

    Parameters
    ----------
    document : mapping
        The calibration.
    scores : iterable of float
        Of another run, in [0, 1].

    Returns
    -------
    Moved or None
        None where they are distributed alike (p of 0.01 and more, or D under 0.1), where the
        calibration does not say how they were, and where either side has fewer than 30.

    References
    ----------
    Smirnov (1948), Table for estimating the goodness of fit of empirical distributions. Of scores
    that tie, as rounded ones do, the p-value is too large and never too small.
    """
    before = _counts(document.get("scores"))
    now = Counter(round(score, _DIGITS) for score in scores)
    sizes = before.total(), now.total()
    if min(sizes) < _FEWEST:
        return None
    distance, share = 0.0, 0.0
    for score in sorted({*before, *now}):
        share += before[score] / sizes[0] - now[score] / sizes[1]
        distance = max(distance, abs(share))
    from scipy.special import kolmogorov

    p = float(kolmogorov(distance * math.sqrt(sizes[0] * sizes[1] / sum(sizes))))
    if distance < _WORTH or p >= _LEVEL:
        return None
    means = [sum(one * many for one, many in c.items()) / c.total() for c in (before, now)]
    metric = str(document.get("metric") or "")
    return Moved(metric, distance, p, (sizes[0], means[0]), (sizes[1], means[1]))


def _counts(found: object) -> Counter[float]:
    """How often each score occurred; empty where a document does not say so."""
    given = found.get("counts") if isinstance(found, Mapping) else None
    counts: Counter[float] = Counter()
    for text, many in given.items() if isinstance(given, Mapping) else ():
        try:
            score = finite(float(text))
        except ValueError:
            score = None
        if score is None or not isinstance(many, int) or isinstance(many, bool) or many < 0:
            return Counter()
        counts[score] += many
    return counts
