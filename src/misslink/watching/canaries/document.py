"""A canary run as JSON: what is printed, what the history keeps, what a webhook is told."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.watching.canaries.alarms import Alarm, Watched
    from misslink.watching.canaries.fingerprint import Changed
    from misslink.watching.canaries.finished import Finished
    from misslink.watching.canaries.results import Degraded, Figures

__all__ = ["alarm_plain", "news_document", "run_document", "when"]


def run_document(
    finished: Finished,
    run: int,
    found: Figures,
    watched: Watched,
    lost: Sequence[Degraded],
    changed: Changed | None,
    suspects: Sequence[str],
) -> dict[str, Any]:
    """The document of a run.

    Parameters
    ----------
    finished : Finished
    run : int
        Its id in the history.
    found : Figures
    watched : Watched
        What the charts say after it.
    lost : sequence of Degraded
    changed : Changed or None
        Since the run before; None where that is not known.
    suspects : sequence of str
        The same, and a change of the app's code, in sentences.
    """
    return {
        "name": finished.name,
        "run": run,
        "at": when(finished.at),
        **finished.settings,
        "canaries": len(finished.results),
        "health": found.health.model_dump(),
        "coverage": found.coverage.model_dump(),
        "top_score": found.top_score.model_dump(),
        "answered": found.answered.model_dump(),
        "latency_s": dict(found.latency),
        "degraded": [asdict(one) for one in lost],
        "learn": finished.learn,
        "status": watched.status,
        "reason": watched.reason,
        "alarms": [alarm_plain(alarm) for alarm in watched.alarms],
        "changes": None if changed is None else _changed_plain(changed),
        "suspects": list(suspects),
        "accepted": finished.accept,
        "errors": sum(not one.answered for one in finished.results),
        "notes": [*finished.notes, *watched.notes],
        "delivered": None,
    }


def news_document(
    document: Mapping[str, Any], news: Sequence[Mapping[str, Any]], is_gone: bool
) -> dict[str, Any] | None:
    """What a webhook is told of a run; None where there is no news.

    Parameters
    ----------
    document : mapping
        Of the run.
    news : sequence of mapping
        Alarms that opened, recovered, or were closed by an accepted change with it.
    is_gone : bool
        Whether the app answered something before, and nothing now.
    """
    states = {alarm["state"] for alarm in news}
    if not news and not is_gone:
        return None
    if is_gone:
        event = "unreachable"
    elif states & {"open", "held"}:
        event = "alarm"
    else:
        event = "accepted" if "accepted" in states else "recovered"
    told = ("name", "run", "at", "app", "status", "health", "coverage", "top_score", "answered")
    return {
        "event": event,
        **{key: document.get(key) for key in told},
        "news": list(news),
        "alarms": document["alarms"],
        "degraded": document["degraded"],
        "suspects": document["suspects"],
    }


def alarm_plain(alarm: Alarm) -> dict[str, Any]:
    """An alarm as JSON values."""
    return {**asdict(alarm), "shift": alarm.shift.model_dump(), "suspects": list(alarm.suspects)}


def when(at: float) -> str:
    """A time in Unix seconds as ISO 8601 in UTC.

    >>> when(0.0)
    '1970-01-01T00:00:00+00:00'
    """
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat(timespec="seconds")


def _changed_plain(changed: Changed) -> dict[str, Any]:
    return {
        "added": list(changed.added),
        "removed": list(changed.removed),
        "edited": list(changed.edited),
        "embedding": (
            {"before": changed.embedding_before, "after": changed.embedding_after}
            if changed.is_other_embedding
            else None
        ),
        "sentence": changed.sentence,
    }
