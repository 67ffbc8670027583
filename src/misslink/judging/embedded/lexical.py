"""How far a claim is carried by passages, told from words, word order, numbers and names alone."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, pairwise

from misslink.judging.embedded.abstention import SOURCE_WORDS, without_sources
from misslink.judging.embedded.conflict import conflicts
from misslink.judging.embedded.numerals import numbers, with_digits
from misslink.judging.embedded.polarity import without_polarity
from misslink.text import STOPWORDS, fold, sentences

__all__ = ["FEATURES", "Context", "Match", "Sentence", "stems", "without_ending"]

FEATURES = ("novel", "uncovered", "reordered", "number", "names")
NEAR = 3  # content words: two words of a claim this near each other in a passage count as in order
SMOOTHING = 4  # content words added to a claim's, so that one new word of two is not "half of it"
_STEPS = tuple(step for step in range(-NEAR, NEAR + 1) if step)
# Characters from blank to blank: a longer piece is of a script without blanks, or no word, and is
# not worth keeping.
_LONGEST = 64
GAP = NEAR + 1  # places between sentences
_NOTHING = ("",) * GAP

_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+|,\d{3}(?!\d))*")
_CONTRACTION = re.compile(r"'(?:s|re|ve|ll|d|m)$")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]{2,}")
_NAME = re.compile(r"(?<![.!?:\"'(*\n\u2022-])(?<!\d[.)])\s([A-Z][\w'\u2019-]+)")
# Words that only code spells: a_b, __x__, a.b, aB, a(); and words with digits in them.
_SPELLING = re.compile(r"[\w.]+")
_IDENTIFIER = re.compile(
    r"\b(?=\w*_|\w+\.\w{2}|\w*[a-z][A-Z]|\w+\(\)|[^\W\d]\w*\d)[^\W\d]\w*(?:\.\w+)*\b"
)
_ENDINGS = (
    *(("ization", ""), ("ational", "ate"), ("iveness", ""), ("fulness", ""), ("ousness", "")),
    *(("ations", "ate"), ("ation", "ate"), ("ements", ""), ("ement", ""), ("ments", "")),
    *(("ment", ""), ("ingly", ""), ("edly", ""), ("ities", ""), ("ity", ""), ("ness", "")),
    *(("ings", ""), ("ing", ""), ("ies", "y"), ("ied", "y"), ("ers", "er"), ("ed", "")),
    *(("ly", ""), ("es", ""), ("s", "")),
)
_ANY_ENDING = tuple(ending for ending, _ in _ENDINGS)
_SHORTEST_STEM = 3
ROOT = 5  # letters by which the other forms of a word are known: "loyal" and "loyalty"
COUNTED = 10  # a number up to this may count what the passages list,
LONG = 8  # in a claim of more content words than these
SHORT = 3  # content words: in a claim this short, a new first word with a capital is a new name


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage: its place (passage from 0, offsets), its text and its stems."""

    passage: int
    start: int
    end: int
    text: str
    stems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A claim held against passages.

    Parameters
    ----------
    features : tuple of float
        In the order of `FEATURES`; each grows with doubt, each is 0 for a verbatim copy:
        the share of content words that no passage holds (smoothed), the weighted share that the
        best single passage lacks, the share of neighbouring word pairs that stand near each other
        in no passage, 1 if a number is in no passage, and how many capitalised names are in none.
    best : Sentence or None
        The sentence that shares most, rare words weighing more. None: there is no passage text.
    shares_words : bool
        Whether any content word is in any passage.
    conflict : str or None
        Why the best sentence contradicts the claim.
    invented : tuple of str
        Names, numbers and identifiers that neither a passage nor the question holds; in a long
        claim without the numbers up to ten, which may count what the passages list.
    """

    features: tuple[float, ...]
    best: Sentence | None
    shares_words: bool
    conflict: str | None
    invented: tuple[str, ...]


class Context:
    """Passages read once, against which any number of claims is held.

    Parameters
    ----------
    passages : sequence of str
        Empty ones, and none at all, are allowed: nothing matches them.
    question : str
        Its words are given, so an answer that repeats them invents nothing.
    """

    def __init__(self, passages: Sequence[str], question: str = "") -> None:
        self.sentences: list[Sentence] = []
        self._texts = (*passages, question)
        self._stems: set[str] = set()
        # Roots in their order, each with its sentence and its places; no root before, between and
        # behind the sentences, so that words of two are never near and no step leaves the row.
        self._row: list[str] = [""] * GAP
        self._of: list[int] = [0] * GAP
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._holding: dict[str, tuple[int, ...]] = {}
        for index, text in enumerate(passages):
            for start, end in sentences(text):
                piece = text[start:end]
                row = stems(piece)
                self._stems.update(row)
                roots = list(map(_root, row))
                for place, root in enumerate(roots, start=len(self._row)):
                    self._places[root].append(place)
                self._row += (*roots, *_NOTHING)
                self._of += [len(self.sentences)] * (len(roots) + GAP)
                self.sentences.append(Sentence(index, start, end, piece, row))
        self._asked = frozenset(stems(question))
        self._asked_roots = frozenset(map(_root, self._asked))

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(number for text in self._texts for number in numbers(fold(text)))

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(spelling for text in self._texts for spelling in _spellings(text))

    def match(self, claim: str) -> Match:
        """Hold `claim` against the passages; see `Match`."""
        plain = without_polarity(without_sources(claim))
        row = tuple(stem for stem in stems(plain) if stem not in SAID_OF_SOURCES)
        roots = list(map(_root, row))
        weights = {root: self._weight(root) for root in roots}
        best = self._same(plain) or self._best(weights)
        said = numbers(fold(plain))
        new_numbers = said - self._numbers if said else said
        new_names = {
            stem
            for name in _NAME.findall(plain)
            if not self._spells(fold(name))
            for stem in stems(name)
            if self._is_new(stem)
        }
        features = (
            sum(map(self._lacks, roots)) / (len(row) + SMOOTHING),
            self._uncovered(weights),
            self._reordered(roots),
            float(bool(new_numbers)),
            float(len(new_names)),
        )
        conflict = None
        if best is not None:
            coverage = _coverage(row, best)
            conflict = conflicts(plain, best.text, coverage, new_numbers)
        if len(row) <= SHORT:
            new_names.update(filter(self._is_new, _first_if_capital(plain)))
        new_identifiers = {name for name in _identifiers(plain) if not self._spells(name)}
        if len(row) > LONG:
            new_numbers = {number for number in new_numbers if not _may_count(number)}
        invented = tuple(sorted(new_names | new_numbers | new_identifiers))
        return Match(features, best, not self._stems.isdisjoint(row), conflict, invented)

    def _same(self, claim: str) -> Sentence | None:
        """The sentence that is the claim word for word, which no shorter one may stand for."""
        said = fold(claim).rstrip(".")
        return next((s for s in self.sentences if said and fold(s.text).rstrip(".") == said), None)

    def _is_new(self, stem: str) -> bool:
        return not (stem in self._stems or stem in self._asked or stem in SAID_OF_SOURCES)

    def _lacks(self, root: str) -> bool:
        return root not in self._places and root not in self._asked_roots

    def _spells(self, identifier: str) -> bool:
        spelt = self._spellings
        return identifier in spelt or (
            "." in identifier and spelt.issuperset(identifier.split("."))
        )

    def _weight(self, root: str) -> float:
        """Rarer among the passages' sentences weighs more; a word they lack weighs most."""
        return math.log(1 + (len(self.sentences) + 1) / (len(self._holders(root)) + 0.5))

    def _holders(self, root: str) -> tuple[int, ...]:
        """The sentences that hold a root."""
        if root not in self._holding:
            places = self._places.get(root, ())
            self._holding[root] = tuple(dict.fromkeys(self._of[place] for place in places))
        return self._holding[root]

    def _best(self, weights: Mapping[str, float]) -> Sentence | None:
        shared = [0.0] * len(self.sentences)
        for root, weight in weights.items():
            for index in self._holders(root):
                shared[index] += weight
        # max keeps the first of equals, so the better ranked passage wins a tie.
        return max(zip(shared, self.sentences, strict=True), key=_first, default=(0.0, None))[1]

    def _uncovered(self, weights: Mapping[str, float]) -> float:
        covered: dict[int, float] = {}
        for root, weight in weights.items():
            for index in {self.sentences[holder].passage for holder in self._holders(root)}:
                covered[index] = covered.get(index, 0.0) + weight
        total = sum(weights.values())
        return max(0.0, 1 - max(covered.values(), default=0.0) / total) if total else 1.0

    def _reordered(self, roots: Sequence[str]) -> float:
        pairs = list(pairwise(roots))
        return sum(not self._near(*pair) for pair in pairs) / len(pairs) if pairs else 0.0

    def _near(self, one: str, other: str) -> bool:
        here, there = self._places.get(one, ()), self._places.get(other, ())
        if one == other:
            return bool(here)
        if len(here) > len(there):
            here, other = there, one
        return any(self._row[place + step] == other for place in here for step in _STEPS)


