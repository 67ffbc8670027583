"""Which cases are replayed, and which passages each arm of the replay gives the app."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from misslink.capture.injection import InjectedSearch
from misslink.failure_modes import FAILURES
from misslink.retrieval import LabelledNeed, match_needs, relevant_ids
from misslink.text.near_duplicates import is_near_duplicate
from misslink.text.normalization import stems
from misslink.types import Case, Link, Passage, RetrievalMiss, Trace

GOOD = "passed"  # the group of good answers, which the treatment may break
ARMS = ("unchanged", "treatment", "placebo", "reordering")
_PLACEBO_CANDIDATES = 10  # passages of similar length, of which the least related are taken


@dataclass(frozen=True)
class Arm:
    """Passages that an app is given, best first.

    ``searches`` is what each search of an app that makes several is given instead.
    """

    name: str
    passages: tuple[Passage, ...]
    searches: tuple[InjectedSearch, ...] = ()


@dataclass(frozen=True)
class ReplayPlan:
    """What is replayed of one case.

    ``group`` is its failure mode or ``GOOD``, ``injected`` the missed passages of the treatment.
    """

    case: Case
    trace: Trace
    group: str
    injected: tuple[Passage, ...]
    arms: tuple[Arm, ...]
    note: str | None = None


def replay_group(link: Link, case: Case) -> str | None:
    """Return the group that a case is drawn with; None: no passage was missed, or no verdict."""
    if not link.missed or case.expects_answer is False:
        return None
    return link.failure if link.failure in FAILURES | {GOOD} else None


def index_passages(traces: Iterable[Trace]) -> dict[str, Passage]:
    """Every passage with a text that any case of the run has seen, by id, the shortest first.

    Of several with one id the first seen stays.
    """
    by_id: dict[str, Passage] = {}
    for trace in traces:
        for passage in (*trace.retrieved, *trace.deeper):
            if passage.text:
                by_id.setdefault(passage.id, passage)
    return dict(sorted(by_id.items(), key=lambda item: (len(item[1].text), item[0])))


def plan_case(
    case: Case, trace: Trace, link: Link, k: int, known_passages: Mapping[str, Passage]
) -> ReplayPlan | str:
    """Return the arms of a case, or the reason why it cannot be replayed.

    unchanged
        The run's own passages.
    treatment
        The missed passages first, in the place of as many irrelevant ones at the end of the prompt.
        At most as many, by grade, as the prompt has places without a relevant passage.
    placebo
        As the treatment, with irrelevant passages of similar length.
    reordering
        The run's own passages, those of the prompt in reverse. None where the prompt held one.

    Where the app made several searches for the question, each is given what it returned, and what is
    injected comes first in the first of them.

    Parameters
    ----------
    case, trace, link : Case, Trace, Link
        Of the same case.
    k : int
        How many passages count as context where the prompt was not seen.
    known_passages : mapping of str to Passage
        All passages of the run with their texts, the shortest first: the placebos are drawn from them.
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
        return f"the retrieved passage '{blank}' has no text to inject"
    trace = trace.model_copy(update={"retrieved": tuple(retrieved)})
    whole = {passage.id: passage for passage in retrieved}  # an app that cuts them cuts them again
    context = [whole[passage.id] for passage in trace.context(k)]
    relevant = relevant_ids(case, context)
    places = max(1, len(context) - len(relevant))
    by_id = {
        passage.id: passage
        for miss in sorted(link.missed, key=lambda miss: -miss.grade)
        for passage in _missed_texts(miss, trace, known_passages)
    }
    injected = list(by_id.values())[:places]
    if not injected:
        return (
            f"the missed passage '{link.missed[0].passage_id}' has no text: it was never retrieved, "
            "and the gold set gives no evidence"
        )
    if [p.id for p in retrieved[: len(injected)]] == [p.id for p in injected]:
        return "the app already had the missed passages in the first places"
    placebos = _placebos(case, trace, injected, known_passages)
    if len(placebos) < len(injected):
        return "the run has no irrelevant passage that could be its placebo; evaluate more cases"
    in_prompt = [passage.id for passage in context if passage.id not in by_id]
    irrelevant = [name for name in in_prompt if name not in relevant]
    dropped = {*irrelevant[-len(injected) :], *(passage.id for passage in injected)}
    rest = [passage for passage in retrieved if passage.id not in dropped]
    arms = [
        _arm("unchanged", retrieved, (), trace),
        _arm("treatment", [*injected, *rest], injected, trace),
        _arm("placebo", [*placebos, *rest], placebos, trace),
    ]
    if len(context) > 1:
        swaps = dict(zip((p.id for p in context), reversed(context), strict=True))
        reordered = [swaps.get(passage.id, passage) for passage in retrieved]
        arms.append(_arm("reordering", reordered, (), trace))
    note = None
    if len(injected) < len(link.missed):
        note = f"{len(injected)} of {len(link.missed)} missed passages were injected"
    return ReplayPlan(case, trace, link.failure or "", tuple(injected), tuple(arms), note)


