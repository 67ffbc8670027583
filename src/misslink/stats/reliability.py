"""Do the judge's probabilities mean what they say: Brier score, bins, calibration error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from misslink.stats.means import mean
from misslink.stats.proportions import critical, proportion
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Bin", "brier", "calibration_error", "reliability_bins"]

By = Literal["width", "mass"]

_DRAWS = 4_000
_HALVINGS = 20  # to a millionth
_JEFFREYS = 0.5
_CLOSE = 1e-9
_METHOD = "inverted test"


@dataclass(frozen=True)
class Bin:
    """One step of the reliability diagram.

    Parameters
    ----------
    low, high : float
        Probabilities from `low` to below `high` (the last bin holds its end too).
    n : int
        Cases in it.
    predicted : float or None
        Their mean probability; None in an empty bin.
    good : Estimate
        The share of them that people call good; missing in an empty bin.
    """

    low: float
    high: float
    n: int
    predicted: float | None
    good: Estimate


def brier(labels: Sequence[bool], probabilities: Sequence[float], *, seed: int = 0) -> Estimate:
    """Mean squared distance of probability and label, 0 at best.

    Parameters
    ----------
    labels : sequence of bool
        Whether each case is good by people; truth values such as 0 and 1 do.
    probabilities : sequence of float
        In [0, 1], of the same cases: that it is good.
    seed : int
        Of the interval, which is that of `misslink.stats.mean`.

    Returns
    -------
    Estimate
        In [0, 1]; 0.25 for saying one half every time. Missing without cases.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, or a probability is outside [0, 1].

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> round(brier([1, 0], [0.8, 0.4]).value, 9)
    0.1
    """
    good, chance = _checked(labels, probabilities)
    return mean(((chance - good) ** 2).tolist(), seed=seed)


def reliability_bins(
    labels: Sequence[bool],
    probabilities: Sequence[float],
    *,
    bins: int = 10,
    by: By = "width",
) -> list[Bin]:
    """Cases grouped by probability, with the share of good ones beside the mean probability.

    Parameters
    ----------
    labels, probabilities
        As for `brier`.
    bins : int
        How many, at least 1.
    by : "width" or "mass"
        Bins of equal width over [0, 1], or of about as many cases each; equal probabilities then
        stay together, so there may be fewer bins.

    Returns
    -------
    list of Bin
        From low to high, empty ones too; none without cases.

    Raises
    ------
    ValueError
        As `brier`, or fewer than 1 bin.

    Examples
    --------
    >>> [(b.n, b.good.value) for b in reliability_bins([0, 1, 1], [0.2, 0.6, 0.9], bins=2)]
    [(1, 0.0), (2, 1.0)]
    """
    good, chance = _checked(labels, probabilities)
    if not len(good):
        return []
    edges, place = _places(chance, bins, by)
    found = []
    for at, (low, high) in enumerate(pairwise(edges)):
        here = place == at
        n = int(here.sum())
        share = proportion(int(good[here].sum()), n)
        predicted = float(chance[here].mean()) if n else None
        found.append(Bin(float(low), float(high), n, predicted, share))
    return found


def calibration_error(
    labels: Sequence[bool],
    probabilities: Sequence[float],
    *,
    bins: int = 10,
    by: By = "width",
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Expected calibration error: the mean over bins of how far probability and share lie apart.

    Parameters
    ----------
    labels, probabilities, bins, by
        As for `reliability_bins`.
    seed : int
        Of the interval.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        In [0, 1], 0 at best. Missing without cases. The value is the customary one, which chance
        alone makes larger than the truth; so it may lie above its own interval's middle, and the
        interval says what is left once chance is taken into account.

    Raises
    ------
    ValueError
        As `reliability_bins`.

    Notes
    -----
    The interval inverts a test: a pattern of gaps is scaled up and down, and the scales are kept
    at which noise of the bins' size, and of how many cases fall into each, makes an error such as
    the one observed likely. The pattern is that of the gaps seen, drawn towards their mean as far
    as noise explains how they differ: a judge that is 15 points too high everywhere shows gaps of
    5 and of 25, and these scaled would move the error otherwise than gaps of 15. Probabilities
    that hold show an error well above 0 by chance alone; the bootstrap adds its own noise to that
    and so excludes the truth (``benchmarks/calibration_coverage.md``, table ece). Where they hold
    the interval has only one side on which to fail, and covers 97.5 %.
    An end that would exclude the value is moved to it. For the upper end an error that is smaller
    than chance alone makes it in half of all draws counts as that half's: a judge that happens to
    be right on average, or in all of 50 cases, would else have an error of exactly 0 for certain.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian
    binning. Broecker and Smith (2007), Increasing the reliability of reliability diagrams. Kumar,
    Liang and Ma (2019), Verified uncertainty calibration. DerSimonian and Laird (1986),
    Meta-analysis in clinical trials. Cowan, Cranmer, Gross and Vitells (2011), Power-constrained
    limits.

    Examples
    --------
    >>> found = calibration_error([0, 1] * 20, [0.25, 0.75] * 20)
    >>> found.value
    0.25
    """
    import numpy as np

    critical(level)  # refuses a level that is none
    good, chance = _checked(labels, probabilities)
    n = len(good)
    if not n:
        return Estimate.missing("no cases", method=_METHOD)
    _, place = _places(chance, bins, by)
    counts = np.bincount(place)
    filled = counts > 0
    counts = counts[filled]
    gaps = np.bincount(place, good - chance)[filled] / counts
    shrunk = (np.bincount(place, good)[filled] + _JEFFREYS) / (counts + 2 * _JEFFREYS)
    spread = shrunk * (1 - shrunk) / counts
    share = counts / n
    value = float(np.abs(gaps) @ share)
    pattern = _pattern(gaps, spread)
    pattern /= float(np.abs(pattern) @ share) or 1.0  # so that the scale is the error itself
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(_DRAWS, len(gaps))) * np.sqrt(spread)
    shares = generator.multinomial(n, share, _DRAWS) / n

    def drawn(error: float) -> NDArray[np.float64]:
        found: NDArray[np.float64]
        found = np.einsum("ij,ij->i", np.abs(error * pattern + noise), shares)
        return found

    seen = max(value, float(np.median(drawn(0.0))))
    below = _largest(lambda error: float(np.mean(drawn(error) <= value)) > (1 + level) / 2)
    above = _largest(lambda error: float(np.mean(drawn(error) <= seen)) > (1 - level) / 2)
    low, high = min(below, value), max(above, value)
    return Estimate(value=value, low=low, high=high, n=n, method=_METHOD)


