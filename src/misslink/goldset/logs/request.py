"""One request of a log: what somebody asked a live app, and what came of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from misslink.types import Passage

__all__ = ["Log", "Request", "joined", "moment", "seconds"]

_MILLIS, _MICROS, _NANOS = 1e11, 1e14, 1e17  # seconds since 1970 stay below the first until 5138


@dataclass(frozen=True, slots=True)
class Request:
    """What a log says of one question.

    Parameters
    ----------
    question : str
    place : str
        File and line, for messages.
    session : str or None
        Whose conversation it was part of.
    at : datetime or None
        When, in UTC.
    answer : str or None
    passages : sequence of Passage or None
        What was retrieved, best first; None where the log does not say.
    error : str or None
        What went wrong.
    feedback : str, number or None
        What the user said of the answer, as it stands in the log.
    latency_s : float or None
    category : str or None
    """

    question: str
    place: str = ""
    session: str | None = None
    at: dt.datetime | None = None
    answer: str | None = None
    passages: tuple[Passage, ...] | None = None
    error: str | None = None
    feedback: str | float | None = None
    latency_s: float | None = None
    category: str | None = None


@dataclass(frozen=True)
class Log:
    """The requests of some files, in their order.

    Parameters
    ----------
    requests : sequence of Request
    columns : mapping of str to str
        What each field was read from.
    left_out : mapping of str to int
        Why rows are none of the requests, and how many.
    """

    requests: tuple[Request, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


def moment(value: Any) -> dt.datetime | None:
    """A time in UTC from ISO 8601 or from seconds, milli-, micro- or nanoseconds since 1970.

    None where it is none of these; a time without a zone counts as UTC.

    >>> moment("2026-05-01T10:00:00+02:00").isoformat(), moment(1777622400000).isoformat()
    ('2026-05-01T08:00:00+00:00', '2026-05-01T08:00:00+00:00')
    """
    if isinstance(value, dt.datetime):
        found = value
    elif isinstance(value, dt.date):
        found = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 (a zone comes below)
    else:
        number = _number(value)
        try:
            if number is None:
                found = dt.datetime.fromisoformat(str(value).strip())
            else:
                scales = ((_NANOS, 1e9), (_MICROS, 1e6), (_MILLIS, 1e3))
                scale = next((by for least, by in scales if abs(number) >= least), 1.0)
                found = dt.datetime.fromtimestamp(number / scale, dt.UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return found.astimezone(dt.UTC) if found.tzinfo else found.replace(tzinfo=dt.UTC)


def seconds(value: Any, unit: float = 1.0) -> float | None:
    """A length of time from 0 up, in seconds; None where it is none."""
    number = _number(value)
    return None if number is None or number < 0 else number * unit


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


def joined(logs: Iterable[Log]) -> Log:
    """Several logs as one."""
    requests: list[Request] = []
    columns: dict[str, str] = {}
    left_out: dict[str, int] = {}
    for log in logs:
        requests += log.requests
        columns |= log.columns
        for why, count in log.left_out.items():
            left_out[why] = left_out.get(why, 0) + count
    return Log(tuple(requests), columns, left_out)
