"""Compare the claims of a judge with the answer: which the answer makes, and which sentences have none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

from misslink.matching.abstention import claim_spans
from misslink.matching.assertion import is_negated, loses_denial
from misslink.matching.derived_numbers import unsaid_numbers
from misslink.matching.frames import word_root
from misslink.matching.fuzzy_matching import FuzzyMatch, fuzzy_match
from misslink.matching.marks import strip_marks
from misslink.text.languages import is_other_language, strip_polarity
from misslink.text.normalization import (
    Spans,
    content_stems,
    content_words,
    fold,
    has_content,
    overlapping,
    sentence_spans,
)

_MIN_SHARED = 0.6  # share of a reworded claim's words that the answer or the question must have
_SENTENCE_WORDS = 2  # content words that a sentence without a number has, at least, to need a claim
_REPEAT_MARGIN = 64  # characters behind a repeated span, which tell whether it ends with a word
_MAX_CLAIMS = 2_000  # more are no examination of an answer
_LISTED, _EXCERPT = 3, 80  # sentences that a reason lists, and characters of each

_HEDGE = re.compile(
    r"\b(?:may|might|could|possibly|perhaps|maybe|probably|likely|seems?|appears?|reportedly|allegedly"
    r"|moglicherweise|vielleicht|wahrscheinlich|vermutlich|eventuell|angeblich|scheint|durfte|konnte)\b"
)
_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w'\u2019-]+")
_ABOUT_TEXTS = re.compile(  # from the beginning
    r"(?:\w+,? )?(?:(?:the|these|this|all|both|die|der|das|diese[rs]?) )?"
    r"(?:(?:given|provided|above|retrieved|other|first|second|third|gegebenen?|obigen?|anderen) )*"
    r"(?:passages?|contexts?|documents?|sources?|excerpts?|snippets?|answer|response|summary|list"
    r"|textstellen?|passagen?|dokumente?|quellen?|kontext|antwort|text|texte|auszuge?)(?: \d+)?"
    r"(?:,? (?:and|und) (?:passage |textstelle )?\d+)*"
    r" (?:\w+ly |also |only |auch |nur )?(?:discuss|describe|cover|focus|provide|contain|talk|deal|give"
    r"|offer|address|include|is|are|was|does|do|has|have|summari[sz]e|list|explain|enthalt|enthalten"
    r"|beschreib|behandel|geht|gehen|biet|liefer|ist|sind|gibt|geben|nenn|erklar)"
    r"|(?:here|below|above|hier|unten|oben) (?:is|are|you|ist|sind|finden|folgt)\b"
    r"|(?:as (?:mentioned|described|stated|noted) (?:above|below|earlier)|wie (?:oben|unten) \w+)\b[^,]*$"
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
        How many sentences with content the answer has.
    uncovered : tuple of str
        Those of them without a claim, without their marks.
    """

    places: dict[int, FuzzyMatch | None]
    refused: int
    sentences: int
    uncovered: tuple[str, ...]

    @property
    def note(self) -> str | None:
        """What a reader must know of the claims; None: they are the answer's, and all of it."""
        notes = []
        if self.uncovered:
            listed = "; ".join(f'"{text[:_EXCERPT]}"' for text in self.uncovered[:_LISTED])
            more = ", ..." if len(self.uncovered) > _LISTED else ""
            notes.append(
                f"{len(self.uncovered)} of {self.sentences} sentences of the answer have no"
                f" claim: {listed}{more}"
            )
        if self.refused:
            notes.append(f"{self.refused} claims of the judge are not claims of the answer")
        return "; ".join(notes) or None


