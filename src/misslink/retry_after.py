"""How long a server asks to wait before it is asked again (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

__all__ = ["seconds_to_wait"]


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """How long a server asks to wait; None where it does not say, or in no way that is known.

    Parameters
    ----------
    headers : mapping
        Of its answer: ``retry-after-ms``, or ``retry-after`` in seconds or as an HTTP date, which
        is read against the server's own ``date`` where it sends one.
    """
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    said = headers.get("retry-after")
    seconds = _number(said)
    until = _date(said)
    if seconds is not None or until is None:
        return seconds
    now = _date(headers.get("date")) or dt.datetime.now(dt.UTC)
    return max(0.0, (until - now).total_seconds())


def _number(said: str | None) -> float | None:
    try:
        number = float(said or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _date(said: str | None) -> dt.datetime | None:
    try:
        read = parsedate_to_datetime(said or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=dt.UTC)
