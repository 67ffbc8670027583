"""Where an OpenAI-compatible server is, and the key for it, which shows nowhere."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from misslink.errors import InputError

__all__ = ["NO_KEY_NEEDED", "Address", "censored", "find_address", "without_secrets"]

_OFFICIAL = "https://api.openai.com/v1"
NO_KEY_NEEDED = "no-key-needed"  # what a server of one's own is sent: clients insist on a key
_SECRET = 16  # characters that a key has at least where it is one


@dataclass(frozen=True)
class Address:
    """A server's address.

    Parameters
    ----------
    base_url : str
        As it was given, for the client; it may hold a password.
    shown : str
        Without user, password and query, fit to be shown.
    key : str
        Goes to the server and nowhere else.
    """

    base_url: str = field(repr=False)
    shown: str
    key: str = field(repr=False)

    @property
    def keyless(self) -> bool:
        """Whether no key was given."""
        return self.key == NO_KEY_NEEDED

    def censored(self, text: str) -> str:
        """Return `text` without the key."""
        return censored(text, [self.key])


def censored(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without keys: a server could repeat one, and replies go into a file.

    Parameters
    ----------
    text : str
    secrets : iterable of str
        One of fewer than 16 characters stays: it is a dummy for a server of one's own, and may be
        a word of the reply.
    """
    for secret in secrets:
        if len(secret) >= _SECRET:
            text = text.replace(secret, "[key]")
    return text


def find_address(judge: str, base_url: str | None, api_key: str | None) -> Address:
    """Return where the judge is, from what is given or else from the environment.

    Parameters
    ----------
    judge : str
        Its name, for messages.
    base_url : str or None
        ``OPENAI_BASE_URL`` by default, else OpenAI's own.
    api_key : str or None
        ``OPENAI_API_KEY`` by default. Only OpenAI's own server insists on one.

    Raises
    ------
    InputError
        It is no address, or the key is missing or cannot be one.
    """
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL).strip()
    key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
    shown = without_secrets(url)
    if not key and urlsplit(url).hostname == "api.openai.com":
        raise InputError(
            f"the judge {judge} has no key: set OPENAI_API_KEY, or for a server of your own "
            "set OPENAI_BASE_URL (or --base-url), say http://localhost:8000/v1"
        )
    if not (key.isascii() and key.isprintable()):
        raise InputError(
            "the judge's key (OPENAI_API_KEY) holds characters that no key has; copy it again"
        )
    return Address(url, shown, key or NO_KEY_NEEDED)


def without_secrets(url: str) -> str:
    """Return an address without user, password, query and trailing slash.

    Raises
    ------
    InputError
        It is no address.
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # Not repeated in the message: it could be a key in the wrong variable.
        raise InputError(
            "the judge's base URL (OPENAI_BASE_URL or --base-url) is no address; "
            "it looks like http://localhost:8000/v1"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
