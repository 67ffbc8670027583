"""A measure over the runs of a series, as SVG geometry: values, moving average, limits, alarms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.stats.control_charts import Chart, Point
from misslink.watching.canaries.alarms import Alarm, Reading

__all__ = ["Mark", "Spot", "Tick", "TrendChart", "trend_chart"]

_WIDTH, _HEIGHT = 640.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 622.0, 30.0, 196.0
_AIR = 0.08  # of the range, above and below it
_TICKS = 3
_CLOSE = 16.0  # between the numbers of two alarms


@dataclass(frozen=True)
class Tick:
    """A place on an axis and its name."""

    at: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class Spot:
    """One reading: where it stands, whether a chart says it is worse, and what it says."""

    x: float
    y: float
    is_out: bool
    title: str


@dataclass(frozen=True)
class Mark:
    """An alarm: where it opened, its number in the list of alarms and that number's height.

    ``title`` says what changed by then.
    """

    x: float
    number: int
    y: float
    title: str


@dataclass(frozen=True)
class TrendChart:
    """The drawing of one measure.

    Parameters
    ----------
    width, height : float
    frame : tuple of float
        Left, top, right, bottom of the plot.
    xs, ys : sequence of Tick
    spots : sequence of Spot
    average, band : str
        Paths of the moving average and of its limits; empty while learning.
    centre : float or None
        Height of what was learnt.
    learnt : tuple of float or None
        Left and right end of the runs it was learnt from.
    marks : sequence of Mark
    """

    width: float
    height: float
    frame: tuple[float, float, float, float]
    xs: tuple[Tick, ...]
    ys: tuple[Tick, ...]
    spots: tuple[Spot, ...]
    average: str
    band: str
    centre: float | None
    learnt: tuple[float, float] | None
    marks: tuple[Mark, ...]


def trend_chart(
    readings: Sequence[Reading],
    values: Sequence[float | None],
    chart: Chart | None,
    alarms: Sequence[tuple[int, Alarm]],
    write: Callable[[float], str],
    date: Callable[[float], str],
    *,
    better: Literal["high", "low"] = "high",
    bounds: tuple[float | None, float | None] = (None, None),
) -> TrendChart | None:
    """Draw a measure.

    Parameters
    ----------
    readings : sequence of Reading
        In their order.
    values : sequence of float or None
        Of this measure, one a reading; None is a gap.
    chart : Chart or None
        With as many points; None while nothing is learnt.
    alarms : sequence of (int, Alarm)
        Of this measure, with their numbers in the list of alarms.
    write, date : callable
        A value, and a time in Unix seconds, for people.
    better : {"high", "low"}
        Which direction is good news; a chart that signals so marks no reading.
    bounds : pair of float or None
        What the axis never passes, such as 0 and 1 of a share.

    Returns
    -------
    TrendChart or None
        None where nothing was measured.
    """
    points = chart.points if chart else ()
    seen = [value for value in values if value is not None]
    if not seen:
        return None
    limits = [end for one in points for end in (one.low, one.high) if end is not None]
    low, high = _range([*seen, *limits], bounds)
    place = _Places(len(readings), low, high)
    return TrendChart(
        width=_WIDTH,
        height=_HEIGHT,
        frame=(_LEFT, _TOP, _RIGHT, _BOTTOM),
        xs=_dates(readings, place, date),
        ys=tuple(
            Tick(place.y(value), write(value))
            for value in (low + (high - low) * step / (_TICKS - 1) for step in range(_TICKS))
        ),
        spots=tuple(
            Spot(
                place.x(at),
                place.y(value),
                bool(points) and bool(points[at].above if better == "low" else points[at].below),
                f"run {reading.run}, {date(reading.at)}: {write(value)}",
            )
            for at, (reading, value) in enumerate(zip(readings, values, strict=True))
            if value is not None
        ),
        average=_line((place.x(at), place.y(e)) for at, e in _known(points, "ewma")),
        band=_band(points, place),
        centre=place.y(chart.centre) if chart else None,
        learnt=(place.x(chart.begin), place.x(chart.end - 1)) if chart else None,
        marks=_marks(readings, alarms, place),
    )


class _Places:
    """From a run's place in the series, and a value, to a place on the drawing."""

    def __init__(self, runs: int, low: float, high: float) -> None:
        self._step = (_RIGHT - _LEFT) / max(runs - 1, 1)
        self._low, self._span = low, high - low

    def x(self, at: int) -> float:
        return round(_LEFT + at * self._step, 1)

    def y(self, value: float) -> float:
        share = min(max((value - self._low) / self._span, 0.0), 1.0)
        return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)


def _range(
    values: Sequence[float], bounds: tuple[float | None, float | None]
) -> tuple[float, float]:
    low, high = min(values), max(values)
    air = _AIR * (high - low) or max(abs(high), 1.0) * _AIR
    least, most = bounds
    low = low - air if least is None else max(low - air, least)
    high = high + air if most is None else min(high + air, most)
    return (low, high) if high > low else (low, low + 1)


def _dates(
    readings: Sequence[Reading], place: _Places, date: Callable[[float], str]
) -> tuple[Tick, ...]:
    last = len(readings) - 1
    first = Tick(place.x(0), date(readings[0].at), "start")
    return (first,) if not last else (first, Tick(place.x(last), date(readings[last].at), "end"))


def _known(points: Sequence[Point], name: str) -> list[tuple[int, float]]:
    found = ((at, getattr(point, name)) for at, point in enumerate(points))
    return [(at, value) for at, value in found if value is not None]


def _band(points: Sequence[Point], place: _Places) -> str:
    upper = [(place.x(at), place.y(value)) for at, value in _known(points, "high")]
    lower = [(place.x(at), place.y(value)) for at, value in _known(points, "low")]
    return _line(upper + lower[::-1]) + "Z" if upper else ""


def _line(points: Iterable[tuple[float, float]]) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"M{path}" if path else ""


def _marks(
    readings: Sequence[Reading], alarms: Sequence[tuple[int, Alarm]], place: _Places
) -> tuple[Mark, ...]:
    """Where alarms opened; numbers that would overlap stand above each other by turns."""
    at = {reading.run: place.x(number) for number, reading in enumerate(readings)}
    marks: list[Mark] = []
    for number, alarm in alarms:
        if alarm.run not in at:
            continue
        x = at[alarm.run]
        near = bool(marks) and x - marks[-1].x < _CLOSE and marks[-1].y == _TOP - 8
        title = "; ".join(alarm.suspects) or "no change of the corpus or the code is known"
        marks.append(Mark(x, number, _TOP - 20 if near else _TOP - 8, title))
    return tuple(marks)
