"""Writes canary runs as markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from misslink.render.format import format_decimal_estimate, format_estimate, pluralize
from misslink.render.markdown import escape_markdown
from misslink.render.table import TextTable
from misslink.types import Estimate

_STATUS_WORDS = {"learning": "still learning", "ok": "fine", "alarm": "**ALARM**"}
_FIGURE_NAMES = {
    "health": "Healthy canaries",
    "coverage": "Expected passages found",
    "top_score": "Relevance of the best",
    "answered": "Questions answered",
}
_MAX_LISTED = 20  # degraded canaries that are named
_MILLISECOND, _FEW = 0.001, 10  # seconds: what is less is not told apart, what is more is rounded


def run_markdown(document: Mapping[str, Any]) -> str:
    """One run.

    Parameters
    ----------
    document : mapping
        As ``misslink canary run --json`` prints it.

    Returns
    -------
    str
        Every text escaped, ending in a line break.
    """
    return "\n\n".join(_run_section(document)) + "\n"


def history_markdown(document: Mapping[str, Any]) -> str:
    """A series of runs, as ``misslink canary history --json`` prints it; as `run_markdown`."""
    parts = [
        f"## Canaries: {escape_markdown(document['name'])}",
        f"Now {_STATUS_WORDS[document['status']]}.",
    ]
    if document["alarms"]:
        parts.append(_alarm_list(document["alarms"]))
    header = ("Run", "At", "Health", "Coverage", "Top score", "Seconds", "Failed", "Status")
    rows = [
        (
            str(run["run"]),
            run["at"][:16].replace("T", " "),
            *(_figure(run, key) for key in ("health", "coverage", "top_score")),
            format_latency(run),
            str(run["errors"]),
            _STATUS_WORDS[run["status"]],
        )
        for run in document["runs"]
    ]
    parts.append(TextTable(header, rows, numbers=("Run", "Failed")).markdown())
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _run_section(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Canaries: {escape_markdown(document['name'])}"
    app = f" of {escape_markdown(str(document['app']))}" if document.get("app") else ""
    yield f"Run {document['run']}{app}, {document['at']}: {_STATUS_WORDS[document['status']]}."
    if document["alarms"]:
        yield _alarm_list(document["alarms"])
    rows = [(label, _estimate_text(document[key], key)) for key, label in _FIGURE_NAMES.items()]
    rows.append(("Seconds to an answer", format_latency(document)))
    count = f"of {pluralize(document['canaries'], 'canary', 'canaries')}"
    yield TextTable(("", count), rows).markdown().strip("\n")
    degraded = {canary["id"] for canary in document["degraded"]}
    failing = [
        {**canary, "before": "not healthy"}
        for canary in document["failing"]
        if canary["id"] not in degraded
    ]
    if degraded or failing:
        yield _degraded_table([*document["degraded"], *failing])
    if document["suspects"]:
        yield "Since the run before: " + escape_markdown("; ".join(document["suspects"])) + "."
    notes = [escape_markdown(note) for note in (document["reason"], *document["notes"]) if note]
    if notes:
        yield "\n".join(f"- {note}" for note in notes)


def _alarm_list(alarms: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"- **{alarm['state']}**: {escape_markdown(alarm['sentence'])}" for alarm in alarms]
    return "\n".join(lines)


def _degraded_table(degraded: Sequence[Mapping[str, str]]) -> str:
    rows = [
        tuple(canary[key] or "" for key in ("id", "owner", "before", "now"))
        for canary in degraded[:_MAX_LISTED]
    ]
    more = len(degraded) - _MAX_LISTED
    text = TextTable(("Failing", "Owner", "Before", "Now"), rows).markdown().strip("\n")
    return f"{text}\n\n{more} more are in the JSON of the same run." if more > 0 else text


def _figure(run: Mapping[str, Any], key: str) -> str:
    return "not measured" if run[key]["value"] is None else _estimate_text(run[key], key)


def _estimate_text(estimate: Mapping[str, Any], key: str) -> str:
    formatted = Estimate.model_validate(dict(estimate))
    return (format_decimal_estimate if key == "top_score" else format_estimate)(key, formatted).text


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
