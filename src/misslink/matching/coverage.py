"""Compare the claims of a judge with the answer: which the answer makes, and which sentences have none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from misslink.matching.abstention import claim_spans, content_stems, strip_source_mentions
from misslink.matching.assertion import is_negated, loses_denial
from misslink.matching.fuzzy_matching import FuzzyMatch, fuzzy_match
from misslink.matching.quantities import QuantityIndex
from misslink.matching.quotes import is_other_language
from misslink.text.normalization import (
    Spans,
    content_words,
    extract_numbers,
    fold,
    has_content,
    number_words_to_digits,
    overlapping,
    sentence_spans,
)

MAX_UNCOVERED = 1 / 3  # share of the factual sentences that may have no claim
_MIN_SHARED = 0.6  # share of a reworded claim's words that the answer or the question must have
_SENTENCE_WORDS = 3  # content words that a sentence has, at least, to need a claim
_ROOT_LETTERS = 5
_REPEAT_MARGIN = 64  # characters behind a repeated span, which tell whether it ends with a word
_MAX_CLAIMS = 2_000  # more are no examination of an answer
_LISTED, _EXCERPT = 3, 80  # sentences that a reason lists, and characters of each

_CITATION = re.compile(r"\[\^?[\d\s,;\u2013-]+\]")
_ONE = re.compile(r"(?<![\w-])one(?![\w-])")  # a pronoun more often than a number
_HEDGE = re.compile(
    r"\b(?:may|might|could|possibly|perhaps|maybe|probably|likely|seems?|appears?|it depends"
    r"|i (?:think|believe|guess|suppose)|in my opinion|generally speaking|overall|in (?:summary|short"
    r"|conclusion)|to (?:summarize|sum up)|moglicherweise|vielleicht|wahrscheinlich|vermutlich|eventuell"
    r"|scheint|durfte|konnte|ich (?:glaube|denke|vermute)|insgesamt|zusammenfassend|kurz gesagt)\b"
)
_ABOUT_TEXTS = re.compile(
    r"^(?:\w+,? )?(?:(?:the|these|this|all|both|die|der|das|diese[rs]?) )?"
    r"(?:(?:given|provided|above|retrieved|other|first|second|third|gegebenen?|obigen?|anderen) )*"
    r"(?:passages?|contexts?|documents?|sources?|excerpts?|snippets?|answer|response|summary|list"
    r"|textstellen?|passagen?|dokumente?|quellen?|kontext|antwort|text|texte|auszuge?)(?: \d+)?"
    r"(?:,? (?:and|und) (?:passage |textstelle )?\d+)*"
    r" (?:\w+ly |also |only |auch |nur )?(?:discuss|describe|cover|focus|provide|contain|talk|deal|give"
    r"|offer|address|include|is|are|was|does|do|has|have|summari[sz]e|list|explain|enthalt|enthalten"
    r"|beschreib|behandel|geht|gehen|biet|liefer|ist|sind|gibt|geben|nenn|erklar)"
    r"|^(?:here|below|above|hier|unten|oben) (?:is|are|you|ist|sind|finden|folgt)\b"
    r"|^(?:as (?:mentioned|described|stated|noted) (?:above|below|earlier)|wie (?:oben|unten) \w+)\b[^,]*$"
    r"|\b(?:let me know|feel free|i hope|ich hoffe|gern(?:e)? geschehen|vielen dank|bei (?:weiteren )?fragen"
    r"|melden sie sich|lassen sie (?:es )?mich wissen)\b"
)


class ClaimCoverage(NamedTuple):
    """The claims of a reply compared with the answer.

    Parameters
    ----------
    places : tuple
        The place in the answer of every claim that the answer makes, by the claim's index; None: the
        judge worded it otherwise.
    refused : int
        How many claims are empty, repeated, fragments, or not made by the answer.
    sentences : int
        How many factual sentences the answer has.
    uncovered : tuple of str
        Those of them without a claim.
    """

    places: dict[int, FuzzyMatch | None]
    refused: int
    sentences: int
    uncovered: tuple[str, ...]

    @property
    def problem(self) -> str | None:
        """Why the reply gives no verdict on the answer; None: its claims cover the answer."""
        if len(self.uncovered) <= MAX_UNCOVERED * self.sentences:
            return None
        return self.note

    @property
    def note(self) -> str | None:
        """What a reader must know of the claims; None: they are the answer's, and all of it."""
        notes = []
        if self.uncovered:
            listed = "; ".join(f'"{text[:_EXCERPT]}"' for text in self.uncovered[:_LISTED])
            more = ", ..." if len(self.uncovered) > _LISTED else ""
            notes.append(
                f"{len(self.uncovered)} of {self.sentences} factual sentences of the answer have no"
                f" claim: {listed}{more}"
            )
        if self.refused:
            notes.append(f"{self.refused} claims of the judge are not claims of the answer")
        return "; ".join(notes) or None


