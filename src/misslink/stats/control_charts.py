"""Control charts: whether a repeated measure is still what it was."""

from __future__ import annotations

import bisect
import itertools
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from misslink.types import Reason

_OUTLIER_SDS = (
    5.0  # robust standard deviations from the median: no reading of an app as it usually is
)
_MAX_OUTLIER_SHARE = 0.2  # share of the learning runs that may be far off; more is no usual state
_DRIFT_Z = -3.09  # one-sided 0.1%: a history that drifts is no state to learn
_MAD_TO_SD = 1.4826  # for normal data
_RULE_OF_THREE = 3.0  # not seen in m runs: fewer than 3 / m of all, with 95% confidence


@dataclass(frozen=True, slots=True)
class ProcessBaseline:
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
) -> ProcessBaseline | Reason:
    """Learn how a measure is while nothing is wrong, from the first steady stretch of a series.

    Of every `learn` readings in a row those that lie more than 5 robust standard deviations (of
    the median absolute deviation) from the median are left out. A stretch is steady where these
    are at most a fifth, and where the others do not drift: by the ratio of von Neumann (1941,
    Annals of Mathematical Statistics 12), one-sided at 0.1%.

    Readings that agree with each other do not prove that none will ever differ. What was not seen
    in m runs happens in fewer than 3 / m of all (95% confidence, the rule of three), so the
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
    Reason(code='learning', n=1, of=3)
    """
    measured = [(place, value) for place, value in enumerate(values) if value is not None]
    if len(measured) < learn:
        return Reason(code="learning", n=len(measured), of=learn)
    for first in range(len(measured) - learn + 1):
        window = measured[first : first + learn]
        middle = statistics.median(value for _, value in window)
        deviation = statistics.median(abs(value - middle) for _, value in window)
        # Where most readings agree, one question more or less is still no other state of the app.
        cut = _OUTLIER_SDS * max(_MAD_TO_SD * deviation, step)
        far = [place for place, value in window if abs(value - middle) > cut]
        seen = [value for place, value in window if place not in far]
        if len(far) > _MAX_OUTLIER_SHARE * learn or _has_drift(seen):
            continue
        floor = step * math.sqrt(_RULE_OF_THREE / len(seen)) if tail else step
        spread = statistics.stdev(seen)
        sd = max(spread, floor)
        return ProcessBaseline(
            centre=math.fsum(seen) / len(seen) if spread else seen[0],
            sd=sd,
            n=len(seen),
            begin=window[0][0],
            end=window[-1][0] + 1,
            left_out=tuple(far),
            is_floor=spread < floor,
            skew=tail * step / sd,
            offset=tail * (sd * sd - spread * spread) / step,
        )
    return Reason(code="unsteady", learn=learn)


def _has_drift(values: Sequence[float]) -> bool:
    """Whether neighbours are so much nearer to each other than all are that the level moved."""
    mean, n = statistics.fmean(values), len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    if n < 3 or math.isclose(squares, 0.0, abs_tol=1e-18):
        return False
    steps = math.fsum((b - a) ** 2 for a, b in itertools.pairwise(values))
    # The ratio has mean 2 and variance 4 (n - 2) / (n^2 - 1) for independent normal values.
    return (steps / squares - 2) / math.sqrt(4 * (n - 2) / (n * n - 1)) < _DRIFT_Z


ChartName = Literal["ewma", "cusum", "jump"]


@dataclass(frozen=True, slots=True)
class ChartLimits:
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
class ChartPoint:
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
class ControlChart:
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
    points: tuple[ChartPoint, ...]