def cover_answer(
    spans: tuple[str, ...], answer: str, question: str = "", claims: tuple[str, ...] = ()
) -> ClaimCoverage:
    """Compare the claims of a judge, by default its `spans` themselves, with the answer.

    Marks are no content (`strip_marks`). A span must be in the answer, word for word or nearly so, as a
    whole clause or at least two content words that leave out no denial. A claim that drops words of its
    span, and one without such a span, must share most words with the answer or the question. No claim
    may have a number that neither has, or deny what the answer does not. Repetitions count as often as
    the answer has the words, and a sentence that repeats a covered one needs no claim of its own.
    """
    plain = strip_marks(answer)
    text = plain.text
    sentences = content_spans(text)
    numbers = {span: number for number, span in enumerate(sentences)}
    spans = tuple(strip_marks(span).text for span in spans[:_MAX_CLAIMS])
    claims = tuple(strip_marks(claim).text for claim in claims[:_MAX_CLAIMS]) or spans
    in_other_language = cache(lambda: is_other_language(" ".join(claims), (text,)))
    places: dict[int, FuzzyMatch | None] = {}
    claimed: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)  # of each sentence
    searched_to: dict[tuple[str, str], int | None] = {}
    for index, (span, claim) in enumerate(zip(spans, claims, strict=True)):
        key = fold(span), fold(claim)
        since = searched_to.get(key, 0)
        if since is None or not has_content(claim):
            continue
        rest = text[since:]
        if since and (verbatim := rest.find(span)) >= 0:  # a repetition: it begins there or before
            rest = rest[: verbatim + len(span) + _REPEAT_MARGIN]
        match = fuzzy_match(span, rest)
        place = match and FuzzyMatch(since + match.start, since + match.end, match.edits)
        repeated, searched_to[key] = since > 0, place.end if place else None
        is_copy = place is not None and (key[0] == key[1] or _expands(claim, span, text, question))
        if not (is_copy or in_other_language() or _rewords(claim, text, question)):
            continue
        if place is not None:
            if not _is_statement(text, place):
                continue
            of = [numbers[span] for span in overlapping(sentences, place.start, place.end)]
        elif repeated:
            continue
        else:
            roots = _roots(claim)
            own = _sentence_roots(text, sentences)
            of = [n for n, of_one in enumerate(own) if _shares_most(roots, of_one)]
        if claim == span or not _HEDGE.search(fold(claim)) or _HEDGE.search(fold(span)):
            for n in of:
                claimed[n].append((span, claim))
        places[index] = place and FuzzyMatch(*plain.original(place.start, place.end), place.edits)
    pieces = [text[start:end] for start, end in sentences]
    missing = {n for n, piece in enumerate(pieces) if not _is_covered(piece, claimed[n])}
    if missing and places and in_other_language():
        missing = set()
    said = [piece for n, piece in enumerate(pieces) if n not in missing]
    return ClaimCoverage(
        places,
        refused=len(spans) - len(places),
        sentences=len(sentences),
        uncovered=tuple(
            pieces[n] for n in sorted(missing) if not any(_repeats(pieces[n], s) for s in said)
        ),
    )


def content_spans(answer: str) -> Spans:
    """Return the offsets of the sentences of `answer` that need a claim.

    Left out are courtesies, questions, lead-ins, and sentences about the passages or about the answer
    itself, and what has neither a number nor two content words.
    """
    return tuple(
        (start, end)
        for start, end in claim_spans(answer)
        if not _ABOUT_TEXTS.match(folded := fold(answer[start:end]))
        and (len(content_words(folded)) >= _SENTENCE_WORDS or any(map(str.isdigit, folded)))
    )


def _is_covered(sentence: str, claims: Sequence[tuple[str, str]]) -> bool:
    """Whether the claims of a sentence have half of its words, with all numbers, names and denials."""
    if not claims or any(claim == sentence for _, claim in claims):
        return bool(claims)
    sentence = strip_polarity(sentence)
    folded = fold(sentence)
    if any(fold(claim) == folded for _, claim in claims):
        return True
    roots = _roots(sentence)
    stated = roots & _roots(" ".join(chain.from_iterable(claims)))
    if len(stated) < len(roots) / 2:
        return False
    said = " ".join(claim for _, claim in claims)
    if unsaid_numbers(sentence, [said]):
        return False
    names = {fold(name) for name in _NAME.findall(sentence)}
    if names and sum(name in fold(said) for name in names) < len(names) / 2:
        return False
    return not is_negated(sentence) or any(is_negated(claim) for _, claim in claims)


def _repeats(sentence: str, other: str) -> bool:
    """Whether a sentence says nothing that another one does not."""
    return _roots(sentence) <= _roots(other) and is_negated(sentence) == is_negated(other)


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
    """Whether a claim says what its span says, with a name for a pronoun or for another word."""
    own = _roots(span)
    return (
        is_negated(claim) == is_negated(span)
        and 2 * len(own & _roots(claim)) >= len(own)
        and not unsaid_numbers(claim, (answer, question))
    )


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
    if unsaid_numbers(claim, (*near, question)):
        return False
    return not is_negated(claim) or is_negated(answer)


def _shares_most(claim: frozenset[str], sentence: frozenset[str]) -> bool:
    return len(claim & sentence) >= max(1.0, min(len(claim), len(sentence)) / 2)


@lru_cache(maxsize=64)
def _sentence_roots(answer: str, spans: Spans) -> tuple[frozenset[str], ...]:
    return tuple(_roots(answer[start:end]) for start, end in spans)


@lru_cache(maxsize=4_096)
def _roots(text: str) -> frozenset[str]:
    return frozenset(map(word_root, content_stems(text)))
