"""A candidate is written, and held against its passages without asking anybody."""

from __future__ import annotations

import re
from collections.abc import Sequence

from misslink.goldset.generating import asks
from misslink.goldset.generating.asks import Negative, Order, Quote, Rewritten, Written
from misslink.goldset.generating.candidates import Draft, Rejected, Unfinished
from misslink.goldset.generating.copying import Copied, copied, verbatim
from misslink.goldset.generating.planning import Slot
from misslink.goldset.generating.settings import Settings
from misslink.goldset.generating.sources import Sources
from misslink.judging.asking import Unasked, put
from misslink.judging.embedded.lexical import stems
from misslink.judging.protocol import Judge, Reply
from misslink.prompting import Prompts
from misslink.text import fold, sentences, valid_text

__all__ = ["Writer", "unanswered"]

_LONGEST_QUESTION, _LONGEST_REFERENCE = 400, 2_000  # characters
_PASSAGE_WORDS = (
    r"(?:passages?|texts?|excerpts?|snippets?|documents?|contexts?|paragraphs?|articles?"
    r"|sections?|evidence)"
)
_GERMAN_WORDS = (
    r"(?:textstelle|text|textabschnitt|abschnitt|auszug|dokument|kontext|absatz|artikel)"
)
_REFERS = re.compile(
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
# Sentences of a passage that speak to whoever writes, and not of its subject.
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:instruction|task|prompt|above|previous|rules?)"
    r"|\b(?:write|ask|reply|respond|answer|output|say|use)\b.{0,20}\b(?:the )?(?:question|reference"
    r"|exactly|only with|this question)\b"
    r"|\b(?:you are|as) (?:an? )?(?:ai|assistant|language model|llm)\b"
    r"|\bsystem prompt\b|\bignoriere\b.{0,40}\b(?:anweisung|aufgabe|regel)",
    re.DOTALL,
)
_OBEYED = 0.6  # share of a question's or answer's stems that such a sentence holds


