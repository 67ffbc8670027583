"""The trend page: what the canaries of a live app showed over time, and what alarmed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.report.trend_chart import TrendChart, trend_chart
from misslink.report.trend_markdown import duration
from misslink.report.wording import Shown, decimal, percent, plural, shown, shown_decimal
from misslink.types import Estimate
from misslink.watching.canaries.alarms import USUAL, Alarm, Reading, Watched

__all__ = ["AlarmRow", "Panel", "RunRow", "TrendPage", "build", "render"]

_DRAWN = 200  # runs, the latest
_NOBODY = "No owner named"
_PANELS = {  # measure: heading, what it is, what the axis never passes
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


_BETTER = {measure.name: measure.better for measure in USUAL}


@dataclass(frozen=True)
class Panel:
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
class RunRow:
    """One run in the table."""

    run: int
    at: str
    health: Shown
    coverage: Shown
    top_score: Shown
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
    panels: tuple[Panel, ...]
    going: tuple[AlarmRow, ...]
    over: tuple[AlarmRow, ...]
    owners: tuple[tuple[str, tuple[Mapping[str, str], ...]], ...]
    runs: tuple[RunRow, ...]


def build(
    name: str,
    runs: Sequence[Mapping[str, Any]],
    readings: Sequence[Reading],
    watched: Watched,
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
        _panel(measure, last, readings, watched, [p for p in numbered if p[1].measure == measure])
        for measure in _PANELS
    ]
    rows = [_alarm(number, alarm, readings) for number, alarm in reversed(numbered)]
    return TrendPage(
        title=f"{last.get('app')}: {name}",
        facts=(
            ("Canaries", str(last["canaries"])),
            ("Cutoff k", str(last.get("k"))),
            ("Judge", str(last.get("judge"))),
            ("Relevance", str(last.get("relevance"))),
            ("Comparable runs", f"{len(readings):,}"),
            ("Latest run", _date(_seconds(last["at"]))),
        ),
        finding=_finding(watched, len(readings), last),
        began=_began(watched, readings),
        is_alarm=watched.status == "alarm",
        notes=tuple(filter(None, (watched.reason, *last["notes"]))),
        panels=tuple(panel for panel in panels if panel is not None),
        going=tuple(row for row in rows if row.state != "recovered"),
        over=tuple(row for row in rows if row.state == "recovered"),
        owners=_owners(last["degraded"]),
        runs=tuple(_run(run) for run in reversed(runs)),
    )


def render(page: TrendPage) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.report.html import asset, fill

    return fill("trend.jinja", page, style=asset("report.css") + asset("trend.css"))


def _finding(watched: Watched, count: int, last: Mapping[str, Any]) -> str:
    going = [alarm for alarm in watched.episodes if alarm.state != "recovered"]
    if watched.status == "alarm":
        measures = dict.fromkeys(
            _PANELS[a.measure][0].lower() for a in going if a.measure in _PANELS
        )
        return f"It got worse: {', '.join(measures)}."
    if watched.status == "learning":
        return f"Still learning what is usual: {plural(count, 'run')} of {last['learn']}."
    return "Nothing got worse."


def _began(watched: Watched, readings: Sequence[Reading]) -> str:
    """When the earliest change that still alarms began, and what changed just before."""
    going = [alarm for alarm in watched.episodes if alarm.state != "recovered"]
    if not going:
        return ""
    since = min(alarm.since for alarm in going)
    at = next((_date(reading.at) for reading in readings if reading.run == since), None)
    suspects = tuple(dict.fromkeys(each for alarm in going for each in alarm.suspects))
    changed = (
        f"Changed by then: {'; '.join(suspects)}."
        if suspects
        else "No change of the corpus or the embedding is known from that time."
    )
    return f"Since run {since}{f', {at}' if at else ''}. {changed}"


def _panel(
    measure: str,
    last: Mapping[str, Any],
    readings: Sequence[Reading],
    watched: Watched,
    alarms: Sequence[tuple[int, Alarm]],
) -> Panel | None:
    heading, words, bounds = _PANELS[measure]
    chart = watched.charts.get(measure)
    shown_readings = readings[-_DRAWN:]
    values = [reading.values.get(measure) for reading in shown_readings]
    cut = _cut(chart, len(readings) - len(shown_readings))

    def write(value: float) -> str:
        return _written(measure, value)

    better = _BETTER[measure]
    drawn = trend_chart(
        shown_readings, values, cut, alarms, write, _date, better=better, bounds=bounds
    )
    if drawn is None or (measure == "errors" and not any(values)):
        return None
    now = _now(measure, last)
    points = cut.points if cut else [None] * len(values)
    return Panel(
        name=measure,
        heading=heading,
        words=words,
        now=now.value,
        interval=now.interval,
        learnt=(
            f"learnt from {plural(chart.learnt_from, 'run')}: {write(chart.centre)}"
            if chart
            else "not learnt yet"
        ),
        drawn=drawn,
        rows=tuple(
            (
                reading.run,
                _date(reading.at),
                "not measured" if value is None else write(value),
                "" if point is None or point.ewma is None else write(point.ewma),
                _limits(point, write),
            )
            for reading, value, point in zip(shown_readings, values, points, strict=True)
        )[::-1],
    )


def _cut(chart: Any, off: int) -> Any:
    """A chart without its first points; what was learnt may lie before the drawing then."""
    from dataclasses import replace

    if chart is None or not off:
        return chart
    begin, end = max(chart.begin - off, 0), max(chart.end - off, 1)
    return replace(chart, points=chart.points[off:], begin=begin, end=end)


def _limits(point: Any, write: Any) -> str:
    if point is None or point.low is None or point.high is None:
        return ""
    return f"{write(point.low)} to {write(point.high)}"


def _now(measure: str, last: Mapping[str, Any]) -> Shown:
    if measure == "latency_s":
        seconds = last["latency_s"]["median"]
        value = "not measured" if seconds is None else _written(measure, seconds)
        return Shown(measure, value, "", last["latency_s"]["n"], "", "", None)
    if measure == "errors":
        count = last["errors"]
        return Shown(measure, f"{count} of {last['canaries']}", "", last["canaries"], "", "", None)
    estimate = Estimate.model_validate(last[measure])
    return shown_decimal(measure, estimate) if measure == "top_score" else shown(measure, estimate)


def _written(measure: str, value: float) -> str:
    if measure == "latency_s":
        return f"{duration(value)} s"
    return decimal(value, 3) if measure == "top_score" else percent(min(max(value, 0.0), 1.0))


def _alarm(number: int, alarm: Alarm, readings: Sequence[Reading]) -> AlarmRow:
    at = {reading.run: _date(reading.at) for reading in readings}
    when = f"opened with run {alarm.run}, {at.get(alarm.run, 'at an unknown time')}"
    if alarm.ended is not None:
        when += f"; recovered with run {alarm.ended}"
    heading = _PANELS[alarm.measure][0] if alarm.measure in _PANELS else alarm.measure
    return AlarmRow(number, heading, alarm.state, when, alarm.sentence)


def _owners(
    lost: Sequence[Mapping[str, str]],
) -> tuple[tuple[str, tuple[Mapping[str, str], ...]], ...]:
    by_owner: dict[str, list[Mapping[str, str]]] = {}
    for one in lost:
        by_owner.setdefault(one["owner"] or "", []).append(one)
    return tuple((owner or _NOBODY, tuple(by_owner[owner])) for owner in sorted(by_owner))


def _run(run: Mapping[str, Any]) -> RunRow:
    return RunRow(
        run=run["run"],
        at=_date(_seconds(run["at"])),
        health=_now("health", run),
        coverage=_now("coverage", run),
        top_score=_now("top_score", run),
        latency=_now("latency_s", run).value,
        failed=run["errors"],
        degraded=len(run["degraded"]),
        status=run["status"],
        changed="; ".join(run["suspects"]),
    )


def _seconds(at: str) -> float:
    return dt.datetime.fromisoformat(at).timestamp()


def _date(at: float) -> str:
    moment = dt.datetime.fromtimestamp(at, dt.UTC)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"
