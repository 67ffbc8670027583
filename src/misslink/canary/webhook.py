"""Sends signed alarms to a webhook, with retries."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from misslink.canary.history import CanaryHistory
from misslink.errors import InputError
from misslink.io.retry import Backoff, retry_after_seconds
from misslink.timeouts import TimeoutRunner, TookTooLongError

_BACKOFF = Backoff(first_s=1.0, longest_s=10.0)
_MAX_REDIRECTS = 3
_REDIRECT_STATUSES = (307, 308)  # other redirects turn a POST into a GET
_RETRY_STATUSES = (408, 425, 429)  # and all from 500 on


class DeliveryFailedError(Exception):
    """The server did not answer; the message shows nothing of the address but its host."""


def parse_url(url: str) -> SplitResult | None:
    """Return the parts of an HTTP address, None for any other."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in {"http", "https"} and parts.hostname else None


def url_origin(parts: SplitResult) -> str:
    """Return scheme, host and port; the rest of an address can be secret."""
    port = f":{parts.port}" if parts.port else ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def http_post(
    parts: SplitResult, body: bytes, headers: Mapping[str, str], *, timeout_s: float
) -> tuple[int, Mapping[str, str]]:
    """Send a body, and return the status and the headers, their names in any case.

    The user and password of the address are not sent, no proxy is used, and no redirect followed.

    Raises
    ------
    DeliveryFailedError
        There is no HTTP answer within `timeout_s` seconds in all.
    """
    import httpx

    query = f"?{parts.query}" if parts.query else ""
    url = f"{url_origin(parts)}{parts.path or '/'}{query}"

    def send() -> tuple[int, Mapping[str, str]]:
        timeout = {"timeout": httpx.Timeout(timeout_s).as_dict()}
        request = httpx.Request("POST", url, headers=headers, content=body, extensions=timeout)
        # The transport itself: a client fails on a location that is not an address.
        with httpx.HTTPTransport(trust_env=False) as transport:
            answer = transport.handle_request(request)
            return answer.status_code, dict(answer.headers.multi_items())

    try:
        # httpx limits neither a name lookup nor the time of all reads together.
        answer: tuple[int, Mapping[str, str]] = TimeoutRunner(timeout_s).call(send)
    except TookTooLongError:
        raise DeliveryFailedError(f"no answer within {timeout_s:.3g} s") from None
    except httpx.TimeoutException:
        raise DeliveryFailedError("no answer in time") from None
    except Exception as error:  # noqa: BLE001 -- whatever it is, the alarm is sent again later
        reason = "connection refused" if "refused" in str(error) else str(error)
        raise DeliveryFailedError(reason or type(error).__name__) from None
    return answer


@dataclass(frozen=True)
class Delivery:
    """The result of a delivery.

    Parameters
    ----------
    ok : bool
        Whether the receiver accepted it (a status of 200 to 299).
    status : int or None
        The status of the last try; None if there was no answer.
    attempts : int
        How often it was sent; 0 if the address or the document is unusable.
    error : str or None
        Why it failed, one sentence that shows nothing of the address but its host.
    """

    ok: bool
    status: int | None
    attempts: int
    error: str | None

    @property
    def is_refused(self) -> bool:
        """Whether the receiver will refuse this document at every try."""
        if self.status is None or self.status in _RETRY_STATUSES:
            return False
        return 400 <= self.status < 500


@dataclass(frozen=True)
class DeliveryClock:
    """Monotonic seconds, seconds since 1970, and a wait."""

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def sign(secret: str, timestamp: str, body: bytes) -> str:
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
    >>> sign("secret", "1700000000", b"{}")[:19]
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
    clock: DeliveryClock | None = None,
    rng: random.Random | None = None,
) -> Delivery:
    """Send a document to a webhook, and never raise because of it.

    It is sent again without an answer or with a status of 408, 425, 429 or at least 500, after an
    exponential wait with full jitter or the one of Retry-After. All tries have the same
    ``Misslink-Delivery``, so that a receiver can drop duplicates. A redirect is followed if it keeps
    the body (307, 308) and stays with scheme, host and port.

    Parameters
    ----------
    url : str
        http or https.
    document : mapping
        What is sent, as JSON.
    secret : str or None
        Signs it (see `sign`); None sends it without a signature. Never stored or shown.
    tries : int
        How often it is sent at most, at least 1.
    timeout_s, total_s : float
        Seconds for one try and for all of them with their waits, above 0.
    clock : DeliveryClock or None
        The source of the time; None: the machine's.
    rng : random.Random or None
        Draws the jitter; None: one that differs between processes.

    Returns
    -------
    Delivery
        If it is not `ok`, keep the document and send it again with the next run.
    """
    parts = parse_url(url)
    if parts is None:
        return _not_sent("the webhook is no address with http:// or https://")
    if secret == "":  # the user means to sign
        return _not_sent("the webhook's secret is empty; set it, or leave it out")
    try:
        text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as problem:
        return _not_sent(f"the webhook's document is not JSON ({problem})")
    body, clock = text.encode(), clock or DeliveryClock()
    rng = rng or random.Random()  # noqa: S311 (jitter is no secret)
    deadline = clock.now() + total_s
    for attempt in range(1, max(1, tries) + 1):
        status, retry_after = None, None
        try:
            status, answer_headers, target = _send(
                parts, body, secret, clock, min(deadline, clock.now() + timeout_s)
            )
        except DeliveryFailedError as problem:
            why = str(problem)
        else:
            if 200 <= status <= 299:
                return Delivery(ok=True, status=status, attempts=attempt, error=None)
            why = _refusal_reason(status, answer_headers, target)
            if status not in _RETRY_STATUSES and status < 500:
                break
            if "retry-after" in answer_headers:
                retry_after = retry_after_seconds(answer_headers)
        if attempt >= tries:
            break
        wait_s = _BACKOFF.wait_s(attempt, rng) if retry_after is None else retry_after
        if clock.now() + wait_s >= deadline:
            why += f", and it is not tried again within {total_s:g} s"
            break
        clock.sleep(wait_s)
    why = f"the webhook at {url_origin(parts)} did not take it: {why}"
    return Delivery(ok=False, status=status, attempts=attempt, error=why)


