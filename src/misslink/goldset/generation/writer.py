"""Write a candidate question with a judge, and check it without one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from misslink.goldset.generation.candidates import (
    CandidateSlot,
    GenerationContext,
    NegativeQuestion,
    PassageQuote,
    QuestionDraft,
    RejectedCandidate,
    RewrittenQuestion,
    UnfinishedCandidate,
    WrittenQuestion,
)
from misslink.goldset.generation.corpus import CopiedWording, find_verbatim, measure_copying
from misslink.judge.judge_case import SkippedReply
from misslink.judge.protocol import Reply
from misslink.text.normalization import fold, sentence_spans, stems, valid_text

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


async def write_draft(
    context: GenerationContext, slot: CandidateSlot
) -> QuestionDraft | RejectedCandidate | UnfinishedCandidate:
    """Write the candidate of a slot; rewrite it once if it copies its passages.

    Raises
    ------
    MisslinkError
        Further asks are pointless.
    """
    settings = context.settings
    category = settings.categories[slot.category]
    least = 1 if category.negative else category.passages[0]
    if len(slot.passages) < least:
        sentence = (
            f"it needs {least} passages, and only {len(slot.passages) - 1} near "
            f"'{context.passage_id(slot.passages[0])}' do not repeat it"
        )
        return RejectedCandidate(slot, "no_neighbours", sentence)
    reply = await context.ask(
        "goldset_write_negative" if category.negative else "goldset_write",
        kind=category.asks,
        asker=settings.personas[slot.persona].asks,
        length=settings.lengths[slot.length].words,
        passages=context.texts(slot.passages),
    )
    if isinstance(reply.parsed, NegativeQuestion):
        written = WrittenQuestion(question=reply.parsed.question, reference=None, quotes=())
    elif isinstance(reply.parsed, WrittenQuestion):
        written = reply.parsed
    else:
        return unreadable_reply(slot, reply, None)
    draft = _checked_draft(context, slot, written, least, negative=category.negative)
    if isinstance(draft, RejectedCandidate) or category.negative:
        return draft
    return await _in_other_words(context, draft)


def _checked_draft(
    context: GenerationContext,
    slot: CandidateSlot,
    written: WrittenQuestion,
    least: int,
    *,
    negative: bool,
) -> QuestionDraft | RejectedCandidate:
    question, reference = _single_line(written.question), _single_line(written.reference)
    if problem := _wording_problem(question, reference, negative=negative):
        return RejectedCandidate(slot, *problem, question or None)
    texts = context.texts(slot.passages)
    answer = "" if negative else reference
    if instruction := _obeyed_instruction(question, answer, written.quotes, texts):
        sentence = f"a passage orders it: '{' '.join(instruction.split())[:200]}'"
        return RejectedCandidate(slot, "obeys_passage", sentence, question)
    if negative:
        return QuestionDraft(slot, question)
    more = {"reference": reference}
    evidence = _evidence(context, slot, written.quotes)
    if isinstance(evidence, str):
        return RejectedCandidate(slot, "quote_not_verbatim", evidence, question, more)
    if len(evidence) < least:
        sentence = f"it quotes {len(evidence)} passages and needs {least}"
        return RejectedCandidate(slot, "too_few_passages", sentence, question, more)
    return QuestionDraft(slot, question, reference, evidence)


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
            words = " ".join(quote.quote.split())[:200]
            return f"'{words}' is not in '{context.passage_id(place)}'"
        words = text[slice(*span)]
        if words not in evidence.setdefault(place, []):
            evidence[place].append(words)
    if not evidence:
        return "it quotes nothing"
    return {place: tuple(evidence[place]) for place in slot.passages if place in evidence}


async def _in_other_words(
    context: GenerationContext, draft: QuestionDraft
) -> QuestionDraft | RejectedCandidate | UnfinishedCandidate:
    texts = context.texts(draft.evidence)

    def is_copy(copying: CopiedWording) -> bool:
        settings = context.settings
        is_shared = (copying.share or 0) >= settings.shared_words
        return is_shared or copying.run >= settings.longest_run

    copying = measure_copying(draft.question, texts)
    if not is_copy(copying):
        return draft
    words = [copying.words] if copying.words else []
    reply = await context.ask(
        "goldset_rewrite", question=draft.question, copied=words, passages=texts
    )
    if not isinstance(reply.parsed, RewrittenQuestion):
        return unreadable_reply(draft.slot, reply, draft.question)
    question = _single_line(reply.parsed.question)
    if question:
        copying = measure_copying(question, texts)
    if is_copy(copying):
        share = "" if copying.share is None else f", and shares {copying.share:.0%} of its words"
        sentence = f"it copies {copying.run} words in a row{share}: '{copying.words}'"
        question = question or draft.question
        return RejectedCandidate(draft.slot, "copies_passage", sentence, question)
    if problem := _wording_problem(question, draft.reference or "", negative=False):
        return RejectedCandidate(draft.slot, *problem, question)
    return QuestionDraft(draft.slot, question, draft.reference, draft.evidence, rewritten=True)


def unreadable_reply(
    slot: CandidateSlot, reply: Reply, question: str | None
) -> RejectedCandidate | UnfinishedCandidate:
    """Return the end of a candidate after a missing or unreadable reply."""
    reason = " ".join((reply.problem or "the reply does not match the schema").split())
    if isinstance(reply, SkippedReply):
        return UnfinishedCandidate(slot, reason)
    return RejectedCandidate(slot, "no_reply", reason[:300], question)


def _single_line(text: str | None) -> str:
    """A text on one line, without invisible characters."""
    joined = " ".join(valid_text(text or "").split())
    return "".join(filter(str.isprintable, joined)).strip()


def _wording_problem(question: str, reference: str, *, negative: bool) -> tuple[str, str] | None:
    """The code and the sentence of what is wrong with the words alone."""
    if not question:
        return "no_question", "the writer returned none"
    if reference_words := _PASSAGE_REFERENCE.search(fold(question)):
        words = reference_words.group()
        return "refers_to_passage", f"it says '{words}', but users do not see a passage"
    limits = [("question", question, _MAX_QUESTION_LENGTH)]
    if not negative:
        limits.append(("reference answer", reference, _MAX_REFERENCE_LENGTH))
    for name, text, limit in limits:
        if not any(map(str.isalnum, text)):
            return "malformed", f"the {name} has no words"
        if len(text) > limit:
            return "malformed", f"the {name} has {len(text)} characters, more than {limit}"
    return None


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
