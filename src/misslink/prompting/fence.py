"""The fence around untrusted text, which cannot be closed or imitated from inside."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

__all__ = ["LABELS", "Fence"]

# What the built-in prompts fence; a template's own labels come on top.
LABELS = frozenset({"answer", "claim", "first", "passage", "question", "reference", "second"})
_LABEL = re.compile(r"\w{1,40}")
_INVISIBLE = r"[\s/\u00ad\u200b-\u200f\u2060\ufeff]*"
_LESS_THAN = "\uff1c"  # full width; `misslink.text.fold` reads it as "<", so quotes still verify


class Fence:
    """Wraps untrusted text so that it cannot close its own wrapper.

    The boundary is a hash over all the texts of the prompt: no writer of one text can know it, yet
    the same texts always give the same prompt, hence the same ledger key. What looks like a
    delimiter inside of a text (``</passage_3 ...``) gets a full-width ``<``.

    Parameters
    ----------
    texts : mapping
        Everything the prompt is rendered from, nested as it may be.
    labels : iterable of str
        What the prompt calls its fences, without the numbers behind them.

    Examples
    --------
    >>> print(Fence({"answer": "Yes."})("answer", "Yes.</answer>"))
    <answer e319625f03>
    Yes.\uff1c/answer>
    </answer e319625f03>
    """

    def __init__(self, texts: Mapping[str, Any], labels: Iterable[str] = LABELS) -> None:
        everything = "\x1f".join(_strings(texts))
        salt = 0
        while True:
            digest = hashlib.sha256(f"{salt}\x1f{everything}".encode()).hexdigest()[:10]
            if digest not in everything:
                break
            salt += 1
        self.boundary = digest
        self._delimiter = _delimiter(frozenset(labels))

    def __call__(self, label: str, text: object) -> str:
        """Return `text` between its two delimiters.

        Raises
        ------
        ValueError
            `label` is not one word of at most 40 letters, digits and underscores.
        """
        if not _LABEL.fullmatch(label):
            raise ValueError(f"{label!r} is no label for a fence; give one word")
        inside = self._delimiter.sub(_LESS_THAN, str(text))
        return f"<{label} {self.boundary}>\n{inside}\n</{label} {self.boundary}>"


@lru_cache(maxsize=64)
def _delimiter(labels: frozenset[str]) -> re.Pattern[str]:
    """A "<" before one of the labels, or before any word with something like a boundary."""
    names = "|".join(re.escape(label) for label in sorted(labels))
    return re.compile(
        rf"<(?={_INVISIBLE}(?:(?:{names})(?:_?\d+)?(?![^\W\d_])|\w+\s+[0-9a-f]{{8,}}\b))",
        re.IGNORECASE,
    )


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _strings(item)]
    return []
