"""A run of canaries, and a series of them, as markdown for a chat or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from misslink.files.markdown import inline, table
from misslink.report.wording import plural, shown, shown_decimal
from misslink.types import Estimate

__all__ = ["duration", "history_markdown", "run_markdown", "seconds_of"]

_STATUS = {"learning": "still learning", "ok": "fine", "alarm": "**ALARM**"}
_FIGURES = {
    "health": "Healthy canaries",
    "coverage": "Expected passages found",
    "top_score": "Relevance of the best",
    "answered": "Questions answered",
}
_LISTED = 20  # degraded canaries that are named
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
    return "\n\n".join(_run(document)) + "\n"


def history_markdown(document: Mapping[str, Any]) -> str:
    """A series of runs, as ``misslink canary history --json`` prints it; as `run_markdown`."""
    parts = [f"## Canaries: {inline(document['name'])}", f"Now {_STATUS[document['status']]}."]
    if document["alarms"]:
        parts.append(_alarms(document["alarms"]))
    header = ("Run", "At", "Health", "Coverage", "Top score", "Seconds", "Failed", "Status")
    rows = [
        (
            str(run["run"]),
            run["at"][:16].replace("T", " "),
            *(_value(run, key) for key in ("health", "coverage", "top_score")),
            seconds_of(run),
            str(run["errors"]),
            _STATUS[run["status"]],
        )
        for run in document["runs"]
    ]
    parts.append(table(header, rows, right=(0, 6)))
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _run(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Canaries: {inline(document['name'])}"
    app = f" of {inline(str(document['app']))}" if document.get("app") else ""
    yield f"Run {document['run']}{app}, {document['at']}: {_STATUS[document['status']]}."
    if document["alarms"]:
        yield _alarms(document["alarms"]).strip("\n")
    rows = [(label, inline(_text(document[key], key))) for key, label in _FIGURES.items()]
    rows.append(("Seconds to an answer", seconds_of(document)))
    yield table(("", f"of {plural(document['canaries'], 'canary', 'canaries')}"), rows).strip("\n")
    if document["degraded"]:
        yield _degraded(document["degraded"]).strip("\n")
    if document["suspects"]:
        yield "Since the run before: " + inline("; ".join(document["suspects"])) + "."
    notes = [inline(note) for note in (document["reason"], *document["notes"]) if note]
    if notes:
        yield "\n".join(f"- {note}" for note in notes)


def _alarms(alarms: Sequence[Mapping[str, Any]]) -> str:
    lines = [f"- **{alarm['state']}**: {inline(alarm['sentence'])}" for alarm in alarms]
    return "\n".join(lines)


def _degraded(lost: Sequence[Mapping[str, str]]) -> str:
    rows = [
        tuple(inline(one[key] or "") for key in ("id", "owner", "before", "now"))
        for one in lost[:_LISTED]
    ]
    more = len(lost) - _LISTED
    text = table(("Degraded", "Owner", "Before", "Now"), rows).strip("\n")
    return f"{text}\n\n{more} more are in the JSON of the same run." if more > 0 else text


def _value(run: Mapping[str, Any], key: str) -> str:
    estimate = run[key]
    return "not measured" if estimate["value"] is None else inline(_text(estimate, key))


def _text(estimate: Mapping[str, Any], key: str) -> str:
    found = Estimate.model_validate(dict(estimate))
    return (shown_decimal if key == "top_score" else shown)(key, found).text


def seconds_of(document: Mapping[str, Any]) -> str:
    """The median of a run's seconds to an answer, and its 95th percentile."""
    latency = document["latency_s"]
    if latency["median"] is None:
        return "not measured"
    return f"{duration(latency['median'])} (p95 {duration(latency['p95'])})"


def duration(seconds: float) -> str:
    """Seconds for people, to the millisecond where they are few.

    Examples
    --------
    >>> duration(0.0000031), duration(0.0456), duration(2.25), duration(75.3)
    ('<0.001', '0.046', '2.25', '75')
    """
    if 0 < seconds < _MILLISECOND:
        return f"<{_MILLISECOND}"
    digits = 3 if seconds < 1 else 2 if seconds < _FEW else 0
    return f"{seconds:.{digits}f}"
