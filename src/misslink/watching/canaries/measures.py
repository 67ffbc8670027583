"""What every canary run measures, and what can be wrong with it: readings, measures, alarms."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.stats.control_charts import ChartName
from misslink.types import Estimate

__all__ = ["USUAL", "Alarm", "Measure", "Reading"]

_RESOLUTION = 0.01  # of what was measured, where a measure has no resolution of its own
_DIGITS, _MOST_DIGITS = 3, 10
_NO_TIME_S = 1e-4  # what is faster is taken for this, since 0 has no logarithm


@dataclass(frozen=True)
class Reading:
    """One canary run, as the charts see it.

    Parameters
    ----------
    run : int
        Its id in the history; later runs have higher ids.
    at : float
        When it was, in seconds since 1970.
    values : mapping of str to float or None
        What was measured, by the measure's name; None where it was not measured in this run.
    n : int
        How many questions it asked, at least 1.
    suspects : tuple of str
        What has changed since the run before, one sentence each.
    """

    run: int
    at: float
    values: Mapping[str, float | None]
    n: int
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measure:
    """Something that every run measures.

    Parameters
    ----------
    name : str
        Its key in `Reading.values`.
    better : {"high", "low"}
        Which direction is good news.
    unit : {"share", "score", "s"}
        A share of the questions from 0 to 1, a score of any range, or seconds; seconds are
        compared by their ratio (on a logarithmic chart).
    resolution : float or None
        The smallest step that counts (as a ratio for seconds: 0.05 is 5 %); None for one question
        of a share, and for 1 % of what was learnt otherwise.
    least : float or None
        Worse runs are not learnt from: an app that is broken from the first run on would become
        the norm. None learns from any.
    label : str or None
        What it is called in sentences; None for its name.
    """

    name: str
    better: Literal["high", "low"] = "high"
    unit: Literal["share", "score", "s"] = "share"
    resolution: float | None = None
    least: float | None = None
    label: str | None = None

    @property
    def called(self) -> str:
        """What it is called in sentences."""
        return self.label or self.name

    @property
    def is_ratio(self) -> bool:
        """Whether it is compared by ratios, on a logarithmic chart."""
        return self.unit == "s"

    @property
    def tail(self) -> Literal[-1, 0, 1]:
        """Where the long tail lies: of a share towards what is worse, of others nowhere."""
        if self.unit != "share":
            return 0
        return -1 if self.better == "high" else 1

    def plotted(self, reading: Reading) -> float | None:
        """Return its value as it stands on the chart, None where it was not measured."""
        value = reading.values.get(self.name)
        if value is None or not math.isfinite(value):
            return None
        return math.log(max(value, _NO_TIME_S)) if self.is_ratio else float(value)

    def shown(self, plotted: float) -> float:
        """Return the value of a place on the chart."""
        return math.exp(plotted) if self.is_ratio else plotted

    def written(self, value: float, digits: int = _DIGITS) -> str:
        """Return a value for people: decimals of a share, else as many digits that count."""
        if self.unit == "share":
            return f"{value:.{digits}f}"
        return f"{value:.{digits}g} s" if self.unit == "s" else f"{value:.{digits}g}"

    def apart(self, one: float, other: float) -> tuple[str, str]:
        """Return two values for people, with digits enough to tell them apart.

        Examples
        --------
        >>> Measure("top score", unit="score").apart(0.60012, 0.5996)
        ('0.6001', '0.5996')
        """
        for digits in range(_DIGITS, _MOST_DIGITS):
            told = self.written(one, digits), self.written(other, digits)
            if told[0] != told[1]:
                return told
        return self.written(one), self.written(other)

    def learnable(self, plotted: float | None) -> float | None:
        """Return the value unless it is worse than `least`: nobody's norm."""
        if plotted is None or self.least is None:
            return plotted
        value = self.shown(plotted)
        worse = value < self.least if self.better == "high" else value > self.least
        return None if worse else plotted

    def step(self, readings: Sequence[Reading]) -> float:
        """Return the smallest difference that counts on the chart, above 0.

        Parameters
        ----------
        readings : sequence of Reading
            Those to learn from.
        """
        if self.resolution is not None:
            return math.log1p(self.resolution) if self.is_ratio else self.resolution
        if self.unit == "share":
            asked = [reading.n for reading in readings if reading.n > 0]
            return 1 / statistics.median(asked) if asked else _RESOLUTION
        seen = [abs(v) for each in readings if (v := self.plotted(each)) is not None]
        if self.is_ratio or not any(seen):
            return _RESOLUTION
        return _RESOLUTION * statistics.median(seen) or _RESOLUTION


@dataclass(frozen=True)
class Alarm:
    """A measure that got worse, from the run that showed it to its recovery.

    Parameters
    ----------
    measure : str
        Which.
    chart : {"ewma", "cusum", "jump"}
        Which chart said so first.
    since : int
        The run in which the change seems to have begun.
    run : int
        The run in which the alarm opened.
    value : float
        The last reading (of an alarm that recovered: the one it recovered with).
    expected : float
        What was learnt.
    shift : Estimate
        The mean of the readings from `since` to the last that signalled, minus `expected`, with
        an interval of Student's t that knows how well `expected` was learnt. Where a change is
        found because it is large, its size is overstated a little.
    is_new : bool
        Whether it opened with the last reading.
    state : {"open", "held", "recovered"}
        A chart still signals; none does, but not for long enough; back to what was learnt.
    suspects : tuple of str
        What changed in the runs from `since` to `run`.
    sentence : str
        All this for people.
    ended : int or None
        The run in which it recovered; None while it has not.
    """

    measure: str
    chart: ChartName
    since: int
    run: int
    value: float
    expected: float
    shift: Estimate
    is_new: bool
    state: Literal["open", "held", "recovered"]
    suspects: tuple[str, ...]
    sentence: str
    ended: int | None = None


USUAL = (
    Measure("health", least=0.5),
    Measure("coverage"),
    Measure("top_score", unit="score", label="top score"),
    Measure("errors", better="low", label="the share of failed questions"),
    Measure("latency_s", better="low", unit="s", resolution=0.05, label="median latency"),
)
