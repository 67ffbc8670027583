"""Match claims with passages by words, word order, numbers with their units, and names."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from operator import itemgetter
from types import MappingProxyType

from misslink.matching.abstention import SOURCE_STEMS, strip_source_mentions
from misslink.matching.assertion import NotAsserted, not_asserted
from misslink.matching.frames import frame_kind, sentence_kinds, word_root
from misslink.matching.quantities import QuantityIndex
from misslink.text.normalization import (
    STEM_WORD,
    STOPWORDS,
    UNSPACED_RUN,
    extract_numbers,
    fold,
    number_words_to_digits,
    stems,
    strip_ending,
)

_YES = re.compile(r"\W*(?:yes|yeah|yep|true|correct)\b(?!\s+(?:and|or)\b)", re.IGNORECASE)
# "No" before a noun, as in "No changes are made", is no answer to the question.
_NO = re.compile(
    r"\W*(?:(?:nope|false|incorrect)\b(?!\s+(?:and|or)\b)"
    r"|no\b(?=\W*$|\s*[,.;:!\u2013\u2014-]|\s+(?:it|they|there|you|he|she|we|i|this|that)\b))",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"\W*\w+\b[\s,.;:!*\u2013\u2014-]*")


def leading_polarity(text: str) -> bool | None:
    """True where `text` begins with a yes, False with a no; None where with neither."""
    if _YES.match(text):
        return True
    return False if _NO.match(text) else None


def strip_polarity(text: str) -> str:
    """`text` without the yes or no that it begins with."""
    return text if leading_polarity(text) is None else _FIRST_WORD.sub("", text, count=1)


SAME_STATEMENT = 0.75  # share of the claim's content words that the other sentence must hold
SAME_STATEMENT_BACK = (
    0.6  # and, for a negation, of that sentence's content words that the claim must hold
)
_NEGATIONS = frozenset(
    (
        *("not", "no", "never", "cannot", "without", "none"),
        *("nicht", "kein", "keine", "keinen", "keiner", "nie", "niemals", "ohne"),
    )
)
_COORDINATED_NEGATIONS = frozenset(("neither", "nor"))  # what they negate stands elsewhere
_NON_NEGATIONS = ("not only", "no longer than", "no more than", "not just", "no matter", "no doubt")
_IMPLIED_NEGATION = re.compile(
    r"\b(?:no longer|(?:fail(?:s|ed)?|refus(?:es|ed|e)|declin(?:es|ed|e)|unable) to|lack(?:s|ed)?)\b"
)
_NEGATION_REACH = 4  # words after a negation among which the first content word is what it negates


def find_conflict(
    claim: str, sentence: str, coverage: float, new_numbers: AbstractSet[str]
) -> str | None:
    """Say why `sentence` contradicts `claim`, or None where it does not.

    A cautious rule: the sentence must hold nearly all words of the claim. Then either the claim has
    a number that is in no passage, and the sentence has another one beside the same word; or one
    negates what the other, which shares most words both ways, asserts.

    Parameters
    ----------
    claim, sentence : str
    coverage : float
        Share in [0, 1] of the claim's content words, numbers aside, that the sentence holds.
    new_numbers : set of str
        Numbers of the claim that neither a passage nor the question holds.
    """
    if coverage < SAME_STATEMENT or fold(claim).strip(" .") == fold(sentence).strip(" ."):
        return None
    its = number_neighbors(sentence)
    for neighbor, number in number_neighbors(claim).items():
        other = its.get(neighbor, number)
        same_kind = bool(_YEAR.fullmatch(number)) == bool(_YEAR.fullmatch(other))
        if number in new_numbers and other != number and same_kind:
            return f"{number} where the passage says {its[neighbor]}"
    asserted, denied = _asserted_and_negated(claim)
    its_asserted, its_denied = _asserted_and_negated(strip_polarity(sentence))
    if len(asserted & its_asserted) < SAME_STATEMENT_BACK * len(its_asserted):
        return None
    both_ways = (denied & its_asserted - its_denied) | (its_denied & asserted - denied)
    return f"negation of {', '.join(sorted(both_ways))}" if both_ways else None


_PARTICLE = re.compile(r"[\u3040-\u309f]")  # of Japanese, behind any word


def number_neighbors(text: str) -> dict[tuple[str, str], str]:
    """Each number of `text` by the content word nearest before, and nearest after, it."""
    # Of a script without blanks the characters beside a number: 点 in 絵画を90点, 年 in 于1966年.
    folded = UNSPACED_RUN.sub(
        lambda run: f" {run[0][0]} {run[0][-1]} ", number_words_to_digits(fold(text))
    )
    words = [word for word in STEM_WORD.findall(folded) if word not in STOPWORDS]
    neighbors: dict[tuple[str, str], str] = {}
    for index, word in enumerate(words):
        if word[0].isdigit():
            number = word.replace(",", "")
            if index and not _PARTICLE.fullmatch(words[index - 1]):
                neighbors.setdefault(("after", words[index - 1]), number)
            if index + 1 < len(words):
                neighbors.setdefault(("before", words[index + 1]), number)
    return neighbors


def _asserted_and_negated(text: str) -> tuple[set[str], set[str]]:
    """The content words of `text`, and those of them that a negation stands right before."""
    folded = fold(text)
    for phrase in _NON_NEGATIONS:
        folded = folded.replace(phrase, "")
    folded = _IMPLIED_NEGATION.sub("not", folded)
    words = STEM_WORD.findall(folded)
    asserted = {
        strip_ending(word) for word in words if word not in STOPWORDS and not word.endswith("n't")
    }
    denied: set[str] = set()
    if _COORDINATED_NEGATIONS.intersection(words):
        return set(), denied
    for index, word in enumerate(words):
        if word in _NEGATIONS or word.endswith("n't"):
            after = (
                w for w in words[index + 1 : index + 1 + _NEGATION_REACH] if w not in STOPWORDS
            )
            denied.update(strip_ending(w) for w in [next(after, None)] if w)
    return asserted, denied


FEATURES = ("novel", "uncovered", "reordered", "number", "names")
NEAR_WORDS = (
    3  # content words: two words of a claim this near each other in a passage count as in order
)
SMOOTHING = 4  # content words added to a claim's, so that one new word of two is not "half of it"
_STEPS = tuple(step for step in range(-NEAR_WORDS, NEAR_WORDS + 1) if step)
GAP = NEAR_WORDS + 1  # places between sentences
_SENTENCE_GAP = ("",) * GAP

_NAME = re.compile(r"(?<![.!?:\"'(*\n\u2022-])(?<!\d[.)])\s([A-Z][\w'\u2019-]+)")
_FULL_NAME = re.compile(_NAME.pattern[:-1] + r"(?:\s[A-Z][\w'\u2019-]+)*)")
# Words that only code spells: a_b, __x__, a.b, aB, a(); and words with digits in them. In ASCII: a
# sentence without blanks is no such word.
_SPELLING = re.compile(r"[\w.]+", re.ASCII)
_IDENTIFIER = re.compile(
    r"\b(?=\w*_|\w+\.\w{2}|\w*[a-z][A-Z]|\w+\(\)|[^\W\d]\w*\d)[^\W\d]\w*(?:\.\w+)*\b",
    re.ASCII,
)
_NOUN_ENDINGS = ("en", "ern", "em")  # of German
MAX_COUNT = 10  # a number up to this may count what the passages list,
LONG_CLAIM = 8  # in a claim of more content words than these
ROLE_WORDS = 3  # content words on each side of a number in which its role is read
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
SHORT_CLAIM = (
    3  # content words: in a claim this short, a new first word with a capital is a new name
)


@dataclass(frozen=True, slots=True)
class PassageSentence:
    """A sentence of a passage: its place (passage from 0, offsets), its text and its stems."""

    passage: int
    start: int
    end: int
    text: str
    stems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimMatch:
    """A claim compared with passages.

    Parameters
    ----------
    features : tuple of float
        In the order of `FEATURES`; each grows with doubt and is 0 for a verbatim copy: the share of
        content words that no passage has (smoothed), the weighted share that the best single passage
        lacks, the share of neighboring word pairs that are near each other in no passage, 1 if a
        number is in no passage, and the number of capitalized names that are in none.
    best : PassageSentence or None
        The sentence that shares most, rare words weighing more. None: there is no passage text.
    shares_words : bool
        Whether any content word is in any passage.
    conflict : str or None
        Why the best sentence contradicts the claim.
    invented : tuple of str
        Names, numbers and identifiers that no passage has, or has only beside other words; in a long
        claim without the numbers up to ten, which may count what the passages list.
    """

    features: tuple[float, ...]
    best: PassageSentence | None
    shares_words: bool
    conflict: str | None
    invented: tuple[str, ...]


class MatchingContext:
    """Passages prepared once for matching any number of claims.

    Parameters
    ----------
    passages : sequence of str
        May be empty: nothing matches them.
    question : str
        No evidence; but an answer may repeat its words without being new.
    quoting : bool
        Whether sentences that deny, report, ask or give an example count as what they are about: for
        claims that do so too. By default they are left out, but for `find_conflict`.
    left_out : mapping of (int, int) to str
        Sentences, by passage and start, that assert nothing of a claim either, and why.
    """

    def __init__(
        self,
        passages: Sequence[str],
        question: str = "",
        *,
        quoting: bool = False,
        left_out: Mapping[tuple[int, int], NotAsserted] = MappingProxyType({}),
    ) -> None:
        self._passages, self._question, self._quoting = passages, question, quoting
        self._left_out = left_out
        self._denied: list[PassageSentence] = []
        self.sentences: list[PassageSentence] = []
        self._stems: set[str] = set()
        # Roots in their order, each with its sentence and its places; no root before, between and
        # behind the sentences, so that words of two are never near and no step leaves the row.
        self._row: list[str] = [""] * GAP
        self._of: list[int] = [0] * GAP
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._holding: dict[str, tuple[int, ...]] = {}
        for index, text in enumerate(passages):
            for start, end, kind in sentence_kinds(text):
                piece = text[start:end]
                row = stems(piece)
                why = left_out.get((index, start), kind)
                if why is not None and not quoting:
                    if why == "denied":
                        self._denied.append(PassageSentence(index, start, end, piece, row))
                    continue
                self._stems.update(row)
                roots = list(map(word_root, row))
                for place, root in enumerate(roots, start=len(self._row)):
                    self._places[root].append(place)
                self._row += (*roots, *_SENTENCE_GAP)
                self._of += [len(self.sentences)] * (len(roots) + GAP)
                self.sentences.append(PassageSentence(index, start, end, piece, row))
        self._asked_roots = frozenset(map(word_root, stems(question)))

    @cached_property
    def _numbers(self) -> frozenset[str]:
        texts = (sentence.text for sentence in self.sentences)
        return frozenset(number for text in texts for number in extract_numbers(fold(text)))

    @cached_property
    def _quantities(self) -> QuantityIndex:
        return QuantityIndex(number_words_to_digits(fold(s.text)) for s in self.sentences)

    @cached_property
    def _spellings(self) -> frozenset[str]:
        return frozenset(spelling for s in self.sentences for spelling in _spellings(s.text))

    @cached_property
    def _quotations(self) -> MatchingContext:
        """The same passages for claims that themselves deny, report, ask or give an example."""
        return MatchingContext(self._passages, self._question, quoting=True)

    def match(self, claim: str) -> ClaimMatch:
        """Compare `claim` with the passages; see `ClaimMatch`."""
        plain = strip_polarity(strip_source_mentions(claim))
        if not self._quoting and not_asserted(plain) is not None:
            return self._quotations.match(claim)
        if framed := {} if self._quoting else self._framed(plain):
            return MatchingContext(
                self._passages, self._question, left_out={**self._left_out, **framed}
            ).match(claim)
        folded = self._quantities.in_passage_units(number_words_to_digits(fold(plain)))
        row = tuple(stem for stem in stems(folded) if stem not in SOURCE_STEMS)
        roots = list(map(word_root, row))
        weights = {root: self._weight(root) for root in roots}
        best = self._verbatim_sentence(plain) or self._best(weights)
        claim_numbers = extract_numbers(folded)
        new_numbers = claim_numbers - self._numbers if claim_numbers else claim_numbers
        names = [name for name in _FULL_NAME.findall(plain) if stems(name)]
        new_names = {
            stem
            for name in _NAME.findall(plain)
            if not self._spells(fold(name))
            for stem in stems(name)
            if self._is_new(stem)
        }
        misplaced = self._misplaced_numbers(roots) | self._exchanged_numbers(roots)
        if len(row) > LONG_CLAIM:
            misplaced = {number for number in misplaced if not _is_small_count(number)}
        other_units = self._quantities.other_units(folded)
        new_numbers |= misplaced | other_units
        features = (
            sum(r not in self._places and r not in self._asked_roots for r in roots)
            / (len(row) + SMOOTHING),
            self._uncovered(weights),
            self._reordered(roots),
            float(bool(new_numbers)),
            float(len(new_names)),
        )
        conflict = None
        if best is not None:
            conflict = find_conflict(folded, best.text, _coverage(row, best), new_numbers)
        denial = next((s for s in self._denied if _coverage(row, s) >= SAME_STATEMENT), None)
        if conflict is None and denial is not None and (best is None or _coverage(row, best) < 1):
            best, conflict = denial, "a denial"
        first_word = plain.split(maxsplit=1)[:1]  # which may be a name as well as any word
        if len(row) <= SHORT_CLAIM and first_word and first_word[0][0].isupper():
            new_names.update(filter(self._is_new, stems(first_word[0])))
        identifiers = map(fold, _IDENTIFIER.findall(plain.replace("\\_", "_")))
        new_identifiers = {name for name in identifiers if not self._spells(name)}
        if len(row) > LONG_CLAIM:
            new_numbers = {number for number in new_numbers if not _is_small_count(number)}
            new_numbers |= other_units
        misplaced_names = self._misplaced_names(names, roots)
        invented = tuple(sorted(new_names | misplaced_names | new_numbers | new_identifiers))
        return ClaimMatch(features, best, not self._stems.isdisjoint(row), conflict, invented)

    def _framed(self, claim: str) -> dict[tuple[int, int], NotAsserted]:
        """The sentences that hold most of a claim without asserting it: see `frame_kind`."""
        roots = {word_root(stem) for stem in stems(claim) if stem not in SOURCE_STEMS}
        shared = Counter(index for root in roots for index in self._holders(root))
        framed = {}
        for index, count in shared.items():
            if 2 * count < len(roots):
                continue
            found = self.sentences[index]
            kind = frame_kind(self._passages[found.passage], found.start, found.end, claim)
            if kind is not None:
                framed[found.passage, found.start] = kind
        return framed

    def misquoted_numbers(self, claim: str) -> set[str]:
        """Numbers of a claim that the passages have in another order, or with other units only."""
        folded = self._quantities.in_passage_units(number_words_to_digits(fold(claim)))
        roots = list(map(word_root, stems(folded)))
        return self._exchanged_numbers(roots) | self._quantities.other_units(folded)

    def _verbatim_sentence(self, claim: str) -> PassageSentence | None:
        """The sentence that is the claim word for word, which no shorter one may stand for."""
        folded_claim = fold(claim).rstrip(".")
        return next(
            (
                s
                for s in self.sentences
                if folded_claim and fold(s.text).rstrip(".") == folded_claim
            ),
            None,
        )

    def _is_new(self, stem: str) -> bool:
        """Whether no passage has a name; one with another ending, as of a German noun, has it."""
        return not (
            stem in SOURCE_STEMS
            or stem in self._stems
            or any(stem + ending in self._stems for ending in _NOUN_ENDINGS)
            or any(
                stem.endswith(ending) and stem.removesuffix(ending) in self._stems
                for ending in _NOUN_ENDINGS
            )
        )

    def _misplaced_numbers(self, roots: Sequence[str]) -> set[str]:
        """Numbers of a claim that the passages have, but beside none of its words."""
        misplaced = set()
        for index, root in enumerate(roots):
            if not (_is_number(root) and root in self._places):
                continue
            reach = slice(max(0, index - ROLE_WORDS), index + ROLE_WORDS + 1)
            beside = {other for other in roots[reach] if not _is_number(other)}
            if _YEAR.fullmatch(root):  # a date says when its whole sentence was
                beside = {other for other in roots if not _is_number(other)}
                near = {word for s in self._holders(root) for word in self._roots_of(s)}
            else:
                near = {
                    word
                    for place in self._places[root]
                    for word in self._row[place - GAP : place + GAP + 1]
                }
            near = {word for word in near if word and not _is_number(word)}
            if beside and near and beside.isdisjoint(near):
                misplaced.add(root)
        return misplaced

    def _exchanged_numbers(self, roots: Sequence[str]) -> set[str]:
        """Numbers of a claim that one sentence has in each other's places among the same words."""
        numbers = [root for root in roots if _is_number(root)]
        if len(set(numbers)) < 2 or not all(number in self._places for number in numbers):
            return set()
        for sentence in set.intersection(*(set(self._holders(number)) for number in numbers)):
            row = [root for root in self._roots_of(sentence) if root in roots]
            changed = [pair for pair in zip(roots, row, strict=False) if pair[0] != pair[1]]
            if len(row) == len(roots) and changed and all(map(_is_number, chain(*changed))):
                return {number for number, _ in changed}
        return set()

    def _misplaced_names(self, names: Sequence[str], roots: Sequence[str]) -> set[str]:
        """Names of a claim that the passages have, but near none of its other words.

        A name may be taken up by the two sentences behind it.
        """
        misplaced = set()
        for name in names:
            root = word_root(stems(name)[-1])
            others = set(roots).difference(map(word_root, stems(name)))
            if not others or root not in self._places:
                continue
            near = {
                word
                for holder in self._holders(root)
                for sentence in range(holder, min(holder + 3, len(self.sentences)))
                if self.sentences[sentence].passage == self.sentences[holder].passage
                for word in self._roots_of(sentence)
            }
            if near != {root} and others.isdisjoint(near):
                misplaced.add(name)
        return misplaced

    def _roots_of(self, sentence: int) -> Iterable[str]:
        return map(word_root, self.sentences[sentence].stems)

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

    def _best(self, weights: Mapping[str, float]) -> PassageSentence | None:
        shared = [0.0] * len(self.sentences)
        for root, weight in weights.items():
            for index in self._holders(root):
                shared[index] += weight
        # max keeps the first of equals, so the better ranked passage wins a tie.
        scored = zip(shared, self.sentences, strict=True)
        return max(scored, key=itemgetter(0), default=(0.0, None))[1]

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

    def _near(self, first: str, other: str) -> bool:
        places, other_places = self._places.get(first, ()), self._places.get(other, ())
        if first == other:
            return bool(places)
        if len(places) > len(other_places):
            places, other = other_places, first
        return any(self._row[place + step] == other for place in places for step in _STEPS)


def _coverage(row: Sequence[str], sentence: PassageSentence) -> float:
    """Share of a claim's content words, numbers aside, that the sentence holds."""
    words = {stem for stem in row if not stem[0].isdigit()}
    return len(words.intersection(sentence.stems)) / len(words) if words else 0.0


def _is_number(root: str) -> bool:
    return root[:1].isdigit()


def _is_small_count(number: str) -> bool:
    digits = number.rstrip("stndrh")  # "1st"
    return digits.isdecimal() and int(digits) <= MAX_COUNT


def _spellings(text: str) -> set[str]:
    """The words of `text` with their underscores, whole and between their points."""
    words = {word.strip(".") for word in _SPELLING.findall(fold(text.replace("\\_", "_")))}
    return words.union(*(word.split(".") for word in words if "." in word))
