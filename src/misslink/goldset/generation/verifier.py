"""Verify a draft against its evidence, general knowledge and the rest of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from misslink.goldset.generation.candidates import (
    AcceptedQuestion,
    AnswerComparison,
    EvidenceAnswer,
    GenerationContext,
    PassageAnswers,
    QuestionDraft,
    RecalledAnswer,
    RejectedCandidate,
    UnfinishedCandidate,
)
from misslink.goldset.generation.corpus import find_verbatim
from misslink.goldset.generation.writer import unreadable_reply
from misslink.judge.quotes import verify_quote
from misslink.text.normalization import fold

_SHOWN_CHARACTERS = 200
_FULL, _PART = 2, 1  # grades: states all of the answer, states a part

Failure = RejectedCandidate | UnfinishedCandidate


async def verify_draft(
    context: GenerationContext, draft: QuestionDraft
) -> AcceptedQuestion | Failure:
    """Verify a draft with the judge, and stop at the first failed check."""
    if draft.reference is None:
        return await _verify_negative(context, draft)
    failure = await _check_evidence(context, draft) or await _check_recall(context, draft)
    return failure or await _check_other_passages(context, draft)


async def _check_evidence(context: GenerationContext, draft: QuestionDraft) -> Failure | None:
    """The evidence alone must give the reference answer."""
    evidence = [quote for quotes in draft.evidence.values() for quote in quotes]
    reply = await context.ask("goldset_answer", question=draft.question, evidence=evidence)
    if not isinstance(reply.parsed, EvidenceAnswer):
        return unreadable_reply(draft.slot, reply, draft.question)
    answer = (reply.parsed.answer or "").strip()
    if not answer:
        return _reject(draft, "unanswerable", "its evidence alone gives no answer")
    agrees = await _agrees(context, draft, answer)
    if agrees is False:
        return _reject(draft, "reference_differs", f"its evidence gives '{_shorten(answer)}'")
    return None if agrees is True else agrees


async def _check_recall(context: GenerationContext, draft: QuestionDraft) -> Failure | None:
    """General knowledge must not give the reference answer."""
    reply = await context.ask("goldset_recall", question=draft.question)
    if not isinstance(reply.parsed, RecalledAnswer):
        return unreadable_reply(draft.slot, reply, draft.question)
    answer = (reply.parsed.answer or "").strip()
    agrees = bool(answer) and await _agrees(context, draft, answer)
    if agrees is True:
        sentence = f"without any passage the answer was '{_shorten(answer)}'"
        return _reject(draft, "known_by_heart", sentence)
    return None if agrees is False else agrees


async def _agrees(context: GenerationContext, draft: QuestionDraft, answer: str) -> bool | Failure:
    """Whether an answer agrees with the reference; equal words do without an ask."""
    reference = draft.reference or ""
    if fold(answer).rstrip(". ") == fold(reference).rstrip(". "):
        return True
    reply = await context.ask(
        "goldset_compare", question=draft.question, reference=reference, answers=[answer]
    )
    if not isinstance(reply.parsed, AnswerComparison):
        return unreadable_reply(draft.slot, reply, draft.question)
    verdicts = {row.agrees for row in reply.parsed.answers if row.answer == 1}
    if len(verdicts) != 1:
        sentence = "the comparison with the reference has no verdict on the answer, or two"
        return _reject(draft, "no_reply", sentence)
    return verdicts == {"yes"}


async def _check_other_passages(
    context: GenerationContext, draft: QuestionDraft
) -> AcceptedQuestion | Failure:
    """Add the other passages that answer the draft, or fail if there are too many."""
    places = _other_places(context, draft)
    if not places:
        return AcceptedQuestion(draft)
    answers = await _answering_passages(context, draft, places)
    if not isinstance(answers, list):
        return answers
    others: dict[int, tuple[int, str]] = {}
    for place, fully, quote in answers:
        text = context.corpus.passages[place].text
        span = find_verbatim(quote, text)
        if span and verify_quote(quote, text, draft.reference or "", draft.question) is not None:
            others.setdefault(place, (_FULL if fully else _PART, text[slice(*span)]))
    # Copies of one passage are several places, but one answer.
    if len({fold(words) for _, words in others.values()}) > context.settings.most_others:
        names = ", ".join(map(context.passage_id, others))
        sentence = f"{len(others)} other passages answer it too: {names}"
        return _reject(draft, "answered_elsewhere", sentence)
    return AcceptedQuestion(draft, others)


async def _verify_negative(
    context: GenerationContext, draft: QuestionDraft
) -> AcceptedQuestion | Failure:
    """None of the passages nearest to a negative may answer it, in whole or in part.

    Here a judge's verdict suffices without a quote, because nothing may answer the question.
    """
    near = context.index.near(draft.question, context.settings.against_negative)
    places = list(dict.fromkeys([*near, *draft.slot.passages]))
    answers = await _answering_passages(context, draft, places, complete=True)
    if not isinstance(answers, list):
        return answers
    for place, _, quote in answers:
        sentence = f"'{context.passage_id(place)}' answers it: '{_shorten(quote)}'"
        return _reject(draft, "answerable_after_all", sentence)
    return AcceptedQuestion(draft)


async def _answering_passages(
    context: GenerationContext,
    draft: QuestionDraft,
    places: Sequence[int],
    *,
    complete: bool = False,
) -> list[tuple[int, bool, str]] | Failure:
    """The passages that answer: index, whether in full, quote."""
    reply = await context.ask(
        "goldset_elsewhere",
        question=draft.question,
        references=[draft.reference] if draft.reference else [],
        passages=context.texts(places),
    )
    if not isinstance(reply.parsed, PassageAnswers):
        return unreadable_reply(draft.slot, reply, draft.question)
    answers = reply.parsed.passages
    if complete and (missing := {*range(1, len(places) + 1)} - {row.passage for row in answers}):
        sentence = f"there is no verdict on {len(missing)} of the {len(places)} nearest passages"
        return _reject(draft, "no_reply", sentence)
    return [
        (places[row.passage - 1], row.answers == "yes", row.quote or "")
        for row in answers
        if row.answers != "no" and 1 <= row.passage <= len(places)
    ]


def _other_places(context: GenerationContext, draft: QuestionDraft) -> list[int]:
    """The passages nearest to question and answer, then those nearest to the evidence."""
    count, known = context.settings.others, draft.evidence
    if not count:
        return []
    places = context.index.near(draft.question, count, known, answer=draft.reference or "")
    everything = range(len(context.corpus.passages))
    places += context.index.neighbours(next(iter(known)), count + len(known), everything)
    return [place for place in dict.fromkeys(places) if place not in known][:count]


def _shorten(text: str) -> str:
    return text[:_SHOWN_CHARACTERS]


def _reject(draft: QuestionDraft, reason: str, sentence: str) -> RejectedCandidate:
    more: dict[str, Any] = {}
    if draft.reference is not None:
        quotes = [quote for texts in draft.evidence.values() for quote in texts]
        more = {"reference": draft.reference, "evidence": quotes}
    return RejectedCandidate(draft.slot, reason, " ".join(sentence.split()), draft.question, more)
