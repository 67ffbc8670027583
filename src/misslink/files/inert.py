"""Texts in CSV that spreadsheets would run.

Spreadsheets run what begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break as a formula,
some also behind blanks and signs that nobody sees.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["inert"]

_SIGNS = frozenset("=+-@")
_BREAKS = frozenset("\t\r\n")
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})  # categories of blanks, controls and joiners
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def inert(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula: behind an apostrophe if need be.

    >>> inert("=1+1"), inert("-3.5"), inert("fine")
    ("'=1+1", '-3.5', 'fine')
    """
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")  # ends a text in many readers
    if _NUMBER.fullmatch(text):
        return text
    first = next((sign for sign in text if unicodedata.category(sign) not in _UNSEEN), "")
    # Full-width, small and raised forms are read as the plain ones by some.
    runs = unicodedata.normalize("NFKC", first) in _SIGNS
    return f"'{text}" if runs or text[:1] in _BREAKS else text