def _not_sent(why: str) -> Delivery:
    return Delivery(ok=False, status=None, attempts=0, error=why)


def _send(
    target: SplitResult, body: bytes, secret: str | None, clock: DeliveryClock, deadline: float
) -> tuple[int, Mapping[str, str], SplitResult]:
    """Send it once, and follow redirects on the same server."""
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "misslink",
        "Misslink-Delivery": hashlib.sha256(body).hexdigest()[:32],
    }
    for redirects in range(_MAX_REDIRECTS + 1):
        if secret is not None:
            stamp = str(int(clock.wall()))
            headers["Misslink-Timestamp"] = stamp
            headers["Misslink-Signature"] = sign(secret, stamp, body)
        left_s = deadline - clock.now()
        if left_s <= 0:
            raise DeliveryFailedError("no answer in time")
        status, answer_headers = http_post(target, body, headers, timeout_s=left_s)
        redirect = _redirect_target(target, answer_headers)
        if (
            status not in _REDIRECT_STATUSES
            or redirect is None
            or url_origin(redirect) != url_origin(target)
            or redirects == _MAX_REDIRECTS
        ):
            break
        target = redirect
    return status, answer_headers, target


def _refusal_reason(status: int, headers: Mapping[str, str], target: SplitResult) -> str:
    if not 300 <= status <= 399:
        return f"status {status}"
    redirect = _redirect_target(target, headers)
    where = f" to {url_origin(redirect)}" if redirect is not None else ""
    return f"status {status}, a redirect{where} that is not followed; give its new address"


def _redirect_target(target: SplitResult, headers: Mapping[str, str]) -> SplitResult | None:
    location = headers.get("location", "")
    try:
        return parse_url(urljoin(target.geturl(), location)) if location else None
    except ValueError:  # a location may be any text
        return None


@dataclass(frozen=True)
class WebhookTarget:
    """Where news is sent, and the secret that signs it; neither is ever stored."""

    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)


def webhook_from_options(url: str | None, secret_env: str | None) -> WebhookTarget | None:
    """Return the webhook of the command line's options, None if there is none.

    Parameters
    ----------
    url : str or None
        http or https.
    secret_env : str or None
        The environment variable that holds the secret.

    Raises
    ------
    InputError
        The address is not HTTP, or the variable is not set.
    """
    if url is None:
        if secret_env is not None:
            raise InputError("--webhook-secret-env signs what --webhook URL is sent; give both")
        return None
    if parse_url(url) is None:
        raise InputError("--webhook takes an address that begins with http:// or https://")
    if secret_env is None:
        return WebhookTarget(url)
    secret = os.environ.get(secret_env)
    if not secret:
        raise InputError(
            f"the environment variable {secret_env} is not set; put the webhook's secret into it "
            "or leave --webhook-secret-env out"
        )
    return WebhookTarget(url, secret)


def notify(
    history: CanaryHistory,
    name: str,
    target: WebhookTarget | None,
    send: Callable[..., Delivery] = deliver,
) -> dict[str, Any] | None:
    """Send the unsent news of a series to its webhook, the earliest first.

    It stops at the first failed delivery, so that a webhook that is down is tried once per run.
    Refused news (`Delivery.is_refused`) is not sent again; the history keeps it. A webhook may get
    the same news twice if a process is killed between delivery and its record: ``name`` and ``run``
    identify it.

    Parameters
    ----------
    history : CanaryHistory
    name : str
        Of the series.
    target : WebhookTarget or None
    send : callable
        As `deliver`.

    Returns
    -------
    dict or None
        ``ok`` (all arrived), ``sent``, ``refused`` (for good), ``waiting`` (for the next run), and
        of the last that did not arrive, else of the last, ``status``, ``attempts``, ``error``.
        None: there was nothing to send, or nowhere to send it.
    """
    letters = history.outbox.letters(name)
    if target is None or not letters:
        return None
    sent = refused = 0
    worst: Delivery | None = None
    for letter in letters:
        last = send(target.url, letter.content, secret=target.secret)
        if worst is None or not last.ok or worst.ok:
            worst = last
        if last.ok:
            history.outbox.mark_delivered(letter)
            sent += 1
        elif last.is_refused:
            history.outbox.mark_refused(letter, last.error or "it was refused")
            refused += 1
        else:
            history.outbox.mark_failed(letter, last.error or "it did not arrive")
            break
    assert worst is not None  # noqa: S101 (there were letters)
    return {
        "ok": worst.ok,
        "sent": sent,
        "refused": refused,
        "waiting": len(letters) - sent - refused,
        "status": worst.status,
        "attempts": worst.attempts,
        "error": worst.error,
    }
