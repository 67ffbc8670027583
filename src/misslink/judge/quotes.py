"""Check a judge's quotes and claims against the passages and the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from misslink.judge.backends.heuristic.matching import SOURCE_STEMS
from misslink.judge.protocol import Examination, Reply
from misslink.text.fuzzy_matching import UNSPACED, WORD, FuzzyMatch, fuzzy_match, invariant_tokens
from misslink.text.normalization import fold, has_content, locate, sentence_spans, stems
from misslink.types import Claim, Passage

SHORT_CLAIM = 3  # content words: a claim this short ("At seven.") is read with its question
SAME_LANGUAGE = 0.3  # share of an answer's short words that its passages hold, at least,
MIN_LANGUAGE_WORDS = 5  # and different ones that both must have before anything is said of that
_PART_WORDS = 2  # of each side of an ellipsis
# Words an order to a judge is made of; a claim that holds others must share one of those.
_JUDGING_STEMS = frozenset(
    stems(
        "claim support unsupported contradict faithful correct incorrect true false verdict judge"
        " judgement evaluate evaluation grade score rating label instruction ignore previous system"
        " assistant user reply response json quote verify verified approved relevant everything"
    )
)

_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*(?:\.{3,}|\u2026)\s*[\])]|\.{3,}|\u2026)\s*")
# What surrounds a quote and is not of it.
_LEADING_MARKS = (
    " \t\n\r\f\v\u00a0\"'*_`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
)
_TRAILING_MARKS = _LEADING_MARKS + ",;:."
_SHORT_WORD = re.compile(r"(?<!\w)[^\W\d_]{1,4}(?!\w)")


def verify_quote(
    quote: str,
    passage: str,
    claim: str,
    question: str = "",
    *,
    context: Sequence[str] | None = None,
) -> FuzzyMatch | None:
    """Return the position of `quote` in `passage` if it shares a topic with `claim`, else None."""
    claim_and_question = f"{claim} {question}"
    first = match = find_quote(quote, passage, claim_and_question)
    while match is not None and not shares_topic(match, passage, claim, question):
        later = find_quote(quote, passage[match.end :], claim_and_question)
        match = later and FuzzyMatch(match.end + later.start, match.end + later.end, later.edits)
    if match is None and first is not None:
        words = _content_stems(passage[first.start : first.end])
        if words and words <= _JUDGING_STEMS:  # an order, whatever the language of the claim
            return None
        claim_text = claim if len(_short_words(claim)) >= MIN_LANGUAGE_WORDS else claim_and_question
        return first if is_other_language(claim_text, context or (passage,)) else None
    return match


def find_quote(quote: str, text: str, claim: str = "") -> FuzzyMatch | None:
    """Return the position of `quote` in `text`, allowing typos and ellipses."""
    if not has_content(quote):
        return None
    bare = _strip_marks(quote)
    return fuzzy_match(bare, text, claim) or _find_with_ellipsis(bare, text, claim)


def shares_topic(match: FuzzyMatch, passage: str, claim: str, question: str = "") -> bool:
    """Whether the sentences of `passage` around a quote share a word or number with `claim`.

    Content words count by their stems, numbers in digits or words, words about sources and answers
    ("passage", "according") not at all. A claim of three content words or fewer may share with the
    question instead; a claim and question without any content word ask nothing.
    """
    if _shares_word(claim, passage[match.start : match.end]):
        return True
    topic = _content_stems(claim)
    if len(topic) <= SHORT_CLAIM:
        topic = topic | _content_stems(question)
    topic = topic - _JUDGING_STEMS or topic
    if not topic or not topic.isdisjoint(_content_stems(passage[match.start : match.end])):
        return True
    around = (
        passage[start:end]
        for start, end in _sentence_spans(passage)
        if start < match.end and match.start < end
    )
    return any(not topic.isdisjoint(_content_stems(sentence)) for sentence in around)


def is_other_language(answer: str, passages: Sequence[str]) -> bool:
    """Return whether the short words of `answer` are not those of the languages of `passages`."""
    answer_words = _short_words(answer)
    passage_words = frozenset[str]().union(*map(_short_words, passages))
    if min(len(answer_words), len(passage_words)) < MIN_LANGUAGE_WORDS:
        return False
    return len(answer_words & passage_words) / len(answer_words) < SAME_LANGUAGE


def _shares_word(claim: str, quote: str) -> bool:
    """Whether the two share a telling word as it stands, and what stands around it; most do.

    To cut both into words and those into stems takes ten times as long.
    """
    shared = set(fold(quote).split()).intersection(fold(claim).split())
    return any(map(_is_content_piece, shared))


def _strip_marks(quote: str) -> str:
    return quote.lstrip(_LEADING_MARKS).rstrip(_TRAILING_MARKS)


@lru_cache(maxsize=16_384)  # the words of a large corpus, looked at one by one
def _is_content_piece(piece: str) -> bool:
    return bool(_content_stems(piece) - _JUDGING_STEMS)


@lru_cache(maxsize=16_384)
def _content_stems(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - SOURCE_STEMS


@lru_cache(maxsize=512)
def _sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(sentence_spans(text))


@lru_cache(maxsize=512)
def _short_words(text: str) -> frozenset[str]:
    folded = fold(text)
    return frozenset((*UNSPACED.findall(folded), *_SHORT_WORD.findall(folded)))


def _find_with_ellipsis(quote: str, text: str, claim: str) -> FuzzyMatch | None:
    parts = [part for part in _ELLIPSIS.split(quote) if part.strip()]
    if len(parts) < 2:
        # One that opens or closes a quote leaves nothing out of it.
        whole = bool(parts) and parts[0] != quote
        return fuzzy_match(_strip_marks(parts[0]), text, claim) if whole else None
    if any(len(WORD.findall(part)) < _PART_WORDS or not has_content(part) for part in parts):
        return None
    for start, end in _sentence_spans(text):
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


# All claims of a reply are checked in one go: the same checks in two thirds of the time.
_CLAIMS = TypeAdapter(tuple[Claim, ...])
_ClaimFields = Mapping[str, Any]  # of a Claim or an Evidence that is to be checked
_NO_QUOTE = "the judge gave no quote for it"
_AGREEMENT = {"agrees": True, "contradicts": False}


def read_claims(
    reply: Reply, answer: str, passages: Sequence[Passage], question: str = ""
) -> tuple[Claim, ...]:
    """Turn the claims of a reply into claims with places and verified quotes.

    A quote is looked up in the passages, and every passage that holds it word for word is evidence
    (where none does, every one that nearly does), unless it speaks of something else there
    (`misslink.judge.quotes`). One that is in none supports
    nothing: the claim is unsupported and overruled, its note says why, and it has no probability,
    for that was of a word that is not believed. A claim that cannot be located in the
    answer keeps its place open and still counts; one that is located by a likeness says so.

    Parameters
    ----------
    reply : Reply
        Whose ``parsed`` is an Examination.
    answer : str
    passages : sequence of Passage
        What the judge was shown.
    question : str
        What the answer answers: "At seven." is read with it.

    Returns
    -------
    tuple of Claim
        Empty where the judge named none.
    """
    examination = reply.parsed
    if not isinstance(examination, Examination):
        return ()
    lookup = _QuoteLookup(passages)
    claims: list[_ClaimFields] = []
    searched_to: dict[str, int] = {}
    for index, claim in enumerate(examination.claims):
        # The same sentence twice is two claims, each at its own place.
        since = searched_to.get(claim.text, 0)
        place = _locate_claim(claim.text, answer[since:])
        start, end = (since + place.start, since + place.end) if place else (None, None)
        if end is not None:
            searched_to[claim.text] = end
        support = claim.support
        notes = [_edit_note(place.edits)] if place and place.edits else []
        evidence: list[_ClaimFields] = []
        trouble = None
        if support != "unsupported":
            evidence, trouble = lookup.look_up(claim.quote, claim.text, question)
            if trouble:
                support = "unsupported"
                notes.insert(0, trouble)
        claims.append(
            {
                "text": claim.text,
                "start": start,
                "end": end,
                "support": support,
                "evidence": evidence,
                "probability": None
                if trouble
                else reply.chance(f"claims.{index}.support", "supported"),
                "correct": _AGREEMENT.get(getattr(claim, "reference", "")),
                "note": "; ".join(notes) or None,
                "overruled": trouble is not None,
            }
        )
    return _CLAIMS.validate_python(claims)


def _locate_claim(claim: str, answer: str) -> FuzzyMatch | None:
    """Where a claim is in the answer, word for word or nearly so."""
    span = locate(claim, answer)
    return FuzzyMatch(*span) if span else fuzzy_match(claim, answer)


def _edit_note(edits: int) -> str:
    return f"the judge wrote it with {edits} character{'s' * (edits > 1)} changed"


class _QuoteLookup:
    """The passages that a judge was shown, read once for all of its quotes."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._texts = [passage.text for passage in passages]
        self._folded = list(map(fold, self._texts))

    def look_up(
        self, quote: str | None, claim: str, question: str
    ) -> tuple[list[_ClaimFields], str | None]:
        """Find a quote in every passage that holds it; without any, say what is wrong with it."""
        if quote is None:
            return [], _NO_QUOTE
        plain = fold(quote)
        word_for_word = [
            passage
            for passage, folded in zip(self._passages, self._folded, strict=True)
            if plain in folded
        ]
        evidence: list[_ClaimFields] = [
            {
                "passage_id": passage.id,
                "quote": passage.text[place.start : place.end],
                "start": place.start,
                "end": place.end,
                "edits": place.edits,
            }
            for passage in word_for_word or self._passages
            if (place := verify_quote(quote, passage.text, claim, question, context=self._texts))
        ]
        if evidence:
            return evidence, None
        return [], self._what_is_wrong(quote, claim, question)

    def _what_is_wrong(self, quote: str, claim: str, question: str) -> str:
        if not has_content(quote):
            return _NO_QUOTE
        if any(find_quote(quote, text, f"{claim} {question}") for text in self._texts):
            return "the judge's quote speaks of something else"
        return "the judge's quote is in no passage"
