"""A canary run and a series of runs: as text and tables, and as the trend page."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.canary.alarms import (
    DEFAULT_MEASURES,
    AlarmStatus,
    CanaryAlarm,
    RunReading,
    group_alarms,
)
from misslink.canary.results import CanaryResult
from misslink.render.format import (
    FormattedEstimate,
    format_decimal,
    format_decimal_estimate,
    format_estimate,
    format_percent,
    pluralize,
)
from misslink.render.table import Part, TextTable
from misslink.stats.control_charts import ChartPoint, ControlChart
from misslink.types import Estimate

_STATUS = {"learning": "still learning", "ok": "ok", "alarm": "ALARM"}
_FIGURES = {
    "health": "Healthy canaries",
    "coverage": "Expected passages found",
    "top_score": "Relevance of the best",
    "answered": "Questions answered",
}
_MAX_LISTED = 20  # canaries
_MILLISECOND, _FEW = 0.001, 10  # seconds: less is not distinguished, more is rounded


def run_parts(document: Mapping[str, Any], results: Sequence[CanaryResult] = ()) -> Iterator[Part]:
    """Yield one run: its status, alarms, figures, and canaries that fail or were not measured."""
    yield "title", f"Canaries: {document['name']}"
    app = f" of {document['app']}" if document.get("app") else ""
    status = _STATUS[document["status"]]
    yield "strong", f"Run {document['run']} of '{document['name']}'{app}: {status}."
    yield from _alarms(document)
    figures = [(label, _latest_value(key, document).brief) for key, label in _FIGURES.items()]
    figures.append(("Seconds to answer", format_latency(document)))
    count = f"of {pluralize(document['canaries'], 'canary', 'canaries')}"
    yield "table", TextTable(("", count), figures)
    degraded = {canary["id"]: canary["before"] for canary in document["degraded"]}
    rows = [
        (canary["id"], canary["owner"] or "", "degraded", f"{canary['now']}; before: {before}")
        if (before := degraded.get(canary["id"]))
        else (canary["id"], canary["owner"] or "", "failing", canary["now"])
        for canary in document["failing"]
    ]
    rows += [
        (result.canary, result.owner or "", "not measured", result.reason)
        for result in results
        if result.healthy is None
    ]
    if rows:
        yield "table", TextTable(("Canary", "Owner", "State", "Reason"), rows[:_MAX_LISTED])
    if len(rows) > _MAX_LISTED:
        yield "text", f"{len(rows) - _MAX_LISTED:,} more are in the JSON of the same run."
    if document["suspects"]:
        yield "text", f"Since the previous run: {'; '.join(document['suspects'])}."
    for note in (document["reason"], *document["notes"]):
        if note:
            yield "note", note


def history_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield a series of runs, as ``misslink canary history --json`` prints it."""
    yield "title", f"Canaries: {document['name']}"
    yield "strong", f"'{document['name']}': {_STATUS[document['status']]}."
    yield from _alarms(document)
    columns = ("Run", "At", "Health", "Coverage", "Score", "Seconds", "Failed", "Status")
    rows = [
        (
            str(run["run"]),
            run["at"][:16].replace("T", " "),
            _latest_value("health", run).brief if run["health"]["value"] is not None else "none",
            *(
                "none"
                if run[key]["value"] is None
                else _latest_value(key, run).brief.partition(" ")[0].rstrip(",")
                for key in ("coverage", "top_score")
            ),
            format_latency(run).partition(" (")[0],
            f"{run['errors']:,}",
            _STATUS[run["status"]],
        )
        for run in document["runs"]
    ]
    yield "table", TextTable(columns, rows, numbers=("Run", "At", "Health", "Failed"))
    if document["waiting"]:
        waiting = pluralize(document["waiting"], "webhook message is", "webhook messages are")
        yield "note", f"{waiting} not yet delivered; the next run sends them"
    for letter in document["refused"]:
        yield "note", f"the webhook message of run {letter['run']} failed: {letter['error']}"


def _alarms(document: Mapping[str, Any]) -> Iterator[Part]:
    for alarm in document["alarms"]:
        yield "strong", f"{alarm['state']}: {alarm['sentence']}"


