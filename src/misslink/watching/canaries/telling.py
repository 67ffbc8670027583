"""News of a run brought to its webhook; what does not arrive waits for the next run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from misslink.errors import InputError
from misslink.watching.canaries.history import History
from misslink.watching.canaries.posting import address
from misslink.watching.canaries.webhook import Delivery, deliver

__all__ = ["Webhook", "tell", "webhook"]


@dataclass(frozen=True)
class Webhook:
    """Where news is sent, and the secret that signs it; neither is ever stored."""

    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)


def webhook(url: str | None, secret_env: str | None) -> Webhook | None:
    """A webhook as the command line names it; None where it names none.

    Parameters
    ----------
    url : str or None
        http or https.
    secret_env : str or None
        The environment variable that holds the secret.

    Raises
    ------
    InputError
        The address is none, or the variable is not set.
    """
    if url is None:
        if secret_env is not None:
            raise InputError("--webhook-secret-env signs what --webhook URL is sent; give both")
        return None
    if address(url) is None:
        raise InputError("--webhook takes an address that begins with http:// or https://")
    if secret_env is None:
        return Webhook(url)
    secret = os.environ.get(secret_env)
    if not secret:
        raise InputError(
            f"the environment variable {secret_env} is not set; put the webhook's secret into it "
            "or leave --webhook-secret-env out"
        )
    return Webhook(url, secret)


def tell(
    history: History,
    name: str,
    to: Webhook | None,
    send: Callable[..., Delivery] = deliver,
) -> dict[str, Any] | None:
    """Send what waits for a series' webhook, the earliest news first.

    It stops at the first that does not arrive but may another time, so that a webhook which is
    down is tried once a run. What the webhook refuses for good (`Delivery.is_refused`) is not sent
    again and holds nothing up; the history keeps it. A webhook may get the same news twice, where
    a process is killed between its arrival and the note of it: ``name`` and ``run`` tell them
    apart.

    Parameters
    ----------
    history : History
    name : str
        Of the series.
    to : Webhook or None
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
    if to is None or not letters:
        return None
    sent = refused = 0
    told: Delivery | None = None
    for letter in letters:
        last = send(to.url, letter.content, secret=to.secret)
        if told is None or not last.ok or told.ok:
            told = last
        if last.ok:
            history.outbox.arrived(letter)
            sent += 1
        elif last.is_refused:
            history.outbox.give_up(letter, last.error or "it was refused")
            refused += 1
        else:
            history.outbox.came_back(letter, last.error or "it did not arrive")
            break
    assert told is not None  # noqa: S101 (there were letters)
    return {
        "ok": told.ok,
        "sent": sent,
        "refused": refused,
        "waiting": len(letters) - sent - refused,
        "status": told.status,
        "attempts": told.attempts,
        "error": told.error,
    }
