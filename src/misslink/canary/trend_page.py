"""The trend page: metrics of a live app over time, and their alarms."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from misslink.canary.alarms import DEFAULT_MEASURES, AlarmStatus, CanaryAlarm, RunReading
from misslink.canary.markdown import format_duration
from misslink.render.format import (
    FormattedEstimate,
    format_decimal,
    format_decimal_estimate,
    format_estimate,
    format_percent,
    pluralize,
)
from misslink.stats.control_charts import ChartPoint, ControlChart
from misslink.types import Estimate

_WIDTH, _HEIGHT = 640.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 622.0, 30.0, 196.0
_MARGIN_SHARE = 0.08  # of the range, above and below it
_TICK_COUNT = 3
_MARK_GAP = 16.0  # between the numbers of two alarms


@dataclass(frozen=True)
class TrendTick:
    """A place on an axis and its name."""

    at: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True)
class TrendPoint:
    """One reading: where it stands, whether a chart says it is worse, and what it says."""

    x: float
    y: float
    is_out: bool
    title: str


@dataclass(frozen=True)
class AlarmMark:
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
    xs: tuple[TrendTick, ...]
    ys: tuple[TrendTick, ...]
    spots: tuple[TrendPoint, ...]
    average: str
    band: str
    centre: float | None
    learnt: tuple[float, float] | None
    marks: tuple[AlarmMark, ...]


def draw_trend(
    readings: Sequence[RunReading],
    values: Sequence[float | None],
    chart: ControlChart | None,
    alarms: Sequence[tuple[int, CanaryAlarm]],
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
    limits = [end for point in points for end in (point.low, point.high) if end is not None]
    low, high = _axis_range([*seen, *limits], bounds)
    place = _ChartScale(len(readings), low, high)
    return TrendChart(
        width=_WIDTH,
        height=_HEIGHT,
        frame=(_LEFT, _TOP, _RIGHT, _BOTTOM),
        xs=_date_ticks(readings, place, date),
        ys=tuple(
            TrendTick(place.y(value), write(value))
            for value in (
                low + (high - low) * step / (_TICK_COUNT - 1) for step in range(_TICK_COUNT)
            )
        ),
        spots=tuple(
            TrendPoint(
                place.x(index),
                place.y(value),
                bool(points)
                and bool(points[index].above if better == "low" else points[index].below),
                f"run {reading.run}, {date(reading.at)}: {write(value)}",
            )
            for index, (reading, value) in enumerate(zip(readings, values, strict=True))
            if value is not None
        ),
        average=_svg_line(
            (place.x(index), place.y(e)) for index, e in _present_values(points, "ewma")
        ),
        band=_limit_band(points, place),
        centre=place.y(chart.centre) if chart else None,
        learnt=(place.x(chart.begin), place.x(chart.end - 1)) if chart else None,
        marks=_alarm_marks(readings, alarms, place),
    )


class _ChartScale:
    """From a run's place in the series, and a value, to a place on the drawing."""

    def __init__(self, runs: int, low: float, high: float) -> None:
        self._step = (_RIGHT - _LEFT) / max(runs - 1, 1)
        self._low, self._span = low, high - low

    def x(self, index: int) -> float:
        return round(_LEFT + index * self._step, 1)

    def y(self, value: float) -> float:
        share = min(max((value - self._low) / self._span, 0.0), 1.0)
        return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)


def _axis_range(
    values: Sequence[float], bounds: tuple[float | None, float | None]
) -> tuple[float, float]:
    low, high = min(values), max(values)
    air = _MARGIN_SHARE * (high - low) or max(abs(high), 1.0) * _MARGIN_SHARE
    least, most = bounds
    low = low - air if least is None else max(low - air, least)
    high = high + air if most is None else min(high + air, most)
    return (low, high) if high > low else (low, low + 1)


def _date_ticks(
    readings: Sequence[RunReading], place: _ChartScale, date: Callable[[float], str]
) -> tuple[TrendTick, ...]:
    last = len(readings) - 1
    first = TrendTick(place.x(0), date(readings[0].at), "start")
    return (
        (first,) if not last else (first, TrendTick(place.x(last), date(readings[last].at), "end"))
    )


