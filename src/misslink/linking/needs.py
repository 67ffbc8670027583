"""The needs table: where each fact that a right answer has to have was lost.

A need is a claim of the best reference, else a labelled passage or evidence, else an answer to the
question. What a text holds is said by a model judge, else by the matcher; a matcher that finds
nothing says nothing. Labels say where to look first, and decide only where no text does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from misslink.linking.answer_outcome import AnswerOutcome, Sufficiency
from misslink.linking.claim_support import PairRelations
from misslink.linking.miss_measurement import ASKED_SHARE, asked_share
from misslink.linking.missed_passages import as_need, subject_names
from misslink.matching import claim_spans, compare, declines, says_verbatim
from misslink.retrieval import RetrievalOutcome
from misslink.text.languages import strip_polarity
from misslink.text.near_duplicates import is_near_duplicate, passage_words
from misslink.text.normalization import content_stems, fold, sentence_spans
from misslink.types import LostAt, Need, Passage, RetrievalMiss

_STATED = {"supported": "states", "contradicted": "contradicts", "unsupported": "omits"}
LABELLED = frozenset({"hit", "partial", "miss"})
LOST_STAGES = frozenset({"index", "search", "filter", "rank", "prompt"})


@dataclass(frozen=True)
class Candidate:
    """A passage that the model did not see whole, the stage that lost it, and what shows that."""

    miss: RetrievalMiss
    lost_at: LostAt
    clue: Mapping[str, Any] = field(default_factory=dict)
    labelled: bool = True

    @property
    def text(self) -> str:
        """What it says, as far as that is known."""
        return self.miss.text or self.miss.evidence or ""


@dataclass(frozen=True)
class LocatedNeed:
    """A need, and the passage that holds it where the model did not see that."""

    need: Need
    candidate: Candidate | None = None

    @property
    def is_lost(self) -> bool:
        """Whether it did not reach the prompt, as far as anything says so."""
        at = self.need.lost_at
        return at in LOST_STAGES or (at == "unknown" and self.need.by is not None)

    @property
    def is_unknown(self) -> bool:
        """Whether nothing says where it is."""
        return self.need.lost_at == "unknown" and self.need.by is None


@dataclass(frozen=True)
class NeedsTable:
    """The needs of a case, and whether the prompt held them."""

    rows: tuple[LocatedNeed, ...]
    sufficient: Sufficiency

    @cached_property
    def lost(self) -> tuple[LocatedNeed, ...]:
        """Those that did not reach the prompt."""
        return tuple(row for row in self.rows if row.is_lost)


def list_needs(known: AnswerOutcome, outcome: RetrievalOutcome) -> tuple[Need, ...]:
    """Return what a right answer has to have, and whether the answer states it."""
    if known.has_no_answer:
        return ()
    unsaid = "omits" if known.declined or known.addressed == 0 else None
    if known.reference_claims:
        return tuple(
            Need(text=claim.text, source="reference", stated=_STATED[claim.support])
            for claim in known.reference_claims
        )
    told = (reference_claims(text) for text in known.case.references)
    if claims := next(filter(None, told), ()):
        stated = "states" if known.correct and known.complete is not False else unsaid
        return tuple(Need(text=text, source="reference", stated=stated) for text in claims)
    labels = [*(match.need for match in outcome.found), *map(as_need, outcome.missed)]
    question = known.case.judged_question
    return tuple(
        Need(text=label.evidence or question, source="label", stated=unsaid, passage_id=label.id)
        for label in labels
    ) or (Need(text=question, source="question", stated=unsaid),)


def reference_claims(reference: str) -> tuple[str, ...]:
    """The claims of a reference that does not decline; one of a single word is a claim all the same."""
    spans = claim_spans(reference)
    if not spans and not declines(reference):
        spans = tuple(sentence_spans(reference))
    return tuple(reference[start:end] for start, end in spans)


@dataclass(frozen=True)
class NeedLocator:
    """What is known of the passages of a failed case.

    Parameters
    ----------
    known : AnswerOutcome
    level : str
        How much of what the labels ask for reached the prompt, as `Link.retrieval`.
    candidates : sequence of Candidate
        What the model did not see, labelled passages first.
    said : mapping
        What a model judge says of needs and passages; empty where none was asked.
    failed : bool
        Whether the answer failed.
    asked : Passage or None
        Without a reference: the passage that is clearly most about the question.
    unsearched : bool
        Whether no search ran in this case, although others show searches.
    lacks : callable or None
        Whether no passage of the index has the words of a need, read with the question. None: the
        index is not fully known.
    """

    known: AnswerOutcome
    level: str
    candidates: tuple[Candidate, ...] = ()
    said: PairRelations = field(default_factory=dict)
    failed: bool = True
    asked: Passage | None = None
    unsearched: bool = False
    lacks: Callable[..., bool] | None = None

    def table(self, needs: Sequence[Need]) -> NeedsTable:
        """Return where each need was lost, and whether the prompt sufficed."""
        rows = tuple(map(self._locate, needs))
        return NeedsTable(rows, self._sufficiency(rows))

    def passed_table(self, needs: Sequence[Need]) -> NeedsTable:
        """The table of a case that did not fail, by the judge's word, the answer and the labels."""
        known, is_hit = self.known, self.level == "hit"
        is_there = known.sufficient_judge == "yes" or is_hit
        is_there = is_there or (known.answer == "faithful" and bool(known.claims))
        said = "states" if known.judged and not known.declined else None
        rows = list[LocatedNeed]()
        for need in needs:
            told = need if need.stated else need.model_copy(update={"stated": said})
            if is_there:
                rows.append(self._in_prompt(told, "label" if is_hit else "judge", None))
            else:
                by_label = need.source == "label"
                rows.append(self._locate_label(told) if by_label else self._by_label(told))
        return NeedsTable(tuple(rows), stated_sufficiency(known, self.level))

    def contradicts_judge(self, needs: Sequence[Need]) -> bool:
        """Whether a judge's yes to the prompt stands alone: no text there has a need that is unstated.

        The app declined or used nothing of the prompt, or the need is found or labelled outside. Such a
        yes decides nothing: need by need, the judge is asked again.
        """
        declined, claims = self.known.declined, self.known.claims
        unused = declined or (bool(claims) and all(c.support == "unsupported" for c in claims))
        labelled = any(c.labelled for c in self.candidates)
        return self.known.sufficient_judge == "yes" and any(
            (unused or labelled or any(self.holds(c.text, need) for c in self.candidates))
            and self.find_shown(need) is None
            for need in needs
            if need.stated != "states"
            and (need.source == "reference" or (need.source == "question" and declined))
        )

    def lacks_words_of(self, needs: Sequence[Need]) -> bool:
        """Whether the matcher finds a need of the reference in no shown passage."""
        return any(need.source == "reference" and self.find_shown(need) is None for need in needs)

    @property
    def denied(self) -> bool:
        """Whether a model judge says that the prompt does not suffice."""
        return self.known.sufficient_judge in {"no", "partly"}

    @cached_property
    def _shown(self) -> tuple[Passage, ...]:
        return tuple(passage for passage in self.known.context if passage.text.strip())

    @cached_property
    def _ordered(self) -> tuple[Passage, ...]:
        """Those on the subject of the question first."""
        return tuple(sorted(self._shown, key=lambda one: not self._is_on_subject(one.text)))

    def _by_judge(self, need: Need) -> LocatedNeed | None:
        """Where a model judge says that a need is; None where it names no passage."""
        if self.known.sufficient_judge == "yes":
            holder = self.find_shown(need)
            return self._in_prompt(need, "judge", holder.id if holder else None)
        for passage in self._shown:
            word = self.said.get((need.text, passage.text))
            if word is not None and word.relation == "would_support" and not word.is_part:
                return self._in_prompt(need, "judge", passage.id)
        for each in self.candidates:
            word = self.said.get((need.text, each.text))
            if word is not None and word.relation == "would_support":
                return self._lost(need, each, "judge")
        return None

    def _locate(self, need: Need) -> LocatedNeed:
        if (judged := self._by_judge(need)) is not None:
            return judged
        if need.source != "reference":
            locate = self._locate_label if need.source == "label" else self._locate_question
            return locate(need)
        # Where a judge denies what a labelled passage shown whole should hold, words decide.
        is_silent = all((need.text, each.text) not in self.said for each in self._shown)
        agreed = self.known.sufficient_judge == "no"
        stale = any(c.clue.get("reason_code") == "stale_passage" for c in self.candidates)
        by_words = (is_silent and not agreed) or (self.level == "hit" and not stale)
        holder = self.find_shown(need) if by_words else None
        if holder is not None and self._is_on_subject(holder.text):
            return self._in_prompt(need, "matcher", holder.id)
        absent = self._is_absent(need)
        apart = holder is None and self.level not in LABELLED and not absent
        for each in self.candidates:
            is_near = each.labelled or apart or self._is_on_subject(each.text)
            is_outside = not each.labelled or self.level != "hit"
            if is_outside and is_near and self.holds(each.text, need):
                return self._lost(need, each, "matcher")
        absent = absent and self.level != "hit"
        if holder is not None and not absent:
            return self._in_prompt(need, "matcher", holder.id)
        return self._unlocated(need) if absent else self._by_label(need)

    @cached_property
    def _names(self) -> frozenset[str]:
        return subject_names(self.known.case.judged_question)

    def _is_on_subject(self, text: str) -> bool:
        """Whether a text has what the question names; others may state the same of something else."""
        return not (text and self._names) or self._names <= passage_words(text)

    def _is_absent(self, need: Need) -> bool:
        """Whether the index is known not to hold a need, and no labelled passage is on its subject."""
        question = self.known.case.judged_question
        own = content_stems(need.text) - content_stems(question)
        texts = (c.text for c in self.candidates if c.labelled)
        return (
            self.lacks is not None
            and not any(
                2 * len(own & passage_words(text)) > len(own) or self._is_on_subject(text)
                for text in texts
            )
            and self.lacks(need.text, question, is_unused=self._is_unused(need))
        )

    def _is_unused(self, need: Need) -> bool:
        """Whether the answer rests on nothing of the prompt; a yes or no is in no passage anyway."""
        declined, claims = self.known.declined, self.known.claims
        unused = bool(declined or claims) and all(c.support != "supported" for c in claims)
        return unused and strip_polarity(need.text) == need.text

    def _by_label(self, need: Need) -> LocatedNeed:
        """Where the labels say that a need is, which no text shows.

        Of the labelled passages that were missed, one without a text holds what no text does.
        """
        if self.level == "hit":
            return self._in_prompt(need, "label", None)
        missed = [c for c in self.candidates if c.labelled and self.level in {"miss", "partial"}]
        best = max(missed, key=lambda c: (not c.text, c.miss.grade), default=None)
        return self._unlocated(need) if best is None else self._lost(need, best, "label")

    def _locate_label(self, need: Need) -> LocatedNeed:
        """A labelled passage or evidence, where no reference says what it is needed for."""
        for one in self.candidates:
            miss, is_text = one.miss, one.miss.evidence == need.text
            is_of = is_text if miss.evidence is not None else miss.passage_id == need.passage_id
            if one.labelled and is_of:
                return self._lost(need, one, "label")
        if self.level in {"hit", "partial"}:
            by = "matcher" if need.text != self.known.case.judged_question else "label"
            return self._in_prompt(need, by, need.passage_id)
        return self._unlocated(need)

    def _locate_question(self, need: Need) -> LocatedNeed:
        """An answer to the question, by what a judge says of the claims, or the question's words."""
        asked = self.asked
        if not self.denied and asked and any(asked.id == passage.id for passage in self._shown):
            # Of a passage that was cut, words do not say on which side of the cut the answer is; nor
            # that one with a part of them has it, where nothing that was answered is in the prompt.
            used = any(claim.support == "supported" for claim in self.known.claims)
            if asked.id in self.known.trace.shown or not (
                used or asked_share(need.text, asked.text) == 1
            ):
                return self._unlocated(need)
            return self._in_prompt(need, "matcher", asked.id)
        for candidate in self.candidates:
            told = [r.relation for (_, text), r in self.said.items() if text == candidate.text]
            if {*told} - {"unrelated"} and asked_share(need.text, candidate.text) >= ASKED_SHARE:
                return self._lost(need, candidate, "judge")
            unsaid = (need.text, candidate.text) not in self.said
            if unsaid and asked is not None and candidate.miss.passage_id == asked.id:
                return self._lost(need, candidate, "matcher")
        return self._unlocated(need)

    def _unlocated(self, need: Need) -> LocatedNeed:
        """A need that no text and no label shows: lost if a judge says so, or its words are nowhere."""
        update: dict[str, Any] = {"lost_at": "unknown", "passage_id": None, "by": None}
        trace = self.known.trace
        if self.unsearched:
            update |= {"lost_at": "search", "by": "matcher"}
        elif not self.known.context and trace.unmeasured is None:  # no text can hold it
            update |= {"lost_at": "prompt" if trace.retrieved else "unknown", "by": "matcher"}
        elif need.source == "reference" and self._is_absent(need):
            update |= {"lost_at": "index", "by": "matcher"}
        elif self.denied:
            update["by"] = "judge"
            was_asked = any((need.text, each.text) in self.said for each in self.candidates)
            if was_asked and need.source == "reference" and self.lacks is not None:
                update["lost_at"] = "index"  # nor do the nearest passages of all hold it
        elif need.source == "reference" and not self.lacks and self.level not in LABELLED:
            asked, words = content_stems(self.known.case.judged_question), content_stems(need.text)
            held = [passage_words(passage.text) for passage in self._shown]
            near = any(words & asked <= stems and words & stems - asked for stems in held)
            update["by"] = "matcher" if words - asked and not near else None
        return LocatedNeed(need.model_copy(update=update))

    def _in_prompt(self, need: Need, by: str, passage_id: str | None) -> LocatedNeed:
        lacking = need.stated in {"omits", "contradicts"} or (self.failed and not need.stated)
        at = {"lost_at": "answer" if lacking else None, "by": by, "passage_id": passage_id}
        return LocatedNeed(need.model_copy(update=at))

    def _lost(self, need: Need, candidate: Candidate, by: str) -> LocatedNeed:
        miss = candidate.miss
        at = {"lost_at": candidate.lost_at, "by": by, "passage_id": miss.passage_id}
        return LocatedNeed(need.model_copy(update=at | {"true_rank": miss.true_rank}), candidate)

    def find_shown(self, need: Need) -> Passage | None:
        """The shown passage that holds a need by its words, or the first of several that do.

        One on the subject goes first, and several are on it together.
        """
        if need.source == "question":
            return self.asked
        if need.source == "label":
            return next((each for each in self._shown if each.id == need.passage_id), None)
        for passage in self._ordered:
            if self.holds(passage.text, need):
                return passage
        *_, own, alone = _subject(need.text, self.known.case.judged_question)
        parts = list[Passage]()
        found: set[str] = set()
        for passage in () if alone else self._ordered:
            if more := own.intersection(passage_words(passage.text)) - found:
                parts.append(passage)
                found |= more
        if len(parts) < _SEVERAL or len(found) < _MIN_JOINED * len(own):
            return None
        joined = " ".join(part.text for part in parts)
        return parts[0] if self._is_on_subject(joined) and self.holds(joined, need) else None

    def holds(self, text: str, need: Need) -> bool:
        """Whether a passage alone holds a need, by its words."""
        return bool(text) and states_claim(text, need.text, self.known.case.judged_question)

    def _sufficiency(self, rows: Sequence[LocatedNeed]) -> Sufficiency:
        if self.known.sufficient_judge == "yes" or not any(r.is_lost or r.is_unknown for r in rows):
            return "yes"
        if any(row.is_unknown for row in rows):
            return self.known.sufficient_judge
        return "no" if all(row.is_lost for row in rows) else "partly"


