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
from urllib.parse import urlsplit

from misslink.canary.history import CanaryHistory
from misslink.errors import InputError
from misslink.io.retry import Backoff, retry_after_seconds
from misslink.timeouts import TimeoutRunner, TookTooLongError

_BACKOFF = Backoff(first_s=1.0, longest_s=10.0)
_MAX_REDIRECTS = 3
_RETRY_STATUSES = (408, 425, 429)  # and all from 500 on


Answer = tuple[int, Mapping[str, str], str | None]  # status, headers, origin of a redirect


class DeliveryFailedError(Exception):
    """The server did not answer; the message shows nothing of the address but its host."""


def url_origin(url: str) -> str | None:
    """Return scheme, host and port of an HTTP address; None for any other text."""
    # The rest of the address can be secret.
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host:
        return None
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def http_post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> Answer:
    """Send a body; return the status, the headers, and where a redirect leads.

    No proxy is used. A redirect is followed if it keeps the body (307, 308) and stays with scheme,
    host and port.

    Raises
    ------
    DeliveryFailedError
        There is no HTTP answer within `timeout_s` seconds in all.
    """
    import httpx

    def send() -> Answer:
        with httpx.Client(trust_env=False, timeout=timeout_s) as client:
            request = client.build_request("POST", url, content=body, headers=headers)
            for _ in range(_MAX_REDIRECTS + 1):
                answer = client.send(request, stream=True)  # the answer's body is not read
                answer.close()
                following = answer.next_request
                redirect = url_origin(str(following.url)) if following else None
                if answer.status_code not in (307, 308) or redirect != url_origin(url):
                    break
                assert following is not None  # noqa: S101 (it has an origin)
                request = following
            return answer.status_code, dict(answer.headers.multi_items()), redirect

    try:
        # httpx limits neither a name lookup nor the time of all reads together.
        answer: Answer = TimeoutRunner(timeout_s).call(send)
    except (TookTooLongError, httpx.TimeoutException):
        raise DeliveryFailedError(f"no answer within {timeout_s:.3g} s") from None
    except httpx.ConnectError as error:
        reason = "connection refused" if "refused" in str(error) else str(error)
        raise DeliveryFailedError(reason) from None
    except Exception as error:  # noqa: BLE001 -- whatever it is, the alarm is sent again later
        raise DeliveryFailedError(f"no HTTP answer ({type(error).__name__})") from None
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
        How often it was sent.
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
    clock: Any = time,
    rng: random.Random | None = None,
) -> Delivery:
    """Send a document to a webhook; what the webhook does never raises an error.

    It is sent again without an answer or with a status of 408, 425, 429 or at least 500, after an
    exponential wait with full jitter or the one of Retry-After. All tries have the same
    ``Misslink-Delivery``, so that a receiver can drop duplicates. A redirect is followed if it keeps
    the body (307, 308) and stays with scheme, host and port.

    Parameters
    ----------
    url : str
        http or https; see `url_origin`.
    document : mapping
        What is sent, as JSON.
    secret : str or None
        Signs it (see `sign`); None sends it without a signature. Never stored or shown.
    tries : int
        How often it is sent at most, at least 1.
    timeout_s, total_s : float
        Seconds for one try and for all of them with their waits, above 0.
    clock : module or object
        Has `monotonic`, `time` and `sleep` of the module `time`.
    rng : random.Random or None
        Draws the jitter; None: one that differs between processes.

    Returns
    -------
    Delivery
        If it is not `ok`, keep the document and send it again with the next run.
    """
    text = json.dumps(document, sort_keys=True, allow_nan=False, separators=(",", ":"))
    body = text.encode()
    rng = rng or random.Random()  # noqa: S311 (jitter is no secret)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "misslink",
        "Misslink-Delivery": hashlib.sha256(body).hexdigest()[:32],
    }
    deadline = clock.monotonic() + total_s
    for attempt in range(1, max(1, tries) + 1):
        status, retry_after = None, None
        if secret is not None:
            timestamp = str(int(clock.time()))
            signature = sign(secret, timestamp, body)
            headers |= {"Misslink-Timestamp": timestamp, "Misslink-Signature": signature}
        try:
            status, answered, redirect = http_post(
                url, body, headers, timeout_s=min(deadline - clock.monotonic(), timeout_s)
            )
        except DeliveryFailedError as problem:
            why = str(problem)
        else:
            if 200 <= status <= 299:
                return Delivery(ok=True, status=status, attempts=attempt, error=None)
            why = f"status {status}"
            if redirect:
                why += f", a redirect to {redirect} that is not followed; use the new address"
            if status not in _RETRY_STATUSES and status < 500:
                break
            if "retry-after" in answered:
                retry_after = retry_after_seconds(answered)
        if attempt >= tries:
            break
        wait_s = _BACKOFF.wait_s(attempt, rng) if retry_after is None else retry_after
        if clock.monotonic() + wait_s >= deadline:
            why += f", and it is not tried again within {total_s:g} s"
            break
        clock.sleep(wait_s)
    why = f"the webhook at {url_origin(url)} did not take it: {why}"
    return Delivery(ok=False, status=status, attempts=attempt, error=why)


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
            raise InputError("--webhook-secret-env needs --webhook URL")
        return None
    if url_origin(url) is None:
        raise InputError("--webhook must begin with http:// or https://")
    if secret_env is None:
        return WebhookTarget(url)
    secret = os.environ.get(secret_env)
    if not secret:
        raise InputError(
            f"The environment variable {secret_env} is not set. Set it to the webhook's secret, or "
            "leave out --webhook-secret-env."
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
    letters = history.letters(name)
    if target is None or not letters:
        return None
    sent = refused = 0
    worst: Delivery | None = None
    for letter, content in letters.items():
        last = send(target.url, content, secret=target.secret)
        if worst is None or not last.ok or worst.ok:
            worst = last
        if last.ok:
            history.mark_delivered(letter)
            sent += 1
        elif last.is_refused:
            history.mark_refused(letter, last.error or "it was refused")
            refused += 1
        else:
            history.mark_failed(letter, last.error or "it did not arrive")
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
