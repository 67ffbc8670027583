"""What the answers to a case's arms say about its cause, and which call would tell more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import exp, lgamma
from typing import NamedTuple

PLACEBO, GENERATOR, CHANCE = "placebo", "generator", "chance"
# In the order of the app's steps: each takes one fault away, and the last takes all away.
ARMS = (
    *("standalone_query", "missed_passage", "whole_passage"),
    *("without_distractor", "perfect_context"),
)
_QUERY, _MISSED, _WHOLE, _WITHOUT, _PERFECT = ARMS
_CAUSES = {
    _QUERY: "query",
    _MISSED: "missed_passage",
    _WHOLE: "cut_passage",
    _WITHOUT: "distractor",
}
LEVEL = 0.05  # bound on the share of wrong causes among those that are confirmed
MAX_CALLS = 12  # answers of the app for a failure; one that is not settled then is not confirmed
# How many answers the rate of good ones is worth, with the fault in the prompt and without it. The
# first is small, because some cases turn good by any change of the prompt, and others by none.
_WITH_FAULT, _WITHOUT_FAULT = 2.0, 4.0
_TIE = 9  # decimals


class Cause(NamedTuple):
    """A cause, and the arms (the placebo among them) whose answers are good where it is the one."""

    name: str
    removed_by: frozenset[str]


class CauseEvidence(NamedTuple):
    """The likeliest cause, with its e-value against every other cause."""

    cause: str
    e: float


def possible_causes(arms: Sequence[str], *, complete: bool) -> list[Cause]:
    """The causes that such arms tell apart; `complete`: some prompt held all that was needed."""
    # A better query finds what was missed: arms that bring it make those answers good, too.
    also = {_QUERY: {_MISSED, _WHOLE}}
    causes = [
        Cause(_CAUSES[arm], frozenset({arm, _PERFECT} | also.get(arm, set())))
        for arm in arms
        if arm != _PERFECT
    ]
    if _PERFECT in arms:
        lost = [_CAUSES[arm] for arm in (_MISSED, _WHOLE) if arm in arms]
        causes.append(Cause("+".join([*lost, "distractor"]), frozenset({_PERFECT})))
    if complete:
        causes.append(Cause(GENERATOR, frozenset()))
    return [*causes, Cause(CHANCE, frozenset({*arms, PLACEBO}))]


class Calls:
    """The answers of one failed case so far: how many were good in each arm and its placebos."""

    def __init__(self, arms: Sequence[str], *, complete: bool) -> None:
        self.arms = tuple(arms)
        self.causes = possible_causes(arms, complete=complete)
        self.held: Counter[str] = Counter()
        self.tried: Counter[str] = Counter()

    def add(self, arm: str, *, good: bool) -> None:
        """Count an answer."""
        self.held[arm] += good
        self.tried[arm] += 1

    def find(self, luck: tuple[int, int]) -> CauseEvidence:
        """What the answers speak for; `luck`: how many placebos of other cases were good, of how many."""
        (first, best), *others = self.ranked(luck)
        other = next((value for cause, value in others if cause.name != first.name), best)
        return CauseEvidence(first.name, exp(min(best - other, 500.0)))

    def next_call(self, luck: tuple[int, int]) -> str:
        """The arm, or the placebo, that tells the two likeliest causes apart."""
        ranked = [cause for cause, _ in self.ranked(luck)]
        first = ranked[0].removed_by
        differ = next((first ^ other.removed_by for other in ranked[1:]), first)
        arms = [arm for arm in self.arms if arm in differ]
        unmatched = sum(self.held[arm] for arm in self.arms) > self.tried[PLACEBO]
        return PLACEBO if unmatched or not arms else min(arms, key=self.tried.__getitem__)

    def can_settle(self, luck: tuple[int, int]) -> bool:
        """Whether the calls that are left would confirm a cause, if all speak for the likeliest."""
        counts = (tuple(sorted(count.items())) for count in (self.held, self.tried))
        return _can_settle(self.arms, tuple(self.causes), *counts, luck)

    def ranked(self, luck: tuple[int, int]) -> list[tuple[Cause, float]]:
        """Causes with their log likelihoods, the likeliest first, ties in their order."""
        held, tried = luck
        by_chance = (0.5 + held) / (1 + tried)
        # An app that a placebo turns good now and then is taken to fail as often without a fault.
        without_fault = max(1 - (1 + held) / (4 + tried), by_chance)
        values = []
        for cause in self.causes:
            good = sum(self.held[arm] for arm in cause.removed_by)
            of = sum(self.tried[arm] for arm in cause.removed_by)
            rest, of_rest = self.held.total() - good, self.tried.total() - of
            value = _log_chance(good, of, _WITHOUT_FAULT, without_fault)
            values.append((cause, value + _log_chance(rest, of_rest, _WITH_FAULT, by_chance)))
        return sorted(values, key=lambda item: -round(item[1], _TIE))


@lru_cache(maxsize=10_000)  # many cases of a run have had the same answers
def _can_settle(
    arms: tuple[str, ...],
    causes: tuple[Cause, ...],
    held: tuple[tuple[str, int], ...],
    tried: tuple[tuple[str, int], ...],
    luck: tuple[int, int],
) -> bool:
    calls = Calls(arms, complete=False)
    calls.causes, calls.held, calls.tried = list(causes), Counter(dict(held)), Counter(dict(tried))
    found, cause = calls.find(luck), calls.ranked(luck)[0][0]
    if found.cause == CHANCE and found.e >= 1 / LEVEL:
        return False
    for _ in range(MAX_CALLS - calls.tried.total()):
        call = calls.next_call(luck)
        calls.add(call, good=call in cause.removed_by)
        if calls.find(luck).e >= 1 / LEVEL:
            return True
    return False


def _log_chance(good: int, of: int, cases: float, mean: float) -> float:
    """Log probability of some good answers in an order, at a rate from a beta distribution."""
    a, b = cases * mean, cases * (1 - mean)
    parts = lgamma(a + good) - lgamma(a), lgamma(b + of - good) - lgamma(b)
    return sum(parts) + lgamma(cases) - lgamma(cases + of)


def confirm(findings: Iterable[CauseEvidence], cases: int) -> list[bool]:
    """Which findings stand, with at most a `LEVEL` of false ones expected among them (e-BH).

    Chance is no cause, and never stands.
    """
    found = list(findings)
    values = sorted((f.e for f in found if f.cause != CHANCE), reverse=True)
    enough = [e >= cases / (LEVEL * count) for count, e in enumerate(values, start=1)]
    count = max((place for place, holds in enumerate(enough, start=1) if holds), default=0)
    bar = cases / (LEVEL * count) if count else float("inf")
    return [f.cause != CHANCE and f.e >= bar for f in found]
