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
    """The missed passages, each with the subtype that its rank alone tells."""
    retrieved = {passage.id for passage in facts.trace.retrieved}
    missed = []
    for lost in facts.found.missed:
        subtype = lost.subtype
        if subtype is None and lost.true_rank is not None:
            dropped = lost.passage_id in retrieved and lost.true_rank <= k
            subtype = "dropped_before_prompt" if dropped else "below_cutoff"
        missed.append(lost.model_copy(update={"subtype": subtype}))
    return tuple(missed)
