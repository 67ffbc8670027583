"""Is a measure that is taken again and again still what it was? EWMA, CUSUM and jump charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.stats.in_control import Baseline

__all__ = ["Chart", "ChartName", "Limits", "Point", "chart"]

ChartName = Literal["ewma", "cusum", "jump"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a chart may go before it signals, in standard deviations.

    Parameters
    ----------
    ewma : float
        L: limits of the EWMA, in standard deviations of the EWMA, above 0.
    cusum : float
        h: threshold of the CUSUM, in standard deviations of a reading, above 0.
    jump : float
        Limits of a single reading, in its standard deviations, above 0.
    weight : float
        Lambda: the weight of the newest reading in the EWMA, above 0 and at most 1.
    slack : float
        k: what the CUSUM lets pass in each reading, in its standard deviations, at least 0.
    """

    ewma: float
    cusum: float
    jump: float
    weight: float = 0.2
    slack: float = 0.75


@dataclass(frozen=True, slots=True)
class Point:
    """One reading on the charts; what was not measured has None and moves no chart.

    Parameters
    ----------
    value : float or None
        The reading.
    ewma : float or None
        The moving average after it; None while learning.
    low, high : float or None
        The limits of the EWMA at this reading; None while learning.
    up, down : float or None
        The two CUSUMs, in standard deviations, each from 0 to the threshold; None while learning.
    above, below : tuple of str
        Which charts say here that the measure is above or below what was learnt.
    """

    value: float | None
    ewma: float | None = None
    low: float | None = None
    high: float | None = None
    up: float | None = None
    down: float | None = None
    above: tuple[ChartName, ...] = ()
    below: tuple[ChartName, ...] = ()

    @property
    def signal(self) -> bool:
        """Whether any chart signals here, in either direction."""
        return bool(self.above or self.below)


@dataclass(frozen=True, slots=True)
class Chart:
    """A series of readings with its EWMA, its CUSUMs and their limits.

    Parameters
    ----------
    centre, sd : float
        What was learnt (see `Baseline`).
    learnt_from : int
        From how many readings.
    begin, end : int
        The window of `points` that was learnt from, as in a slice.
    threshold : float
        h: where a CUSUM signals, in standard deviations.
    jump_low, jump_high : float
        The limits of a single reading.
    points : tuple of Point
        One for each reading of the series, learning runs included.
    """

    centre: float
    sd: float
    learnt_from: int
    begin: int
    end: int
    threshold: float
    jump_low: float
    jump_high: float
    points: tuple[Point, ...]


def chart(values: Sequence[float | None], baseline: Baseline, limits: Limits) -> Chart:
    """Put a series on its charts, from the first reading after those that were learnt from.

    The charts are of the readings' normal scores; what they draw is back on the readings' scale.

    The EWMA (Roberts 1959) has the exact limits of its age, ``L * sd * sqrt(weight / (2 - weight)
    * (1 - (1 - weight) ** (2 t)))``. The CUSUMs (Page 1954, in the tabular form) start at 0 and
    stay at the threshold once they are there, so that they come down when the measure does. Both
    take a reading beyond the limits of a jump as one at these limits: one wild reading is the
    jump chart's business, and is not held against the runs after it.

    Parameters
    ----------
    values : sequence of float or None
        The whole series, the readings that were learnt from included.
    baseline : Baseline
        What was learnt from it.
    limits : Limits
        For as many readings as that (see `misslink.stats.control_limits.limits_for`).
    """
    points = []
    ewma, up, down, age = 0.0, 0.0, 0.0, 0
    for place, value in enumerate(values):
        if value is None or place < baseline.end:
            points.append(Point(value=value))
            continue
        age += 1
        z = baseline.score(value)
        tame = min(max(z, -limits.jump), limits.jump)
        ewma += limits.weight * (tame - ewma)
        bound = limits.ewma * _ewma_sd(limits.weight, age)
        up, down = max(0.0, up + tame - limits.slack), max(0.0, down - tame - limits.slack)
        points.append(
            Point(
                value=value,
                ewma=baseline.place(ewma),
                low=baseline.place(-bound),
                high=baseline.place(bound),
                up=min(up, limits.cusum),
                down=min(down, limits.cusum),
                above=_signals(z, ewma, up, bound, limits),
                below=_signals(-z, -ewma, down, bound, limits),
            )
        )
        up, down = min(up, limits.cusum), min(down, limits.cusum)
    return Chart(
        centre=baseline.centre,
        sd=baseline.sd,
        learnt_from=baseline.n,
        begin=baseline.begin,
        end=baseline.end,
        threshold=limits.cusum,
        jump_low=baseline.place(-limits.jump),
        jump_high=baseline.place(limits.jump),
        points=tuple(points),
    )


def _signals(
    z: float, ewma: float, cusum: float, bound: float, limits: Limits
) -> tuple[ChartName, ...]:
    """Which charts are over their upper limit, the most sudden first."""
    found: list[ChartName] = []
    if z > limits.jump:
        found.append("jump")
    if cusum > limits.cusum:
        found.append("cusum")
    if ewma > bound:
        found.append("ewma")
    return tuple(found)


def _ewma_sd(weight: float, age: int) -> float:
    """Standard deviation of the EWMA of `age` readings, in theirs."""
    return math.sqrt(weight / (2 - weight) * (1 - (1 - weight) ** (2 * age)))