def _first(scored: tuple[float, Sentence]) -> float:
    return scored[0]


def _coverage(row: Sequence[str], sentence: Sentence) -> float:
    """Share of a claim's content words, numbers aside, that the sentence holds."""
    words = {stem for stem in row if not stem[0].isdigit()}
    return len(words.intersection(sentence.stems)) / len(words) if words else 0.0


def stems(text: str) -> tuple[str, ...]:
    """Content words of `text`, folded and without their endings, in order, repetitions kept.

    Scripts that put no blanks between words are cut into pairs of characters.
    """
    folded = with_digits(fold(text))
    pieces = folded.split()
    if max(map(len, pieces), default=0) > _LONGEST:
        return _cut(folded)
    return tuple(chain.from_iterable(map(_stems_in, pieces)))


def _cut(folded: str) -> tuple[str, ...]:
    return tuple(chain.from_iterable(map(_stems_of, _WORD.findall(folded))))


# No word goes over a blank, so what stands between two can be kept: that is five times as fast.
_stems_in = lru_cache(maxsize=65_536)(_cut)


@lru_cache(maxsize=65_536)
def _stems_of(word: str) -> tuple[str, ...]:
    """The stem of a folded word; none of a stopword, several of a run without blanks."""
    if word in STOPWORDS or _CONTRACTION.sub("", word) in STOPWORDS or word.endswith("n't"):
        return ()
    if not word.isascii() and (run := _UNSPACED.fullmatch(word)):
        return tuple(word[i : i + 2] for i in range(len(run[0]) - 1))
    return (without_ending(word),)