class Writer:
    """Writes candidates with a judge.

    Parameters
    ----------
    judge : Judge
    sources : Sources
    settings : Settings
    prompts : Prompts
    """

    def __init__(
        self, judge: Judge, sources: Sources, settings: Settings, prompts: Prompts
    ) -> None:
        self._judge, self._sources = judge, sources
        self._settings, self._prompts = settings, prompts

    async def draft(self, slot: Slot) -> Draft | Rejected | Unfinished:
        """Write the candidate of a slot; once more in other words where it copies its passages.

        Raises
        ------
        MisslinkError
            Asking on is pointless.
        """
        kind = self._settings.categories[slot.category]
        least = 1 if kind.negative else kind.passages[0]
        if len(slot.passages) < least:
            return Rejected(
                slot,
                "no_neighbours",
                f"{least} passages are wanted, and near '{self._id(slot.passages[0])}' there are "
                f"only {len(slot.passages) - 1} that do not repeat it",
            )
        ask = asks.write_negative if kind.negative else asks.write
        reply = await put(self._judge, ask(self._order(slot), self._texts(slot), self._prompts))
        if isinstance(reply.parsed, Negative):
            said = Written(question=reply.parsed.question, reference=None, quotes=())
        elif isinstance(reply.parsed, Written):
            said = reply.parsed
        else:
            return unanswered(slot, reply, None)
        drafted = self._checked(slot, said, least, negative=kind.negative)
        if isinstance(drafted, Rejected) or kind.negative:
            return drafted
        return await self._in_other_words(drafted)

    def _checked(
        self, slot: Slot, said: Written, least: int, *, negative: bool
    ) -> Draft | Rejected:
        """What can be said of a question without asking."""
        question, reference = _line(said.question), _line(said.reference)
        if wrong := _wrong(question, reference, negative=negative):
            return Rejected(slot, *wrong, question or None)
        texts = self._texts(slot)
        if order := _obeyed(question, "" if negative else reference, said.quotes, texts):
            sentence = f"a passage orders it: '{' '.join(order.split())[:200]}'"
            return Rejected(slot, "obeys_passage", sentence, question)
        if negative:
            return Draft(slot, question)
        more = {"reference": reference}
        evidence = self._evidence(slot, said.quotes)
        if isinstance(evidence, str):
            return Rejected(slot, "quote_not_verbatim", evidence, question, more)
        if len(evidence) < least:
            sentence = f"it quotes {len(evidence)} passages where {least} are wanted"
            return Rejected(slot, "too_few_passages", sentence, question, more)
        return Draft(slot, question, reference, evidence)

    def _evidence(self, slot: Slot, quotes: Sequence[Quote]) -> dict[int, tuple[str, ...]] | str:
        """The quotes in their passages' own characters, by place; or what is wrong with one."""
        found: dict[int, list[str]] = {}
        for quote in quotes:
            if not 1 <= quote.passage <= len(slot.passages):
                return f"it quotes passage {quote.passage} of {len(slot.passages)}"
            place = slot.passages[quote.passage - 1]
            text = self._sources.passages[place].text
            at = verbatim(quote.quote, text)
            if at is None:
                said = " ".join(quote.quote.split())[:200]
                return f"'{said}' does not stand in '{self._id(place)}'"
            words = text[at[0] : at[1]]
            if words not in found.setdefault(place, []):
                found[place].append(words)
        if not found:
            return "it quotes nothing"
        order = [place for place in slot.passages if place in found]
        return {place: tuple(found[place]) for place in order}

    async def _in_other_words(self, draft: Draft) -> Draft | Rejected | Unfinished:
        texts = [self._sources.passages[place].text for place in draft.evidence]
        first = copied(draft.question, texts)
        if not self._copies(first):
            return draft
        words = [first.words] if first.words else []
        ask = asks.rewrite(draft.question, words, texts, self._prompts)
        reply = await put(self._judge, ask)
        if not isinstance(reply.parsed, Rewritten):
            return unanswered(draft.slot, reply, draft.question)
        question = _line(reply.parsed.question)
        again = copied(question, texts)
        if not question or self._copies(again):
            said = again if question else first
            share = "" if said.share is None else f", and {said.share:.0%} of its own words"
            sentence = f"it has {said.run} words in a row of its passage{share}: '{said.words}'"
            return Rejected(draft.slot, "copies_passage", sentence, question or draft.question)
        if wrong := _wrong(question, draft.reference or "", negative=False):
            return Rejected(draft.slot, *wrong, question)
        return Draft(draft.slot, question, draft.reference, draft.evidence, rewritten=True)

    def _copies(self, found: Copied) -> bool:
        shared = found.share is not None and found.share >= self._settings.shared_words
        return shared or found.run >= self._settings.longest_run

    def _order(self, slot: Slot) -> Order:
        settings = self._settings
        return Order(
            kind=settings.categories[slot.category].asks,
            asker=settings.personas[slot.persona].asks,
            length=settings.lengths[slot.length].words,
        )

    def _texts(self, slot: Slot) -> list[str]:
        return [self._sources.passages[place].text for place in slot.passages]

    def _id(self, place: int) -> str:
        return self._sources.passages[place].id


def unanswered(slot: Slot, reply: Reply, question: str | None) -> Rejected | Unfinished:
    """What becomes of a candidate about which a question has no readable reply."""
    why = " ".join((reply.problem or "the reply is of another form").split())
    if isinstance(reply, Unasked):
        return Unfinished(slot, why)
    return Rejected(slot, "no_reply", why[:300], question)


def _line(text: str | None) -> str:
    """A text on one line, without what cannot be seen."""
    joined = " ".join(valid_text(text or "").split())
    return "".join(c for c in joined if c.isprintable()).strip()


def _wrong(question: str, reference: str, *, negative: bool) -> tuple[str, str] | None:
    """The code and the sentence of what is wrong with the words alone."""
    if not question:
        return "no_question", "the writer gave none"
    if spoken := _REFERS.search(fold(question)):
        return "refers_to_passage", f"it says '{spoken.group()}', and its asker has seen none"
    limits = [("question", question, _LONGEST_QUESTION)]
    if not negative:
        limits.append(("reference answer", reference, _LONGEST_REFERENCE))
    for what, text, most in limits:
        if not any(map(str.isalnum, text)):
            return "malformed", f"the {what} has no word"
        if len(text) > most:
            return "malformed", f"the {what} has {len(text)} characters, and {most} are allowed"
    return None


def _obeyed(
    question: str, reference: str, quotes: Sequence[Quote], texts: Sequence[str]
) -> str | None:
    """The sentence of a passage that orders what was written, if there is one."""
    for text in texts:
        for start, end in sentences(text):
            sentence = text[start:end]
            if not _ORDERS.search(fold(sentence)):
                continue
            held = set(stems(sentence))
            told = [set(stems(said)) for said in (question, reference)]
            if any(own and len(own & held) >= _OBEYED * len(own) for own in told):
                return sentence
            if any(verbatim(quote.quote, sentence) for quote in quotes):
                return sentence
    return None
