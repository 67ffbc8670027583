"""The yes or no that a text begins with."""

from __future__ import annotations

import re

__all__ = ["is_bare", "polarity", "without_polarity"]

_YES = re.compile(r"\W*(?:yes|yeah|yep|true|correct)\b(?!\s+(?:and|or)\b)", re.IGNORECASE)
# "No" before a noun, as in "No changes are made", is no answer to the question.
_NO = re.compile(
    r"\W*(?:(?:nope|false|incorrect)\b(?!\s+(?:and|or)\b)"
    r"|no\b(?=\W*$|\s*[,.;:!\u2013\u2014-]|\s+(?:it|they|there|you|he|she|we|i|this|that)\b))",
    re.IGNORECASE,
)
_SAID_FIRST = re.compile(r"\W*\w+\b[\s,.;:!*\u2013\u2014-]*")


def polarity(text: str) -> bool | None:
    """True where `text` begins with a yes, False with a no; None where with neither."""
    if _YES.match(text):
        return True
    return False if _NO.match(text) else None


def without_polarity(text: str) -> str:
    """`text` without the yes or no that it begins with."""
    return text if polarity(text) is None else _SAID_FIRST.sub("", text, count=1)


def is_bare(text: str) -> bool:
    """Whether `text` is a yes or a no and nothing else."""
    return polarity(text) is not None and not without_polarity(text).strip()
