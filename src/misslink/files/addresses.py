"""Addresses of storages, told from paths of this disk, and shown without what is secret in them.

A URL may carry a password, a token or a signature. So what is shown, kept or written of one is
what `shown` returns.
"""

from __future__ import annotations

import re
from pathlib import Path

from misslink.errors import InputError

__all__ = ["refuse_url", "shown", "url_of", "without_secrets"]

# A scheme has two letters or more (C:/ is a disk), and may stand before another (zip::s3).
_URL = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+):(/+)(?=[^/]|\Z)")
# One slash is what a `Path` leaves of two; a password may hold an @ too, so up to the last one.
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(:/{1,2})[^/\s]+@")
_KEPT = re.compile("abfss?|wasbs?", re.IGNORECASE)  # there a container stands before the @
# To https anything behind ? is a query; elsewhere ? may be of a pattern, unless a = follows it.
_QUERY = re.compile(
    r"(https?:/{1,2}[^\s?#\"]*)[?#][^\s'\"]*|(:/{1,2}[^\s?\"]*)\?[^\s/?'\"]*=[^\s'\"]*"
)


def url_of(source: str | Path) -> str | None:
    """Return the URL that somebody wrote; None where it is a path of this disk.

    A `Path` made of a URL has lost a slash of it, which is put back.

    >>> url_of("s3://bucket/gold"), url_of(Path("s3://bucket/gold")), url_of("gold/part-1.jsonl")
    ('s3://bucket/gold', 's3://bucket/gold', None)
    """
    text = str(source)
    found = _URL.match(text)
    if found is None:
        return None
    if len(found[2]) > 1:
        return text
    slashes = ":///" if found[1].lower() == "file" else "://"
    whole = f"{found[1]}{slashes}{text[found.end() :]}"
    return re.sub(r"(::[A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])", r"\1://", whole)


def shown(source: str | Path) -> str:
    """Return a path or URL as it may be written down: without password, token and signature.

    >>> shown("https://ada:secret@example.org/gold.jsonl?sig=0123")
    'https://example.org/gold.jsonl'
    >>> shown("s3://bucket/part-?.parquet")
    's3://bucket/part-?.parquet'
    """
    url = url_of(source)
    if url is None:
        return without_secrets(str(source))
    # As a whole, for a name in it may hold blanks and quotes, by which the end of one is found
    # that stands in a sentence.
    marks = "?#" if "http" in url.partition("://")[0].rpartition("::")[2].lower() else ""
    for mark in marks:
        url = url.partition(mark)[0]
    return without_secrets(url)


def refuse_url(source: str | Path) -> None:
    """Refuse a URL where a file or folder of this disk is needed.

    Raises
    ------
    InputError
        It is one; a path made of it would make folders that are called as it begins.
    """
    if url_of(source) is not None:
        raise InputError(
            "this is an address, and here a file or folder of this disk is needed; name one",
            path=shown(source),
        )


def without_secrets(text: str) -> str:
    """Remove from every URL in a text who asks for it, and its query."""

    def unnamed(found: re.Match[str]) -> str:
        return found[0] if _KEPT.fullmatch(found[1]) else found[1] + found[2]

    return _QUERY.sub(lambda found: found[1] or found[2], _NAMED.sub(unnamed, text))
