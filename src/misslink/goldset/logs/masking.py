"""Personal data out of texts, before anything is stored: typed masks, and no way back."""

from __future__ import annotations

import hashlib
import re
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from misslink.errors import InputError
from misslink.files.jsonl import read_text
from misslink.goldset.logs.patterns import DETECTORS, IN_IDS, Detector, Spot

__all__ = ["Masker", "own_patterns", "read_names", "without_numbers"]

_MASK = re.compile(r"<([A-Z][A-Z0-9_]{0,40})_(\d{1,9})>")
_KIND = re.compile(r"[A-Z][A-Z0-9_]{0,40}")
_WORD = re.compile(r"[^\W_]+(?:['\u2019\-][^\W_]+){0,4}")
_NAME = "NAME"
_ROUNDS = 8  # what ran into its neighbour is found once that is masked


class Masker:
    """Puts ``<EMAIL_1>`` in the place of an e-mail address, the same for the same one.

    What was masked is known to this object by a keyed hash with a key that lives and dies with it,
    so that neither a file nor the memory holds a map back.

    Parameters
    ----------
    patterns : mapping of str to re.Pattern
        Kinds of one's own; see `own_patterns`.
    names : sequence of str
        Names of people to mask as ``<NAME_1>``, as whole words whatever their case. Names are
        masked by such a list alone: no pattern tells a name from a word.

    Examples
    --------
    >>> masker = Masker()
    >>> masker.masked("ann@example.org or +49 170 1234567, then Ann@Example.org")
    '<EMAIL_1> or <PHONE_1>, then <EMAIL_1>'
    >>> dict(masker.counts)
    {'EMAIL': 2, 'PHONE': 1}
    """

    def __init__(
        self, patterns: Mapping[str, re.Pattern[str]] | None = None, names: Iterable[str] = ()
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._detectors: dict[str, Detector] = {
            kind: partial(_matches, pattern) for kind, pattern in (patterns or {}).items()
        }
        if listed := _by_first_word(names):
            self._detectors[_NAME] = partial(_named, listed)
        self._detectors |= DETECTORS
        self._key = secrets.token_bytes(32)
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._last: Counter[str] = Counter()

    def reserve(self, text: str) -> None:
        """Keep free the numbers of masks that stand in a text already, left by another tool."""
        for found in _MASK.finditer(text):
            self._last[found[1]] = max(self._last[found[1]], int(found[2]))

    def masked(self, text: str) -> str:
        """Return a text with its personal data masked; masks that stand in it stay."""
        return self._replaced(text, self._detectors)

    def masked_id(self, text: str) -> str:
        """Return an id with what is surely personal masked: no number counts as a telephone."""
        kinds = [kind for kind in self._detectors if kind in IN_IDS or kind not in DETECTORS]
        return self._replaced(text, {kind: self._detectors[kind] for kind in kinds})

    def _replaced(self, text: str, detectors: Mapping[str, Detector]) -> str:
        for _ in range(_ROUNDS if text else 0):
            spots = self._found(text, detectors)
            if not spots:
                break
            pieces, end = [], 0
            for kind, spot in spots:
                pieces += [text[end : spot.start], self._mask(kind, spot.value)]
                end = spot.end
            text = "".join([*pieces, text[end:]])
        return text

    def _found(self, text: str, detectors: Mapping[str, Detector]) -> list[tuple[str, Spot]]:
        """What is to be masked, in order; of stretches that overlap their union."""
        kept = [found.span() for found in _MASK.finditer(text)]
        ends = [end for _, end in kept]
        spots = [
            (spot.start, order, kind, spot)
            for order, (kind, detect) in enumerate(detectors.items())
            for spot in detect(text)
            if not _meets(spot, kept, bisect_right(ends, spot.start))
        ]
        merged: list[tuple[int, str, Spot]] = []
        for _, order, kind, spot in sorted(spots, key=lambda one: (one[0], one[1])):
            if merged and spot.start < merged[-1][2].end:
                rank, known, before = merged[-1]
                first = (rank, known, before) if rank <= order else (order, kind, spot)
                whole = Spot(before.start, max(before.end, spot.end), first[2].value)
                merged[-1] = (first[0], first[1], whole)
            else:
                merged.append((order, kind, spot))
        return [(kind, spot) for _, kind, spot in merged]

    def _mask(self, kind: str, value: str) -> str:
        digest = hashlib.blake2b(value.encode("utf-8", "replace"), key=self._key).digest()
        if (kind, digest) not in self._numbers:
            self._last[kind] += 1
            self._numbers[kind, digest] = self._last[kind]
        self.counts[kind] += 1
        return f"<{kind}_{self._numbers[kind, digest]}>"


def without_numbers(text: str) -> str:
    """Return a text whose masks say only their kind: two people who ask the same ask the same.

    >>> without_numbers("Where is the parcel of <EMAIL_7>?")
    'Where is the parcel of <EMAIL>?'
    """
    return _MASK.sub(r"<\1>", text)


def own_patterns(given: Iterable[str]) -> dict[str, re.Pattern[str]]:
    """Read patterns of one's own, such as ``CUSTOMER=K-[0-9]{6}``.

    Parameters
    ----------
    given : iterable of str
        NAME=REGEX each, in the syntax of Python's ``re``. How long one takes is its writer's care.

    Raises
    ------
    InputError
        One has no name, is no regular expression, or matches nothing at all.
    """
    found: dict[str, re.Pattern[str]] = {}
    for each in given:
        name, equals, regex = each.partition("=")
        kind = name.strip().upper()
        if not equals or not _KIND.fullmatch(kind):
            raise InputError(
                f"--mask-pattern {each!r} has no name; write it as CUSTOMER=K-[0-9]{{6}}"
            )
        try:
            pattern = re.compile(regex)
        except re.error as problem:
            raise InputError(
                f"the pattern of --mask-pattern {kind} is no regular expression ({problem})"
            ) from None
        if not regex or pattern.match(""):
            raise InputError(
                f"the pattern of --mask-pattern {kind} also fits an empty text; "
                "make it ask for at least one character"
            )
        if kind in found or kind in DETECTORS or kind == _NAME:
            raise InputError(
                f"there is a mask called {kind} already; give the pattern another name"
            )
        found[kind] = pattern
    return found


def read_names(path: Path) -> list[str]:
    """Read names of people, one a line; blank lines and what follows a # are passed over.

    Raises
    ------
    InputError
        The file cannot be read or holds no name.
    """
    lines = (line.partition("#")[0].strip() for line in read_text(path).splitlines())
    names = [line for line in lines if line]
    if not names:
        raise InputError("there is no name in it; write one a line", path=path)
    return names


def _meets(spot: Spot, kept: Sequence[tuple[int, int]], at: int) -> bool:
    """Whether a stretch overlaps the first of the masks that end behind its start."""
    return at < len(kept) and kept[at][0] < spot.end


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[Spot]:
    for found in pattern.finditer(text):
        if found[0]:
            yield Spot(*found.span(), found[0])


def _by_first_word(names: Iterable[str]) -> dict[str, list[list[str]]]:
    """The words of each name, under the first of them, the longest name first."""
    listed: dict[str, list[list[str]]] = {}
    for name in names:
        if words := [word.casefold() for word in _WORD.findall(name)]:
            listed.setdefault(words[0], []).append(words)
    for several in listed.values():
        several.sort(key=len, reverse=True)
    return listed


def _named(listed: Mapping[str, list[list[str]]], text: str) -> Iterator[Spot]:
    words = [(found.start(), found.end(), found[0].casefold()) for found in _WORD.finditer(text)]
    at = 0
    while at < len(words):
        step = 1
        for name in listed.get(_bare(words[at][2]), ()):
            there = [
                _bare(word) if last else word for _, _, word, last in _marked(words, at, len(name))
            ]
            if there == name:
                start, (_, end, last_word) = words[at][0], words[at + len(name) - 1]
                yield Spot(start, end - (len(last_word) - len(_bare(last_word))), " ".join(name))
                step = len(name)
                break
        at += step


def _marked(
    words: list[tuple[int, int, str]], at: int, length: int
) -> list[tuple[int, int, str, bool]]:
    """So many words from a place on, the last of them marked as the one that may have an 's."""
    taken = words[at : at + length]
    return [(*word, number == length - 1) for number, word in enumerate(taken)]


def _bare(word: str) -> str:
    return word.removesuffix("'s").removesuffix("\u2019s")
