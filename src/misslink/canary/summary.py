"""A canary run and a series of runs as text and tables, for the terminal and for markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from misslink.canary.results import CanaryResult
from misslink.render.format import format_decimal_estimate, format_estimate, pluralize
from misslink.render.table import Part, TextTable
from misslink.types import Estimate

_STATUS = {"learning": "still learning", "ok": "fine", "alarm": "ALARM"}
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
    figures = [(label, _figure(document, key)) for key, label in _FIGURES.items()]
    figures.append(("Seconds to an answer", format_latency(document)))
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
        yield "text", f"Since the run before: {'; '.join(document['suspects'])}."
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
            _figure(run, "health") if run["health"]["value"] is not None else "none",
            *(_figure(run, key).partition(" ")[0].rstrip(",") for key in ("coverage", "top_score")),
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


def _figure(document: Mapping[str, Any], key: str) -> str:
    estimate = Estimate.model_validate(document[key])
    return (format_decimal_estimate if key == "top_score" else format_estimate)(key, estimate).brief


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
