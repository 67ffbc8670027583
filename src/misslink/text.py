"""Texts compared the way people compare them: folded, cut into sentences and content words."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from functools import lru_cache
from itertools import filterfalse

__all__ = [
    "STOPWORDS",
    "content_id",
    "content_words",
    "fold",
    "fold_with_places",
    "has_content",
    "locate",
    "sentences",
    "valid_text",
]

_ENDS_LINE = re.compile(r"-[ \t]*\n")
_BLANKS = re.compile(r"\s+")
_HYPHENATED = re.compile(r"(?<=\w)-[ \t]*\n\s*(?=\w)")
_WORD = re.compile(r"\w+(?:['.]\w+)*")
_NO_WORD = " .,;:!?'\"()[]"
_SENTENCE_END = re.compile(
    r"(?<=[.!?])['\")\]]*\s+(?=[\"'(\[]?[A-Z0-9`])"  # a full stop, then a capital or a number
    r"|(?<=[\u3002\uff01\uff1f])"  # a full stop of a script that puts no blank behind it
    r"|(?<=[.!?:])['\")\]]*[ \t]*\n\s*"  # a full stop or a colon that ends its line
    r"|\n\s*\n"  # an empty line
    r"|\n(?=\s*(?:[-*+\u2022]|\d+[.)])\s)"  # a list item
)
_LIST_MARKER = re.compile(r"(?:\A|\n)[ \t]*\(?\d{1,3}[.)]\Z")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|Sec|approx|[Pp]p?)|\b[A-Z])\.$"
)
# One character for every way of writing a quote mark or a dash.
_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032`\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"),
        "\u0338": "!",  # the stroke that makes an equals sign "not equal" is no accent
    }
)
_STOPWORDS = """
a about above after again all also am an and any are as at be because been before being below
between both but by can cannot could did do does doing down during each either etc few for from
further had has have having he her here hers him his how i if in into is it its itself just may me
might more most must my no nor not now of off on once only or other our out over own same she
should so some such than that the their them then there these they this those through to too under
until up upon us very was we were what when where whether which while who whom whose why will with
within without would you your yours
"""
STOPWORDS = frozenset(_STOPWORDS.split())


@lru_cache(maxsize=4_096)
def fold(text: str) -> str:
    """Lower case, single blanks, plain quote marks and dashes, no accents, no line-end hyphens.

    Two texts that differ only in these fold to the same string.
    """
    if text.isascii() and "`" not in text:  # the same, ten times as fast
        if text.isprintable() and "  " not in text:  # one line without double blanks
            return text.lower().strip()
        if not _ENDS_LINE.search(text):
            return " ".join(text.lower().split())
    joined = _HYPHENATED.sub("", text).translate(_SAME)
    if not joined.isascii():
        plain = unicodedata.normalize("NFKD", joined).translate(_SAME)
        joined = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    return _BLANKS.sub(" ", joined).strip().lower()


def locate(needle: str, haystack: str) -> tuple[int, int] | None:
    """Character offsets of a place in `haystack` that reads like `needle`: verbatim, else folded.

    Returns None where there is none, or where `needle` is blank.
    """
    wanted, verbatim = fold(needle), needle.strip()
    if not wanted:
        return None
    start = haystack.find(verbatim)
    if start >= 0:
        return start, start + len(verbatim)
    at = fold(haystack).find(wanted)
    if at < 0:
        return None
    _, places = fold_with_places(haystack)
    return places[at], places[at + len(wanted) - 1] + 1


@lru_cache(maxsize=512)
def fold_with_places(text: str) -> tuple[str, array[int]]:
    """Return `fold` of a text, and for each of its characters the offset in `text` it came from."""
    pieces = _folded(text)
    places = array("L", (origin for piece, origin in pieces for _ in piece))
    return "".join(piece for piece, _ in pieces), places


def sentences(text: str) -> list[tuple[int, int]]:
    """Character offsets of the sentences and list items of `text`, blanks trimmed."""
    ends = (
        end.end()
        for end in _SENTENCE_END.finditer(text)
        if not _ABBREVIATION.search(text, max(0, end.start() - 8), end.start())
        and not _LIST_MARKER.search(text, max(0, end.start() - 8), end.start())
    )
    cuts = [0, *ends]
    spans = []
    for start, stop in zip(cuts, [*cuts[1:], len(text)], strict=True):
        piece = text[start:stop]
        if piece.strip():
            left = start + len(piece) - len(piece.lstrip())
            spans.append((left, start + len(piece.rstrip())))
    return spans


def valid_text(text: str) -> str:
    """Return `text` with a question mark for every half of a broken surrogate pair.

    JSON may hold such halves, and no file can be written with them.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def content_id(text: str) -> str:
    """Return the id of a passage that brings none: 'text-' and 16 digits of its SHA-256."""
    return f"text-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def has_content(text: str) -> bool:
    """Whether any word of `text` carries content; cheaper than all of `content_words`."""
    return any(word[0] not in STOPWORDS for word in _WORD.finditer(fold(text)))


def content_words(text: str) -> tuple[str, ...]:
    """The words of `text` that carry content, folded, in order, repetitions kept."""
    # What stands around the words makes none, and without it a quote meets its sentence here.
    return _content_words(fold(text).strip(_NO_WORD))


@lru_cache(maxsize=4_096)
def _content_words(folded: str) -> tuple[str, ...]:
    return tuple(filterfalse(STOPWORDS.__contains__, _WORD.findall(folded)))


def _folded(text: str) -> list[tuple[str, int]]:
    """Folded pieces, each with the offset of the character it came from."""
    skipped = {i for cut in _HYPHENATED.finditer(text) for i in range(*cut.span())}
    pieces: list[tuple[str, int]] = []
    blank_before = True  # leading blanks go
    for origin, character in enumerate(text):
        if origin in skipped:
            continue
        plain = unicodedata.normalize("NFKD", character.translate(_SAME)).translate(_SAME)
        for part in plain:
            piece = "" if unicodedata.combining(part) else part.casefold().lower()
            if piece.isspace():
                if not blank_before:
                    pieces.append((" ", origin))
                blank_before = True
            elif piece:
                pieces.append((piece, origin))
                blank_before = False
    if pieces and pieces[-1][0] == " ":
        pieces.pop()
    return pieces
