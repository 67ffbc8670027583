"""What the traces and the corpus tell of each missed passage, before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from misslink.linking.duplicates import duplicates, nearly_same
from misslink.linking.pool import Pool
from misslink.linking.subtypes import Miss, classify
from misslink.retrieval import Need, Outcome, cutoff, find
from misslink.types import Missed, Passage, Rival, Trace

__all__ = ["Loss", "losses", "unmeasured"]

_MOST_ABOVE = 5  # rivals that are kept
_MOST_COMPARED = 30  # retrieved passages held against each other for near-duplicates


@dataclass(frozen=True)
class Loss:
    """A missed passage: what is known of it, itself where its text is known, and the last one.

    ``last`` is the id of the last passage of the context.
    """

    miss: Miss
    passage: Passage | None
    last: str | None


def losses(trace: Trace, found: Outcome, pool: Pool, k: int) -> tuple[Loss, ...]:
    """The missed passages of one case, in the order of the gold set.

    Parameters
    ----------
    trace : Trace
    found : Outcome
        Of the case.
    pool : Pool
    k : int
        How many passages count where the prompt was not seen.
    """
    if not found.missed:
        return ()
    context = trace.context(k)
    last = cutoff(trace, k)
    compared = trace.retrieved[:_MOST_COMPARED]
    repeats = duplicates([passage.text for passage in compared])
    first = [None if at is None else compared[at].id for at in repeats]
    rivals = [
        Rival(passage_id=one.id, rank=place, score=one.score, duplicate_of=of)
        for place, (one, of) in enumerate(zip(compared, first, strict=True), start=1)
    ]
    inside = {passage.id for passage in context}
    crowded = sum(r.duplicate_of is not None and r.passage_id in inside for r in rivals)
    measured = {"duplicates_in_context": float(crowded)} if context else {}
    ranks = {one.id: place for place, one in enumerate(trace.retrieved, start=1)}
    made = []
    for bare in found.missed:
        lost, passage, halves, lacking = _located(bare, trace, pool)
        rank = lost.true_rank
        above = [r for r in rivals if r.passage_id != lost.passage_id]
        if rank is not None:
            above = [rival for rival in above if rival.rank < rank]
        lost = lost.model_copy(
            update={
                "above": tuple(above[:_MOST_ABOVE]),
                "distance": rank - last if rank is not None and rank > last else None,
                "measured": measured,
            }
        )
        behind = [one.id for one in context if rank is not None and ranks[one.id] > rank]
        miss = Miss(
            lost=lost,
            k=last,
            retrieved=lost.passage_id in ranks,
            prompt_seen=trace.prompted is not None,
            overtaken_by=behind[0] if behind else None,
            lacking=lacking,
            halves=halves,
            crowd=sum(rival.duplicate_of is not None for rival in above),
            twin=_twin(lost, context),
        )
        made.append(Loss(miss, passage, context[-1].id if context else None))
    return tuple(made)


def unmeasured(trace: Trace, found: Outcome, k: int) -> tuple[Missed, ...]:
    """The missed passages of one case with the subtype that its trace alone tells.

    For a case that was not measured together with its run: no corpus, no cosines, no words.
    """
    pool = Pool([trace], None)
    return tuple(classify(loss.miss) for loss in losses(trace, found, pool, k))


def _located(
    lost: Missed, trace: Trace, pool: Pool
) -> tuple[Missed, Passage | None, tuple[str, ...], str | None]:
    """The missed passage with its text where that is known, its halves, and who lacks it."""
    need = Need(lost.passage_id, lost.grade, lost.evidence)
    halves = _halves(lost, trace) if lost.subtype == "split_evidence" else ()
    if lost.text is not None and lost.text.strip():
        rank = lost.true_rank or 1
        return lost, Passage(id=lost.passage_id, text=lost.text, rank=rank), halves, None
    there = pool.locate(need) if lost.true_rank is None or lost.evidence is None else None
    if there is not None:
        # Of two halves the one that the retriever did not give is what was missing.
        given = {one.id for one in trace.retrieved}
        passage = next((one for one in there.passages if one.id not in given), there.passages[-1])
        halves = tuple(one.id for one in there.passages) if there.split else ()
        lost = lost.model_copy(update={"passage_id": passage.id, "text": passage.text})
        return lost, passage, halves, None
    lacking = None
    if lost.true_rank is None and not halves and pool.lacks(need):
        lacking = f"the listed corpus of {len(pool.passages)} passages"
    return lost, None, halves, lacking


def _halves(lost: Missed, trace: Trace) -> tuple[str, ...]:
    """The ids of the two passages that carry the evidence of a missed half together."""
    need = Need(lost.passage_id, lost.grade, lost.evidence)
    there = next(iter(find([need], [*trace.retrieved, *trace.deeper])), None)
    return tuple(one.id for one in there.passages) if there is not None else ()


def _twin(lost: Missed, context: Sequence[Passage]) -> str | None:
    """A passage of the context that says nearly the same as the missed one."""
    text = lost.text
    if text is None:
        return None
    return next((one.id for one in context if nearly_same(one.text, text)), None)