def _missed_texts(
    miss: RetrievalMiss, trace: Trace, known_passages: Mapping[str, Passage]
) -> tuple[Passage, ...]:
    """What carries a missed passage's text: both halves where a chunk boundary cuts evidence."""
    if miss.evidence is not None:
        seen = sorted((*trace.retrieved, *trace.deeper), key=lambda passage: passage.rank)
        hit = next(
            iter(match_needs([LabelledNeed(miss.passage_id, miss.grade, miss.evidence)], seen)),
            None,
        )
        if hit is not None:
            return hit.passages
        return (Passage(id=miss.passage_id, text=miss.evidence, rank=1),)
    if miss.passage_id in known_passages:
        return (known_passages[miss.passage_id],)
    return (Passage(id=miss.passage_id, text=miss.text, rank=1),) if miss.text else ()


def _placebos(
    case: Case, trace: Trace, injected: Sequence[Passage], known_passages: Mapping[str, Passage]
) -> list[Passage]:
    """An irrelevant passage for each of `injected`: of those nearest in length the least related."""
    texts = [passage.text for passage in injected]
    related = set(stems(" ".join((case.question, *case.references, *texts))))
    used = {passage.id for passage in (*trace.retrieved, *trace.deeper)}
    by_length = list(known_passages.values())
    placebos: list[Passage] = []
    for passage in injected:
        length = len(passage.text)
        place = bisect_left(by_length, length, key=lambda known: len(known.text))
        nearest = heapq.merge(
            reversed(by_length[:place]),
            by_length[place:],
            key=lambda known: abs(len(known.text) - length),
        )
        candidates = islice(
            (
                other
                for other in nearest
                if other.id not in used
                and not relevant_ids(case, [other])
                and not any(is_near_duplicate(other.text, text) for text in texts)
            ),
            _PLACEBO_CANDIDATES,
        )
        least = min(
            candidates, key=lambda other: len(related & set(stems(other.text))), default=None
        )
        if least is None:
            break
        placebos.append(least)
        used.add(least.id)
    return placebos


def _arm(name: str, passages: Sequence[Passage], injected: Sequence[Passage], trace: Trace) -> Arm:
    """Rank the passages again; scores keep their places, because apps filter by score."""
    ranked = _assign_ranks(passages, [passage.score for passage in trace.retrieved])
    calls = [call for call in trace.calls if not call.nested]
    if len(calls) < 2:
        return Arm(name, ranked)
    new = {passage.id for passage in injected}
    by_id = {passage.id: passage for passage in passages if passage.id not in new}
    own_scores = {passage.id: passage.score for passage in trace.retrieved}
    searches = []
    for place, call in enumerate(calls):
        found = [by_id[id_] for id_ in call.passages if id_ in by_id]
        found = found[::-1] if name == "reordering" else found
        scores = [own_scores[id_] for id_ in call.passages if id_ in own_scores]
        given = _assign_ranks([*([] if place else injected), *found], scores)
        searches.append(InjectedSearch(call.query, call.retriever, given))
    return Arm(name, ranked, tuple(searches))


def _assign_ranks(
    passages: Sequence[Passage], scores: Sequence[float | None]
) -> tuple[Passage, ...]:
    return tuple(
        passage.model_copy(
            update={"rank": rank, "score": scores[rank - 1] if rank <= len(scores) else None}
        )
        for rank, passage in enumerate(passages, start=1)
    )
