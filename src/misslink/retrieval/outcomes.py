"""What retrieval did for one case: everything needed, part of it or nothing, and what it missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.retrieval.matching import Find, Need, find, needs
from misslink.types import Case, Missed, Passage, Trace

__all__ = ["Outcome", "cutoff", "outcome", "why_unmeasured"]


@dataclass(frozen=True)
class Outcome:
    """What reached the context of one answer, of what the case needs.

    Parameters
    ----------
    retrieval : {'hit', 'partial', 'miss', 'none_needed', 'unknown'}
        All of it, some, nothing; the case needs nothing; or what was retrieved was not seen.
    found : sequence of Find
        The needs that reached the context, ranks counted in the context.
    missed : sequence of Missed
        Those that did not, in the order of the gold set.
    note : str or None
        What people should know about it: evidence found over two passages, or why the case was
        not really measured.
    """

    retrieval: Literal["hit", "partial", "miss", "none_needed", "unknown"]
    found: tuple[Find, ...] = ()
    missed: tuple[Missed, ...] = ()
    note: str | None = None


def outcome(case: Case, trace: Trace, k: int) -> Outcome:
    """What reached the context, and at what rank the rest is.

    Of alternatives the one that is complete counts, else the one with most needs satisfied, and
    among equals the one that misses least.

    Parameters
    ----------
    case : Case
    trace : Trace
    k : int
        How many passages count as the context where the prompt was not seen.

    Returns
    -------
    Outcome
        A missed need has the rank of the passage that satisfies it in ``trace.retrieved`` or, when
        the retriever was asked deeper, in ``trace.deeper``; then its text and id are that
        passage's. Evidence that takes two passages has the worse rank of the two and the subtype
        'split_evidence'. Other subtypes are not decided here.
    """
    unseen = why_unmeasured(trace)
    if unseen:
        return Outcome("unknown", note=unseen)
    alternatives = needs(case, trace.retrieved)
    if not alternatives:
        blind = any(case.evidence.values())
        note = "no retrieved passage has a text in which to look for the evidence"
        return Outcome("none_needed", note=note if blind else None)
    context = trace.context(k)
    tried = [(wanted, find(wanted, context)) for wanted in alternatives]
    wanted, found = max(
        tried, key=lambda pair: (len(pair[1]) == len(pair[0]), len(pair[1]), -len(pair[0]))
    )
    satisfied = {hit.need.id for hit in found}
    lacking = [need for need in wanted if need.id not in satisfied]
    pool = _by_rank(trace) if lacking else ()
    missed = tuple(_missed(need, pool, trace, k) for need in lacking)
    retrieval: Literal["hit", "partial", "miss"] = "partial" if found else "miss"
    return Outcome("hit" if not missed else retrieval, found, missed, _note(found))


def cutoff(trace: Trace, k: int) -> int:
    """The rank up to which a passage counts as retrieved, 1 or more.

    As many as the app asked for where the prompt was seen; else `k`, or fewer where the app asked
    for fewer. Where nothing was retrieved nobody knows, and it is `k`.
    """
    given = len(trace.retrieved)
    return (given if trace.prompted is not None else min(k, given)) or k


def why_unmeasured(trace: Trace) -> str | None:
    """Why it is not known what was retrieved for a case; None where it is."""
    if trace.unmeasured is None and trace.error is not None and not trace.retrieved:
        return "the app failed before it retrieved anything"
    return trace.unmeasured


def _by_rank(trace: Trace) -> tuple[Passage, ...]:
    """Everything seen, best first, each with the rank it has when the retriever is asked deeper."""
    ranked = [
        passage if passage.rank == at else passage.model_copy(update={"rank": at})
        for at, passage in enumerate(trace.retrieved, start=1)
    ]
    known = {passage.id for passage in ranked}
    ranked += [passage for passage in trace.deeper if passage.id not in known]
    return tuple(sorted(ranked, key=lambda passage: passage.rank))


def _missed(need: Need, pool: Sequence[Passage], trace: Trace, k: int) -> Missed:
    there = next(iter(find([need], pool)), None)
    if there is None:
        return Missed(
            passage_id=need.id, grade=need.grade, depth=trace.depth, evidence=need.evidence
        )
    # Of two halves the one further down is what was missing.
    passage = max(there.passages, key=lambda half: half.rank)
    return Missed(
        passage_id=passage.id,
        grade=need.grade,
        true_rank=passage.rank,
        subtype="split_evidence" if there.split else None,
        depth=trace.depth,
        distance=beyond if (beyond := passage.rank - cutoff(trace, k)) > 0 else None,
        score=passage.score,
        evidence=need.evidence,
        text=passage.text or None,
    )


def _note(found: Sequence[Find]) -> str | None:
    split = [hit for hit in found if hit.split]
    if not split:
        return None
    cut = "; ".join(
        f"{hit.need.id} over '{hit.passages[0].id}' and '{hit.passages[1].id}'" for hit in split
    )
    return f"found split over two passages: {cut}"
