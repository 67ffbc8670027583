"""A draft is held against its evidence, general knowledge and the rest of the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from misslink.goldset.generating import asks
from misslink.goldset.generating.asks import Compared, Elsewhere, FromEvidence, Recalled
from misslink.goldset.generating.candidates import Accepted, Draft, Rejected, Unfinished
from misslink.goldset.generating.copying import verbatim
from misslink.goldset.generating.drafting import unanswered
from misslink.goldset.generating.index import Index
from misslink.goldset.generating.settings import Settings
from misslink.goldset.generating.sources import Sources
from misslink.judging.asking import put
from misslink.judging.protocol import Ask, Judge, Reply
from misslink.judging.quotes import verified
from misslink.prompting import Prompts
from misslink.text import fold

__all__ = ["Verifier"]

_SHOWN = 200  # characters of an answer in a sentence
_FULL, _PART = 2, 1  # grades: states all of the answer, states a part


class Verifier:
    """Verifies drafts with a judge and an index of the corpus.

    Parameters
    ----------
    judge : Judge
    sources : Sources
    index : Index
    settings : Settings
    prompts : Prompts
    """

    def __init__(
        self, judge: Judge, sources: Sources, index: Index, settings: Settings, prompts: Prompts
    ) -> None:
        self._judge, self._sources, self._index = judge, sources, index
        self._settings, self._prompts = settings, prompts

    async def verify(self, draft: Draft) -> Accepted | Rejected | Unfinished:
        """Say whether a draft may stand; what is dropped early is not asked about further.

        Raises
        ------
        MisslinkError
            Asking on is pointless.
        """
        if draft.reference is None:
            return await self._unanswered_by_all(draft)
        for step in (self._answerable, self._not_by_heart):
            wrong = await step(draft)
            if wrong is not None:
                return wrong
        return await self._with_others(draft)

    async def _answerable(self, draft: Draft) -> Rejected | Unfinished | None:
        """Whether the evidence alone gives the reference answer."""
        evidence = [quote for quotes in draft.evidence.values() for quote in quotes]
        reply = await self._put(asks.answer(draft.question, evidence, self._prompts))
        if not isinstance(reply.parsed, FromEvidence):
            return unanswered(draft.slot, reply, draft.question)
        said = (reply.parsed.answer or "").strip()
        if not said:
            sentence = "from its evidence alone no answer was found"
            return _rejected(draft, "unanswerable", sentence)
        agrees = await self._agrees(draft, said)
        if agrees is False:
            sentence = f"its evidence gives '{said[:_SHOWN]}'"
            return _rejected(draft, "reference_differs", sentence)
        return None if agrees is True else agrees

    async def _not_by_heart(self, draft: Draft) -> Rejected | Unfinished | None:
        """Whether it takes a passage to answer."""
        reply = await self._put(asks.recall(draft.question, self._prompts))
        if not isinstance(reply.parsed, Recalled):
            return unanswered(draft.slot, reply, draft.question)
        said = (reply.parsed.answer or "").strip()
        if not said:
            return None
        agrees = await self._agrees(draft, said)
        if agrees is True:
            sentence = f"without any passage the answer was '{said[:_SHOWN]}'"
            return _rejected(draft, "known_by_heart", sentence)
        return None if agrees is False else agrees

    async def _agrees(self, draft: Draft, said: str) -> bool | Rejected | Unfinished:
        """Whether an answer says what the reference says; the same words do, unasked."""
        reference = draft.reference or ""
        if fold(said).rstrip(". ") == fold(reference).rstrip(". "):
            return True
        reply = await self._put(asks.compare(draft.question, reference, [said], self._prompts))
        if not isinstance(reply.parsed, Compared):
            return unanswered(draft.slot, reply, draft.question)
        told = {one.agrees for one in reply.parsed.answers if one.answer == 1}
        if len(told) != 1:
            sentence = "the comparison with the reference says nothing of the answer, or both"
            return _rejected(draft, "no_reply", sentence)
        return told == {"yes"}

    async def _with_others(self, draft: Draft) -> Accepted | Rejected | Unfinished:
        """The draft with the other passages that answer it too, of which there may be few."""
        places = self._others(draft)
        if not places:
            return Accepted(draft)
        reply = await self._put(self._elsewhere(draft, places))
        if not isinstance(reply.parsed, Elsewhere):
            return unanswered(draft.slot, reply, draft.question)
        others: dict[int, tuple[int, str]] = {}
        for place, fully, quote in _told(reply.parsed, places):
            words = self._proof(draft, place, quote)
            if words is not None:
                others.setdefault(place, (_FULL if fully else _PART, words))
        # Copies of one passage are many places, and one answer.
        if len({fold(words) for _, words in others.values()}) > self._settings.most_others:
            names = ", ".join(self._sources.passages[place].id for place in others)
            sentence = f"{len(others)} other passages answer it too: {names}"
            return _rejected(draft, "answered_elsewhere", sentence)
        return Accepted(draft, others)

    async def _unanswered_by_all(self, draft: Draft) -> Accepted | Rejected | Unfinished:
        """Whether none of the passages nearest to a negative answers it, in whole or in part.

        Here a judge's word is enough against a question, quoted or not: that nothing answers it
        has to be beyond doubt.
        """
        near = self._index.near(draft.question, self._settings.against_negative)
        places = list(dict.fromkeys([*near, *draft.slot.passages]))
        reply = await self._put(self._elsewhere(draft, places))
        if not isinstance(reply.parsed, Elsewhere):
            return unanswered(draft.slot, reply, draft.question)
        told = {one.passage for one in reply.parsed.passages}
        if missing := set(range(1, len(places) + 1)) - told:
            sentence = f"nothing was said of {len(missing)} of the {len(places)} nearest passages"
            return _rejected(draft, "no_reply", sentence)
        for place, _, quote in _told(reply.parsed, places):
            name = self._sources.passages[place].id
            sentence = f"'{name}' answers it: '{(quote or '')[:_SHOWN]}'"
            return _rejected(draft, "answerable_after_all", sentence)
        return Accepted(draft)

    def _proof(self, draft: Draft, place: int, quote: str | None) -> str | None:
        """The quoted words in the passage's own characters; None where they prove nothing."""
        text = self._sources.passages[place].text
        at = verbatim(quote or "", text)
        if at is None or verified(quote or "", text, draft.reference or "", draft.question) is None:
            return None
        return text[at[0] : at[1]]

    def _others(self, draft: Draft) -> list[int]:
        """The passages nearest to question and answer, filled up with those near the evidence."""
        wanted = self._settings.others
        if not wanted:
            return []
        known = draft.evidence
        found = self._index.near(draft.question, wanted, known, answer=draft.reference or "")
        everything = range(len(self._sources.passages))
        around = self._index.neighbours(next(iter(known)), wanted + len(known), everything)
        found += [place for place in around if place not in known and place not in found]
        return found[:wanted]

    def _elsewhere(self, draft: Draft, places: Sequence[int]) -> Ask:
        references = [draft.reference] if draft.reference else []
        texts = [self._sources.passages[place].text for place in places]
        return asks.elsewhere(draft.question, references, texts, self._prompts)

    async def _put(self, ask: Ask) -> Reply:
        return await put(self._judge, ask)


def _told(said: Elsewhere, places: Sequence[int]) -> list[tuple[int, bool, str | None]]:
    """The passages that are said to answer: place, whether in full, quote."""
    return [
        (places[one.passage - 1], one.answers == "yes", one.quote)
        for one in said.passages
        if one.answers != "no" and 1 <= one.passage <= len(places)
    ]


def _rejected(draft: Draft, reason: str, sentence: str) -> Rejected:
    quotes = [quote for texts in draft.evidence.values() for quote in texts]
    more: dict[str, Any] = {}
    if draft.reference is not None:
        more = {"reference": draft.reference, "evidence": quotes}
    return Rejected(draft.slot, reason, " ".join(sentence.split()), draft.question, more)
