"""Write a candidate question with a judge, check its wording, and verify it.

Verified is: its evidence alone answers it, general knowledge does not, and few other passages do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel

from misslink.goldset.generation.candidates import (
    FULL_GRADE,
    PART_GRADE,
    CandidateRejectedError,
    CandidateSkippedError,
    CandidateSlot,
    QuestionDraft,
)
from misslink.goldset.generation.corpus import PassageIndex, SourceCorpus
from misslink.goldset.generation.settings import GenerationSettings
from misslink.goldset.wording import CopiedWording, find_verbatim, measure_copying
from misslink.judge.judge_case import SkippedReply, ask_safely
from misslink.judge.prompts import Prompts
from misslink.judge.protocol import Ask, Judge
from misslink.matching import verify_quote
from misslink.text.normalization import fold, sentence_spans, stems, valid_text


class _ReplySchema(BaseModel, frozen=True):
    prompt: ClassVar[str]


class PassageQuote(BaseModel, frozen=True):
    """Words of a passage, which is numbered from 1."""

    passage: int
    quote: str


class WrittenQuestion(_ReplySchema):
    """A question with its answer and evidence."""

    prompt: ClassVar[str] = "goldset_write"
    question: str | None
    reference: str | None
    quotes: tuple[PassageQuote, ...]


class NegativeQuestion(_ReplySchema):
    """A question that no passage answers."""

    prompt: ClassVar[str] = "goldset_write_negative"
    question: str | None


class RewrittenQuestion(_ReplySchema):
    """A question in other words."""

    prompt: ClassVar[str] = "goldset_rewrite"
    question: str | None


class EvidenceAnswer(_ReplySchema):
    """The answer from the evidence alone."""

    prompt: ClassVar[str] = "goldset_answer"
    answer: str | None


class RecalledAnswer(_ReplySchema):
    """The answer from general knowledge."""

    prompt: ClassVar[str] = "goldset_recall"
    answer: str | None


class AnswerAgreement(BaseModel, frozen=True):
    """Whether an answer, numbered from 1, agrees with the reference."""

    answer: int
    agrees: Literal["yes", "no"]


class AnswerComparison(_ReplySchema):
    """Answers compared with the reference."""

    prompt: ClassVar[str] = "goldset_compare"
    answers: tuple[AnswerAgreement, ...]


class PassageAnswer(BaseModel, frozen=True):
    """Whether a passage, numbered from 1, answers, and with which words."""

    passage: int
    quote: str | None
    answers: Literal["yes", "partly", "no"]


class PassageAnswers(_ReplySchema):
    """Which passages answer a question."""

    prompt: ClassVar[str] = "goldset_elsewhere"
    passages: tuple[PassageAnswer, ...]


SCHEMAS: dict[str, type[_ReplySchema]] = {
    schema.prompt: schema
    for schema in (
        WrittenQuestion, NegativeQuestion, RewrittenQuestion, EvidenceAnswer, RecalledAnswer,
        AnswerComparison, PassageAnswers,
    )
}  # fmt: skip


_Parsed = TypeVar("_Parsed", bound=_ReplySchema)


@dataclass(frozen=True)
class GenerationContext:
    """The judge, the corpus with its index, the settings and the prompts."""

    judge: Judge
    corpus: SourceCorpus
    index: PassageIndex
    settings: GenerationSettings
    prompts: Prompts

    async def ask(self, schema: type[_Parsed], **inputs: Any) -> _Parsed:
        """Ask the judge for a reply; an unreadable or missing one ends the candidate."""
        ask = Ask.rendered(self.prompts.load(schema.prompt), inputs, schema)
        reply = await ask_safely(self.judge, ask)
        if isinstance(reply.parsed, schema):
            return reply.parsed
        problem = " ".join((reply.problem or "the reply does not match the schema").split())
        if isinstance(reply, SkippedReply):
            raise CandidateSkippedError(problem)
        raise CandidateRejectedError("no_reply", problem[:300], inputs.get("question"))

    def texts(self, places: Iterable[int]) -> list[str]:
        """Return the texts of passages by their indices."""
        return [self.corpus.passages[place].text for place in places]

    def passage_id(self, place: int) -> str:
        """Return the id of a passage by its index."""
        return self.corpus.passages[place].id


_MAX_QUESTION_LENGTH, _MAX_REFERENCE_LENGTH = 400, 2_000  # characters
_PASSAGE_WORDS = (
    r"(?:passages?|texts?|excerpts?|snippets?|documents?|contexts?|paragraphs?|articles?"
    r"|sections?|evidence)"
)
_GERMAN_WORDS = (
    r"(?:textstelle|text|textabschnitt|abschnitt|auszug|dokument|kontext|absatz|artikel)"
)
_PASSAGE_REFERENCE = re.compile(
    rf"\b(?:according to|(?:based|relying) on|as (?:stated|described|mentioned|given)"
    rf"(?: in| by)?) (?:the |this |these |that )?(?:above |given |provided |following )?"
    rf"{_PASSAGE_WORDS}\b"
    rf"|\b(?:(?:in|from|does|do) )?(?:the|this|these) (?:above|given|provided|following|first"
    rf"|second) {_PASSAGE_WORDS}\b"
    rf"|\b(?:does|do|in|by) (?:this|these) {_PASSAGE_WORDS}\b"
    rf"|\bdoes the (?:passage|text|excerpt|snippet) \w+|\bpassage[ _]\d+\b"
    rf"|\b(?:laut|gemass|nach) (?:der|dem|den|dieser|diesem) (?:obigen |vorliegenden )?"
    rf"{_GERMAN_WORDS}\b"
    rf"|\bin (?:der|dem|dieser|diesem) (?:obigen |vorliegenden |genannten )?{_GERMAN_WORDS}\b"
)
# Sentences of a passage that address the writer.
_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instruction|task|prompt|above|previous|rules?)"
    r"|\b(?:write|ask|reply|respond|answer|output|say|use)\b.{0,20}\b(?:the )?(?:question|reference"
    r"|exactly|only with|this question)\b"
    r"|\b(?:you are|as) (?:an? )?(?:ai|assistant|language model|llm)\b"
    r"|\bsystem prompt\b|\bignoriere\b.{0,40}\b(?:anweisung|aufgabe|regel)",
    re.DOTALL,
)
_MIN_OBEYED_SHARE = 0.6  # of a question's or answer's stems that such a sentence contains
_SHOWN_CHARACTERS = 200


async def write_question(context: GenerationContext, slot: CandidateSlot) -> QuestionDraft:
    """Write the candidate of a slot; rewrite it once if it copies its passages.

    Raises
    ------
    CandidateRejectedError, CandidateSkippedError
    MisslinkError
        Further asks are pointless.
    """
    settings = context.settings
    category = settings.categories[slot.category]
    least = 1 if category.negative else category.passages[0]
    if len(slot.passages) < least:
        raise CandidateRejectedError(
            "no_neighbours",
            f"it needs {least} passages, and only {len(slot.passages) - 1} near "
            f"'{context.passage_id(slot.passages[0])}' do not repeat it",
        )
    schema: type[NegativeQuestion | WrittenQuestion]
    schema = NegativeQuestion if category.negative else WrittenQuestion
    texts = context.texts(slot.passages)
    written = await context.ask(
        schema,
        kind=category.asks,
        asker=settings.personas[slot.persona].asks,
        length=settings.lengths[slot.length].words,
        passages=texts,
    )
    question, reference = _single_line(written.question), None
    quotes: Sequence[PassageQuote] = ()
    if isinstance(written, WrittenQuestion):
        reference, quotes = _single_line(written.reference), written.quotes
    _check_wording(question, reference)
    if instruction := _obeyed_instruction(question, reference or "", quotes, texts):
        sentence = f"a passage orders it: '{' '.join(instruction.split())[:_SHOWN_CHARACTERS]}'"
        raise CandidateRejectedError("obeys_passage", sentence, question)
    if reference is None:
        return QuestionDraft(slot, question)
    more = {"reference": reference}
    evidence = _evidence(context, slot, quotes)
    if isinstance(evidence, str):
        raise CandidateRejectedError("quote_not_verbatim", evidence, question, more)
    if len(evidence) < least:
        sentence = f"it quotes {len(evidence)} passages and needs {least}"
        raise CandidateRejectedError("too_few_passages", sentence, question, more)
    return await _reword_copy(context, QuestionDraft(slot, question, reference, evidence))


def _evidence(
    context: GenerationContext, slot: CandidateSlot, quotes: Sequence[PassageQuote]
) -> dict[int, tuple[str, ...]] | str:
    """The quotes in their passages' characters, by passage; or what is wrong with one."""
    evidence: dict[int, list[str]] = {}
    for quote in quotes:
        if not 1 <= quote.passage <= len(slot.passages):
            return f"it quotes passage {quote.passage} of {len(slot.passages)}"
        place = slot.passages[quote.passage - 1]
        text = context.corpus.passages[place].text
        span = find_verbatim(quote.quote, text)
        if span is None:
            words = " ".join(quote.quote.split())[:_SHOWN_CHARACTERS]
            return f"'{words}' is not in '{context.passage_id(place)}'"
        words = text[slice(*span)]
        if words not in evidence.setdefault(place, []):
            evidence[place].append(words)
    if not evidence:
        return "it quotes nothing"
    return {place: tuple(evidence[place]) for place in slot.passages if place in evidence}


