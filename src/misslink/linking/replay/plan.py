"""Which cases are replayed, and with which passages."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from misslink.capture.context_injection import InjectedSearch
from misslink.linking.replay.outcomes import GOOD_MISS, ReplayedFailure, ReplayOutcome, ReplayRecord
from misslink.retrieval import Need, match_needs, relevant_ids
from misslink.types import Case, Link, Passage, RetrievalMiss, RetrieverCall, Run, Trace

_MULTIPLE_SEARCHES = 2


@dataclass(frozen=True)
class Intervention:
    """Passages that an app is handed.

    Parameters
    ----------
    name : {'unchanged', 'first', 'last', 'alone', 'without_noise'}
    passages : sequence of Passage
        Best first.
    wanted : set of str
        Ids that have to reach the prompt; otherwise the intervention did not take place.
    searches : sequence of InjectedSearch
        What each search of an app that makes several is handed instead.
    """

    name: str
    passages: tuple[Passage, ...]
    wanted: frozenset[str] = frozenset()
    searches: tuple[InjectedSearch, ...] = ()


@dataclass(frozen=True)
class ReplayPlan:
    """What is replayed of one case: first the run's own passages, then each intervention."""

    case: Case
    trace: Trace
    link: Link
    unchanged: Intervention
    interventions: tuple[Intervention, ...]
    note: str | None = None


def index_passages(traces: Iterable[Trace]) -> dict[str, Passage]:
    """Every passage with a text that any case of the run has seen, by id; the first seen stays."""
    by_id: dict[str, Passage] = {}
    for trace in traces:
        for passage in (*trace.retrieved, *trace.deeper):
            if passage.text:
                by_id.setdefault(passage.id, passage)
    return by_id


def plan_case(
    case: Case,
    trace: Trace,
    link: Link,
    k: int,
    known_passages: Mapping[str, Passage],
    failure: str | None = None,
) -> ReplayPlan | str:
    """Return what to replay of a case, or the reason why it cannot be.

    A case whose failure mode is ``ignored_context`` gets the relevant passages of its context moved to
    the front, then those alone; one that was ``distracted`` its irrelevant passages removed; any
    other its missed passages, first and last in the list. The list keeps its length, its worst
    passages dropping out. Last means the last place whose passage reached the prompt.

    Where the app made several searches for the question each is handed what it found itself; what
    is moved or injected first stands first in the first of them, and last in the last.

    Parameters
    ----------
    case, trace, link : Case, Trace, Link
        Of the same case.
    k : int
        How many passages count as context where the prompt was not seen.
    known_passages : mapping of str to Passage
        Where else the text of a passage may be found.
    failure : str or None
        One that contributes to the case, in place of its primary one.
    """
    if trace.unmeasured is not None:
        return f"what was retrieved is not known: {trace.unmeasured}"
    if trace.answer is None:
        return f"the app gave no answer: {trace.error or 'its trace holds none'}"
    retrieved = [
        passage if passage.text else known_passages.get(passage.id, passage)
        for passage in trace.retrieved
    ]
    blank = next((passage.id for passage in retrieved if not passage.text), None)
    if blank is not None:
        return f"the retrieved passage '{blank}' has no text to hand out"
    trace = trace.model_copy(update={"retrieved": tuple(retrieved)})
    mode = failure or link.failure or ""
    if mode in {"ignored_context", "incomplete"}:
        made = _move_relevant_first(case, trace, k)
    elif mode == "distracted":
        made = _remove_irrelevant(case, trace)
    else:
        made = _inject_missed(trace, link.missed, k, known_passages)
    if isinstance(made, str):
        return made
    interventions, note = made
    own = Intervention("unchanged", _rank_with_scores(retrieved, trace))
    order = [passage.id for passage in own.passages]
    changes = tuple(
        passage for passage in interventions if [p.id for p in passage.passages] != order
    )
    injected = mode not in _CONTRIBUTING
    if not changes or (injected and changes[0].name != "first"):
        return "the app already had its passages in this order"
    unchanged, *interventions_with_searches = (
        replace(passage, searches=_search_results(passage, trace)) for passage in (own, *changes)
    )
    return ReplayPlan(case, trace, link, unchanged, tuple(interventions_with_searches), note)


