"""Write and verify candidates in rounds until each category has enough questions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from misslink.goldset.dedupe import QuestionIndex
from misslink.goldset.generation.candidates import (
    AcceptedQuestion,
    CandidatePlan,
    CandidateSlot,
    GenerationContext,
    QuestionDraft,
    RejectedCandidate,
    UnfinishedCandidate,
)
from misslink.goldset.generation.verifier import verify_draft
from misslink.goldset.generation.writer import write_draft
from misslink.goldset.splitting import apportion

ProgressCallback = Callable[[int, int], object]
_CallResult = TypeVar("_CallResult")
_ROUND_SIZE = 16  # candidates; at most so many are incomplete when the budget is used up


@dataclass
class GenerationOutcome:
    """The ends of all candidates; a later run completes the unfinished ones.

    `wanted` is the number of questions by category.
    """

    wanted: dict[str, int]
    accepted: list[AcceptedQuestion] = field(default_factory=list)
    rejected: list[RejectedCandidate] = field(default_factory=list)
    unfinished: list[UnfinishedCandidate] = field(default_factory=list)
    candidates: int = 0

    def record(self, end: AcceptedQuestion | RejectedCandidate | UnfinishedCandidate) -> None:
        """Record the end of a candidate."""
        if isinstance(end, AcceptedQuestion):
            self.accepted.append(end)
        elif isinstance(end, RejectedCandidate):
            self.rejected.append(end)
        else:
            self.unfinished.append(end)

    @property
    def by_category(self) -> dict[str, int]:
        """Accepted questions by category."""
        counts = Counter(question.draft.slot.category for question in self.accepted)
        return {name: counts[name] for name in self.wanted}

    @property
    def missing(self) -> dict[str, int]:
        """Missing questions by category, without complete categories."""
        counts = self.by_category
        return {name: n - counts[name] for name, n in self.wanted.items() if n > counts[name]}

    @property
    def stopped(self) -> str | None:
        """Why generation ended early; None if it did not."""
        return self.unfinished[0].reason if self.unfinished else None


async def run_rounds(
    context: GenerationContext,
    *,
    n: int,
    seed: int,
    progress: ProgressCallback = lambda _, __: None,
) -> GenerationOutcome:
    """Write and verify candidates.

    A round tries up to 16 candidates, of each category by how many are missing. Its decisions
    follow the order of the plan, never the order of replies, so the same replies give the same
    gold set. It ends when nothing is missing, everything was tried, or the budget is used up.

    Parameters
    ----------
    context : GenerationContext
    n : int
        Number of questions, at least 1.
    seed : int
    progress : callable
        Called with the number of accepted questions and `n`.

    Raises
    ------
    MisslinkError
        Further asks are pointless.
    """
    settings, index = context.settings, context.index
    plan = CandidatePlan(context.corpus, index, settings, n, seed)
    outcome = GenerationOutcome(dict(plan.wanted))
    tried: Counter[str] = Counter()
    new_index = partial(
        QuestionIndex, settings.near_duplicate, settings.near_meaning, index.cosines
    )
    accepted = new_index()
    while not outcome.unfinished:
        slots = _next_slots(plan, outcome.missing, tried)
        if not slots:
            break
        outcome.candidates += len(slots)
        drafts: list[QuestionDraft] = []
        for end in await _gather(write_draft(context, slot) for slot in slots):
            if isinstance(end, QuestionDraft):
                drafts.append(end)
            else:
                outcome.record(end)
        await index.read([draft.question for draft in drafts])
        distinct = _drop_duplicates(outcome, drafts, accepted, new_index())
        progress(len(outcome.accepted), n)
        for verified in await _gather(verify_draft(context, draft) for draft in distinct):
            outcome.record(verified)
            if isinstance(verified, AcceptedQuestion):
                accepted.add(verified.draft.question)
        progress(len(outcome.accepted), n)
    order = {name: place for place, name in enumerate(settings.categories)}
    outcome.accepted.sort(key=lambda q: (order[q.draft.slot.category], q.draft.slot.number))
    return outcome


def _next_slots(
    plan: CandidatePlan, missing: dict[str, int], tried: Counter[str]
) -> list[CandidateSlot]:
    """The candidates of a round, counted in `tried`; empty if nothing is left to try."""
    remaining = {name: n for name, n in missing.items() if plan.slots(name, tried[name], 1)}
    if not remaining:
        return []
    slots: list[CandidateSlot] = []
    for name, count in apportion(min(_ROUND_SIZE, sum(remaining.values())), remaining).items():
        more = plan.slots(name, tried[name], count)
        tried[name] += len(more)
        slots += more
    return slots


def _drop_duplicates(
    outcome: GenerationOutcome,
    drafts: Iterable[QuestionDraft],
    accepted: QuestionIndex,
    earlier: QuestionIndex,
) -> list[QuestionDraft]:
    """The drafts that repeat neither an accepted question nor an earlier draft."""
    distinct = []
    for draft in drafts:
        twin = accepted.twin(draft.question) or earlier.twin(draft.question)
        if twin is None:
            earlier.add(draft.question)
            distinct.append(draft)
        else:
            more = {"reference": draft.reference} if draft.reference else {}
            sentence = f"it asks the same as '{twin}'"
            outcome.record(
                RejectedCandidate(draft.slot, "near_duplicate", sentence, draft.question, more)
            )
    return distinct


async def _gather(calls: Iterable[Coroutine[object, object, _CallResult]]) -> list[_CallResult]:
    """Run all concurrently; if one fails, cancel the others."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
