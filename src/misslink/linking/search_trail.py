"""What an app did to find passages: the stage at which it lost one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from misslink.linking.miss_measurement import MissMeasurements
from misslink.linking.missed_passages import subject_names
from misslink.linking.needs import Candidate
from misslink.text.near_duplicates import passage_stems
from misslink.text.normalization import STOPWORDS, content_stems, fold, stems
from misslink.types import VECTOR_QUERY, Case, LostAt, RetrievalMiss, Trace

_PROMPT: LostAt = "prompt"
AND = re.compile(r",|\b(?:and|und|et|y)\b")
_WORD = re.compile(r"[^\W_][\w'-]+")


@dataclass(frozen=True)
class SearchTrail:
    """What the app did to find passages, and the stage at which it lost one."""

    case: Case
    trace: Trace
    measured: MissMeasurements
    k: int

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
        shown = self.trace.context(self.k)
        full = {passage.id: passage for passage in self.trace.retrieved}
        for passage in shown:
            clue: dict[str, Any] = {}
            text, stage = full[passage.id].text, _PROMPT
            if passage.id in self.trace.shown and fold(passage.text) != fold(text):
                clue, stage = {"reason_code": "passage_cut"}, "prompt"
            elif (stored := self.stored_text(passage.id)) and is_another_text(stored, text):
                clue, stage, text = {"reason_code": "stale_passage"}, "index", stored
            if clue:
                status = "dropped_from_prompt" if stage == "prompt" else "not_indexed"
                miss = RetrievalMiss(passage_id=passage.id, text=text, status=status)
                changed.append(Candidate(miss, stage, clue, labelled=False))
        return changed

    def stored_text(self, passage_id: str) -> str | None:
        """Its text in the listed corpus."""
        pool = self.measured.pool
        if pool is None or not pool.listed or passage_id not in pool.position:
            return None
        return pool.passages[pool.position[passage_id]].text

    def _stage(self, miss: RetrievalMiss) -> tuple[LostAt, dict[str, Any]]:
        if miss.status == "not_indexed":
            return "index", {}
        if miss.status == "dropped_from_prompt":
            is_cut = miss.passage_id in self.trace.shown
            return "prompt", {"reason_code": "passage_cut"} if is_cut else {}
        if clue := self._lost_words(miss.passage_id):
            return "search", {**clue, "mode": "lost_context"}
        if self.is_absent:
            return "search", {"reason_code": "no_search", "mode": "not_searched"}
        if query := self._wrong_hop(miss):
            code = "wrong_first_hop"
            return "search", {"reason_code": code, "query": query, "mode": "not_searched"}
        return "filter" if miss.miss_type == "filtered_out" else "rank", {}

    def _lost_words(self, passage_id: str) -> dict[str, Any] | None:
        """What shows that most of what finds a passage, of all that was asked, is in no query."""
        case, pool = self.case, self.measured.pool
        queries = [call.query for call in self.trace.calls if not call.nested]
        if pool is None or not queries or not {"", VECTOR_QUERY}.isdisjoint(queries):
            return None
        said = (turn.content for turn in case.history if turn.role == "user")
        asked = stems(" ".join((case.question, case.standalone_question or "", *said)))
        kept = set(stems(" ".join(queries)))
        lost, k = {*asked} - kept, len(self.trace.context(self.k)) or self.k
        weight = pool.weight(lost, passage_id)
        mostly = weight > pool.weight(kept, passage_id)
        ranked = pool.rank({*asked}, passage_id) <= k < pool.rank(kept, passage_id, 0.83)
        if not (mostly or (weight and ranked) or self._leaves_out(passage_id, kept)):
            return None
        if turn := self.measured.prompted_before.get(case.id, {}).get(passage_id):
            return {"query": queries[-1], "reason_code": "prompted_before", "turn": turn}
        code = f"{'standalone' if case.history else 'question'}_finds_it"
        return {"query": queries[-1], "reason_code": code}

    def _leaves_out(self, passage_id: str, kept: AbstractSet[str]) -> bool:
        """Whether the queries leave out one of the things asked, and the passage is on none of the others.

        What all of them are asked of, names and what queries and passage share, does not count.
        """
        question, pool = self.case.judged_question, self.measured.pool
        if pool is None or passage_id not in pool.position:
            return False
        shared = kept & set(passage_stems(pool.passages[pool.position[passage_id]].text))
        subject = subject_names(question) | shared
        parts = [content_stems(part) - subject for part in AND.split(question)]
        return any(part & kept for part in parts) and any(
            part and part.isdisjoint(kept) for part in parts
        )

    def _wrong_hop(self, miss: RetrievalMiss) -> str | None:
        """The later query on a name from an earlier result that the passage lacks, and has another.

        Neither name is in the question.
        """
        if len(self.trace.calls) < 2:
            return None
        texts = {each.id: each.text for each in (*self.trace.retrieved, *self.trace.deeper)}
        asked, held = _words(self.case.judged_question), _words(miss.text or "")
        names: set[str] = set()
        for call in (call for call in self.trace.calls if not call.nested):
            query = _words(call.query)
            followed = names & query - asked
            if not followed <= held and (names & held) - asked - query:
                return call.query
            names |= _names(" ".join(texts.get(id_, "") for id_ in call.passages))
        return None


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