def format_latency(document: Mapping[str, Any]) -> str:
    """The median of a run's seconds to an answer, and its 95th percentile."""
    latency = document["latency_s"]
    if latency["median"] is None:
        return "not measured"
    return f"{format_duration(latency['median'])} (p95 {format_duration(latency['p95'])})"


def format_duration(seconds: float) -> str:
    """Seconds for people, to the millisecond where they are few.

    Examples
    --------
    >>> format_duration(0.0000031), format_duration(0.0456), format_duration(2.25), format_duration(75.3)
    ('<0.001', '0.046', '2.25', '75')
    """
    if 0 < seconds < _MILLISECOND:
        return f"<{_MILLISECOND}"
    digits = 3 if seconds < 1 else 2 if seconds < _FEW else 0
    return f"{seconds:.{digits}f}"


_WIDTH, _HEIGHT = 640.0, 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 622.0, 30.0, 196.0
_MARGIN_SHARE = 0.08  # of the range, above and below it
_MARK_GAP = 16.0  # between the numbers of two events
_MAX_RUNS = 200  # runs drawn, the latest
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
    "latency_s": ("Latency", "Median seconds to answer.", (0.0, None)),
    "errors": (
        "Failed questions",
        "Share of canaries that the app did not answer in time.",
        (0.0, 1.0),
    ),
}
_BETTER = {measure.name: measure.better for measure in DEFAULT_MEASURES}


def build_trend_page(
    name: str,
    runs: Sequence[Mapping[str, Any]],
    readings: Sequence[RunReading],
    watched: AlarmStatus,
) -> dict[str, Any]:
    """Turn a series of canary runs into the content of the page; its texts are not escaped.

    Its ``events`` are alarms that began together, the latest first, with the canaries that broke.

    Parameters
    ----------
    name : str
        Name of the series.
    runs : sequence of mapping
        Documents of the runs, the earliest first; at least one.
    readings : sequence of RunReading
        The readings that the latest run is compared with, and its own.
    watched : AlarmStatus
    """
    last = runs[-1]
    events = list(enumerate(group_alarms(watched.episodes), start=1))
    degraded = sorted(last["degraded"], key=lambda canary: canary["owner"] or "")
    finding = "Nothing got worse."
    if degraded:
        finding = (
            f"{pluralize(len(degraded), 'question')} degraded in the latest run; all measures are in "
            "their usual range. It is an alarm when one leaves it."
        )
    if watched.status == "alarm":
        worse = _measure_names(a for a in watched.episodes if a.ended is None)
        finding = f"It got worse: {worse}."
    elif watched.status == "learning":
        count = pluralize(len(readings), "run")
        finding = f"Still learning what is usual: {count} of {last['learn']}."
    panels = [_panel(measure, last, readings, watched, events) for measure in _PANELS]
    shown = [_event(number, a, readings, runs) for number, a in reversed(events)]
    in_alarms = {canary["id"] for event in shown if event["is_open"] for canary in event["broken"]}
    elsewhere = [canary for canary in degraded if canary["id"] not in in_alarms]
    return {
        "title": f"{last.get('app')}: {name}",
        "facts": [
            ("Canaries", f"{last['canaries']:,}"),
            ("Cutoff k", str(last.get("k"))),
            ("Judge", str(last.get("judge"))),
            ("Relevance", str(last.get("relevance"))),
            ("Comparable runs", f"{len(readings):,}"),
            ("Latest run", _format_time(_unix_seconds(last["at"]))),
        ],
        "finding": finding,
        "is_alarm": watched.status == "alarm",
        "notes": [note for note in (watched.reason, *last["notes"]) if note],
        "events": shown,
        "panels": [panel for panel in panels if panel],
        "degraded": elsewhere,
        "listed_above": len(degraded) - len(elsewhere),
        "runs": [
            {
                **{key: _latest_value(key, run) for key in _PANELS},
                "run": run["run"],
                "at": _format_time(_unix_seconds(run["at"])),
                "degraded": len(run["degraded"]),
                "status": run["status"],
                "changed": "; ".join(run["suspects"]),
            }
            for run in reversed(runs[-_MAX_RUNS:])
        ],
    }


