"""An alarm told to whoever listens: signed JSON, sent again where it did not arrive."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urljoin

from misslink.retry_after import seconds_to_wait
from misslink.watching.canaries.posting import NotPostedError, Posted, address, origin, post

__all__ = ["Clock", "Delivery", "deliver", "signature"]

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 10.0
_REDIRECTS = 3
_KEEPING_THE_BODY = (307, 308)  # other redirects turn a POST into a GET, which tells nobody
_AGAIN = (408, 425, 429)  # and all from 500 on


@dataclass(frozen=True)
class Delivery:
    """How a delivery went.

    Parameters
    ----------
    ok : bool
        Whether the receiver took it (a status of 200 to 299).
    status : int or None
        The status of the last try; None where nobody answered.
    attempts : int
        How often it was sent; 0 where that would have been in vain.
    error : str or None
        Why it did not arrive, one sentence that shows nothing of the address but its host; None
        where it did.
    """

    ok: bool
    status: int | None
    attempts: int
    error: str | None

    @property
    def is_refused(self) -> bool:
        """Whether the receiver will not take this document, however often it is sent."""
        if self.status is None or self.status in _AGAIN:
            return False
        return 400 <= self.status < 500  # noqa: PLR2004 (RFC 9110, section 15.5)


@dataclass(frozen=True)
class Clock:
    """What a delivery goes by: seconds that never go back, seconds since 1970, and a wait."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature that goes with a body, as in the header ``Misslink-Signature``.

    Parameters
    ----------
    secret : str
        What sender and receiver share, not empty.
    timestamp : str
        The header ``Misslink-Timestamp``: whole seconds since 1970.
    body : bytes
        As it was sent, to the byte.

    Returns
    -------
    str
        ``v1=`` and 64 hexadecimal digits: HMAC-SHA256 (RFC 2104) of timestamp, a full stop, body.

    Examples
    --------
    >>> signature("secret", "1700000000", b"{}")[:19]
    'v1=b8569b78799ff9e3'
    """
    signed = timestamp.encode() + b"." + body
    return "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def deliver(
    url: str,
    document: Mapping[str, Any],
    *,
    secret: str | None,
    tries: int = 4,
    timeout_s: float = 5.0,
    total_s: float = 30.0,
    clock: Clock | None = None,
    rng: random.Random | None = None,
) -> Delivery:
    """Send a document to a webhook, and never raise because of it: an alarm must not be lost.

    It is sent again, after an exponentially longer wait with full jitter or what Retry-After asks
    for, where nobody answers or the status is 408, 425, 429 or at least 500. All tries of one
    document carry the same ``Misslink-Delivery``, by which a receiver knows what it already has,
    and each is signed anew. A redirect is followed if it keeps the body (307, 308) and stays with
    scheme, host and port; others are told.

    Parameters
    ----------
    url : str
        http or https.
    document : mapping
        What is sent, as JSON.
    secret : str or None
        Signs it (see `signature`); None sends it without a signature. Neither kept nor shown.
    tries : int
        How often it is sent at most, at least 1.
    timeout_s, total_s : float
        Seconds for one try and for all of them with their waits, above 0.
    clock : Clock or None
        Where the time comes from; None takes the machine's.
    rng : random.Random or None
        Draws the jitter; None takes one that differs between processes.

    Returns
    -------
    Delivery
        Where it did not arrive, keep the document and send it again with the next run.
    """
    parts = address(url)
    if parts is None:
        return _unsent("the webhook is no address with http:// or https://")
    if secret == "":  # somebody means to sign; nobody must think that this is signed
        return _unsent("the webhook's secret is empty; set it, or leave it out")
    try:
        text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as problem:
        return _unsent(f"the webhook's document is not JSON ({problem})")
    letter = _Letter(parts, text.encode(), secret, clock or Clock(), timeout_s)
    draw = rng or random.Random()  # noqa: S311 (jitter is no secret)
    return _insist(letter, tries, total_s, draw)


@dataclass(frozen=True)
class _Letter:
    to: SplitResult
    body: bytes
    secret: str | None
    clock: Clock
    timeout_s: float

    def send(self, ends: float) -> tuple[Posted, SplitResult]:
        """Send it once, and on to where the same server has it go."""
        to = self.to
        for _ in range(_REDIRECTS + 1):
            left = min(self.timeout_s, ends - self.clock.now())
            if left <= 0:
                raise NotPostedError("no answer in time")
            answer = post(to, self.body, self._headers(), timeout_s=left)
            onward = _onward(answer, to)
            if onward is None:
                return answer, to
            to = onward
        return answer, to

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "misslink",
            "Misslink-Delivery": hashlib.sha256(self.body).hexdigest()[:32],
        }
        if self.secret is not None:
            stamp = str(int(self.clock.wall()))
            headers["Misslink-Timestamp"] = stamp
            headers["Misslink-Signature"] = signature(self.secret, stamp, self.body)
        return headers


def _insist(letter: _Letter, tries: int, total_s: float, draw: random.Random) -> Delivery:
    ends = letter.clock.now() + total_s
    place = origin(letter.to)
    for attempt in range(1, max(1, tries) + 1):
        status, asked = None, None
        try:
            answer, to = letter.send(ends)
        except NotPostedError as problem:
            why = str(problem)
        else:
            status = answer.status
            if 200 <= status <= 299:  # noqa: PLR2004 (RFC 9110, section 15.3)
                return Delivery(ok=True, status=status, attempts=attempt, error=None)
            why = _refusal(answer, to)
            if status not in _AGAIN and status < 500:  # noqa: PLR2004 (RFC 9110, section 15.6)
                break
            asked = _asked_to_wait(answer)
        pause = asked if asked is not None else draw.uniform(0, _ceiling(attempt))
        if attempt >= tries:
            break
        if letter.clock.now() + pause >= ends:
            why += f", and it is not tried again within {total_s:g} s"
            break
        letter.clock.sleep(pause)
    why = f"the webhook at {place} did not take it: {why}"
    return Delivery(ok=False, status=status, attempts=attempt, error=why)


def _unsent(why: str) -> Delivery:
    return Delivery(ok=False, status=None, attempts=0, error=why)


def _ceiling(attempt: int) -> float:
    return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0**attempt)


def _asked_to_wait(answer: Posted) -> float | None:
    """Seconds by Retry-After; None where there is none."""
    return seconds_to_wait(answer.headers) if "retry-after" in answer.headers else None


def _onward(answer: Posted, to: SplitResult) -> SplitResult | None:
    """Where a redirect leads, if it may be followed."""
    place = answer.headers.get("location")
    if answer.status not in _KEEPING_THE_BODY or not place:
        return None
    onward = _joined(to, place)
    return onward if onward is not None and origin(onward) == origin(to) else None


def _refusal(answer: Posted, to: SplitResult) -> str:
    if not 300 <= answer.status <= 399:  # noqa: PLR2004 (RFC 9110, section 15.4)
        return f"status {answer.status}"
    place = answer.headers.get("location", "")
    onward = _joined(to, place) if place else None
    where = f" to {origin(onward)}" if onward is not None else ""
    return f"status {answer.status}, a redirect{where} that is not followed; give its new address"


def _joined(to: SplitResult, place: str) -> SplitResult | None:
    try:
        return address(urljoin(to.geturl(), place))
    except ValueError:  # what a server calls a location may be anything
        return None