def control_chart(
    values: Sequence[float | None], baseline: ProcessBaseline, limits: ChartLimits
) -> ControlChart:
    """Put a series on its charts, from the first reading after those that were learnt from.

    The charts are of the readings' normal scores; what they draw is back on the readings' scale.

    The EWMA (Roberts 1959) has the exact limits of its age, ``L * sd * sqrt(weight / (2 - weight)
    * (1 - (1 - weight) ** (2 t)))``. The CUSUMs (Page 1954, in the tabular form) start at 0 and
    stay at the threshold once they are there, so that they come down when the measure does. Both
    take a reading beyond the limits of a jump as one at these limits: one wild reading is the
    jump chart's business, and does not count in the runs after it.

    Parameters
    ----------
    values : sequence of float or None
        The whole series, the readings that were learnt from included.
    baseline : Baseline
        What was learnt from it.
    limits : Limits
        For as many readings as that (see `misslink.stats.control_charts.chart_limits`).
    """
    points = []
    ewma, up, down, age = 0.0, 0.0, 0.0, 0
    for place, value in enumerate(values):
        if value is None or place < baseline.end:
            points.append(ChartPoint(value=value))
            continue
        age += 1
        z = baseline.score(value)
        tame = min(max(z, -limits.jump), limits.jump)
        ewma += limits.weight * (tame - ewma)
        fading = 1 - (1 - limits.weight) ** (2 * age)
        bound = limits.ewma * math.sqrt(limits.weight / (2 - limits.weight) * fading)
        up, down = max(0.0, up + tame - limits.slack), max(0.0, down - tame - limits.slack)
        points.append(
            ChartPoint(
                value=value,
                ewma=baseline.place(ewma),
                low=baseline.place(-bound),
                high=baseline.place(bound),
                up=min(up, limits.cusum),
                down=min(down, limits.cusum),
                above=_chart_signals(z, ewma, up, bound, limits),
                below=_chart_signals(-z, -ewma, down, bound, limits),
            )
        )
        up, down = min(up, limits.cusum), min(down, limits.cusum)
    return ControlChart(
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


def _chart_signals(
    z: float, ewma: float, cusum: float, bound: float, limits: ChartLimits
) -> tuple[ChartName, ...]:
    """Which charts are over their upper limit, the most sudden first."""
    is_over: dict[ChartName, bool] = {
        "jump": z > limits.jump,
        "cusum": cusum > limits.cusum,
        "ewma": ewma > bound,
    }
    return tuple(name for name, over in is_over.items() if over)


@lru_cache(maxsize=1)
def limit_table() -> dict[str, Any]:
    """Return the table that ``benchmarks/stats/canary_limits.py`` computed.

    Its ``rows`` have, for a number of readings learnt from, one entry for 1, 2, 3, ... measures in
    ``limits`` (EWMA, CUSUM, jump) and ``shares`` (of a measure's false alarms, for each chart).
    """
    table: dict[str, Any] = json.loads(
        Path(__file__).with_name("control_limits.json").read_text("utf-8")
    )
    return table


def chart_limits(learnt_from: int, *, measures: int = 1) -> ChartLimits:
    """Return the limits of the three charts of a measure whose centre and spread were estimated.

    Parameters
    ----------
    learnt_from : int
        Readings that the centre and the standard deviation come from, at least 8.
    measures : int
        Measures that share the false alarms, at least 1; more than 5 get the limits of 5.

    Returns
    -------
    ChartLimits
        The chance of a false alarm for the worse by any of the three charts of all measures
        within 370 readings is that of one alarm in 370 readings on average. That holds for
        normal readings; ``benchmarks/canary/canary_run_length.md`` simulates shares of few questions.
        Between the rows of the table the limits are linear in 1 / n.
    """
    table = limit_table()
    rows = table["rows"]
    index = bisect.bisect_left(rows, learnt_from, key=lambda row: row["learnt_from"])
    above = rows[min(index, len(rows) - 1)]
    below = rows[max(index - 1, 0)] if learnt_from < above["learnt_from"] else above
    column = min(measures, len(above["limits"])) - 1
    n, n_below, n_above = learnt_from, below["learnt_from"], above["learnt_from"]
    part = (1 / n_below - 1 / n) / (1 / n_below - 1 / n_above) if n_below != n_above else 0.0
    ewma, cusum, jump = (
        low + part * (high - low)
        for low, high in zip(below["limits"][column], above["limits"][column], strict=True)
    )
    return ChartLimits(ewma, cusum, jump, weight=table["weight"], slack=table["slack"])
