"""Read the claims of a reply: which of them the answer makes, and with what evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from misslink.judge.protocol import Examination, ExaminedClaim, Reply
from misslink.matching.abstention import (
    states_absence,
)
from misslink.matching.coverage import ClaimCoverage, cover_answer, factual_spans
from misslink.matching.quotes import (
    find_quote,
    is_known_language,
    verify_quote,
)
from misslink.text.normalization import (
    fold,
    has_content,
)
from misslink.types import Claim, Passage

_STATED = 2  # factual sentences that only state: an answer of so many does not decline
_ADDRESS = re.compile(
    r"\b(?:i|we|me|us|my|our|you|your|please|ich|wir|mir|mich|uns|unser\w*|sie|ihnen|ihr\w*|bitte)\b"
)


def examined_coverage(examination: Examination, answer: str, question: str) -> ClaimCoverage:
    """Return the coverage of an examination's claims; an answer that declines needs none."""
    # Of equal claims the least favorable one counts, whichever comes first.
    order = sorted(
        range(len(examination.claims)), key=lambda index: _favor(examination.claims[index])
    )
    claims = [examination.claims[index] for index in order]
    spans = tuple(claim.span if has_content(claim.span) else claim.text for claim in claims)
    coverage = cover_answer(spans, answer, question, tuple(claim.text for claim in claims))
    places = {order[number]: place for number, place in coverage.places.items()}
    coverage = coverage._replace(places=dict(sorted(places.items())))
    if examination.response == "declines" and not _states_facts(answer):
        return coverage._replace(sentences=0, uncovered=())
    return coverage


def settle_response(examination: Examination, answer: str) -> Examination:
    """Return the examination of an answer that answers in part, if the judge calls that declining.

    An answer that declines and also states something unsupported misleads like any other. And one
    that nowhere says that something is not known declines nothing if the judge lists what it states.
    """
    if examination.response != "declines":
        return examination
    blunt = _is_blunt(answer)
    partly = any(
        claim.support == "contradicted"
        or (claim.support == "unsupported" and factual_spans(claim.text))
        or (blunt and _statements(claim.text))
        for claim in examination.claims
    )
    return examination.model_copy(update={"response": "partly"}) if partly else examination


def _states_facts(answer: str) -> bool:
    return len(_statements(answer)) >= _STATED and _is_blunt(answer)


def _is_blunt(answer: str) -> bool:
    """Whether an English or German answer nowhere says that something is not known."""
    return is_known_language(answer) and not states_absence(answer)


def _statements(text: str) -> list[str]:
    """The factual sentences of a text that speak to nobody."""
    sentences = (text[start:end] for start, end in factual_spans(text))
    return [sentence for sentence in sentences if not _ADDRESS.search(fold(sentence))]


def _favor(claim: ExaminedClaim) -> tuple[bool, str, str, str]:
    reference = getattr(claim, "reference", "")
    return claim.support == "supported", claim.support, reference, " ".join(claim.quotes)


# All claims of a reply are checked in one go: the same checks in two thirds of the time.
_CLAIMS = TypeAdapter(tuple[Claim, ...])
_ClaimFields = Mapping[str, Any]  # of a Claim or an Evidence that is to be checked
_NO_QUOTE = "the judge gave no quote for it"
_AGREEMENT = {"agrees": True, "contradicts": False}


def read_claims(
    reply: Reply,
    answer: str,
    passages: Sequence[Passage],
    question: str = "",
    history: Sequence[str] = (),
) -> tuple[Claim, ...]:
    """Turn the claims of a reply into claims with places and verified quotes.

    A quote is looked up in the passages, and every passage that holds it word for word is evidence
    (where none does, every one that nearly does), unless it speaks of something else there or
    asserts nothing (`misslink.matching.quotes`). One that is in none supports
    nothing: the claim is unsupported and overruled, its note says why, and it has no probability,
    for that was of a word that is not believed. A claim that the answer does not make is left out
    (`cover_answer`); one that is located by a likeness says so.

    Parameters
    ----------
    reply : Reply
        Whose ``parsed`` is an Examination.
    answer : str
    passages : sequence of Passage
        What the judge was shown.
    question : str
        What the answer answers: "At seven." is read with it.
    history : sequence of str
        Earlier messages. A quote that is in no passage may be in one.

    Returns
    -------
    tuple of Claim
        Empty where the judge named none.
    """
    examination = reply.parsed
    if not isinstance(examination, Examination):
        return ()
    lookup = _QuoteLookup(passages)
    messages = _QuoteLookup(
        [Passage(id=str(n), text=text, rank=n) for n, text in enumerate(history, 1)]
    )
    claims: list[_ClaimFields] = []
    for index, place in examined_coverage(examination, answer, question).places.items():
        claim = examination.claims[index]
        start, end = (place.start, place.end) if place else (None, None)
        support = claim.support
        notes = []
        if place and place.edits:
            characters = f"{place.edits} character{'s' * (place.edits > 1)}"
            notes.append(f"the judge wrote it with {characters} changed")
        evidence: list[_ClaimFields] = []
        stated: list[_ClaimFields] = []
        trouble = None
        if support != "unsupported":
            evidence, trouble = lookup.look_up(
                next(iter(claim.quotes), None),
                claim.text,
                question,
                supports=support == "supported",
            )
            if trouble and history and support == "supported":
                stated, unknown = messages.look_up(
                    next(iter(claim.quotes), None), claim.text, question, supports=True
                )
                if not unknown:
                    trouble = None
                    notes.insert(0, "an earlier message states it, and no passage")
            if trouble:
                support = "unsupported"
                notes.insert(0, trouble)
        claims.append(
            {
                "text": claim.text,
                "span": answer[start:end] if place else None,
                "start": start,
                "end": end,
                "support": support,
                "evidence": evidence,
                "messages": stated,
                "probability": None
                if trouble
                else reply.chance(f"claims.{index}.support", "supported"),
                "correct": _AGREEMENT.get(getattr(claim, "reference", "")),
                "note": "; ".join(notes) or None,
                "overruled": trouble is not None,
            }
        )
    return _CLAIMS.validate_python(claims)


class _QuoteLookup:
    """The passages that a judge was shown, read once for all of its quotes."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = passages
        self._texts = [passage.text for passage in passages]
        self._folded = list(map(fold, self._texts))

    def look_up(
        self, quote: str | None, claim: str, question: str, *, supports: bool
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
            if (
                place := verify_quote(
                    quote, passage.text, claim, question, context=self._texts, supports=supports
                )
            )
        ]
        if evidence:
            return evidence, None
        return [], self._what_is_wrong(quote, claim, question)

    def _what_is_wrong(self, quote: str, claim: str, question: str) -> str:
        if not has_content(quote):
            return _NO_QUOTE
        claim_and_question = f"{claim} {question}"
        if not any(find_quote(quote, text, claim_and_question) for text in self._texts):
            return "the judge's quote is in no passage"
        if any(
            verify_quote(quote, text, claim, question, context=self._texts, supports=False)
            for text in self._texts
        ):
            return "the judge's quote is a word, a question, or a denial, not a statement of it"
        return "the judge's quote is about something else"
