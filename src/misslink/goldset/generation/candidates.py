"""A question on its way into a gold set: planned, written, and accepted or rejected."""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from misslink.goldset.generation.corpus import PassageIndex, SourceCorpus
from misslink.goldset.generation.settings import GenerationSettings, QuestionLength, QuestionPersona
from misslink.goldset.versions import apportion
from misslink.text.normalization import fold
from misslink.types import Case

_NEIGHBOURS = 6  # from which a further passage is drawn
_NEGATIVE_PASSAGES = 3  # for a question that nothing answers
_MAX_USES = 3  # of a passage for one category
_PREFERENCE_PATTERNS = {
    "dates": re.compile(
        r"\b(?:1[5-9]|20)\d\d\b|\b\d{1,2}:\d\d\b|\b\d+\s*(?:minutes?|hours?|days?|weeks?|months?"
        r"|years?|Minuten?|Stunden?|Tagen?|Wochen?|Monaten?|Jahren?)\b"
        r"|\b(?:before|after|until|since|during|bevor|nachdem|bis|seit)\b",
        re.IGNORECASE,
    ),
    "steps": re.compile(
        r"^\s*(?:\d+[.)]|[-*+])\s+\S|\b(?:first|then|next|finally|must|step|to do so|run|click"
        r"|zuerst|dann|danach|schlie(?:\u00df|ss)lich|muss|Schritt)\b",
        re.IGNORECASE | re.MULTILINE,
    ),
    "names": re.compile(r"(?<=[a-z,;] )[A-Z][\w-]{2,}"),
}
_MIN_MATCHES = 2  # of a preferred passage

# Why a candidate was dropped, by code; its sentence has the details.
REJECT_REASONS: Mapping[str, str] = {
    "no_reply": "the judge's reply cannot be read",
    "no_neighbours": "too few passages are near the first one",
    "no_question": "the writer found no question of this category in the passages",
    "malformed": "the question or its answer is empty or too long",
    "refers_to_passage": "it refers to a passage that users do not see",
    "quote_not_verbatim": "the evidence is not in its passage",
    "too_few_passages": "it needs fewer passages than its category requires",
    "obeys_passage": "it obeys an instruction in a passage",
    "copies_passage": "it copies the wording of a passage, also after rewriting",
    "near_duplicate": "another question asks the same",
    "unanswerable": "its evidence does not answer it",
    "reference_differs": "its evidence gives another answer than the reference",
    "known_by_heart": "it was answered correctly without any passage",
    "answered_elsewhere": "too many other passages answer it too",
    "answerable_after_all": "a passage answers a question that nothing should answer",
}


@dataclass(frozen=True)
class CandidateSlot:
    """One candidate before it is written.

    Parameters
    ----------
    category : str
    number : int
        Number within its category, from 0.
    passages : sequence of int
        Indices of the passages for the writer, the main one first.
    persona, length : str
        Names.
    """

    category: str
    number: int
    passages: tuple[int, ...]
    persona: str
    length: str


@dataclass(frozen=True)
class QuestionDraft:
    """A written question.

    Parameters
    ----------
    slot : CandidateSlot
    question : str
    reference : str or None
        None: nothing answers it.
    evidence : mapping of int to sequence of str
        By passage index, in the passage's characters.
    rewritten : bool
        Whether it was rewritten because it copied its passages.
    others : mapping of int to (int, str)
        Grades and quotes of other passages that answer it, by passage index.
    """

    slot: CandidateSlot
    question: str
    reference: str | None = None
    evidence: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    rewritten: bool = False
    others: Mapping[int, tuple[int, str]] = field(default_factory=dict)