async def _reword_copy(context: GenerationContext, draft: QuestionDraft) -> QuestionDraft:
    texts, settings = context.texts(draft.evidence), context.settings

    def is_copy(copying: CopiedWording) -> bool:
        is_shared = (copying.share or 0) >= settings.shared_words
        return is_shared or copying.run >= settings.longest_run

    copying = measure_copying(draft.question, texts)
    if not is_copy(copying):
        return draft
    words = [copying.words] if copying.words else []
    reply = await context.ask(
        RewrittenQuestion, question=draft.question, copied=words, passages=texts
    )
    question = _single_line(reply.question)
    if question:
        copying = measure_copying(question, texts)
    if is_copy(copying):
        share = "" if copying.share is None else f", and shares {copying.share:.0%} of its words"
        sentence = f"it copies {copying.run} words in a row{share}: '{copying.words}'"
        raise CandidateRejectedError("copies_passage", sentence, question or draft.question)
    _check_wording(question, draft.reference)
    return replace(draft, question=question, rewritten=True)


def _single_line(text: str | None) -> str:
    """A text on one line, without invisible characters."""
    joined = " ".join(valid_text(text or "").split())
    return "".join(filter(str.isprintable, joined)).strip()


def _check_wording(question: str, reference: str | None) -> None:
    """Reject what is wrong with the words alone; a negative has no reference."""
    if not question:
        raise CandidateRejectedError("no_question", "the writer returned none")
    if match := _PASSAGE_REFERENCE.search(fold(question)):
        sentence = f"it says '{match.group()}', but users do not see a passage"
        raise CandidateRejectedError("refers_to_passage", sentence, question)
    limits = [("question", question, _MAX_QUESTION_LENGTH)]
    if reference is not None:
        limits.append(("reference answer", reference, _MAX_REFERENCE_LENGTH))
    for name, text, limit in limits:
        problem = None if any(map(str.isalnum, text)) else "no words"
        if len(text) > limit:
            problem = f"{len(text)} characters, more than {limit}"
        if problem:
            raise CandidateRejectedError("malformed", f"the {name} has {problem}", question)


