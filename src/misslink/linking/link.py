"""The link of one case: from the retrieval outcome to the answer outcome, claim by claim."""

from __future__ import annotations

from collections.abc import Mapping

from misslink.linking.causes import causes_of
from misslink.linking.claims import link_claims
from misslink.linking.facts import Facts, gather
from misslink.types import Case, Link, Missed, Trace, Verdict

__all__ = ["link_case"]


def link_case(case: Case, trace: Trace, verdicts: Mapping[str, Verdict], k: int) -> Link:
    """Name the cause of a case, its missed passages, and what each unfaithful claim needed.

    Parameters
    ----------
    case : Case
    trace : Trace
    verdicts : mapping of str to Verdict
        By metric.
    k : int
        How many retrieved passages count as context where the prompt was not seen.
    """
    facts = gather(case, trace, verdicts, k)
    cause, contributing, reason = causes_of(facts)
    missed = _missed(facts, k)
    return Link(
        case_id=case.id,
        retrieval=facts.found.retrieval,
        answer=facts.answer,
        correct=facts.correct,
        cause=cause,
        contributing=contributing,
        reason=reason,
        missed=missed,
        claims=link_claims(facts.unfaithful, missed),
    )


def _missed(facts: Facts, k: int) -> tuple[Missed, ...]:
    missed = []
    retrieved = {passage.id for passage in facts.trace.retrieved}
    for lost in facts.found.missed:
        passage = lost.passage
        subtype = None
        if lost.split:
            subtype = "split_evidence"
        elif passage is not None and passage.id in retrieved and passage.rank <= k:
            subtype = "dropped_before_prompt"
        elif lost.rank is not None:
            subtype = "below_cutoff"
        missed.append(
            Missed(
                passage_id=passage.id if passage else lost.need.id,
                grade=lost.need.grade,
                true_rank=lost.rank,
                subtype=subtype,
                depth=facts.trace.depth,
                score=passage.score if passage else None,
                evidence=lost.need.evidence,
                text=passage.text if passage and passage.text else None,
            )
        )
    return tuple(missed)
