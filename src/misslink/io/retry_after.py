"""How long a server asks to wait before the next request (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """How long a server asks to wait; None where it does not say, or in no way that is known.

    Parameters
    ----------
    headers : mapping
        Of its answer: ``retry-after-ms``, or ``retry-after`` in seconds or as an HTTP date, which
        is read against the server's own ``date`` where it sends one.
    """
    exact = _parse_number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    header = headers.get("retry-after")
    seconds = _parse_number(header)
    until = _parse_date(header)
    if seconds is not None or until is None:
        return seconds
    now = _parse_date(headers.get("date")) or dt.datetime.now(dt.UTC)
    return max(0.0, (until - now).total_seconds())


def _parse_number(header: str | None) -> float | None:
    try:
        number = float(header or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _parse_date(header: str | None) -> dt.datetime | None:
    try:
        read = parsedate_to_datetime(header or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=dt.UTC)