def render_trend_page(page: Mapping[str, Any]) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.render.html import read_assets, render_template

    folder = Path(__file__).resolve().parent / "templates"
    style = read_assets(folder, "report.css", "trend.css")
    return render_template(folder / "trend.jinja", page, style=style)


def _measure_names(alarms: Iterable[CanaryAlarm]) -> str:
    names = (_PANELS[a.measure][0].lower() for a in alarms if a.measure in _PANELS)
    return ", ".join(dict.fromkeys(names))


def _event(
    number: int,
    alarms: Sequence[CanaryAlarm],
    readings: Sequence[RunReading],
    runs: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """One change for the worse: its measures, its time, its suspects, and the canaries that broke."""
    times = {reading.run: _format_time(reading.at) for reading in readings}
    began, first_run = min(a.since for a in alarms), min(a.run for a in alarms)
    ends = [alarm.ended for alarm in alarms]
    until = None if None in ends else max(end for end in ends if end is not None)
    when = f"Since run {began}, {times.get(began, 'at an unknown time')}"
    if until is not None:
        when += f", until run {until}"
    broken: dict[str, Mapping[str, str]] = {}
    for run in runs:
        if began <= run["run"] <= max(a.run for a in alarms):
            for canary in run["degraded"]:
                broken.setdefault(canary["id"], canary)
    is_known = any(run["run"] == first_run for run in runs)
    return {
        "number": number,
        "heading": _measure_names(alarms).capitalize(),
        "is_open": until is None,
        "when": when,
        "suspects": "; ".join(dict.fromkeys(s for alarm in alarms for s in alarm.suspects)),
        "changes": [alarm.change for alarm in alarms],
        "broken": sorted(broken.values(), key=lambda canary: canary["owner"] or ""),
        "no_broken": "No canary newly failed." if is_known else "These runs are not shown here.",
    }


def _panel(
    measure: str,
    last: Mapping[str, Any],
    readings: Sequence[RunReading],
    watched: AlarmStatus,
    events: Sequence[tuple[int, Sequence[CanaryAlarm]]],
) -> dict[str, Any] | None:
    """The latest value of a measure, its drawing and its table; None if it was never measured."""
    heading, words, bounds = _PANELS[measure]
    chart, off = watched.charts.get(measure), max(len(readings) - _MAX_RUNS, 0)
    readings = readings[off:]
    values = [reading.values.get(measure) for reading in readings]
    if all(value is None for value in values) or (measure == "errors" and not any(values)):
        return None
    if chart is not None and off:
        begin, end = max(chart.begin - off, 0), max(chart.end - off, 1)
        chart = dataclasses.replace(chart, points=chart.points[off:], begin=begin, end=end)
    points = chart.points if chart else [ChartPoint(value) for value in values]
    steps = max(len(readings) - 1, 1)
    xs = [round(_LEFT + i * (_RIGHT - _LEFT) / steps, 1) for i in range(len(readings))]

    def write(value: float | None) -> str:
        return "" if value is None else _format_measure(measure, value)

    return {
        "name": measure,
        "heading": heading,
        "words": words,
        "now": _latest_value(measure, last),
        "learnt": (
            f"Learned from {pluralize(chart.learnt_from, 'run')}: {write(chart.centre)}."
            if chart
            else "Not learned yet."
        ),
        "drawn": _draw_trend(measure, readings, values, chart, write, bounds, xs),
        "marks": _event_marks(
            measure, {r.run: x for r, x in zip(readings, xs, strict=True)}, events
        ),
        "rows": [
            (
                reading.run,
                _format_time(reading.at),
                "not measured" if value is None else write(value),
                write(point.ewma),
                "" if point.low is None else f"{write(point.low)} to {write(point.high)}",
            )
            for reading, value, point in zip(readings, values, points, strict=True)
        ][::-1],
    }


def _draw_trend(
    measure: str,
    readings: Sequence[RunReading],
    values: Sequence[float | None],
    chart: ControlChart | None,
    write: Callable[[float], str],
    bounds: tuple[float | None, float | None],
    xs: Sequence[float],
) -> dict[str, Any]:
    """Return paths and places of a chart, in view box units."""
    points = chart.points if chart else ()
    limits = [end for point in points for end in (point.low, point.high)]
    low, high = _axis_range([v for v in (*values, *limits) if v is not None], bounds)

    def y(value: float) -> float:
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)

    def line(name: str) -> list[tuple[float, float]]:
        ends = ((index, getattr(point, name)) for index, point in enumerate(points))
        return [(xs[index], y(value)) for index, value in ends if value is not None]

    worse = "above" if _BETTER[measure] == "low" else "below"
    dates = [(xs[0], _format_time(readings[0].at), "start")]
    if len(readings) > 1:
        dates.append((xs[-1], _format_time(readings[-1].at), "end"))
    return {
        "frame": (_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM),
        "xs": dates,
        "ys": [(y(value), write(value)) for value in (low, (low + high) / 2, high)],
        "spots": [
            {
                "x": xs[index],
                "y": y(value),
                "is_out": bool(points and getattr(points[index], worse)),
                "title": f"run {reading.run}, {_format_time(reading.at)}: {write(value)}",
            }
            for index, (reading, value) in enumerate(zip(readings, values, strict=True))
            if value is not None
        ],
        "average": _svg_path(line("ewma")),
        "band": _svg_path(line("high") + line("low")[::-1]),
        "centre": y(chart.centre) if chart else None,
        "learnt": (xs[chart.begin], xs[chart.end - 1]) if chart else None,
    }