def _present_values(points: Sequence[ChartPoint], name: str) -> list[tuple[int, float]]:
    values = ((index, getattr(point, name)) for index, point in enumerate(points))
    return [(index, value) for index, value in values if value is not None]


def _limit_band(points: Sequence[ChartPoint], place: _ChartScale) -> str:
    upper = [(place.x(index), place.y(value)) for index, value in _present_values(points, "high")]
    lower = [(place.x(index), place.y(value)) for index, value in _present_values(points, "low")]
    return _svg_line(upper + lower[::-1]) + "Z" if upper else ""


def _svg_line(points: Iterable[tuple[float, float]]) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"M{path}" if path else ""


def _alarm_marks(
    readings: Sequence[RunReading], alarms: Sequence[tuple[int, CanaryAlarm]], place: _ChartScale
) -> tuple[AlarmMark, ...]:
    """Where alarms opened; numbers that would overlap stand above each other by turns."""
    x_by_run = {reading.run: place.x(number) for number, reading in enumerate(readings)}
    marks: list[AlarmMark] = []
    for number, alarm in alarms:
        if alarm.run not in x_by_run:
            continue
        x = x_by_run[alarm.run]
        near = bool(marks) and x - marks[-1].x < _MARK_GAP and marks[-1].y == _TOP - 8
        title = "; ".join(alarm.suspects) or "no change of the corpus or the code is known"
        marks.append(AlarmMark(x, number, _TOP - 20 if near else _TOP - 8, title))
    return tuple(marks)


_MAX_DRAWN = 200  # runs, the latest
_NO_OWNER = "No owner named"
_PANEL_TEXTS = {  # measure: heading, what it is, what the axis never passes
    "health": (
        "Health",
        (
            "Share of canaries whose expected passage was within k, relevant enough, and whose "
            "answer, where judged, was right."
        ),
        (0.0, 1.0),
    ),
    "coverage": ("Coverage", "Mean share of the expected passages within k.", (0.0, 1.0)),
    "top_score": (
        "Top score",
        "Mean relevance of the best expected passage within k, over the canaries that have one.",
        (None, None),
    ),
    "latency_s": ("Latency", "Median seconds to an answer.", (0.0, None)),
    "errors": (
        "Failed questions",
        "Share of canaries to which the app gave no answer in its time.",
        (0.0, 1.0),
    ),
}


_BETTER_DIRECTIONS = {measure.name: measure.better for measure in DEFAULT_MEASURES}


@dataclass(frozen=True)
class TrendPanel:
    """One measure: its name and meaning, its latest value, its drawing, and its rows.

    ``rows`` are run, date, value, moving average and limits, as people read them.
    """

    name: str
    heading: str
    words: str
    now: str
    interval: str
    learnt: str
    drawn: TrendChart
    rows: tuple[tuple[int, str, str, str, str], ...]


@dataclass(frozen=True)
class AlarmRow:
    """One alarm for people."""

    number: int
    heading: str
    state: str
    when: str
    sentence: str


@dataclass(frozen=True)
class TrendRunRow:
    """One run in the table."""

    run: int
    at: str
    health: FormattedEstimate
    coverage: FormattedEstimate
    top_score: FormattedEstimate
    latency: str
    failed: int
    degraded: int
    status: str
    changed: str


