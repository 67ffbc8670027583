"""The citations in an answer: which statement cites which passage."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from misslink.text import content_words, fold, sentences
from misslink.types import Passage

__all__ = ["Statement", "cited_statements"]

_SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_AS_DIGITS = str.maketrans(_SUPERSCRIPTS, "0123456789")
_MARKER = re.compile(
    r"[\[\u3010]\^?(?P<bracket>[^\[\]\u3010\u3011\n]{1,80})[\]\u3011](?:\([^()\s]*\))?"
    r"|\((?P<parenthesis>[^()\[\]\n]{1,80})\)"
    r"|<sup>\[?(?P<tag>\d{1,3}(?:,\s*\d{1,3})*)\]?</sup>"
    rf"|(?P<raised>[{_SUPERSCRIPTS}]{{1,2}}(?:,[{_SUPERSCRIPTS}]{{1,2}})*)"
)
_OPENS = re.compile(rf"[\[\u3010(<{_SUPERSCRIPTS}]")  # what every marker begins with
# Code is quoted and not cited from; what follows such a heading or label is a list of sources.
_NO_STATEMENT = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|(?<!`)(?P<ticks>`{1,2})(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`)"
    r"|^[^\w\n]*(?:sources?|references?|citations?|bibliography|footnotes?)[^\w\n]*$.*\Z"
    r"|^[ \t]*\[\^?[^\[\]\n]{1,80}\]:[^\n]*$",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_SOURCE = re.compile(
    r"(?:see |cf\.? )?(?:sources?|passages?|documents?|docs?|ref(?:erence)?s?|citations?|chunks?"
    r"|contexts?)\.?[ :]*#?(?=[\w-])"
)
_SEPARATOR = re.compile(r"\s*(?:[,;&]|\band\b)\s*")
_RANGE = re.compile(r"(\d{1,3})\s*-\s*(\d{1,3})")
_LONGEST_RANGE = 20
_PAGE = re.compile(r"pp?\.?\s*\d+(?:-\d+)?")
_NUMBER = re.compile(r"[1-9]\d{0,2}")  # of four digits it is a year
_DAGGER = re.compile(r"(?::\d+)?\u2020.*")  # what follows the number in "3:0(dagger)source"
_DIGITS = re.compile(r"\d+")
# Glued to one small letter or a name with an underscore, or with more code behind it, a number in
# brackets is an index ("x[1]"). Glued to any other word it cites ("seven[1]").
_INDEXED = re.compile(r"(?<!\w)(?:[a-z]|\w*[^\W_]_\w+)(?:\[[^\[\]\n]*\]){0,4}\Z")
_INDEXES = re.compile(r"(?:\[[^\[\]\n]{1,80}\]){0,4}(?:\s?[-+*/%|&^<>!]?=|\.[a-z_]+\w*|\()")
_KEY = re.compile(  # "Press [2] to go on": what is pressed is a key and no passage
    r"(?:\A|[.,;:!?\n(]|\b(?:to|then|and|or|please|you can|you must)\b|\d[.)]|[-*])\s*"
    r"(?:press|hit|push|type|enter|click|tap|dial|select|choose)"
    r"(?:\s+(?:on|in|the|key|button|option|number))*\s+(?:\[[^\[\]\n]*\][\s,]*(?:(?:and|or)\s+)?)*\Z",
    re.IGNORECASE,
)
_LOOK_BACK = 120  # characters before a marker, enough for the above
# A raised number cites behind a mark, a word of four letters or a year; behind less it may be a
# power or belong to a unit, and with a blank between only behind a unit or a single letter.
_BEFORE_RAISED = re.compile(
    r"(?:[.,;:!?'\"\]\u2019\u201d]|[^\W\d_]{4})[^\S\n]*\Z"
    r"|(?<!\w)(?!(?:km|cm|mm|dm|ft|in|yd|mi)\b)(?:[^\W\d_]{2,3}|[12]\d{3})[^\S\n]+\Z"
)
_BRACKET = re.compile(r"\[[^\[\]\n]{1,80}\]")  # no sentence ends inside of one
_SAYS_NOTHING = frozenset(("source", "sources", "reference", "references", "see", "cf"))
_BEFORE_STOP = re.compile(r"\s+(?=[.,;:!?)](?:[\s.,;:!?)]|\Z))")


@dataclass(frozen=True)
class Statement:
    """A sentence of an answer that cites something.

    Parameters
    ----------
    text : str
        The sentence without its citation markers.
    start, end : int
        Character offsets into the answer; a marker inside of the sentence lies between them.
    cited : sequence of str
        Ids of the passages it cites, each once.
    lost : sequence of str
        What it cites that is no passage, as it is written.
    """

    text: str
    start: int
    end: int
    cited: tuple[str, ...]
    lost: tuple[str, ...]


def cited_statements(answer: str, passages: Sequence[Passage]) -> tuple[Statement, ...]:
    """Find the sentences of `answer` that cite, and what they cite.

    Read are ``[1]``, ``[2, 3]``, ``[1-3]``, ``[^1]``, ``[doc-7]``, ``(source 2)``, ``(doc-7)``,
    raised numbers, and numbers in ``<sup>``. A passage is named by its id, else by its place in
    `passages`, from 1. A number that is no place, and a name made like the ids (``doc-9`` among
    ``doc-1`` to ``doc-8``), cite what does not exist; any other bracket is no citation. A marker
    behind a full stop belongs to the sentence before it. Code and a closing list of sources are
    left out, and so is what may well be something else: an index (``x[1]``, ``row_ids[2]``,
    ``rows[1] = 5``), a key to press (``Press [2] to go on.``), a power or a unit. Glued to any
    other word a bracket cites (``at seven[1]``).

    Parameters
    ----------
    answer : str
    passages : sequence of Passage
        In the order in which the app numbered them.

    Returns
    -------
    tuple of Statement
        Empty where nothing is cited.
    """
    if not (_OPENS.search(answer) and _MARKER.search(answer)):
        return ()  # as most answers, and looking closer takes ten times as long
    names = _Names(passages)
    body = _NO_STATEMENT.sub(lambda found: _blank(found[0]), answer)
    markers = [
        (marker.start(), marker.end(), cited)
        for marker in _MARKER.finditer(body)
        if (cited := _read(marker, names))
    ]
    pieces, since = [], 0
    for start, end, _ in markers:
        pieces += [body[since:start], " " * (end - start)]
        since = end
    plain = "".join((*pieces, body[since:]))
    spans = sentences(_BRACKET.sub(lambda found: _without_stops(found[0]), plain))
    of_span: dict[int, list[str]] = {}
    for start, _, cited in markers:
        at = _sentence_of(start, spans, plain)
        if at is not None:
            of_span.setdefault(at, []).extend(cited)
    statements = (_statement(plain, spans[at], of_span[at], names) for at in sorted(of_span))
    return tuple(each for each in statements if not _SAYS_NOTHING.issuperset(_words(each.text)))


class _Names:
    """What passages may be called: their ids, and names made like them."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._by_id: Mapping[str, str] = {fold(p.id): p.id for p in reversed(passages)}
        self._by_place = {str(place): p.id for place, p in enumerate(passages, start=1)}

    @cached_property
    def _shapes(self) -> frozenset[str]:
        return frozenset(_DIGITS.sub("#", name) for name in self._by_id if not name.isdecimal())

    def passage(self, name: str) -> str | None:
        """The id of the passage that is called so."""
        return self._by_id.get(name) or self._by_place.get(name)

    def is_id(self, name: str) -> bool:
        """Whether it is an id, and not by chance: it holds a digit and is no number."""
        return name in self._by_id and not name.isdecimal() and bool(_DIGITS.search(name))

    def names_one(self, name: str) -> bool:
        """Whether it is meant as a passage, there or not."""
        made_like = bool(_DIGITS.search(name)) and _DIGITS.sub("#", name) in self._shapes
        return name in self._by_id or made_like or _NUMBER.fullmatch(name) is not None