class CandidateRejectedError(Exception):
    """A candidate is dropped, by a code of `REJECT_REASONS` and what was observed."""

    def __init__(
        self,
        reason: str,
        sentence: str,
        question: str | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(" ".join(sentence.split()))
        self.reason = reason
        self.question = question or None
        self.more = more or {}


class CandidateSkippedError(Exception):
    """An ask about a candidate was skipped: the budget or the time is used up."""


class CandidatePlan:
    """All candidates that may be tried, in an order that depends only on seed and corpus.

    Parameters
    ----------
    corpus : SourceCorpus
    index : PassageIndex
    settings : GenerationSettings
    n : int
        Number of questions, at least 1.
    seed : int

    Attributes
    ----------
    wanted : mapping of str to int
        Number of questions by category; the sum is `n`.
    """

    def __init__(
        self,
        corpus: SourceCorpus,
        index: PassageIndex,
        settings: GenerationSettings,
        n: int,
        seed: int,
    ) -> None:
        self._corpus, self._index, self._settings = corpus, index, settings
        self._seed = seed
        self._usable = frozenset(corpus.usable)
        shares = {name: category.share for name, category in settings.categories.items()}
        self.wanted: Mapping[str, int] = apportion(n, shares)
        self._orders: dict[str, list[int]] = {}

    def slots(self, category: str, start: int, count: int) -> list[CandidateSlot]:
        """Return up to `count` candidates of a category, from number `start` on.

        Fewer, and finally none, once as many as `attempts` allows were tried.
        """
        if category not in self._orders:
            self._orders[category] = self._passage_order(category)
        limit = math.ceil(self._settings.attempts * self.wanted[category])
        end = min(start + count, limit, _MAX_USES * len(self._orders[category]))
        return [self._slot(category, number) for number in range(start, end)]

    def _slot(self, name: str, number: int) -> CandidateSlot:
        category, order = self._settings.categories[name], self._orders[name]
        rng = random.Random(f"{self._seed}/{name}/{number}")  # noqa: S311 (no secret)
        persona = _weighted_choice(rng, self._settings.personas)
        length = _weighted_choice(rng, self._settings.lengths)
        passages = [order[number % len(order)]]
        count = _NEGATIVE_PASSAGES if category.negative else rng.randint(*category.passages)
        if count > 1:
            nearest = max(_NEIGHBOURS, count - 1)
            near = self._index.neighbours(passages[0], nearest, self._usable)
            chosen = rng.sample(range(len(near)), min(count - 1, len(near)))
            passages += [near[place] for place in sorted(chosen)]
        return CandidateSlot(name, number, tuple(passages), persona, length)

    def _passage_order(self, name: str) -> list[int]:
        """The passages for a category: preferred ones first, the documents by turns."""
        rng = random.Random(f"{self._seed}/{name}")  # noqa: S311
        by_document: dict[str, list[int]] = {}
        for place in self._corpus.usable:
            by_document.setdefault(self._corpus.documents[place], []).append(place)
        piles = list(by_document.values())
        rng.shuffle(piles)
        for pile in piles:
            rng.shuffle(pile)
        longest = max(map(len, piles))
        turns = [pile[turn] for turn in range(longest) for pile in piles if turn < len(pile)]
        prefers = self._settings.categories[name].prefers
        if prefers is None:
            return turns
        matches = _PREFERENCE_PATTERNS[prefers].findall
        texts = self._corpus.passages
        return sorted(turns, key=lambda place: len(matches(texts[place].text)) < _MIN_MATCHES)


def _weighted_choice(
    rng: random.Random, options: Mapping[str, QuestionPersona] | Mapping[str, QuestionLength]
) -> str:
    return rng.choices(list(options), weights=[options[name].share for name in options])[0]


FULL_GRADE, PART_GRADE = 2, 1  # states all of the answer, states a part


_SHORT_WORDS, _MEDIUM_WORDS = 8, 16


_ID_DIGITS = 12


def to_case(draft: QuestionDraft, corpus: SourceCorpus, seed: int) -> Case:
    """Return an accepted question as a case.

    The id is a hash of the question. A passage that answers alone has grade 2; of several that
    answer together, and of others that state a part, each has grade 1.
    """
    relevant: dict[str, int] = {}
    evidence: dict[str, int] = {}
    grade = FULL_GRADE if len(draft.evidence) == 1 else PART_GRADE
    graded = [(place, grade, quotes) for place, quotes in draft.evidence.items()]
    graded += [(place, grade, (quote,)) for place, (grade, quote) in draft.others.items()]
    for place, grade, quotes in graded:
        relevant[corpus.passages[place].id] = grade
        evidence |= {quote: max(grade, evidence.get(quote, 0)) for quote in quotes}
    slot, words = draft.slot, len(draft.question.split())
    length = "short" if words <= _SHORT_WORDS else "medium" if words <= _MEDIUM_WORDS else "long"
    return Case(
        id=f"gen-{hashlib.sha256(fold(draft.question).encode()).hexdigest()[:_ID_DIGITS]}",
        question=draft.question,
        relevant=relevant,
        evidence=evidence,
        references=(draft.reference,) if draft.reference else (),
        answerable=draft.reference is not None,
        category=slot.category,
        tags={
            "persona": slot.persona,
            "length": length,
            "source": corpus.documents[slot.passages[0]],
            "seed": str(seed),
            "passages": str(len(draft.evidence)),
            "rewritten": "yes" if draft.rewritten else "no",
        },
    )


def rejection_record(
    slot: CandidateSlot, rejected: CandidateRejectedError, corpus: SourceCorpus
) -> dict[str, Any]:
    """Return a rejected candidate as a JSON object."""
    return {
        "reason": rejected.reason,
        "sentence": str(rejected),
        "question": rejected.question,
        "category": slot.category,
        "number": slot.number,
        "persona": slot.persona,
        "length": slot.length,
        "passages": [corpus.passages[place].id for place in slot.passages],
        **rejected.more,
    }


def rejection_table(rejected: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return counts by reason, the most frequent first, with an example each."""
    table: list[dict[str, Any]] = []
    for reason, meaning in REJECT_REASONS.items():
        records = [record for record in rejected if record["reason"] == reason]
        if records:
            example = next((record for record in records if record["question"]), records[-1])
            row = {"reason": reason, "count": len(records), "meaning": meaning}
            table.append(row | {name: example[name] for name in ("question", "sentence")})
    table.sort(key=lambda row: -row["count"])
    return {"rejected": {row["reason"]: row["count"] for row in table}, "reject_table": table}
