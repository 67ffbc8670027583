"""Keys and passwords that a server could repeat, taken out of every text that is shown or saved."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from urllib.parse import parse_qsl, quote, unquote, urlsplit

MIN_KEY_LENGTH = 16  # of a judge's key: a shorter one is a dummy for a server of one's own
_MIN_SECRET_LENGTH = 8  # a shorter one may be a word of the reply
_ESCAPE = re.compile(r"\\+(?:u[0-9a-fA-F]{4}|/)|%[0-9a-fA-F]{2}|&(?:#\w+|\w+);")
_QUOTED_SIGNS = re.compile(r"[\"\\\s]")
# In a query: a word, a number, a date or a version is in many replies, and no secret.
_PLAIN_VALUE = re.compile(r"[A-Za-z_-]+|[\d.:-]+(?:-preview)?")
_SECRET_NAME = re.compile(r"key|token|secret|sig|passw|code|auth", re.IGNORECASE)


def redact_keys(
    text: str,
    secrets: Iterable[str],
    shortest: int = _MIN_SECRET_LENGTH,
    mark: str = "[key]",
) -> str:
    r"""Return `text` without secrets, also where JSON, an address or HTML escapes their characters.

    >>> redact_keys(r"you sent abc\/def+0123 and abc%2Fdef%2B0123", ["abc/def+0123"])
    'you sent [key] and [key]'
    """
    found = tuple(sorted({s for s in secrets if len(s) >= shortest}, key=len, reverse=True))
    for secret in found:
        text = text.replace(secret, mark)
    if found and (_ESCAPE.search(text) or any(map(_QUOTED_SIGNS.search, found))):
        text = _escaped(found).sub(lambda _: mark, text)
    return text


@lru_cache(64)
def _escaped(secrets: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join("".join(map(_any_form, secret)) for secret in secrets))


def _any_form(sign: str) -> str:
    """A pattern of a character as JSON (also JSON in JSON), addresses and HTML may have it."""
    code = ord(sign)
    percent = "".join(f"%{byte:02x}" for byte in sign.encode("utf-8", "replace"))
    forms = [
        (r"\\+" if sign == "\\" else r"\\*") + re.escape(sign),
        r"\\+" + re.escape(json.dumps(sign)[1:-1].lstrip("\\")),
        rf"\\+u(?i:{code:04x})",
        f"(?i:{percent})",
        rf"&\#0*{code};|&\#[xX]0*(?i:{code:x});",
        re.escape(html.escape(sign)),
    ]
    return f"(?:{'|'.join(forms)})"


# One slash is what a `Path` leaves of two; a password may hold an @ too, so up to the last one.
_URL_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(:/{1,2})[^/\s]+@")
_CONTAINER_SCHEMES = re.compile("abfss?|wasbs?", re.IGNORECASE)  # there a container precedes the @
# To https anything behind ? is a query; elsewhere ? may be of a pattern, unless a = follows it.
_URL_QUERY = re.compile(
    r"(https?:/{1,2}[^\s?#\"]*)[?#][^\s'\"]*|(:/{1,2}[^\s?\"]*)\?[^\s/?'\"]*=[^\s'\"]*"
)
_SECRET_WORDS = ("key", "token", "secret", "password", "authorization", "credential")


def is_secret_name(name: str) -> bool:
    """Whether a variable or an attribute of this name holds a secret."""
    return any(word in name.lower() for word in _SECRET_WORDS)


def redact_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace the secrets, and those of environment variables, in `text` by ``***``."""
    known = [value for name, value in os.environ.items() if is_secret_name(name)]
    for value in os.environ.values():
        if "://" in value:
            with suppress(ValueError):  # it is no address
                known += address_secrets(value.strip())
    return redact_keys(text, [*known, *secrets], mark="***")


def redact_addresses(text: str) -> str:
    """Remove from every URL in a text who asks for it, and its query."""

    def unnamed(match: re.Match[str]) -> str:
        return match[0] if _CONTAINER_SCHEMES.fullmatch(match[1]) else match[1] + match[2]

    return _URL_QUERY.sub(lambda match: match[1] or match[2], _URL_USERINFO.sub(unnamed, text))


def address_secrets(url: str, query: Mapping[str, str] | None = None) -> list[str]:
    """User, password and query of an address, as they are meant and as they are sent."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    values = {**dict(parse_qsl(parts.query)), **(query or {})}
    found = [password]
    found += [value for name, value in values.items() if _SECRET_NAME.search(name)]
    found += [text for text in (user, *values.values()) if not _PLAIN_VALUE.fullmatch(text)]
    if password:
        found.append(base64.b64encode(f"{user}:{password}".encode()).decode())
    return list(dict.fromkeys([*filter(None, found), *(quote(text, safe="") for text in found)]))
