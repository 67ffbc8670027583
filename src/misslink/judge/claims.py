"""Read the claims of a reply: which of them the answer makes, and with what evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from misslink.judge.examination import MAX_QUOTES, Examination, ExaminedClaim
from misslink.judge.protocol import Reply
from misslink.matching import (
    ClaimCoverage,
    Passages,
    QuoteCheck,
    claim_spans,
    cover_answer,
    states_absence,
)
from misslink.text.languages import is_known_language
from misslink.text.normalization import fold, has_content, sentence_spans
from misslink.types import Claim, Passage, Support

_ADDRESS = re.compile(
    r"\b(?:i|we|me|us|my|our|you|your|please|ich|wir|mir|mich|uns|unser\w*|sie|ihnen|ihr\w*|bitte)\b"
)
# That something is not told, by whatever source: enough where the judge says that the answer declines.
_NOT_TOLD = re.compile(
    r"(?:\b(?:not|nothing|nowhere|never|cannot)|n['\u2019]t) (?:\w+ ){0,2}(?:find|found|cover(?:ed)?|stated?"
    r"|determined?|mention(?:ed)?|say|said|tell|told|specif(?:y|ied)|address(?:ed)?|explain(?:ed)?|indicated?"
    r"|answer(?:ed)?|clear|confirm(?:ed)?)\b"
    r"|\b(?:steht|findet sich|finde ich) (?:\w+ ){0,3}(?:nichts?|keine?)\b"
    r"|\b(?:nichts?|keine?) (?:\w+ ){0,3}(?:gefunden|genannt|erwahnt|angegeben|beantworte[nt]|ermitteln|entnehmen)\b"
)


@lru_cache(maxsize=256)  # to repair a reply and to read it
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
    if examination.response == "declines" and not (_statements(answer) and _is_blunt(answer)):
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
        or (claim.support == "unsupported" and cover_answer((), claim.text).sentences)
        or (blunt and _statements(claim.text))
        for claim in examination.claims
    )
    return examination.model_copy(update={"response": "partly"}) if partly else examination


def _is_blunt(answer: str) -> bool:
    """Whether an English or German answer nowhere says that something is not known."""
    return is_known_language(answer) and not (states_absence(answer) or _denies_telling(answer))


def _denies_telling(answer: str) -> bool:
    """Whether a sentence without a number says that something is not told."""
    sentences = (fold(answer[start:end]) for start, end in sentence_spans(answer))
    return any(_NOT_TOLD.search(one) and not re.search(r"\d", one) for one in sentences)


def _statements(text: str) -> list[str]:
    """The factual sentences of a text that speak to nobody."""
    sentences = cover_answer((), text).uncovered
    return [sentence for sentence in sentences if not _ADDRESS.search(fold(sentence))]


def _favor(claim: ExaminedClaim) -> tuple[bool, str, str, str]:
    reference = getattr(claim, "reference", "")
    return claim.support == "supported", claim.support, reference, " ".join(claim.quotes)


# All claims of a reply are checked in one go: the same checks in two thirds of the time.
CLAIMS = TypeAdapter(tuple[Claim, ...])
_ClaimFields = Mapping[str, Any]  # of a Claim or an Evidence that is to be checked
_OPEN_ENDS = " \n:?*_\uff1a\uff1f"
WEAK_SHARE = 0.8  # what is left of the probability of a claim whose quote does not decide it
_DECIDED = QuoteCheck(())
REFUSALS: Mapping[str, str] = {
    "no_quote": "the judge gave no quote for it",
    "not_found": "the judge's quote is in no passage",
    "fragment": "the judge's quote is one word of a sentence",
    "number": "{0} is in no passage and does not follow from the quote",
    "quantity": "{0} is in no passage",
    "denial": "the quoted sentence denies it",
    "difference": "the claim says '{0}' where the quoted sentence says '{1}'",
    "frame": "the quoted sentence reports, supposes or quotes it and does not state it",
}
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
    (where none does, every one that nearly does). Where the quotes are refused
    (`misslink.matching.quotes`), the claim is unsupported and overruled, its note says why, and it
    has no probability. A weak quote lowers the probability. A claim that the answer does not make is left out
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
    shown = Passages.of(tuple(passage.text for passage in passages), question)
    earlier_messages = Passages.of(tuple(history), question)
    texts = [(passage.id, passage.text) for passage in passages]
    messages = [(str(number), text) for number, text in enumerate(history, 1)]
    said = {answer[start:end] for start, end in claim_spans(answer)}
    claims: list[_ClaimFields] = []
    for index, place in examined_coverage(examination, answer, question).places.items():
        claim = examination.claims[index]
        start, end = (place.start, place.end) if place else (None, None)
        support: Support = "unsupported" if claim.support == "partly" else claim.support
        notes = []
        if place and place.edits:
            characters = f"{place.edits} character{'s' * (place.edits > 1)}"
            notes.append(f"the judge wrote it with {characters} changed")
        check, earlier = _DECIDED, _DECIDED
        # A courtesy needs no quote; a lead-in or question needs one that is in a passage.
        if support != "unsupported" and (
            claim.text in said or claim_spans(claim.text.rstrip(_OPEN_ENDS))
        ):
            quotes = claim.quotes[:MAX_QUOTES]
            check = shown.check(claim.text, quotes, supports=support == "supported")
            if check.refusal and check.places and not claim_spans(claim.text):
                check = check._replace(refusal=None)
            if check.refusal and history and support == "supported":
                earlier = earlier_messages.check(claim.text, quotes)
                if earlier.refusal is None:
                    check = earlier._replace(places=())
                    notes.insert(0, "an earlier message states it, and no passage")
            if check.refusal:
                support = "unsupported"
                notes.insert(0, REFUSALS[check.refusal].format(*check.detail.split(" / ")))
        decided = check.refusal is None
        probability = reply.chance(f"claims.{index}.support", "supported") if decided else None
        if check.weak and probability is not None:
            probability *= WEAK_SHARE
        if check.weak and support == "supported":
            notes.append("its quote does not decide it")
        if claim.support == "partly":
            notes.append("the passages state a part of it")
        claims.append(
            {
                "text": claim.text,
                "span": answer[start:end] if place else None,
                "start": start,
                "end": end,
                "support": support,
                "partly": claim.support == "partly",
                "evidence": _evidence(check, texts),
                "messages": _evidence(earlier, messages),
                "probability": probability,
                "correct": _AGREEMENT.get(getattr(claim, "reference", "")),
                "note": "; ".join(notes) or None,
                "overruled": not decided,
                "weak": check.weak and support == "supported",
            }
        )
    return CLAIMS.validate_python(claims)


def _evidence(check: QuoteCheck, texts: Sequence[tuple[str, str]]) -> list[_ClaimFields]:
    """The quotes that were found, in the words of their texts; none where they are refused."""
    if check.refusal is not None:
        return []
    return [
        {
            "passage_id": texts[number][0],
            "quote": texts[number][1][place.start : place.end],
            "start": place.start,
            "end": place.end,
            "edits": place.edits,
        }
        for number, place in check.places
    ]