@dataclass(frozen=True)
class TrendPage:
    """All of the page; texts are as their writers left them, so escape them.

    ``began`` says when what is wrong began, and what had changed by then; empty where nothing is.
    ``going`` are the alarms that have not recovered, ``over`` those that have.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    finding: str
    began: str
    is_alarm: bool
    notes: tuple[str, ...]
    panels: tuple[TrendPanel, ...]
    going: tuple[AlarmRow, ...]
    over: tuple[AlarmRow, ...]
    owners: tuple[tuple[str, tuple[Mapping[str, str], ...]], ...]
    runs: tuple[TrendRunRow, ...]


def build_trend_page(
    name: str,
    runs: Sequence[Mapping[str, Any]],
    readings: Sequence[RunReading],
    watched: AlarmStatus,
) -> TrendPage:
    """Turn a series of canary runs into what people read.

    Parameters
    ----------
    name : str
        Of the series.
    runs : sequence of mapping
        Their documents, the earliest first; at least one.
    readings : sequence of Reading
        Those that the latest run is compared with, and its own.
    watched : Watched
        What the charts say of them.
    """
    last = runs[-1]
    numbered = list(enumerate(watched.episodes, start=1))
    panels = [
        _trend_panel(
            measure, last, readings, watched, [p for p in numbered if p[1].measure == measure]
        )
        for measure in _PANEL_TEXTS
    ]
    rows = [_alarm_row(number, alarm, readings) for number, alarm in reversed(numbered)]
    return TrendPage(
        title=f"{last.get('app')}: {name}",
        facts=(
            ("Canaries", str(last["canaries"])),
            ("Cutoff k", str(last.get("k"))),
            ("Judge", str(last.get("judge"))),
            ("Relevance", str(last.get("relevance"))),
            ("Comparable runs", f"{len(readings):,}"),
            ("Latest run", _format_time(_unix_seconds(last["at"]))),
        ),
        finding=_page_finding(watched, len(readings), last),
        began=_change_began(watched, readings),
        is_alarm=watched.status == "alarm",
        notes=tuple(filter(None, (watched.reason, *last["notes"]))),
        panels=tuple(panel for panel in panels if panel is not None),
        going=tuple(row for row in rows if row.state != "recovered"),
        over=tuple(row for row in rows if row.state == "recovered"),
        owners=_degraded_owners(last["degraded"]),
        runs=tuple(_run_row(run) for run in reversed(runs)),
    )


def render_trend_page(page: TrendPage) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.render.html import read_assets, render_template

    folder = Path(__file__).resolve().parent / "templates"
    style = read_assets(folder, "report.css", "trend.css")
    return render_template(folder / "trend.jinja", page, style=style)


def _page_finding(watched: AlarmStatus, count: int, last: Mapping[str, Any]) -> str:
    going = [alarm for alarm in watched.episodes if alarm.state != "recovered"]
    if watched.status == "alarm":
        measures = dict.fromkeys(
            _PANEL_TEXTS[a.measure][0].lower() for a in going if a.measure in _PANEL_TEXTS
        )
        return f"It got worse: {', '.join(measures)}."
    if watched.status == "learning":
        return f"Still learning what is usual: {pluralize(count, 'run')} of {last['learn']}."
    return "Nothing got worse."


def _change_began(watched: AlarmStatus, readings: Sequence[RunReading]) -> str:
    """When the earliest change that still alarms began, and what changed just before."""
    going = [alarm for alarm in watched.episodes if alarm.state != "recovered"]
    if not going:
        return ""
    since = min(alarm.since for alarm in going)
    when = next((_format_time(reading.at) for reading in readings if reading.run == since), None)
    suspects = tuple(dict.fromkeys(suspect for alarm in going for suspect in alarm.suspects))
    changed = (
        f"Changed by then: {'; '.join(suspects)}."
        if suspects
        else "No change of the corpus or the embedding is known from that time."
    )
    return f"Since run {since}{f', {when}' if when else ''}. {changed}"


def _trend_panel(
    measure: str,
    last: Mapping[str, Any],
    readings: Sequence[RunReading],
    watched: AlarmStatus,
    alarms: Sequence[tuple[int, CanaryAlarm]],
) -> TrendPanel | None:
    heading, words, bounds = _PANEL_TEXTS[measure]
    chart = watched.charts.get(measure)
    shown_readings = readings[-_MAX_DRAWN:]
    values = [reading.values.get(measure) for reading in shown_readings]
    cut = _cut_chart(chart, len(readings) - len(shown_readings))

    def write(value: float) -> str:
        return _format_measure(measure, value)

    better = _BETTER_DIRECTIONS[measure]
    drawn = draw_trend(
        shown_readings, values, cut, alarms, write, _format_time, better=better, bounds=bounds
    )
    if drawn is None or (measure == "errors" and not any(values)):
        return None
    now = _latest_value(measure, last)
    points = cut.points if cut else [None] * len(values)
    return TrendPanel(
        name=measure,
        heading=heading,
        words=words,
        now=now.value,
        interval=now.interval,
        learnt=(
            f"learnt from {pluralize(chart.learnt_from, 'run')}: {write(chart.centre)}"
            if chart
            else "not learnt yet"
        ),
        drawn=drawn,
        rows=tuple(
            (
                reading.run,
                _format_time(reading.at),
                "not measured" if value is None else write(value),
                "" if point is None or point.ewma is None else write(point.ewma),
                _limits_text(point, write),
            )
            for reading, value, point in zip(shown_readings, values, points, strict=True)
        )[::-1],
    )


def _cut_chart(chart: Any, off: int) -> Any:
    """A chart without its first points; what was learnt may lie before the drawing then."""
    from dataclasses import replace

    if chart is None or not off:
        return chart
    begin, end = max(chart.begin - off, 0), max(chart.end - off, 1)
    return replace(chart, points=chart.points[off:], begin=begin, end=end)


def _limits_text(point: Any, write: Any) -> str:
    if point is None or point.low is None or point.high is None:
        return ""
    return f"{write(point.low)} to {write(point.high)}"


def _latest_value(measure: str, last: Mapping[str, Any]) -> FormattedEstimate:
    if measure == "latency_s":
        seconds = last["latency_s"]["median"]
        value = "not measured" if seconds is None else _format_measure(measure, seconds)
        return FormattedEstimate(measure, value, "", last["latency_s"]["n"], "", "", None)
    if measure == "errors":
        count = last["errors"]
        return FormattedEstimate(
            measure, f"{count} of {last['canaries']}", "", last["canaries"], "", "", None
        )
    estimate = Estimate.model_validate(last[measure])
    return (
        format_decimal_estimate(measure, estimate)
        if measure == "top_score"
        else format_estimate(measure, estimate)
    )


def _format_measure(measure: str, value: float) -> str:
    if measure == "latency_s":
        return f"{format_duration(value)} s"
    return (
        format_decimal(value, 3)
        if measure == "top_score"
        else format_percent(min(max(value, 0.0), 1.0))
    )


def _alarm_row(number: int, alarm: CanaryAlarm, readings: Sequence[RunReading]) -> AlarmRow:
    times = {reading.run: _format_time(reading.at) for reading in readings}
    when = f"opened with run {alarm.run}, {times.get(alarm.run, 'at an unknown time')}"
    if alarm.ended is not None:
        when += f"; recovered with run {alarm.ended}"
    heading = _PANEL_TEXTS[alarm.measure][0] if alarm.measure in _PANEL_TEXTS else alarm.measure
    return AlarmRow(number, heading, alarm.state, when, alarm.sentence)


def _degraded_owners(
    degraded: Sequence[Mapping[str, str]],
) -> tuple[tuple[str, tuple[Mapping[str, str], ...]], ...]:
    by_owner: dict[str, list[Mapping[str, str]]] = {}
    for canary in degraded:
        by_owner.setdefault(canary["owner"] or "", []).append(canary)
    return tuple((owner or _NO_OWNER, tuple(by_owner[owner])) for owner in sorted(by_owner))


def _run_row(run: Mapping[str, Any]) -> TrendRunRow:
    return TrendRunRow(
        run=run["run"],
        at=_format_time(_unix_seconds(run["at"])),
        health=_latest_value("health", run),
        coverage=_latest_value("coverage", run),
        top_score=_latest_value("top_score", run),
        latency=_latest_value("latency_s", run).value,
        failed=run["errors"],
        degraded=len(run["degraded"]),
        status=run["status"],
        changed="; ".join(run["suspects"]),
    )


def _unix_seconds(time: str) -> float:
    return dt.datetime.fromisoformat(time).timestamp()


def _format_time(seconds: float) -> str:
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"
