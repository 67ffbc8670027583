"""Match claims with passages by words, numbers and names."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal

from misslink.matching.frames import word_root
from misslink.matching.fuzzy_matching import FuzzyMatch
from misslink.matching.marks import strip_marks
from misslink.matching.quotes import PassageSentence, QuoteCheck, QuotedPassages, bare
from misslink.matching.same_place import tokens
from misslink.matching.support import load_fit
from misslink.text.languages import strip_polarity
from misslink.text.normalization import SOURCE_STEMS, fold, stems
from misslink.types import Support

FEATURES = ("novel", "uncovered", "number", "names")
SMOOTHING = 4  # content words added to a claim's, so that one new word of two is not "half of it"
_FRAGMENT = 2  # content words: an answer this short ("At seven.") is read with its question,
_ASKED_SHARE = 0.5  # of whose words the passage must have so many beside it
_NEARLY = 0.9  # of the weight of the best sentence: what may stand in for it

_NAME = re.compile(r"(?<![.!?:\"'(*\n\u2022-])(?<!\d[.)])\s([A-Z][\w'\u2019-]+)")
# Words that only code spells: a_b, __x__, a.b, aB, a(); and words with digits in them. In ASCII: a
# sentence without blanks is no such word.
_SPELLING = re.compile(r"[\w.]+", re.ASCII)
_IDENTIFIER = re.compile(
    r"\b(?=\w*_|\w+\.\w{2}|\w*[a-z][A-Z]|\w+\(\)|[^\W\d]\w*\d)[^\W\d]\w*(?:\.\w+)*\b",
    re.ASCII,
)


@dataclass(frozen=True)
class ClaimMatch:
    """What passages have of a claim.

    Parameters
    ----------
    features : tuple of float
        The values of `FEATURES`, none negative; each grows with doubt: the share of content words that
        neither passages nor question have; the weighted share that no single passage has; whether a
        number above 10 or with decimals has no basis; and how many names are new.
    best : PassageSentence or None
        The sentence that shares most with the claim, and asserts it.
    refusal : str or None
        Why the passages do not support the claim, whatever the features say.
    conflict : str or None
        What `best` says instead, if it says the same as the claim but for that, and of the same thing.
    """

    features: tuple[float, ...]
    best: PassageSentence | None
    refusal: str | None
    conflict: str | None

    @cached_property
    def probability(self) -> float:
        """P(the passages support the claim), by the committed fit."""
        return load_fit().probability(self.features, refused=self.refusal is not None)

    @property
    def support(self) -> Support:
        """Whether the probability reaches the cut."""
        return "supported" if self.probability >= load_fit().cut else "unsupported"

    @property
    def quote(self) -> str | None:
        """The sentence that supports the claim, verbatim; None: none does."""
        return self.best.text if self.best and self.support == "supported" else None

    @property
    def relation(
        self,
    ) -> tuple[Literal["would_support", "would_contradict", "unrelated"], str | None, float]:
        """What the passages would say about the claim, the deciding sentence, and the probability."""
        if self.quote is not None:
            return "would_support", self.quote, self.probability
        if self.best is not None and self.conflict is not None:
            return "would_contradict", self.best.text, self.probability
        return "unrelated", None, self.probability


class Passages(QuotedPassages):
    """Passages prepared once for matching any number of claims.

    Where there are none, nothing matches. An answer may repeat words and numbers of the question
    without being new.
    """

    @classmethod
    @lru_cache(maxsize=32)
    def of(cls, texts: tuple[str, ...], question: str = "") -> Passages:
        """Return passages that are read once for the judge, its claims and their checks."""
        return cls(texts, question)

    @cached_property
    def _asked(self) -> tuple[str, ...]:
        return stems(self.question)

    @cached_property
    def _asked_roots(self) -> frozenset[str]:
        return frozenset(map(word_root, self._asked))

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(sentence.stems for sentence in self.sentences))

    @cached_property
    def _holders(self) -> Mapping[str, list[int]]:
        """The sentences that hold a root."""
        holders = defaultdict[str, list[int]](list)
        for number, sentence in enumerate(self.sentences):
            for root in sentence.roots:
                holders[root].append(number)
        return dict(holders)

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(spelling for text in self.texts for spelling in _spellings(text))

    def match(self, claim: str, *, alone: bool = False) -> ClaimMatch:
        """Compare `claim`, which may be `alone` in its answer, with the passages; see `ClaimMatch`."""
        plain = strip_polarity(strip_marks(claim).text)
        row = tuple(stem for stem in stems(plain) if stem not in SOURCE_STEMS)
        roots = list(map(word_root, row))
        weights = {root: self._weight(root) for root in roots}
        best, check = self._deciding(weights, plain)
        names = [
            stem
            for name in _NAME.findall(plain)
            if not self._spells(fold(name))
            for stem in stems(name)
            if stem not in self._stems and stem not in SOURCE_STEMS
        ]
        features = (
            sum(r not in self._holders and r not in self._asked_roots for r in roots)
            / (len(row) + SMOOTHING),
            self._uncovered(weights),
            float(check.refusal == "number"),
            float(len(set(names))),
        )
        if best is None:
            return ClaimMatch(features, None, "no shared word", None)
        # Without a basis a number is a doubt, and no proof: it may be a count of what is listed.
        new_number = check.refusal == "number"
        refusal = None if new_number else check.refusal and (check.detail or check.refusal)
        others = set(row).difference(names)
        new = [name for name in map(fold, _IDENTIFIER.findall(plain)) if not self._spells(name)]
        if refusal is None and new:
            refusal = f"{new[0]} is new"
        if refusal is None and names and others and others <= set(best.stems):
            refusal = f"{names[0]} is new"  # the sentence says the same of another one
        if refusal is None and alone and self._is_lone(set(row), best):
            refusal = "nothing of the question is beside it"
        other = check.detail.partition(" / ")[0]
        is_conflict = check.refusal in ("difference", "denial") and not any(
            token.is_name and token.word == other for token in tokens(plain)
        )  # of another name both may hold
        return ClaimMatch(features, best, refusal, refusal if is_conflict else None)

    def _deciding(
        self, weights: Mapping[str, float], claim: str
    ) -> tuple[PassageSentence | None, QuoteCheck]:
        """The best sentence for a claim, and what it decides; one that only frames it, if all such do."""
        shared: defaultdict[int, float] = defaultdict(float)
        for root, weight in weights.items():
            for index in self._holders.get(root, ()):
                shared[index] += weight
        least, said = _NEARLY * max(shared.values(), default=0.0), bare(claim)
        near = [
            (bare(self.sentences[index].text) != said, -weight, index)
            for index, weight in shared.items()
            if weight >= least
        ]
        framed = None
        for *_, index in sorted(near):  # verbatim first; of equals the first
            sentence = self.sentences[index]
            place = sentence.passage, FuzzyMatch(sentence.start, sentence.end)
            found = sentence, self.decide(claim, ((place,),))
            if found[1].refusal != "frame":
                return found
            framed = framed or found
        return framed or (None, QuoteCheck(()))

    def _is_lone(self, row: AbstractSet[str], best: PassageSentence) -> bool:
        """Whether a few words do not answer the question: its own words are not beside them."""
        if len(row) > _FRAGMENT:
            return False
        asked = {word_root(stem) for stem in self._asked if stem not in row | SOURCE_STEMS}
        near = self.sentences.index(best)
        beside = {
            word_root(stem)
            for sentence in self.sentences[max(0, near - 1) : near + 2]
            if sentence.passage == best.passage
            for stem in sentence.stems
        }
        return len(asked & beside) < _ASKED_SHARE * len(asked)

    def _spells(self, identifier: str) -> bool:
        spelt = self._spellings
        return identifier in spelt or (
            "." in identifier and spelt.issuperset(identifier.split("."))
        )

    def _weight(self, root: str) -> float:
        """Rarer among the passages' sentences weighs more; a word they lack weighs most."""
        return math.log(1 + (len(self.sentences) + 1) / (len(self._holders.get(root, ())) + 0.5))

    def _uncovered(self, weights: Mapping[str, float]) -> float:
        covered: dict[int, float] = {}
        for root, weight in weights.items():
            for index in {self.sentences[holder].passage for holder in self._holders.get(root, ())}:
                covered[index] = covered.get(index, 0.0) + weight
        total = sum(weights.values())
        return max(0.0, 1 - max(covered.values(), default=0.0) / total) if total else 1.0


def _spellings(text: str) -> set[str]:
    """The words of `text` with their underscores, whole and between their points."""
    words = {word.strip(".") for word in _SPELLING.findall(fold(text.replace("\\_", "_")))}
    return words.union(*(word.split(".") for word in words if "." in word))