@lru_cache(maxsize=256)
def cover_answer(
    spans: tuple[str, ...], answer: str, question: str = "", claims: tuple[str, ...] = ()
) -> ClaimCoverage:
    """Compare the claims of a judge, by default its `spans` themselves, with the answer.

    A span must be in the answer, word for word or nearly so, as a whole clause or at least two
    content words that leave out no denial. A claim that drops words of its span, and one without such
    a span, must share most words with the answer or the question. No claim may have a number that
    neither has, or deny what the answer does not. Repetitions count as often as the answer has the
    words.
    """
    sentences = factual_spans(answer)
    numbers = {span: number for number, span in enumerate(sentences)}
    claims = claims or spans
    if any(map(str.isdigit, answer)):  # "90 minutes" is what the answer calls 1.5 hours
        quantities = QuantityIndex([number_words_to_digits(fold(answer))])
        claims = tuple(map(quantities.in_passage_units, map(fold, claims[:_MAX_CLAIMS])))
    other_language = is_other_language(" ".join(claims[:_MAX_CLAIMS]), (answer,))
    places: dict[int, FuzzyMatch | None] = {}
    claimed: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)  # of each sentence
    searched_to: dict[tuple[str, str], int | None] = {}
    for index, (span, claim) in enumerate(zip(spans[:_MAX_CLAIMS], claims, strict=False)):
        key = fold(span), fold(claim)
        since = searched_to.get(key, 0)
        if since is None or not has_content(claim):
            continue
        rest = answer[since:]
        if since and (verbatim := rest.find(span)) >= 0:  # a repetition: it begins there or before
            rest = rest[: verbatim + len(span) + _REPEAT_MARGIN]
        match = fuzzy_match(span, rest)
        place = match and FuzzyMatch(since + match.start, since + match.end, match.edits)
        repeated, searched_to[key] = since > 0, place.end if place else None
        is_copy = place is not None and (
            key[0] == key[1] or _expands(claim, span, answer, question)
        )
        if not (is_copy or other_language or _rewords(claim, answer, question)):
            continue
        if place is not None:
            if not _is_statement(answer, place):
                continue
            of = [numbers[span] for span in overlapping(sentences, place.start, place.end)]
        elif repeated:
            continue
        else:
            roots = _roots(claim)
            own = _sentence_roots(answer, sentences)
            of = [n for n, of_one in enumerate(own) if _shares_most(roots, of_one)]
        for n in of:
            claimed[n].append((span, claim))
        places[index] = place
    uncovered = [
        (start, end)
        for n, (start, end) in enumerate(sentences)
        if not _is_covered(answer[start:end], claimed[n])
    ]
    return ClaimCoverage(
        places,
        refused=len(spans) - len(places),
        sentences=len(sentences),
        uncovered=()
        if other_language and places
        else tuple(answer[start:end] for start, end in uncovered),
    )


