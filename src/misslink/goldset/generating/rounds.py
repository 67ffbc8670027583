"""Candidates are written and verified in rounds until every kind has as many as are wanted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from misslink.goldset.alike import Questions
from misslink.goldset.generating.candidates import Accepted, Draft, Rejected, Unfinished
from misslink.goldset.generating.drafting import Writer
from misslink.goldset.generating.index import Index
from misslink.goldset.generating.planning import Plan, Slot
from misslink.goldset.generating.settings import Settings
from misslink.goldset.generating.sources import Sources
from misslink.goldset.generating.verifying import Verifier
from misslink.goldset.weights import shared_out
from misslink.judging.protocol import Judge
from misslink.prompting import Prompts

__all__ = ["Outcome", "in_rounds"]

Tick = Callable[[int, int], object]
_Result = TypeVar("_Result")
_AT_ONCE = 16  # candidates: so many at most are half done where the money runs out


@dataclass
class Outcome:
    """What came of all candidates.

    Parameters
    ----------
    wanted : dict of str to int
        Questions by kind.
    accepted : list of Accepted
    rejected : list of Rejected
    unfinished : list of Unfinished
        With these a later run goes on.
    candidates : int
        All that were begun.
    """

    wanted: dict[str, int]
    accepted: list[Accepted] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)
    candidates: int = 0

    @property
    def by_category(self) -> dict[str, int]:
        """How many were accepted, by kind."""
        found = Counter(one.draft.slot.category for one in self.accepted)
        return {name: found[name] for name in self.wanted}

    @property
    def missing(self) -> dict[str, int]:
        """How many are missing, by kind; kinds of which none is are left out."""
        have = self.by_category
        return {name: n - have[name] for name, n in self.wanted.items() if n > have[name]}

    @property
    def stopped(self) -> str | None:
        """Why asking ended early; None where it did not."""
        return self.unfinished[0].why if self.unfinished else None


async def in_rounds(
    judge: Judge,
    sources: Sources,
    index: Index,
    settings: Settings,
    prompts: Prompts,
    *,
    n: int,
    seed: int,
    tick: Tick = lambda _, __: None,
) -> Outcome:
    """Write and verify candidates.

    A round tries up to 16, of each kind by how many are missing. All that a round decides it
    decides in the order of the plan, never in the order in which replies come: so the same
    replies make the same gold set. It ends where nothing is missing, all that may be tried was
    tried, or the judge's budget is spent.

    Parameters
    ----------
    judge, sources, index, settings, prompts
    n : int
        Questions wanted, at least 1.
    seed : int
    tick : callable
        Called with how many questions are accepted, and how many are wanted.

    Raises
    ------
    MisslinkError
        Asking on is pointless.
    """
    plan = Plan(sources, index, settings, n, seed)
    writer = Writer(judge, sources, settings, prompts)
    verifier = Verifier(judge, sources, index, settings, prompts)
    found = Outcome(dict(plan.wanted))
    tried: Counter[str] = Counter()
    lines = settings.near_duplicate, settings.near_meaning
    accepted = Questions(*lines, index.cosines)
    while not found.unfinished:
        slots = _next(plan, found.missing, tried)
        if not slots:
            break
        found.candidates += len(slots)
        drafts = _sorted(found, await _all(map(writer.draft, slots)))
        await index.read([draft.question for draft in drafts])
        standing = _distinct(found, drafts, accepted, Questions(*lines, index.cosines))
        tick(len(found.accepted), n)
        for outcome in await _all(map(verifier.verify, standing)):
            _enter(found, outcome)
            if isinstance(outcome, Accepted):
                accepted.add(outcome.draft.question)
        tick(len(found.accepted), n)
    # A question that was verified before the money ran out is paid for and stays.
    order = {name: at for at, name in enumerate(settings.categories)}
    found.accepted.sort(key=lambda one: (order[one.draft.slot.category], one.draft.slot.number))
    return found


def _next(plan: Plan, missing: Mapping[str, int], tried: Counter[str]) -> list[Slot]:
    """The candidates of a round; `tried` counts them. None: there is nothing left to try."""
    open_ = {name: n for name, n in missing.items() if plan.slots(name, tried[name], 1)}
    if not open_:
        return []
    slots: list[Slot] = []
    for name, count in shared_out(min(_AT_ONCE, sum(open_.values())), open_).items():
        more = plan.slots(name, tried[name], count)
        tried[name] += len(more)
        slots += more
    return slots


def _sorted(found: Outcome, drafted: Sequence[Draft | Rejected | Unfinished]) -> list[Draft]:
    """Enter what is decided already; returns the drafts."""
    drafts = []
    for one in drafted:
        if isinstance(one, Draft):
            drafts.append(one)
        else:
            _enter(found, one)
    return drafts


def _enter(found: Outcome, one: Accepted | Rejected | Unfinished) -> None:
    if isinstance(one, Accepted):
        found.accepted.append(one)
    elif isinstance(one, Rejected):
        found.rejected.append(one)
    else:
        found.unfinished.append(one)


def _distinct(
    found: Outcome, drafts: Sequence[Draft], accepted: Questions, earlier: Questions
) -> list[Draft]:
    """The drafts that ask what neither an accepted question nor an earlier draft asks."""
    kept = []
    for draft in drafts:
        twin = accepted.twin(draft.question) or earlier.twin(draft.question)
        if twin is None:
            earlier.add(draft.question)
            kept.append(draft)
        else:
            sentence = f"it asks what '{twin}' asks"
            more = {"reference": draft.reference} if draft.reference else {}
            found.rejected.append(
                Rejected(draft.slot, "near_duplicate", sentence, draft.question, more)
            )
    return kept


async def _all(calls: Iterable[Coroutine[object, object, _Result]]) -> list[_Result]:
    """Run all at once; where one fails, none goes on."""
    tasks = [asyncio.create_task(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
