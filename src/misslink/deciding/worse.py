"""What got worse, for people: which questions, where their passages stand now, in which groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from misslink.deciding.outcome import Decision, Outcome
from misslink.deciding.selection import selected
from misslink.deciding.values import value_of
from misslink.errors import InputError
from misslink.types import Case, Link, Missed, Run

__all__ = ["Group", "Question", "groups", "questions", "where_now"]

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Question:
    """A case to look at, and what is the matter with it.

    Parameters
    ----------
    case : Case
    lost : sequence of Missed
        Passages that it misses now and did not miss in the baseline; without one, all it misses.
    now, before : str
        Its cause; "" where it has none, or where the baseline did not ask it.
    """

    case: Case
    lost: tuple[Missed, ...]
    now: str
    before: str


@dataclass(frozen=True)
class Group:
    """Cases of one category, tier or value of a tag: their mean now and before."""

    name: str
    cases: int
    now: float
    before: float | None


def questions(decision: Decision, outcome: Outcome) -> list[Question]:
    """Return the cases of an outcome, those to look at first."""
    cases = {case.id: case for case in decision.run.cases}
    now = {link.case_id: link for link in decision.run.links}
    links = decision.baseline.links if decision.baseline else ()
    earlier = {link.case_id: link for link in links if link.case_id in decision.both}
    return [
        Question(
            cases[name],
            _lost(now.get(name), earlier.get(name)),
            now[name].cause if name in now else "",
            earlier[name].cause if name in earlier else "",
        )
        for name in outcome.cases
    ]


def where_now(lost: Missed) -> str:
    """Where a missed passage stands now, in words that follow its name."""
    if lost.subtype == "dropped_before_prompt":
        return "was retrieved, and dropped before the prompt"
    if lost.true_rank is not None:
        return f"is now at rank {lost.true_rank}"
    if lost.subtype == "not_indexed":
        return "is not in the index now"
    return f"is not among the first {lost.depth} now" if lost.depth else "did not reach the prompt"


def groups(decision: Decision, outcome: Outcome) -> list[Group]:
    """Return the groups of cases that got worse, the worst first; without a baseline, the lowest.

    They rest on the cases that are compared: those that ask the same in both and have a value in
    both. Groups that hold all cases or no case with a value say nothing and are left out.
    """
    now = _of_case(decision.run, outcome)
    before = _of_case(decision.baseline, outcome) if decision.baseline else {}
    earlier = {name: value for name, value in before.items() if name in decision.both}
    compared = now.keys() & earlier.keys() if decision.baseline else now.keys()
    cases = [case for case in decision.run.cases if case.id in compared]
    found = []
    for name, ids in _members(cases).items():
        if len(ids) == len(cases):
            continue
        mean_now = sum(now[one] for one in ids) / len(ids)
        mean_before = sum(earlier[one] for one in ids) / len(ids) if earlier else None
        found.append(Group(name, len(ids), mean_now, mean_before))
    sign = 1.0 if outcome.lower_is_better else -1.0
    if earlier:
        worse = [g for g in found if sign * (g.now - (g.before or 0.0)) > _ROUNDING]
        return sorted(worse, key=lambda g: sign * ((g.before or 0.0) - g.now))
    whole = outcome.estimate.value or 0.0
    return sorted(
        (g for g in found if sign * (g.now - whole) > _ROUNDING), key=lambda g: -sign * g.now
    )


def _lost(link: Link | None, earlier: Link | None) -> tuple[Missed, ...]:
    if link is None:
        return ()
    known = {one.passage_id for one in earlier.missed} if earlier else set()
    fresh = {one.passage_id: one for one in link.missed if one.passage_id not in known}
    return tuple(fresh.values())


def _of_case(run: Run, outcome: Outcome) -> dict[str, float]:
    try:
        found = value_of(selected(run, outcome.gate), outcome.metric).of_case or {}
    except InputError:  # cases that are counted have no value
        return {}
    return {name: value for name, value in found.items() if value is not None}


def _members(cases: Iterable[Case]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for case in cases:
        axes = {**case.tags}
        axes |= {"category": case.category} if case.category is not None else {}
        axes |= {"tier": case.tier} if case.tier is not None else {}
        for axis, value in axes.items():
            found.setdefault(f"{axis}: {value}", []).append(case.id)
    return found