def _obeyed_instruction(
    question: str, reference: str, quotes: Sequence[PassageQuote], texts: Sequence[str]
) -> str | None:
    """The sentence of a passage that orders what was written, if there is one."""
    written = [set(stems(question)), set(stems(reference))]
    sentences = (text[start:end] for text in texts for start, end in sentence_spans(text))
    for sentence in sentences:
        if not _INSTRUCTION.search(fold(sentence)):
            continue
        words = set(stems(sentence))
        if any(own and len(own & words) >= _MIN_OBEYED_SHARE * len(own) for own in written):
            return sentence
        if any(find_verbatim(quote.quote, sentence) for quote in quotes):
            return sentence
    return None


async def verify_question(context: GenerationContext, draft: QuestionDraft) -> QuestionDraft:
    """Verify a draft with the judge, and add the other passages that answer it.

    Raises
    ------
    CandidateRejectedError, CandidateSkippedError
        At the first failed check.
    """
    if draft.reference is None:
        # Of passages nearest to a negative none may answer it, in whole or in part. A judge's
        # verdict suffices without a quote, because nothing may answer the question.
        near = context.index.near(draft.question, context.settings.against_negative)
        places = list(dict.fromkeys([*near, *draft.slot.passages]))
        for place, _, quote in await _answering_passages(context, draft, places, complete=True):
            sentence = f"'{context.passage_id(place)}' answers it: '{quote[:_SHOWN_CHARACTERS]}'"
            raise _rejection(draft, "answerable_after_all", sentence)
        return draft
    evidence = [quote for quotes in draft.evidence.values() for quote in quotes]
    reply = await context.ask(EvidenceAnswer, question=draft.question, evidence=evidence)
    answer = (reply.answer or "").strip()
    if not answer:
        raise _rejection(draft, "unanswerable", "its evidence alone gives no answer")
    if not await _agrees(context, draft, answer):
        sentence = f"its evidence gives '{answer[:_SHOWN_CHARACTERS]}'"
        raise _rejection(draft, "reference_differs", sentence)
    recalled = await context.ask(RecalledAnswer, question=draft.question)
    answer = (recalled.answer or "").strip()
    if answer and await _agrees(context, draft, answer):
        sentence = f"without any passage the answer was '{answer[:_SHOWN_CHARACTERS]}'"
        raise _rejection(draft, "known_by_heart", sentence)
    return await _add_other_passages(context, draft)