def stated_sufficiency(known: AnswerOutcome, level: str) -> Sufficiency:
    """Whether the prompt held the answer, by the judge's word or else the labels."""
    by_labels: dict[str, Sufficiency] = {"hit": "yes", "miss": "no", "not_needed": "no"}
    word = known.sufficient_judge
    return word if word == "yes" or level not in by_labels else by_labels[level]


def drop_repeats(
    missed: Sequence[RetrievalMiss], context: Sequence[Passage], question: str
) -> tuple[RetrievalMiss, ...]:
    """Return the missed passages without those that a passage in the prompt repeats."""
    return tuple(
        miss
        for miss in missed
        if not any(_repeats(miss.text or "", passage.text, question) for passage in context)
    )


# Of the words that a claim has beyond its question: in several passages together, each with some
# that the others lack.
_MIN_JOINED, _SEVERAL = 0.75, 2
_NUMBER = re.compile(r"\d+")
_NUMBERED_NAME = re.compile(r"([^\W\d_]+)[ -]?(\d+|\b[A-Z])\b")


def keeps_subject(question: str, passage: str, other: str) -> bool:
    """Whether another passage has what the question names in a passage: its words, and "Aria-3".

    "3" alone may be of anything in the data sheet of the Aria-5.
    """
    asked = _numbered_names(question)
    return passage_words(question) & passage_words(passage) <= passage_words(other) and (
        not asked or asked & _numbered_names(passage) <= _numbered_names(other)
    )