def _pattern(gaps: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """The gaps drawn towards their mean until they differ by no more than noise leaves over.

    The variance left over is DerSimonian and Laird's.
    """
    import numpy as np

    precision = 1 / spread
    total = float(precision.sum())
    middle = float(precision @ gaps) / total
    beyond = float(precision @ (gaps - middle) ** 2) - (len(gaps) - 1)
    scale = total - float(precision @ precision) / total
    between = max(beyond, 0.0) / scale if len(gaps) > 1 else 0.0
    pattern: NDArray[np.float64] = middle + np.sqrt(between / (between + spread)) * (gaps - middle)
    return pattern if np.abs(pattern).any() else np.ones(len(gaps))


def _largest(fits: Callable[[float], bool]) -> float:
    """The largest error in [0, 1] that fits; 0 if none does."""
    if not fits(0.0):
        return 0.0
    inside, outside = 0.0, 1.0
    if fits(outside):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return inside


def _checked(
    labels: Sequence[bool], probabilities: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    if len(labels) != len(probabilities):
        raise ValueError(f"{len(labels)} labels and {len(probabilities)} probabilities do not pair")
    good, chance = np.array(labels, dtype=float), np.array(probabilities, dtype=float)
    if not np.isin(good, (0, 1)).all():
        raise ValueError("a label is 0 or 1")
    wrong = chance[~((chance >= 0) & (chance <= 1))]
    if len(wrong):
        raise ValueError(f"a probability lies between 0 and 1, not {wrong[0]}")
    return good, chance


def _places(
    chance: NDArray[np.float64], bins: int, by: By
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The edges of the bins, and the bin of each case."""
    import numpy as np

    if bins < 1:
        raise ValueError(f"{bins} bins hold no case")
    edges = np.arange(bins + 1) / bins  # exactly what 0.3 is; linspace gives a little more
    if by == "mass":
        ordered = np.sort(chance)
        least, most = ordered[0], ordered[-1]
        # a bin ends before the first case that lies above its share of the cases
        places = np.ceil(edges[1:-1] * len(ordered) - _CLOSE).astype(int)
        starts = np.searchsorted(ordered, ordered[np.maximum(places, 1) - 1], side="right")
        inner = np.unique(ordered[starts[starts < len(ordered)]])
        edges = np.concatenate([[least], inner, [most]])
    place = np.searchsorted(edges[1:-1], chance, side="right")
    return edges, place.astype(np.int64)
