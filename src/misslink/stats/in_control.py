"""What is usual: the centre and the spread of a measure, learnt while nothing is wrong."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Baseline", "learn_baseline"]

_FAR = 5.0  # robust standard deviations from the median: no reading of an app as it usually is
_MOST_FAR = 0.2  # share of the learning runs that may be far off; more is no usual state
_DRIFTS = -3.09  # one-sided 0.1 %: a history that drifts is no state to learn
_MAD_TO_SD = 1.4826  # for normal data
_RULE_OF_THREE = 3.0  # not seen in m runs: fewer than 3 / m of all, with 95 % confidence


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was learnt of a measure while nothing was wrong.

    Parameters
    ----------
    centre, sd : float
        Mean and standard deviation of the readings it was learnt from; `sd` is above 0.
    n : int
        How many these are.
    begin, end : int
        The window of the series they lie in, as in a slice.
    left_out : tuple of int
        Places in that window whose readings were too far off to learn from.
    is_floor : bool
        Whether `sd` is what the resolution allows to say, for the readings vary less.
    skew : float
        Skewness of a reading; below 0 where it has its long tail below.
    offset : float
        How far the mean may lie from `centre`, into the long tail, unseen so far.
    """

    centre: float
    sd: float
    n: int
    begin: int
    end: int
    left_out: tuple[int, ...] = ()
    is_floor: bool = False
    skew: float = 0.0
    offset: float = 0.0

    def score(self, value: float) -> float:
        """Return the standard normal score of a reading.

        By the cube root of Wilson and Hilferty (1931, PNAS 17), which is good for a gamma
        distribution of this mean, standard deviation and skewness; the plain score without skew.
        """
        z = (value - self.centre - self.offset) / self.sd
        if not self.skew:
            return z
        return 6 / self.skew * (math.cbrt(self.skew * z / 2 + 1) - 1) + self.skew / 6

    def place(self, score: float) -> float:
        """Return the reading that has a score."""
        z = score
        if self.skew:
            z = 2 / self.skew * (((score - self.skew / 6) * self.skew / 6 + 1) ** 3 - 1)
        return self.centre + self.offset + z * self.sd


def learn_baseline(
    values: Sequence[float | None], learn: int, step: float, *, tail: Literal[-1, 0, 1] = 0
) -> Baseline | str:
    """Learn how a measure is while nothing is wrong, from the first steady stretch of a series.

    Of every `learn` readings in a row those that lie more than 5 robust standard deviations (of
    the median absolute deviation) from the median are left out. A stretch is steady where these
    are at most a fifth, and where the others do not drift: by the ratio of von Neumann (1941,
    Annals of Mathematical Statistics 12), one-sided at 0.1 %.

    Readings that agree with each other do not prove that none will ever differ. What was not seen
    in m runs happens in fewer than 3 / m of all (95 % confidence, the rule of three), so the
    standard deviation of a share is at least ``step * sqrt(3 / m)``; that of anything else is at
    least `step`, for less does not count.

    A share of n questions that is nearly always right, or wrong, has a long tail, in which limits
    for normal readings give false alarms all the time. Its skewness is not estimated but taken at
    its bound, ``step / sd``: no sum of independent yes-or-no questions has more.

    Parameters
    ----------
    values : sequence of float or None
        The readings in their order; None was not measured and does not count.
    learn : int
        How many readings a stretch has, at least 3.
    step : float
        The smallest difference that counts, above 0: 1 / n for a share of n questions.
    tail : {-1, 0, 1}
        Where the long tail of a share lies: below, nowhere (this is no share), above.

    Returns
    -------
    Baseline or str
        Or why there is none, as a clause; so for an empty series.

    Examples
    --------
    >>> learnt = learn_baseline([0.9] * 3, 3, step=0.1)
    >>> learnt.centre, learnt.sd, learnt.is_floor
    (0.9, 0.1, True)
    >>> learn_baseline([0.9, None], 3, step=0.1)
    '1 of 3 runs to learn from'
    """
    measured = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(measured) < learn:
        return f"{len(measured)} of {learn} runs to learn from"
    for first in range(len(measured) - learn + 1):
        window = measured[first : first + learn]
        kept, far = _apart(window, step)
        if len(far) > _MOST_FAR * learn or _drifts([value for _, value in kept]):
            continue
        seen = [value for _, value in kept]
        floor = step * math.sqrt(_RULE_OF_THREE / len(seen)) if tail else step
        spread = statistics.stdev(seen)
        sd = max(spread, floor)
        return Baseline(
            centre=math.fsum(seen) / len(seen) if spread else seen[0],
            sd=sd,
            n=len(seen),
            begin=window[0][0],
            end=window[-1][0] + 1,
            left_out=tuple(place for place, _ in far),
            is_floor=spread < floor,
            skew=tail * step / sd,
            offset=tail * (sd * sd - spread * spread) / step,
        )
    return f"no {learn} runs in a row are steady enough to learn from"


def _apart(
    window: Sequence[tuple[int, float]], step: float
) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """The readings near the median of a window, and those far from it."""
    middle = statistics.median(value for _, value in window)
    spread = statistics.median(abs(value - middle) for _, value in window)
    # Where most readings agree, one question more or less is still no other state of the app.
    cut = _FAR * max(_MAD_TO_SD * spread, step)
    near = [each for each in window if abs(each[1] - middle) <= cut]
    return near, [each for each in window if abs(each[1] - middle) > cut]


def _drifts(values: Sequence[float]) -> bool:
    """Whether neighbours are so much nearer to each other than all are that the level moved."""
    mean, n = statistics.fmean(values), len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    if n < 3 or math.isclose(squares, 0.0, abs_tol=1e-18):  # noqa: PLR2004 (no ratio of two)
        return False
    steps = math.fsum((b - a) ** 2 for a, b in itertools.pairwise(values))
    # The ratio has mean 2 and variance 4 (n - 2) / (n^2 - 1) for independent normal values.
    return (steps / squares - 2) / math.sqrt(4 * (n - 2) / (n * n - 1)) < _DRIFTS
