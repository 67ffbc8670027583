"""What texts say, for comparison: quantities, and content words with the endings of their language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice

from misslink.matching.assertion import is_negated
from misslink.matching.quantities import Quantity, find_quantities, readable, says
from misslink.text.normalization import (
    STOPWORDS,
    UNSPACED_RUN,
    common_start,
    fold,
    sentence_spans,
    strip_ending,
)

Part = str | Quantity  # a content word, or a quantity

_LETTERS = re.compile(r"[^\W_]+")
_WORD = re.compile(r"non-\w+|\w+(?:\.\w+)*")
_CONTRACTION = re.compile(r"n't\b|'(?:s|re|ve|ll|d|m)\b")
_CHOICE = re.compile(r"\b(\w+),? (?:or|oder|ou|o) (?:\w+ )??(\w+)")
# Behind and between the words of scripts without blanks.
_PARTICLES = re.compile(r"[的是在了和与由于为被不没吗呢]|[\u3040-\u309f]+")
_NEGATION = re.compile(fold("不|没|ません|않|없|ไม่"))
_SHORTEST_STEM = 3
_ENGLISH = "the what who when where which how why is are does did it of were"
_NEIGHBORS = "la los las les des du della het een och det der die das und ist est"
# How many letters an ending may have, by words that only such languages have; elsewhere more.
_ENDINGS = ((0, frozenset(_ENGLISH.split())), (2, frozenset(_NEIGHBORS.split())))
_LONGEST_ENDING = 5
_VOWELS = frozenset(("", *"aeiouy", *"аеёиоуыюяьй", "ой", "ей"))


@dataclass(frozen=True)
class Reading:
    """A text: its folded form, its content words and its quantities, and which words have capitals."""

    text: str
    folded: str
    words: tuple[str, ...]
    quantities: tuple[Quantity, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """Words and quantities; the "one" of "the one that" is neither."""
        said = tuple(q for q in self.quantities if q.unit or q.digits != "1")
        return self.words + said or self.quantities

    @cached_property
    def capitals(self) -> frozenset[str]:
        """The words with a capital, folded."""
        return _capitals(self.text)

    @cached_property
    def forms(self) -> frozenset[str]:
        """The words with and without their English endings."""
        return frozenset(chain.from_iterable(map(_forms, self.words)))


@lru_cache(maxsize=4_096)
def has_negation(text: str) -> bool:
    """Whether a text has a denial, also in other languages than English and German."""
    return is_negated(text) or _NEGATION.search(fold(text)) is not None


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentence_spans(text)]


class Reader:
    """Reads texts that answer one question, in one language.

    Parameters
    ----------
    question : str
    texts : iterable of str
    """

    def __init__(self, question: str, texts: Iterable[str]) -> None:
        self.endings = min(map(_ending_length, (question, *texts)))
        self.asked = _read(question, self.endings, _options(question))

    def read(self, text: str) -> Reading:
        """Read a text."""
        return _read(text, self.endings, frozenset())

    def holds(self, reading: Reading, part: Part) -> bool:
        """Whether a text has a word in any of its forms, or says a quantity."""
        if isinstance(part, Quantity):
            return any(_says(each, part, reading) for each in reading.quantities)
        if not reading.forms.isdisjoint(_forms(part)):
            return True
        if UNSPACED_RUN.search(part):
            return part in reading.folded
        if not self.endings and len(part) > 1:  # the same as below, and much faster
            return part[0] in reading.forms
        return any(self.is_form(part, word) for word in reading.words)

    def new(self, reading: Reading, most: int | None = None) -> list[Part]:
        """What a text says beside the words of the question: all of it, or the first parts."""
        parts = (part for part in reading.parts if not self.holds(self.asked, part))
        return list(islice(parts, most))

    def share(self, parts: Sequence[Part], *readings: Reading) -> float:
        """The share of `parts` that some text has; 1 of none."""
        held = sum(any(self.holds(each, part) for each in readings) for part in parts)
        return held / len(parts) if parts else 1.0

    def is_form(self, word: str, other: str) -> bool:
        """Whether two words differ only in an ending, or one is the other's initial."""
        if not _forms(word).isdisjoint(_forms(other)):
            return True
        if word[0] != other[0] and not "\u0590" <= word[0] <= "\u06ff":
            return False
        short, long = sorted((word, other), key=len)
        if len(short) == 1 and short.isalpha():
            return long.startswith(short)
        same = len(common_start(short, long))
        left, more = short[same:], long[same:]
        if not left:  # a syllable of Korean is a character
            shortest = 2 if "\uac00" <= short[0] <= "\ud7a3" else _SHORTEST_STEM
            return len(short) >= shortest and len(more) <= self.endings
        if self.endings < _LONGEST_ENDING:
            return False
        if "\u0590" <= short[0] <= "\u06ff":  # Hebrew and Arabic write prepositions before the word
            return len(short) > 1 and long.endswith(short)
        if same >= _SHORTEST_STEM and {left, more} <= _VOWELS:
            return {left, more} != {"a", "o"}  # Maria and Mario
        return same > len(left) + 3 and len(left) <= 2 and len(more) <= self.endings

    def same_noun(self, own: Reading, one: Quantity, text: Reading, other: Quantity) -> bool:
        """Whether two quantities stand before the same word, or one before none."""
        nouns = [_WORD.match(r.folded, q.end + 1) for r, q in ((own, one), (text, other))]
        return not all(nouns) or self.is_form(*(noun[0] for noun in nouns if noun))