def _inject_missed(
    trace: Trace, missed: Sequence[RetrievalMiss], k: int, known_passages: Mapping[str, Passage]
) -> tuple[list[Intervention], str | None] | str:
    by_grade = sorted(missed, key=lambda miss: -miss.grade)
    texts_by_id = [
        (miss.passage_id, _missed_texts(miss, trace, known_passages)) for miss in by_grade
    ]
    without = [name for name, passages in texts_by_id if not passages]
    gold = list(
        {passage.id: passage for _, passages in texts_by_id for passage in passages}.values()
    )
    if not gold:
        named = f"the missed passage '{without[0]}'" if without else "no missed passage"
        return f"{named} has no text: it was never retrieved, and the gold set gives no evidence"
    ids = frozenset(passage.id for passage in gold)
    competing = [passage for passage in trace.retrieved if passage.id not in ids]
    length = max(len(trace.retrieved), len(gold))
    remaining = competing[: length - len(gold)]
    places = [
        place for place, passage in enumerate(trace.retrieved, 1) if passage in trace.context(k)
    ]
    before = max(max(places, default=length) - len(gold), 0)
    note = None
    if without:
        note = f"{len(without)} of {len(missed)} missed passages have no text and were not injected"
    return [
        Intervention("first", _rank_with_scores([*gold, *remaining], trace), ids),
        Intervention(
            "last", _rank_with_scores([*remaining[:before], *gold, *remaining[before:]], trace), ids
        ),
    ], note


def _missed_texts(
    miss: RetrievalMiss, trace: Trace, known_passages: Mapping[str, Passage]
) -> tuple[Passage, ...]:
    """What carries a missed passage's text: both halves where a chunk boundary cuts evidence."""
    if miss.evidence is not None:
        seen = sorted((*trace.retrieved, *trace.deeper), key=lambda passage: passage.rank)
        hit = next(
            iter(match_needs([Need(miss.passage_id, miss.grade, miss.evidence)], seen)), None
        )
        if hit is not None:
            return hit.passages
        return (Passage(id=miss.passage_id, text=miss.evidence, rank=1),)
    if miss.passage_id in known_passages:
        return (known_passages[miss.passage_id],)
    return (Passage(id=miss.passage_id, text=miss.text, rank=1),) if miss.text else ()


def _move_relevant_first(
    case: Case, trace: Trace, k: int
) -> tuple[list[Intervention], str | None] | str:
    relevant = frozenset(relevant_ids(case, trace.context(k)))
    gold = [passage for passage in trace.retrieved if passage.id in relevant]
    if not gold:
        return "no relevant passage was in the context"
    competing = [passage for passage in trace.retrieved if passage.id not in relevant]
    return [
        Intervention("first", _rank_with_scores([*gold, *competing], trace), relevant),
        Intervention("alone", _rank_with_scores(gold, trace), relevant),
    ], None


def _remove_irrelevant(case: Case, trace: Trace) -> tuple[list[Intervention], str | None] | str:
    relevant = relevant_ids(case, trace.retrieved)
    gold = [passage for passage in trace.retrieved if passage.id in relevant]
    if not gold:
        return "without its irrelevant passages nothing is left to answer from"
    return [Intervention("without_noise", _rank_with_scores(gold, trace))], None


def _search_results(made: Intervention, trace: Trace) -> tuple[InjectedSearch, ...]:
    """What each search is handed; empty where the app made one alone, or none that was seen."""
    calls = [call for call in trace.calls if not call.nested]
    if len(calls) < _MULTIPLE_SEARCHES:
        return ()
    moved = made.wanted if made.name in {"first", "last"} else frozenset()
    target = {"first": calls[0], "last": calls[-1]}.get(made.name)
    return tuple(
        _search_result(call, made, moved, trace, is_target=call is target) for call in calls
    )