def _numbered_names(text: str) -> set[tuple[str, str]]:
    return {(name.lower(), number) for name, number in _NUMBERED_NAME.findall(text)}


def _repeats(missed: str, other: str, question: str) -> bool:
    """Whether a passage holds a missed one, or nearly repeats it, its numbers and what is asked about."""
    if missed.strip() and fold(missed) in fold(other):
        return True
    if not is_near_duplicate(missed, other):
        return False
    same_numbers = set(_NUMBER.findall(missed)) == set(_NUMBER.findall(other))
    return same_numbers and keeps_subject(question, missed, other)


@lru_cache(maxsize=4096)
def states_claim(passage: str, claim: str, question: str) -> bool:
    """Whether a passage alone, on the subject of the question, states a claim of a reference.

    It is read if it has the words: each name that claim and question share, and half of what the claim says
    beyond the question. A claim that shares nothing with the question ("At seven.") needs half of that, too;
    one that relates names by itself, such as a second hop, each of its own instead. Passages on like
    subjects differ in little else: "pump A holds 43 bar", "pump B holds 43 bar".
    """
    names, around, own, alone = _subject(claim, question)
    held = passage_words(passage)
    if not (
        names <= held
        and alone <= held
        and 2 * len(around & held) >= len(around)
        and 2 * len(own & held) >= len(own)
    ):
        return False
    # Passages state facts: they do not answer with the yes or no that the reference begins with.
    fact = strip_polarity(claim) or claim
    if says_verbatim(passage, fact):
        return True
    return compare(fact, [passage], question, of_reference=True) == "supported"


@lru_cache(maxsize=256)  # one claim is looked for in several passages, one after the other
def _subject(claim: str, question: str) -> tuple[frozenset[str], ...]:
    """The names that a claim shares with its question, the words of one of which it has none, its own.

    Last the names of a claim that relates them by itself.
    """
    asked, said, nothing = content_stems(question), content_stems(claim), frozenset[str]()
    own, alone = said - asked, nothing
    if not asked & said:
        names = frozenset(one for one in subject_names(claim) if not one[0].isdigit())
        alone = names if len(names) > 1 and own > names else nothing
    around = nothing if alone or asked & said else asked
    return subject_names(question) & said, around, own, alone
