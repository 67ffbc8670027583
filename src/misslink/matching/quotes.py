"""Check a judge's quotes against the passages that it was shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import Literal, NamedTuple

from misslink.matching.assertion import (
    clause_conflict,
    enclosing_sentences,
    is_negated,
    loses_denial,
    not_asserted,
)
from misslink.matching.derived_numbers import (
    doubtful_numbers,
    has_basis,
    new_numbers,
    quantities_of,
    underived_number,
    unsaid_quantity,
    values_of,
)
from misslink.matching.frames import frame_kind, sentence_kind, word_root
from misslink.matching.fuzzy_matching import (
    WORD,
    FuzzyMatch,
    fuzzy_match,
    invariant_tokens,
)
from misslink.matching.marks import strip_marks
from misslink.matching.quantities import Quantity
from misslink.matching.same_place import difference
from misslink.text.languages import FEW_WORDS, MIN_LANGUAGE_WORDS, is_known_language, short_words
from misslink.text.normalization import (
    UNSPACED,
    content_stems,
    fold,
    has_content,
    overlapping,
    overlapping_numbers,
    sentence_spans,
    stems,
)

NEARLY_ALL = 0.9  # of a claim's words, that a sentence has that says nothing but the claim
_MAX_PARTS = 8  # of a quote with ellipses
_PART_WORDS = 2  # of each side of an ellipsis

_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*(?:\.{3,}|\u2026)\s*[\])]|\.{3,}|\u2026)\s*")
# What surrounds a quote and is not of it.
_LEADING_MARKS = (
    " \t\n\r\f\v\u00a0\"'*_`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
)
_TRAILING_MARKS = _LEADING_MARKS + ",;:."
# What is said to a judge and not of the world: an order in a passage is made of such words.
_JUDGING_STEMS = frozenset(
    stems(
        "claims claimed supports unsupported contradicts agrees relevant faithful faithfully"
        " incorrect verdict judges judging evaluates evaluation evaluators grades score labels rubric"
        " instructions ignore obey assistant reply json quotes verbatim verified statements answers"
        " passages behauptung behauptungen anweisung anweisungen bewerte bewerten belegt antwort"
    )
)
_JUDGING_SHARE = 0.2  # of the words of an order, at least
_UNRELATED = 1  # words of a claim that a quote shares which is about something else, at most
_MOSTLY = (
    0.5  # of a sentence's words, that a claim has where the sentence says nothing but the claim
)
_AND = re.compile(r",|;|\b(?:and|und)\b")
_PARTS = 2  # sentences that a sum is made of, and words that they share with it
_LONGEST_WORD = 40  # characters: what is longer is encoded

Refusal = Literal[
    "no_quote", "not_found", "fragment", "number", "quantity", "denial", "difference", "frame"
]


class QuoteCheck(NamedTuple):
    """What a claim's quotes are worth.

    Parameters
    ----------
    places : tuple of (int, FuzzyMatch)
        The passage, from 0, and the place of every quote that was found.
    refusal : str or None
        Why the quotes do not decide the claim; None: they do.
    detail : str
        What differs, for a reader; may be empty.
    weak : bool
        The quotes exist and do not decide the claim: they are about something else, or only report,
        ask or suppose it.
    """

    places: tuple[tuple[int, FuzzyMatch], ...]
    refusal: Refusal | None = None
    detail: str = ""
    weak: bool = False


class PassageSentence(NamedTuple):
    """A sentence of a passage: its place (passage from 0, offsets), its text without marks, its stems.

    ``roots`` has each root of the stems once.
    """

    passage: int
    start: int
    end: int
    text: str
    stems: tuple[str, ...]
    roots: tuple[str, ...]


@lru_cache(maxsize=4_096)  # passages, of which a run retrieves many again
def _read_sentences(text: str) -> tuple[PassageSentence, ...]:
    plain, sentences = strip_marks(text), list[PassageSentence]()
    for start, end in sentence_spans(plain.text):
        row = stems(piece := plain.text[start:end])
        roots = tuple(dict.fromkeys(map(word_root, row)))
        sentences.append(PassageSentence(0, *plain.original(start, end), piece, row, roots))
    return tuple(sentences)


class QuotedPassages:
    """Passages, each read once for whatever is compared with it: quotes, numbers, sentences.

    Parameters
    ----------
    texts : sequence of str
        May be empty.
    question : str
        No evidence; but its numbers are known to everybody.
    """

    def __init__(self, texts: Sequence[str], question: str = "") -> None:
        self.texts, self.question = texts, question

    @cached_property
    def sentences(self) -> list[PassageSentence]:
        """Every sentence."""
        return [
            PassageSentence(index, *sentence[1:])
            for index, text in enumerate(self.texts)
            for sentence in _read_sentences(text)
        ]

    @cached_property
    def numbers(self) -> frozenset[float]:
        """The values of all numbers that were shown or asked."""
        return values_of((*self.texts, self.question))

    def new_numbers(self, claim: str) -> list[str]:
        """Return the numbers of a claim, above 10 or with decimals, that were neither shown nor asked."""
        return new_numbers(claim, self.numbers)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """All quantities that were shown or asked."""
        return quantities_of((*self.texts, self.question))

    @cached_property
    def is_known(self) -> bool:
        """Whether the passages are in English or German."""
        return is_known_language(*self.texts)

    def asserts(self, passage: int, start: int, end: int) -> bool:
        """Whether any of the sentences at a place asserts something."""
        text = self.texts[passage]
        kinds = [
            sentence_kind(text, n) for n in overlapping_numbers(sentence_spans(text), start, end)
        ]
        return not kinds or None in kinds

    def check(self, claim: str, quotes: Sequence[str], *, supports: bool = True) -> QuoteCheck:
        """Look the quotes of a claim up, and tell whether they may decide it.

        Refused is a quote that is in no text; one word of a longer sentence; and for a claim that it
        is to support, a number without a basis (`underived_number`), a denial of it, a sentence
        that says the same but for a number, unit, date, opposite or name (also where the quotes are about
        something else, and another sentence says so), and one that only reports, asks or retracts it.
        """
        claim = strip_marks(claim).text
        quotes = [quote for quote in quotes if has_content(quote)]
        if not quotes:
            return QuoteCheck((), "no_quote")
        found = [self._find(quote, claim) for quote in quotes]
        places = tuple(dict.fromkeys(chain.from_iterable(found)))
        if not places:
            return QuoteCheck((), "not_found")
        found = [[place for place in of_one if not self._is_fragment(*place)] for of_one in found]
        whole = tuple(dict.fromkeys(chain.from_iterable(found)))
        if not whole:
            return QuoteCheck(places, "fragment")
        return self.decide(claim, found) if supports else QuoteCheck(whole)

    def decide(self, claim: str, found: Sequence[Sequence[tuple[int, FuzzyMatch]]]) -> QuoteCheck:
        """Tell whether quotes support a claim, each by the places where it was found."""
        whole = tuple(dict.fromkeys(chain.from_iterable(found)))
        # What stands around a quote helps to derive, too: "In 1990" is before most figures.
        quoted = list(map(self._sentences, whole))
        said = bare(claim)
        if len(found) == 1 and any(
            said == bare(sentence) and not self._is_framed(place, claim)
            for place, sentence in zip(whole, quoted, strict=True)
        ):
            return QuoteCheck(whole)
        if all(self._is_order(place, claim) for place in whole):
            return QuoteCheck(whole, "frame")
        rival = self._rival(claim, " ".join(quoted))
        if rival is not None:
            return QuoteCheck(whole, *rival)
        doubtful = doubtful_numbers(claim)
        reads_numbers = (doubtful or quantities_of([claim])) and self._reads_numbers(claim)
        if reads_numbers and doubtful:
            quoted += self._alike(claim, quoted)
        troubles = {place: self._trouble(place, claim, quoted) for place in whole}
        for of_quote in found:  # each quote must agree, at one of the places that have its words
            rows = [troubles[place] for place in of_quote]
            if rows and None not in rows:
                return QuoteCheck(whole, *(rows[0] or ()))
        if reads_numbers:
            if amount := unsaid_quantity(claim, lambda: self.quantities):
                return QuoteCheck(whole, "quantity", amount)
            if doubtful and (number := underived_number(claim, quoted, self.numbers)):
                return QuoteCheck(whole, "number", number)
        return QuoteCheck(whole, weak=all(self._is_weak(place, claim) for place in whole))

    def _reads_numbers(self, claim: str) -> bool:
        """Whether numbers in words can be read: only those of English and German are known."""
        return self.is_known and (is_known_language(claim) or len(short_words(claim)) < FEW_WORDS)

    def _find(self, quote: str, claim: str) -> list[tuple[int, FuzzyMatch]]:
        """Every text that has a quote word for word; where none does, every one that nearly does."""
        bare = strip_marks(quote).text
        wanted = {fold(quote), fold(bare)} - {""}
        texts = enumerate(map(fold, self.texts))
        exact = [n for n, text in texts if any(map(text.__contains__, wanted))]
        claim_and_question = f"{claim} {self.question}"
        places = []
        for number in exact or range(len(self.texts)):
            match = find_quote(quote, self.texts[number], claim_and_question)
            if match is None and has_content(bare):
                stripped = strip_marks(self.texts[number])
                match = find_quote(bare, stripped.text, claim_and_question)
                match = match and FuzzyMatch(
                    *stripped.original(match.start, match.end), match.edits
                )
            if match is not None:
                places.append((number, match))
        return places

    def _sentences(self, place: tuple[int, FuzzyMatch]) -> str:
        text = self.texts[place[0]]
        left, right = enclosing_sentences(text, place[1].start, place[1].end)
        return text[left:right]

    def _is_fragment(self, number: int, match: FuzzyMatch) -> bool:
        """Whether a quote is one word out of a longer sentence."""
        text = self.texts[number]
        words = text[match.start : match.end]
        if len(WORD.findall(words)) >= _PART_WORDS or UNSPACED.search(words):
            return False
        left, right = enclosing_sentences(text, match.start, match.end)
        return len(WORD.findall(text[left:right])) >= _PART_WORDS

    def _is_order(self, place: tuple[int, FuzzyMatch], claim: str) -> bool:
        """Whether a quote speaks to a judge, or in another language than its text, and not of the claim."""
        number, match = place
        words = self.texts[number][match.start : match.end]
        own, said = frozenset(stems(claim)), frozenset(stems(words))
        if not own.isdisjoint(_JUDGING_STEMS):
            return False
        if len(said & _JUDGING_STEMS) > max(len(own & said), _JUDGING_SHARE * len(said)):
            return True
        is_told = len(short_words(words)) >= MIN_LANGUAGE_WORDS or any(
            len(word) > _LONGEST_WORD for word in words.split()
        )
        return (
            is_told
            and own.isdisjoint(said)
            and is_known_language(claim)
            and not is_known_language(words)
            and is_known_language(self.texts[number].replace(words, " "))
        )

    def _trouble(
        self, place: tuple[int, FuzzyMatch], claim: str, basis: Sequence[str]
    ) -> tuple[Refusal, str] | None:
        """Why the sentences around a quote do not say the claim."""
        number, match = place
        text = self.texts[number]
        spans = overlapping(sentence_spans(text), match.start, match.end)
        sentences = [strip_marks(text[start:end]).text for start, end in spans]
        if bare(claim) in map(bare, sentences):
            return ("frame", "") if self._is_framed(place, claim) else None
        if not is_negated(claim) and loses_denial(text, match.start, match.end):
            return "denial", ""
        topic = content_stems(claim)
        nearest = max(sentences, key=lambda s: len(topic & content_stems(s)), default="")
        if len(sentence_spans(claim)) > 1:  # no one statement, to compare with another
            return None
        if clause_conflict(claim, sentences):
            return "denial", ""
        other = difference(claim, nearest)
        if other is not None and not (
            has_basis(other, claim, sentences, basis)
            or self._is_said_elsewhere(other[0], topic, nearest)
        ):
            return "difference", " / ".join(other)
        words = content_stems(nearest)
        is_held = topic and len(topic & words) >= NEARLY_ALL * len(topic)
        if is_held and not_asserted(claim) is None:
            if not_asserted(nearest) == "denied":
                return "denial", ""
            start, end = spans[sentences.index(nearest)]
            is_all = len(topic) >= _MOSTLY * len(words)
            if (is_all and self._is_framed(place, claim)) or frame_kind(text, start, end, claim):
                return "frame", ""
        return None

    def _statements(self, topic: frozenset[str], held: int) -> list[tuple[int, str]]:
        """The sentences that assert something and share at least `held` words with a topic, with how many."""
        return [
            (shared, each.text)
            for each in self.sentences
            if (shared := len(topic.intersection(each.stems))) >= held
            and self.asserts(each.passage, each.start, each.end)
        ]

    def _alike(self, claim: str, quoted: Sequence[str]) -> list[str]:
        """The sentences that hold as much of a claim as its quotes: a judge may quote one of two parts."""
        topic = content_stems(claim)
        held = max(len(topic & content_stems(sentence)) for sentence in quoted)
        rows = self._statements(topic, max(held, _PARTS))
        return [row for _, row in rows] if len(rows) <= _PARTS else []

    def _rival(self, claim: str, quoted: str) -> tuple[Refusal, str] | None:
        """What the sentence nearest to a claim says instead, if the quotes are about something else.

        An order to a judge, or any sentence that shares nothing with a claim, does not outweigh it.
        """
        topic = content_stems(claim)
        held = len(topic & content_stems(quoted))
        if held > _UNRELATED:
            return None
        _, nearest = max(
            self._statements(topic, held + 1), key=lambda row: row[0], default=(0, None)
        )
        if nearest is None:
            return None
        if clause_conflict(claim, [nearest]):
            return "denial", ""
        differences = (difference(claim, piece) for piece in (nearest, *_AND.split(nearest)))
        other = next(filter(None, differences), None)
        if other is None or has_basis(other, claim, [nearest], ()):
            return None
        if other[0] in fold(quoted) and not is_known_language(quoted):
            return None  # in another language it may share no more than the number
        return "difference", " / ".join(other)

    def _is_framed(self, place: tuple[int, FuzzyMatch], claim: str) -> bool:
        """Whether the sentences around a quote assert nothing, and the claim does."""
        number, match = place
        return not self.asserts(number, match.start, match.end) and not_asserted(claim) is None

    def _is_said_elsewhere(self, word: str, topic: frozenset[str], sentence: str) -> bool:
        """Whether another sentence that was shown has a word of a claim, and as many of the others."""
        topic = topic - content_stems(word)
        held = len(topic & content_stems(sentence))
        pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        if pattern.search(fold(sentence)):  # in another place of it
            return False
        if not any(map(str.isdigit, word)) and len(self.texts) > 1:
            held = 0  # a name, or an opposite, may be of a fact that is told elsewhere
        return any(
            held <= len(topic & content_stems(text[start:end]))
            for text in self.texts
            if pattern.search(fold(text))
            for start, end in sentence_spans(text)
            if pattern.search(fold(text[start:end]))
        )

    def _is_weak(self, place: tuple[int, FuzzyMatch], claim: str) -> bool:
        if self._is_framed(place, claim):
            return True
        topic = content_stems(claim) | content_stems(self.question)
        return topic.isdisjoint(content_stems(self._sentences(place)))


def bare(text: str) -> str:
    """Return a text folded, without the points around it."""
    return fold(text).strip(" .!")


def says_verbatim(text: str, claim: str) -> bool:
    """Whether a text asserts each sentence of a claim word for word."""
    folded = fold(text)
    said = {bare(claim[start:end]) for start, end in sentence_spans(claim)}
    if not said or not all(map(folded.__contains__, said)):
        return False
    places = _bare_sentences(text)
    return said <= places.keys() and all(sentence_kind(text, places[one]) is None for one in said)


@lru_cache(maxsize=4_096)  # passages, of which a run retrieves many again
def _bare_sentences(text: str) -> dict[str, int]:
    """By what it says, the number of each sentence."""
    return {bare(text[start:end]): n for n, (start, end) in enumerate(sentence_spans(text))}


def verify_quote(
    quote: str, text: str, claim: str, question: str = "", *, supports: bool = True
) -> FuzzyMatch | None:
    """Return the place of a quote in a text if it may decide a claim, else None."""
    check = QuotedPassages((text,), question).check(claim, (quote,), supports=supports)
    return check.places[0][1] if check.places and check.refusal is None else None


@lru_cache(maxsize=256)
def find_quote(quote: str, text: str, claim: str = "") -> FuzzyMatch | None:
    """Return the position of `quote` in `text`, allowing typos and ellipses."""
    if not has_content(quote):
        return None
    bare = _strip_marks(quote)
    return fuzzy_match(bare, text, claim) or _find_with_ellipsis(bare, text, claim)


def _strip_marks(quote: str) -> str:
    return quote.lstrip(_LEADING_MARKS).rstrip(_TRAILING_MARKS)


def _find_with_ellipsis(quote: str, text: str, claim: str) -> FuzzyMatch | None:
    parts = [part for part in _ELLIPSIS.split(quote) if part.strip()]
    if len(parts) < 2:
        # One that opens or closes a quote leaves nothing out of it.
        whole = bool(parts) and parts[0] != quote
        return fuzzy_match(_strip_marks(parts[0]), text, claim) if whole else None
    if len(parts) > _MAX_PARTS or any(
        len(WORD.findall(part)) < _PART_WORDS or not has_content(part) for part in parts
    ):
        return None
    for start, end in sentence_spans(text):
        match = _find_in_order(parts, text[start:end], claim)
        if match is not None:
            return FuzzyMatch(start + match.start, start + match.end, match.edits)
    return None


def _find_in_order(parts: Sequence[str], sentence: str, claim: str) -> FuzzyMatch | None:
    places: list[FuzzyMatch] = []
    for part in parts:
        since = places[-1].end if places else 0
        match = fuzzy_match(_strip_marks(part), sentence[since:], claim)
        if match is None:
            return None
        place = FuzzyMatch(since + match.start, since + match.end, match.edits)
        left_out = fold(sentence[since : place.start]) if places else ""
        if any(map(len, invariant_tokens(left_out))):
            return None
        places.append(place)
    return FuzzyMatch(places[0].start, places[-1].end, sum(place.edits for place in places))
