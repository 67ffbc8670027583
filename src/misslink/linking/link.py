"""The link of one case: from the retrieval outcome to the answer outcome, claim by claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misslink.judging.protocol import Judge
from misslink.linking.calibration import Calibration
from misslink.linking.causes import causes_of
from misslink.linking.claims import hold_claims
from misslink.linking.facts import gather
from misslink.linking.losses import unmeasured
from misslink.prompting import Prompts
from misslink.prompting.prompts import BUILT_IN
from misslink.retrieval import Outcome
from misslink.types import Case, Link, Missed, Trace, Verdict

__all__ = ["link_case"]


async def link_case(
    case: Case,
    trace: Trace,
    verdicts: Mapping[str, Verdict],
    k: int,
    *,
    missed: Sequence[Missed] | None = None,
    found: Outcome | None = None,
    judge: Judge | None = None,
    prompts: Prompts = BUILT_IN,
    calibration: Calibration | None = None,
) -> Link:
    """Name the cause of a case, its missed passages, and what each unfaithful claim needed.

    Parameters
    ----------
    case : Case
    trace : Trace
    verdicts : mapping of str to Verdict
        By metric.
    k : int
        How many retrieved passages count as context where the prompt was not seen.
    missed : sequence of Missed or None
        The case's missed passages as they were measured. None: what their ranks alone tell.
    found : Outcome or None
        What its retrieval brought, where that was worked out.
    judge : Judge or None
        Who is asked what the missed passages say of the claims; None: the embedded judge.
    prompts : Prompts
        What the judge reads.
    calibration : Calibration or None
        Of the judge: verdicts within its uncertain band decide nothing.
    """
    facts = gather(case, trace, verdicts, k, calibration, found)
    cause, reasons = causes_of(facts)
    lost = unmeasured(trace, facts.found, k) if missed is None else tuple(missed)
    return Link(
        case_id=case.id,
        retrieval=facts.found.retrieval,
        answer=facts.answer,
        correct=facts.correct,
        cause=cause,
        contributing=tuple(other for other in reasons if other != cause),
        reason=reasons[cause],
        reasons=reasons,
        missed=lost,
        claims=await hold_claims(
            facts.unfaithful, lost, question=case.question, judge=judge, prompts=prompts
        ),
    )