def _search_result(
    call: RetrieverCall, made: Intervention, moved: frozenset[str], trace: Trace, *, is_target: bool
) -> InjectedSearch:
    """What one search found of what is handed out, with what is moved if that goes there."""
    by_id = {passage.id: passage for passage in made.passages}
    passages = [by_id[name] for name in call.passages if name in by_id and name not in moved]
    if is_target:
        gold = [passage for passage in made.passages if passage.id in moved]
        before = {passage.id for passage in made.passages[: made.passages.index(gold[0])]}
        place = sum(passage.id in before for passage in passages)
        passages[place:place] = gold
    own = {passage.id: passage for passage in trace.retrieved}
    scores = [own[name].score for name in call.passages if name in own]
    return InjectedSearch(call.query, call.retriever, _assign_ranks(passages, scores))


def _rank_with_scores(passages: Sequence[Passage], trace: Trace) -> tuple[Passage, ...]:
    return _assign_ranks(passages, [passage.score for passage in trace.retrieved])


def _assign_ranks(
    passages: Sequence[Passage], scores: Sequence[float | None]
) -> tuple[Passage, ...]:
    """Rank the passages again; scores keep their positions, because apps filter by score."""
    return tuple(
        passage.model_copy(
            update={"rank": rank, "score": scores[rank - 1] if rank <= len(scores) else None}
        )
        for rank, passage in enumerate(passages, start=1)
    )


# Tried also where they only contribute; a retrieval miss is always the primary failure mode.
_CONTRIBUTING = ("ignored_context", "incomplete", "distracted")

PlannedCase = tuple[str, ReplayPlan]  # with its group


def draw_cases(
    run: Run, observed: Mapping[str, ReplayOutcome], k: int, sample: int, seed: int
) -> tuple[list[PlannedCase], list[PlannedCase], list[ReplayRecord]]:
    """Draw the cases of each group among those that can be replayed.

    Parameters
    ----------
    run : Run
    observed : mapping of str to ReplayOutcome
        By case id.
    k : int
        As of `plan_case`.
    sample : int
        Cases of each group, at most; a smaller sample is part of a larger one of the same seed.
    seed : int

    Returns
    -------
    drawn, undrawn : list of (group, ReplayPlan)
    skipped : list of ReplayRecord
        Of those that cannot be replayed, with the reason.
    """
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    known_passages = index_passages(run.traces)
    groups: dict[str, list[ReplayPlan]] = {
        name: [] for name in (*get_args(ReplayedFailure), GOOD_MISS)
    }
    skipped = []
    for link in run.links:
        group = _replay_group(link, cases[link.case_id], observed[link.case_id])
        if group is None:
            continue
        chosen = plan_case(
            cases[link.case_id], traces[link.case_id], link, k, known_passages, group
        )
        if isinstance(chosen, str):
            name = observed[link.case_id].name
            skipped.append(
                ReplayRecord(link.case_id, group, link.failure or "", {"observed": name}, chosen)
            )
        else:
            groups[group].append(chosen)
    drawn, undrawn = [], []
    for name, plans in groups.items():
        # A generator for each group: what one holds does not change what is drawn of another.
        draw = random.Random(f"{seed} {name}")  # noqa: S311 (no secret)
        shuffled = [(name, planned) for planned in draw.sample(plans, len(plans))]
        drawn += shuffled[:sample]
        undrawn += shuffled[sample:]
    return drawn, undrawn, skipped


def _replay_group(link: Link, case: Case, observed: ReplayOutcome) -> str | None:
    """The group that a case is drawn with; None where nothing is replayed of it."""
    if link.failure in get_args(ReplayedFailure):
        return link.failure
    if link.retrieval == "miss" and observed.bad is False and case.expects_answer is not False:
        return GOOD_MISS
    if not observed.bad:
        return None
    return next((failure for failure in _CONTRIBUTING if failure in link.also), None)