@lru_cache(maxsize=64)
def _options(question: str) -> frozenset[str]:
    """What a question lets choose from: it does not say it."""
    return frozenset(word for choice in _CHOICE.findall(fold(question)) for word in choice)


@lru_cache(maxsize=8_192)
def _ending_length(text: str) -> int:
    """How many letters an ending may have in the language of a text, by its words."""
    words = set(_WORD.findall(fold(text)))
    return next((letters for letters, own in _ENDINGS if own & words), _LONGEST_ENDING)


@lru_cache(maxsize=4_096)
def _read(text: str, endings: int, options: frozenset[str]) -> Reading:
    folded = _folded(text)
    found = tuple(q for q in find_quantities(folded) if not folded.endswith("non-", 0, q.start))
    pieces, end = list[str](), 0
    for quantity in found:
        pieces += (folded[end : quantity.start], " " * (quantity.end - quantity.start))
        end = quantity.end
    rest = unicodedata.normalize("NFC", "".join((*pieces, folded[end:])))
    unspaced = UNSPACED_RUN.search(rest) is not None
    words: list[str] = []
    for match in _WORD.finditer(rest):
        word = match[0]
        if unspaced and UNSPACED_RUN.search(word):
            words += (piece for piece in _PARTICLES.split(word) if len(piece) > 1)
        elif (word not in STOPWORDS and word not in options) or (
            len(word) == 1 and rest[match.end() :][:1] == "." and word in _capitals(text)
        ):
            words.append(word)
    # In other languages than English the short words in lower case are no content.
    if endings:
        capitals = _capitals(text)
        content = [
            w for w in words if len(w) > 3 or w in capitals or not w.isalpha() or w > "\u0530"
        ]
        words = content if content or found else words
    return Reading(text, unicodedata.normalize("NFC", folded), tuple(words), found)


def _folded(text: str) -> str:
    return readable(_CONTRACTION.sub(" ", text.replace("\\_", "_").replace("\u2019", "'")))


def _capitals(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in _LETTERS.findall(text) if word[0].isupper())


@lru_cache(maxsize=65_536)
def _forms(word: str) -> frozenset[str]:
    short = strip_ending(word)
    return frozenset((word, short)) if len(short) >= _SHORTEST_STEM else frozenset((word,))


def _says(own: Quantity, other: Quantity, reading: Reading) -> bool:
    """Whether a text's quantity says another; one of the two may leave its unit to the question."""
    if says(own, other):
        return True
    if bool(own.unit) == bool(other.unit) or own.digits != other.digits:
        return False
    measured = own if own.unit else other
    negative = any(
        not isinstance(value, tuple) and value < 0 for _, value in own.amounts | other.amounts
    )
    if negative or not measured.kinds.isdisjoint(("count", "date", "parts")):
        return False
    return bool(own.unit) or not reading.folded[own.end :].lstrip()[:1].isalpha()
