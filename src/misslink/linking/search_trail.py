"""What an app did to find passages: the stage at which it lost one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from misslink.linking.miss_measurement import MissMeasurements
from misslink.linking.missed_passages import NAME, subject_names
from misslink.linking.needs import Candidate
from misslink.matching import is_negated
from misslink.text.near_duplicates import passage_words
from misslink.text.normalization import STOPWORDS, content_stems, fold, stems
from misslink.types import VECTOR_QUERY, Case, LostAt, RetrievalMiss, RetrieverCall, Trace

AND = re.compile(r",|\b(?:and|und|et|y)\b")  # between things that are asked at once
_DENIAL = "not"
_WORD = re.compile(r"[^\W_][\w'-]+")


@dataclass(frozen=True)
class SearchTrail:
    """What the app did to find passages, and the stage at which it lost one."""

    case: Case
    trace: Trace
    measured: MissMeasurements
    k: int

    @cached_property
    def _calls(self) -> list[RetrieverCall]:
        """The searches, without those inside of another."""
        return [call for call in self.trace.calls if not call.nested]

    @property
    def is_absent(self) -> bool:
        """Whether no search ran in this case, although others show searches."""
        trace = self.trace
        return self.measured.searches and not (trace.calls or trace.retrieved or trace.unmeasured)

    def candidates(
        self, missed: Sequence[RetrievalMiss], found: Sequence[RetrievalMiss]
    ) -> tuple[Candidate, ...]:
        """The passages that the model did not see whole: labelled, cut or stale, found by a search."""
        known = [Candidate(miss, *self._stage(miss)) for miss in missed]
        ids = {miss.passage_id for miss in missed}
        known += [one for one in self._changed() if one.miss.passage_id not in ids]
        known += [
            Candidate(m, *self._stage(m), labelled=False) for m in found if m.passage_id not in ids
        ]
        return tuple(known)

    def _changed(self) -> list[Candidate]:
        """Shown passages whose text is not what the retriever returned, or what the corpus holds."""
        changed = []
        full = {passage.id: passage.text for passage in self.trace.retrieved}
        for id_, shown in ((one.id, one.text) for one in self.trace.context(self.k)):
            text, stored = full[id_], self.stored_text(id_)
            is_cut = id_ in self.trace.shown and fold(shown) != fold(text)
            is_beginning = id_ in self.measured.pool.cut
            if is_cut or is_beginning or (stored and is_another_text(stored, text)):
                miss = RetrievalMiss(
                    passage_id=id_,
                    text=text if is_cut else stored,
                    status="dropped_from_prompt" if is_cut else "not_indexed",
                )
                of_index = "cut_in_index" if is_beginning else "stale_passage"
                clue = {"reason_code": "passage_cut" if is_cut else of_index}
                changed.append(
                    Candidate(miss, "prompt" if is_cut else "index", clue, labelled=False)
                )
        return changed

    def stored_text(self, passage_id: str) -> str | None:
        """Its text in the listed corpus."""
        return self.measured.pool.text(passage_id) if self.measured.pool.listed else None

    def _stage(self, miss: RetrievalMiss) -> tuple[LostAt, dict[str, Any]]:
        if miss.status == "not_indexed":
            return "index", {}
        if miss.status == "dropped_from_prompt":
            is_cut = miss.passage_id in self.trace.shown
            return "prompt", {"reason_code": "passage_cut"} if is_cut else {}
        if self.is_absent:
            return "search", {"reason_code": "no_search"}
        if self._calls and (clue := self._lost_words(miss.passage_id) or self._wrong_hop(miss)):
            return "search", {"mode": "lost_context", **clue}
        return "filter" if miss.miss_type == "filtered_out" else "rank", {}

    def _lost_words(self, passage_id: str) -> dict[str, Any] | None:
        """What shows that most of what finds a passage, of all that was asked, is in no query."""
        case, pool = self.case, self.measured.pool
        queries = [call.query for call in self._calls]
        text = pool.text(passage_id)
        if text is None or not {"", VECTOR_QUERY}.isdisjoint(queries):
            return None
        held = _with_denial(passage_words, text)
        said = (turn.content for turn in case.history if turn.role == "user")
        asked = _with_denial(stems, case.judged_question).union(
            stems(" ".join((case.question, *said)))
        )
        kept = _with_denial(stems, " ".join(queries))
        mostly = pool.weight(asked - kept, passage_id) > pool.weight(kept, passage_id)
        if kept <= asked and _DENIAL in asked - kept:  # a word in its place might say it, too
            return {"query": queries[-1], "reason_code": "negation_left_out"}
        swapped = self._asks_for_another(held, asked, kept)
        if not (mostly or swapped or self._leaves_out(held, kept)):
            return None
        if turn := self.measured.prompted_before.get(case.id, {}).get(passage_id):
            return {"query": queries[-1], "reason_code": "prompted_before", "turn": turn}
        code = f"{'standalone' if case.history else 'question'}_finds_it"
        return {"query": queries[-1], "reason_code": code}

    def _leaves_out(self, held: set[str], kept: set[str]) -> bool:
        """Whether the queries leave out one of the things asked, and the passage is on none of the others.

        What all of them are asked of, names and what queries and passage share, does not count.
        """
        question = self.case.judged_question
        subject = subject_names(question) | (kept & held)
        parts = [content_stems(part) - subject for part in AND.split(question)]
        return any(part & kept for part in parts) and any(
            part and part.isdisjoint(kept) for part in parts
        )

    def _asks_for_another(self, held: set[str], asked: set[str], kept: set[str]) -> bool:
        """Whether the queries lack words that passage and question share, or add numbers, and none of its words.

        They add twice as many words as were asked, as an imagined answer does and a rewording does not;
        or a found passage is to them what the missed one is to the question: it has what that one has
        of the words of both, and neither has words that only the other's has.
        """
        lost, added, shared = asked - kept, kept - asked, asked & kept
        numbers = {word for word in added if word[0].isdigit()}
        if is_numbered := bool(numbers) and numbers.isdisjoint(held):
            added -= held  # of a date the rest may agree
        if held & added or not (held & lost or is_numbered):
            return False
        found = (_with_denial(passage_words, passage.text) for passage in self.trace.retrieved)
        return len(added) > 2 * len(asked) or any(
            held & shared <= each and (each & added or not added) and not each & lost
            for each in found
        )

    def _wrong_hop(self, miss: RetrievalMiss) -> dict[str, Any] | None:
        """The query that lacks a name of the passage from an earlier message or result, as all queries do.

        It follows another name from one, which the passage lacks; or, where the passage has none of
        the question's names, no name at all. These names are not in the question.
        """
        texts = {each.id: each.text for each in (*self.trace.retrieved, *self.trace.deeper)}
        question = self.case.judged_question
        asked, held = _words(question), _words(miss.text or "")
        missing = held - asked - _words(" ".join(call.query for call in self._calls))
        subject = _words(" ".join(NAME.findall(question)))
        said = _words(" ".join(NAME.findall(" ".join(turn.content for turn in self.case.history))))
        names = set(said)
        for call in self._calls:
            query = _words(call.query)
            followed = names & query - asked
            strayed = followed - held
            if strayed & said and said & missing:
                return {"reason_code": "wrong_referent", "query": call.query}
            nameless = bool(subject) and not followed and subject.isdisjoint(query | held)
            if (names - said) & missing and (nameless or strayed):
                code = "hop_without_name" if nameless else "wrong_first_hop"
                return {"reason_code": code, "query": call.query, "mode": "not_searched"}
            names |= _names(" ".join(texts.get(id_, "") for id_ in call.passages))
        return None


def _with_denial(read: Callable[[str], Iterable[str]], text: str) -> set[str]:
    """The words of a text, and a denial, which is none of them, as one more."""
    return {*read(text), *((_DENIAL,) if is_negated(text) else ())}


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _names(text: str) -> set[str]:
    """Words that a text writes with a capital, and never without."""
    words = set(_WORD.findall(text))
    lower = {word for word in words if word.islower()}
    return {word.casefold() for word in words if word[0].isupper()} - lower - STOPWORDS


def is_another_text(stored: str, text: str) -> bool:
    """Whether a text is another one than the stored, and neither is a part of the other."""
    if stored == text:
        return False
    one, other = fold(stored), fold(text)
    return bool(other) and one not in other and other not in one