async def _agrees(context: GenerationContext, draft: QuestionDraft, answer: str) -> bool:
    """Whether an answer agrees with the reference; equal words do without an ask."""
    reference = draft.reference or ""
    if fold(answer).rstrip(". ") == fold(reference).rstrip(". "):
        return True
    reply = await context.ask(
        AnswerComparison, question=draft.question, reference=reference, answers=[answer]
    )
    verdicts = {row.agrees for row in reply.answers if row.answer == 1}
    if len(verdicts) != 1:
        sentence = "the comparison with the reference has no verdict on the answer, or two"
        raise _rejection(draft, "no_reply", sentence)
    return verdicts == {"yes"}


async def _add_other_passages(context: GenerationContext, draft: QuestionDraft) -> QuestionDraft:
    """Add the other passages that answer the draft; reject it if there are too many.

    Asked about are those nearest to question and answer, then those nearest to the evidence.
    """
    count, labelled, index = context.settings.others, draft.evidence, context.index
    if not count:
        return draft
    places = index.near(draft.question, count, labelled, answer=draft.reference or "")
    everything = range(len(context.corpus.passages))
    places += index.neighbours(next(iter(labelled)), count + len(labelled), everything)
    places = [place for place in dict.fromkeys(places) if place not in labelled][:count]
    if not places:
        return draft
    answers_elsewhere: dict[int, tuple[int, str]] = {}
    for place, fully, quote in await _answering_passages(context, draft, places):
        text = context.corpus.passages[place].text
        span = find_verbatim(quote, text)
        if span and verify_quote(quote, text, draft.reference or "", draft.question) is not None:
            answers_elsewhere.setdefault(
                place, (FULL_GRADE if fully else PART_GRADE, text[slice(*span)])
            )
    # Copies of one passage are several places, but one answer.
    if len({fold(words) for _, words in answers_elsewhere.values()}) > context.settings.most_others:
        names = ", ".join(map(context.passage_id, answers_elsewhere))
        sentence = f"{len(answers_elsewhere)} other passages answer it too: {names}"
        raise _rejection(draft, "answered_elsewhere", sentence)
    return replace(draft, others=answers_elsewhere)


async def _answering_passages(
    context: GenerationContext,
    draft: QuestionDraft,
    places: Sequence[int],
    *,
    complete: bool = False,
) -> list[tuple[int, bool, str]]:
    """The passages that answer: index, whether in full, quote."""
    reply = await context.ask(
        PassageAnswers,
        question=draft.question,
        references=[draft.reference] if draft.reference else [],
        passages=context.texts(places),
    )
    answers = reply.passages
    if complete and (missing := {*range(1, len(places) + 1)} - {row.passage for row in answers}):
        sentence = f"there is no verdict on {len(missing)} of the {len(places)} nearest passages"
        raise _rejection(draft, "no_reply", sentence)
    return [
        (places[row.passage - 1], row.answers == "yes", row.quote or "")
        for row in answers
        if row.answers != "no" and 1 <= row.passage <= len(places)
    ]


def _rejection(draft: QuestionDraft, reason: str, sentence: str) -> CandidateRejectedError:
    more = {}
    if draft.reference is not None:
        quotes = [quote for texts in draft.evidence.values() for quote in texts]
        more = {"reference": draft.reference, "evidence": quotes}
    return CandidateRejectedError(reason, sentence, draft.question, more)
