"""How long to wait before a request is sent again."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class Backoff:
    """Exponential waits between tries.

    Parameters
    ----------
    first_s, longest_s : float
        Seconds after the first try, and the limit for later ones.
    factor : float
        By which the wait grows with every try.

    Examples
    --------
    >>> backoff = Backoff(first_s=0.5, longest_s=30)
    >>> [backoff.wait_s(tries) for tries in (1, 2, 3, 50)]
    [0.5, 1.0, 2.0, 30]
    """

    first_s: float
    longest_s: float
    factor: float = 2.0

    def wait_s(self, tries: int, jitter: random.Random | None = None) -> float:
        """Return the seconds to wait after so many tries, from 1.

        `jitter` draws from 0 to that many seconds ("full jitter"), so that clients that failed
        together do not come back together.
        """
        wait = min(self.longest_s, self.first_s * self.factor ** min(tries - 1, 20))
        return wait if jitter is None else jitter.uniform(0, wait)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """How long a server asks to wait (RFC 9110, section 10.2.3).

    None where it does not say, or in no way that is known.

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
