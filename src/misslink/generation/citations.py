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
    r"|\((?P<parenthesis>[^()\n]{1,80})\)"
    r"|<sup>\[?(?P<tag>\d{1,3}(?:,\s*\d{1,3})*)\]?</sup>"
    rf"|(?P<raised>[{_SUPERSCRIPTS}]{{1,2}}(?:,[{_SUPERSCRIPTS}]{{1,2}})*)"
)
# Code is quoted and not cited from; what follows such a heading or label is a list of sources.
_NO_STATEMENT = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`"
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
_RAISED_AFTER = 4  # letters, or a mark: neither a unit nor a number to a power
_MARKS = tuple(".,;:!?'\"]\u2019\u201d")
_SAYS_NOTHING = frozenset(("source", "sources", "reference", "references", "see", "cf"))
_BEFORE_STOP = re.compile(r"\s+(?=[.,;:!?](?:\s|\Z))")


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
    left out.

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
    if not _MARKER.search(answer):
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
    spans = sentences(plain)
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
    if marker["raised"]:
        before = marker.string[max(0, marker.start() - _RAISED_AFTER) : marker.start()]
        after_text = before.endswith(_MARKS) or (len(before) == _RAISED_AFTER and before.isalpha())
        raised = marker["raised"].translate(_AS_DIGITS).split(",")
        return raised if after_text and all(map(names.names_one, raised)) else []
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


def _blank(text: str) -> str:
    return "".join(character if character == "\n" else " " for character in text)
