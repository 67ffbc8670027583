"""What got worse, for people: which questions, where their passages stand now, in which groups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from misslink.deciding.naming import cut_of
from misslink.deciding.numbers import ROUNDING
from misslink.deciding.outcome import Decision, Outcome
from misslink.deciding.selection import selected
from misslink.deciding.values import is_rank, value_of
from misslink.errors import InputError
from misslink.retrieval import cutoff, find, needs
from misslink.types import Case, Link, Missed, Run, Trace

__all__ = ["Group", "Moved", "Question", "groups", "questions", "where_now"]


@dataclass(frozen=True)
class Moved:
    """A passage that a rank metric looks for and that stands lower now; no rank is no place."""

    passage_id: str
    now: int | None
    before: int


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
    trace : Trace or None
        Of the run.
    moved : sequence of Moved
        Of a rank metric: passages that stand lower now than in the baseline.
    values : pair of float or None
        Of the metric in the baseline and in the run, where both have one.
    answer : str
        What became of its answer, where that was not so in the baseline; else "".
    """

    case: Case
    lost: tuple[Missed, ...]
    now: str
    before: str
    trace: Trace | None = None
    moved: tuple[Moved, ...] = ()
    values: tuple[float, float] | None = None
    answer: str = ""


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
    traces, before = _traces(decision.run), _traces(decision.baseline)
    values = [_of_case(run, outcome) if run else {} for run in (decision.baseline, decision.run)]
    found = []
    for name in outcome.cases:
        link, old = now.get(name), earlier.get(name)
        compared = name in decision.both and all(name in of for of in values)
        otherwise = link and old and link.answer != old.answer
        one = Question(
            cases[name],
            _lost(link, old),
            link.cause if link else "",
            old.cause if old else "",
            traces.get(name),
            values=(values[0][name], values[1][name]) if compared else None,
            answer=link.answer if link and otherwise else "",
        )
        if is_rank(outcome.metric) and compared:
            one = replace(one, moved=_moved(one, before.get(name), cut_of(outcome.metric)))
        found.append(one)
    return found


def where_now(lost: Missed, trace: Trace | None, k: int) -> str:
    """Where a missed passage stands now, in words that follow its name.

    Parameters
    ----------
    lost : Missed
    trace : Trace or None
        Of the run.
    k : int
        How many passages count where the prompt was not seen.
    """
    takes = cutoff(trace, k) if trace else k
    seen = trace is not None and trace.prompted is not None
    if lost.subtype == "dropped_before_prompt":
        return "was retrieved, and dropped before the prompt"
    if lost.true_rank is not None:
        decides = f", and the app takes {takes}" if lost.true_rank > takes else ""
        return f"is at rank {lost.true_rank} now{decides}"
    if lost.subtype == "not_indexed":
        return "is not in the index now"
    if lost.depth:
        return f"is not among the first {lost.depth} now"
    return "did not reach the prompt" if seen else "was not retrieved"


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
        worse = [(sign * (g.now - g.before), g) for g in found if g.before is not None]
        worse = [(size, g) for size, g in worse if size > ROUNDING]
        return [g for _, g in sorted(worse, key=lambda one: -one[0])]
    whole = outcome.estimate.value
    if whole is None:
        return []
    return sorted(
        (g for g in found if sign * (g.now - whole) > ROUNDING), key=lambda g: -sign * g.now
    )


def _lost(link: Link | None, earlier: Link | None) -> tuple[Missed, ...]:
    if link is None:
        return ()
    known = {one.passage_id for one in earlier.missed} if earlier else set()
    fresh = {one.passage_id: one for one in link.missed if one.passage_id not in known}
    return tuple(fresh.values())


def _traces(run: Run | None) -> dict[str, Trace]:
    return {trace.case_id: trace for trace in run.traces} if run else {}


def _moved(one: Question, before: Trace | None, k: int | None) -> tuple[Moved, ...]:
    """Needed passages that the metric found in the baseline and finds lower, or nowhere, now."""
    if one.trace is None or before is None:
        return ()
    wanted = {
        need.id: need for alternative in needs(one.case, before.retrieved) for need in alternative
    }
    there = {hit.need.id: hit.rank for hit in find([*wanted.values()], one.trace.retrieved)}
    return tuple(
        Moved(hit.passages[-1].id, there.get(hit.need.id), hit.rank)
        for hit in find([*wanted.values()], before.retrieved)
        if (k is None or hit.rank <= k) and not 0 < there.get(hit.need.id, 0) <= hit.rank
    )


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
