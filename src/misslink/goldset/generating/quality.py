"""Which passages carry a question, told by counting: prose of some length, no lists of links."""

from __future__ import annotations

import re

from misslink.judging.nearly import UNSPACED
from misslink.text import content_words, fold

__all__ = ["POOR", "content_length", "poor", "trigrams"]

# Why a passage is not written from, by code.
POOR = {
    "too_short": "it has too few content words",
    "contents": "it is a table of contents",
    "navigation": "it is a list of links or headings",
    "no_prose": "less than half of it is letters",
    "repeated": "an earlier passage says the same",
}
_MOST = 0.5  # of the lines, or of the characters
_NAVIGATION = 0.8  # of the lines
_LINES = 4  # fewer make no list
_LINK_WORDS = 4  # a line of at most so many words that ends no sentence
_DOTTED = re.compile(r"(?:\.\s?){3,}\s*\d+\s*$|\s\d{1,4}\s*$|^\s*\d+(?:\.\d+)*\.?\s+\S.*\s\d{1,4}$")
_ENDS = re.compile(r"[.!?:;,\u3002\uff01\uff1f)\]}\"']\s*$")
_STEP = re.compile(r"^\s*(?:\d+[.)]|[-*+\u2022])\s+")
_URL = re.compile(r"https?://\S+|\]\([^)]*\)")


def content_length(text: str) -> int:
    """Count content words; two characters of a script without blanks between words are one."""
    unspaced = len(UNSPACED.findall(text))
    return unspaced // 2 + sum(1 for word in content_words(text) if not UNSPACED.search(word))


def poor(text: str, *, least_words: int) -> str | None:
    """Return the code of `POOR` of what speaks against a passage; None where nothing does.

    Parameters
    ----------
    text : str
    least_words : int
        Content words that it has at least.
    """
    if content_length(text) < least_words:
        return "too_short"
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) >= _LINES:
        if sum(map(bool, map(_DOTTED.search, lines))) >= _MOST * len(lines):
            return "contents"
        if sum(map(_is_link, lines)) >= _NAVIGATION * len(lines):
            return "navigation"
    bare = "".join(_URL.sub("", text).split())
    if sum(map(str.isalpha, bare)) < _MOST * len("".join(text.split())):
        return "no_prose"
    return None


def trigrams(text: str) -> frozenset[str]:
    """Return the groups of three folded words in a row; of a shorter text the text itself."""
    folded = fold(text)
    words = list(folded) if UNSPACED.search(folded) else folded.split()
    found = frozenset(" ".join(words[at : at + 3]) for at in range(len(words) - 2))
    return found or frozenset([folded])


def _is_link(line: str) -> bool:
    """Whether a line is a few words that end no sentence and are no step of a list."""
    if UNSPACED.search(line):
        return False
    short = len(line.split()) <= _LINK_WORDS and not _ENDS.search(line)
    return (short and not _STEP.match(line)) or _URL.fullmatch(line.strip()) is not None
