"""Which passages a retriever ought to be asked deeper for."""

from __future__ import annotations

from collections.abc import Callable

from misslink.retrieval.matching import needs, satisfies, telling_part
from misslink.retrieval.outcomes import outcome
from misslink.types import Case, Passage, Trace

__all__ = ["still_wanted"]


def still_wanted(case: Case, trace: Trace, k: int) -> Callable[[Passage], bool] | None:
    """Whether a passage satisfies a need that the context of the answer left open.

    Parameters
    ----------
    case : Case
    trace : Trace
    k : int
        How many passages count as the context where the prompt was not seen.

    Returns
    -------
    callable or None
        Takes a passage; true also for one that carries a telling part of an evidence, cut by a
        chunk boundary. None where nothing is missed.
    """
    missed = outcome(case, trace, k).missed
    if not missed:
        return None
    ids = {lost.passage_id for lost in missed}
    evidence = {lost.evidence for lost in missed}
    open_needs = [
        need
        for alternative in needs(case, trace.retrieved)
        for need in alternative
        if need.id in ids or (need.evidence is not None and need.evidence in evidence)
    ]

    def wanted(passage: Passage) -> bool:
        return any(satisfies(need, passage) or telling_part(need, passage) for need in open_needs)

    return wanted
