"""The searches of a case: what each one found, and at which step a passage was lost."""

from __future__ import annotations

from collections.abc import Sequence

from misslink.retrieval import Need, RetrievalOutcome, satisfies
from misslink.types import LossStep, Passage, RetrievalMiss, Search, Trace


def list_searches(trace: Trace, outcome: RetrievalOutcome) -> tuple[Search, ...]:
    """Return the searches of a case in order; a search inside of another is part of it."""
    missing = [match.need for match in outcome.found]
    missing += [Need(miss.passage_id, miss.grade, miss.evidence) for miss in outcome.missed]
    passages = {passage.id: passage for passage in (*trace.retrieved, *trace.deeper)}
    searches = []
    for number, call in enumerate((call for call in trace.calls if not call.nested), 1):
        returned = [passages.get(id_, Passage(id=id_, rank=1)) for id_ in call.passages]
        found = [need for need in missing if any(satisfies(need, one) for one in returned)]
        searches.append(
            Search(
                number=number,
                query=call.query,
                tool=call.tool or call.retriever,
                passages=len(returned),
                missing=len(missing),
                found=tuple(need.id for need in found),
                recall=len(found) / len(missing) if missing else None,
            )
        )
        missing = [need for need in missing if need not in found]
    return tuple(searches)


def inner_rank(trace: Trace, passage_id: str) -> int | None:
    """The rank of a passage in a search inside another one, such as that of a reranking retriever.

    None where the outer search returned it, too.
    """
    calls = [call for call in trace.calls if passage_id in call.passages]
    if not all(call.nested for call in calls):
        return None
    return min((call.passages.index(passage_id) + 1 for call in calls), default=None)


def locate_losses(misses: Sequence[RetrievalMiss], trace: Trace) -> tuple[RetrievalMiss, ...]:
    """Return missed passages with the step of the app that lost each, where it is known."""
    located = []
    for miss in misses:
        step, search = _locate_loss(miss, trace)
        located.append(miss.model_copy(update={"lost_at": step, "search": search}))
    return tuple(located)


def _locate_loss(miss: RetrievalMiss, trace: Trace) -> tuple[LossStep | None, int | None]:
    if miss.status == "not_indexed" or trace.unmeasured:
        return None, None
    number = 0
    inner = None  # the last search inside of which another one had it
    for call in trace.calls:
        number += not call.nested
        if miss.passage_id in call.passages:
            if not call.nested:
                return _step_after_search(miss, trace), number
            inner = number
    if inner is not None:
        return "dropped_by_grader", inner
    if any(passage.id == miss.passage_id for passage in trace.retrieved):
        return _step_after_search(miss, trace), None  # of recorded traces, which list no searches
    if miss.true_rank is not None:
        best = trace.deeper_calls.get(miss.passage_id)
        return "ranked_low", best or (number if number == 1 else None)
    return ("not_searched", None) if trace.depth is not None else (None, None)


def _step_after_search(miss: RetrievalMiss, trace: Trace) -> LossStep:
    if miss.passage_id in trace.graded:
        return "dropped_by_grader"
    return "ranked_low" if trace.prompted is None else "cut_from_prompt"