def factual_spans(answer: str) -> Spans:
    """Return the offsets of the sentences of `answer` that state a fact about the world.

    Hedges, courtesies, questions, headings, and sentences about the passages or about the answer
    itself are left out, and so are sentences of fewer than three content words.
    """
    return tuple(
        (start, end)
        for start, end in claim_spans(answer)
        if len(content_words(answer[start:end])) >= _SENTENCE_WORDS
        and not _HEDGE.search(folded := fold(answer[start:end]))
        and not _ABOUT_TEXTS.search(folded)
    )


def _is_covered(sentence: str, claims: Sequence[tuple[str, str]]) -> bool:
    """Whether the claims of a sentence, with their spans, have all of its numbers and half its words."""
    folded = fold(sentence)
    if any(fold(claim) == folded for _, claim in claims) or not claims:
        return bool(claims)
    roots = _roots(strip_source_mentions(sentence))
    stated = roots & _roots(" ".join(chain.from_iterable(claims)))
    if len(stated) < len(roots) / 2:
        return False
    numbers = _plain_numbers(sentence)
    return not numbers or numbers <= _plain_numbers(" ".join(claim for _, claim in claims))


def _plain_numbers(text: str) -> set[str]:
    """The numbers of a text as digits, without list markers and citations."""
    plain = _CITATION.sub("", strip_source_mentions(text))
    digits = (re.sub(r"\D", "", number) for number in _numbers(plain))
    return {number.lstrip("0") for number in digits} - {""}


def _numbers(text: str) -> set[str]:
    return extract_numbers(_ONE.sub(" ", fold(text)))


def _is_statement(answer: str, place: FuzzyMatch) -> bool:
    """Whether a part of the answer may be a claim: no single word of a clause, no lost denial."""
    words = answer[place.start : place.end]
    if loses_denial(answer, place.start, place.end):
        return False
    if len(content_words(words)) > 1:
        return True
    before, after = answer[: place.start].rstrip(), answer[place.end :].lstrip()
    return not (before[-1:].isalnum() or (after[:1].isalnum() and not words.endswith((".", "!"))))


def _expands(claim: str, span: str, answer: str, question: str) -> bool:
    """Whether a claim keeps what its span says, and at most names what a pronoun stands for."""
    numbers = _numbers(claim) - _numbers(f"{answer} {question}")
    same = is_negated(claim) == is_negated(span)
    return same and not numbers and _roots(span) <= _roots(claim)


def _rewords(claim: str, answer: str, question: str) -> bool:
    """Whether the answer makes a claim that is worded otherwise."""
    if len(claim) > 200 + 2 * len(answer + question):  # the same words again and again
        return False
    roots, there = _roots(claim), _roots(answer)
    if not roots or roots.isdisjoint(there):
        return False
    if len(roots & (there | _roots(question))) < _MIN_SHARED * len(roots):
        return False
    spans = sentence_spans(answer)
    pairs = zip(spans, _sentence_roots(answer, spans), strict=True)
    near = [answer[start:end] for (start, end), own in pairs if _shares_most(roots, own)]
    near = near or [answer]
    if _numbers(claim).difference(*map(_numbers, (*near, question))):
        return False
    return not is_negated(claim) or is_negated(answer)


def _shares_most(claim: frozenset[str], sentence: frozenset[str]) -> bool:
    return len(claim & sentence) >= max(1.0, min(len(claim), len(sentence)) / 2)


@lru_cache(maxsize=64)
def _sentence_roots(answer: str, spans: Spans) -> tuple[frozenset[str], ...]:
    return tuple(_roots(answer[start:end]) for start, end in spans)


@lru_cache(maxsize=4_096)
def _roots(text: str) -> frozenset[str]:
    return frozenset(
        stem[:_ROOT_LETTERS] if stem.isalpha() else stem for stem in content_stems(text)
    )