def _read(marker: re.Match[str], names: _Names) -> list[str]:
    """The names in a marker, folded; empty where it is none."""
    text, start = marker.string, marker.start()
    before = text[max(0, start - _LOOK_BACK) : start]
    if marker["raised"]:
        raised = marker["raised"].translate(_AS_DIGITS).split(",")
        cites = _BEFORE_RAISED.search(before) is not None
        return raised if cites and all(map(names.names_one, raised)) else []
    if marker["bracket"] and (_is_index(marker, before) or _KEY.search(before)):
        return []
    written = fold(marker["bracket"] or marker["tag"] or marker["parenthesis"])
    in_words = _SOURCE.match(written) is not None
    if marker["parenthesis"] and not in_words and not names.is_id(_SEPARATOR.split(written)[0]):
        return []  # "(1)" may number anything
    if names.passage(written):
        return [written]
    found: list[str] = []
    for part in _SEPARATOR.split(written):
        several = list(_named(part, names))
        if not several and not _PAGE.fullmatch(part):
            return []
        found += several
    return found


def _is_index(marker: re.Match[str], before: str) -> bool:
    """Whether a bracket is glued to something of which it is an index."""
    if _INDEXED.search(before):
        return True
    glued = before[-1:].isalnum() or before.endswith(("_", "]"))
    return glued and _INDEXES.match(marker.string, marker.end()) is not None


def _named(part: str, names: _Names) -> Iterator[str]:
    """The names that one part of a list stands for: one, a range of numbers, or none."""
    bare = _DAGGER.sub("", part)
    for name in (bare, _SOURCE.sub("", bare, count=1)):
        run = _RANGE.fullmatch(name)
        if names.names_one(name):
            yield name
            return
        if run and 0 < int(run[1]) < int(run[2]) < int(run[1]) + _LONGEST_RANGE:
            yield from map(str, range(int(run[1]), int(run[2]) + 1))
            return


def _sentence_of(marker: int, spans: Sequence[tuple[int, int]], plain: str) -> int | None:
    """The sentence that a marker stands in or follows; at the start of a line the next one."""
    at = bisect_right(spans, marker, key=lambda span: span[0]) - 1
    if at >= 0 and (marker < spans[at][1] or "\n" not in plain[spans[at][1] : marker]):
        return at
    return at + 1 if at + 1 < len(spans) else None


def _statement(plain: str, span: tuple[int, int], cited: Sequence[str], names: _Names) -> Statement:
    text = _BEFORE_STOP.sub("", " ".join(plain[slice(*span)].split()))
    ids = {name: names.passage(name) for name in cited}
    return Statement(
        text=text,
        start=span[0],
        end=span[1],
        cited=tuple(dict.fromkeys(found for found in ids.values() if found)),
        lost=tuple(name for name, found in ids.items() if not found),
    )


def _words(text: str) -> set[str]:
    return set(content_words(text))


def _without_stops(text: str) -> str:
    return re.sub(r"[.!?:\u3002\uff01\uff1f]", ",", text)


def _blank(text: str) -> str:
    return "".join(character if character == "\n" else " " for character in text)