@lru_cache(maxsize=65_536)
def without_ending(word: str) -> str:
    """`word`, a folded one, without its ending."""
    word = word.removesuffix("'s")
    if word == "none":  # a value, and no "non-"
        return word
    if len(word) <= _SHORTEST_STEM or word[0].isdigit():
        return word.replace(",", "") if word[0:1].isdigit() else word
    if word.endswith(_ANY_ENDING) and not word.endswith("ss"):
        for ending, instead in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
                word = word[: -len(ending)] + instead
                break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] in "ey" else word


@lru_cache(maxsize=65_536)
def _root(stem: str) -> str:
    """The first letters of a word; numbers and what code spells stay whole."""
    return stem[:ROOT] if stem.isalpha() else stem


def _first_if_capital(text: str) -> tuple[str, ...]:
    """The first word, which may be a name as well as any word."""
    first = text.split(maxsplit=1)[:1]
    return stems(first[0]) if first and first[0][0].isupper() else ()


def _may_count(number: str) -> bool:
    return number.isdecimal() and int(number) <= COUNTED


def _identifiers(text: str) -> set[str]:
    return {fold(name) for name in _IDENTIFIER.findall(text.replace("\\_", "_"))}


def _spellings(text: str) -> set[str]:
    """The words of `text` with their underscores, whole and between their points."""
    words = {word.strip(".") for word in _SPELLING.findall(fold(text.replace("\\_", "_")))}
    return words.union(*(word.split(".") for word in words if "." in word))


SAID_OF_SOURCES = frozenset(stems(" ".join(SOURCE_WORDS)))