def _axis_range(
    values: Sequence[float], bounds: tuple[float | None, float | None]
) -> tuple[float, float]:
    low, high = min(values), max(values)
    air = _MARGIN_SHARE * (high - low) or max(abs(high), 1.0) * _MARGIN_SHARE
    least, most = bounds
    low = low - air if least is None else max(low - air, least)
    high = high + air if most is None else min(high + air, most)
    if bounds == (0.0, 1.0):  # shares: whole tens
        low, high = math.floor(10 * low) / 10, math.ceil(10 * high) / 10
    return (low, high) if high > low else (low, low + 1)


def _svg_path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""


def _event_marks(
    measure: str, x_by_run: Mapping[int, float], events: Sequence[tuple[int, Sequence[CanaryAlarm]]]
) -> list[tuple[float, float, int]]:
    """Place and number of each event of a measure; numbers that would overlap alternate in height."""
    marks: list[tuple[float, float, int]] = []
    for number, alarms in events:
        opened = [a.run for a in alarms if a.measure == measure and a.run in x_by_run]
        if opened:
            place = x_by_run[min(opened)]
            is_near = marks and place - marks[-1][0] < _MARK_GAP and marks[-1][1] == _TOP - 8
            marks.append((place, _TOP - 20 if is_near else _TOP - 8, number))
    return marks


def _latest_value(measure: str, run: Mapping[str, Any]) -> FormattedEstimate:
    if measure == "latency_s":
        seconds, n = run["latency_s"]["median"], run["latency_s"]["n"]
        value = "not measured" if seconds is None else _format_measure(measure, seconds)
        reason = "the app answered no canary" if seconds is None else ""
        return FormattedEstimate(measure, value, "", n, reason, "", None)
    if measure == "errors":
        value = f"{run['errors']:,} of {run['canaries']:,}"
        return FormattedEstimate(measure, value, "", run["canaries"], "", "", None)
    estimate = Estimate.model_validate(run[measure])
    return (format_decimal_estimate if measure == "top_score" else format_estimate)(
        measure, estimate
    )


def _format_measure(measure: str, value: float) -> str:
    if measure == "latency_s":
        return f"{format_duration(value)} s"
    if measure == "top_score":
        return format_decimal(value, 3)
    return format_percent(min(max(value, 0.0), 1.0))


def _unix_seconds(time: str) -> float:
    return dt.datetime.fromisoformat(time).timestamp()


def _format_time(seconds: float) -> str:
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"
