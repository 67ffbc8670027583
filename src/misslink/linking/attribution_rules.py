"""Why a case failed: one rule per failure mode, and the link of a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from misslink.failure_modes import FAILURE_MODES
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Judge
from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.claim_support import link_claims
from misslink.linking.judge_calibration import Calibration
from misslink.linking.miss_measurement import MissMeasurements
from misslink.linking.missed_passages import classify_from_trace
from misslink.types import Case, FailureMode, Link, Trace, Verdict

SUFFICIENT = "the judge finds that the passages that were there hold a full answer"


def retrieval_miss(evidence: CaseEvidence) -> str | None:
    """A needed passage never reached the prompt, and the answer is unfaithful or wrong."""
    if not evidence.outcome.missed or not evidence.bad or not evidence.answerable:
        return None
    missed, needed = len(evidence.outcome.missed), evidence.needed
    subject = "the needed passage" if needed == 1 else f"{missed} of {needed} needed passages"
    return f"{subject} never reached the prompt, and {_describe_failure(evidence)}"


def should_have_abstained(evidence: CaseEvidence) -> str | None:
    """There was nothing to answer from, and the app answered."""
    if evidence.declined is not False:
        return None
    if evidence.case.expects_answer is False:
        return "the corpus holds no answer, and the app gave one"
    if evidence.outcome.retrieval == "miss" and evidence.bad:
        return f"no needed passage was there to answer from, and {_describe_failure(evidence)}"
    return None


def over_refused(evidence: CaseEvidence) -> str | None:
    """The passage was there, and the app declined."""
    if not evidence.declined or evidence.case.expects_answer is not True:
        return None
    if evidence.outcome.retrieval == "hit":
        return "every needed passage reached the prompt, and the app declined to answer"
    if evidence.outcome.retrieval == "none_needed":
        return "the gold set says that there is an answer, and the app declined to give one"
    if evidence.outcome.retrieval == "partial" and evidence.sufficient:
        return f"{SUFFICIENT}, and the app declined to answer"
    return None


def distracted(evidence: CaseEvidence) -> str | None:
    """A wrong claim rests on an irrelevant passage."""
    if not evidence.needed:
        return None  # the gold set lists no relevant passage
    irrelevant = {passage.id for passage in evidence.context} - evidence.relevant
    for claim in evidence.claims:
        wrong = claim.correct is False or (evidence.correct is False and claim.correct is not True)
        rests_on = {item.passage_id for item in claim.evidence}
        if wrong and claim.support == "supported" and rests_on and rests_on <= irrelevant:
            return f"a wrong claim rests on the irrelevant passage '{min(rests_on)}'"
    return None


def fabricated(evidence: CaseEvidence) -> str | None:
    """A claim is not supported although the context was complete."""
    if evidence.answer != "unfaithful" or (not evidence.answerable and evidence.declined is None):
        return None  # it may as well have declined, and that was right
    if evidence.outcome.retrieval in {"partial", "miss"}:
        return f"{SUFFICIENT}, and {_describe_failure(evidence)}" if evidence.sufficient else None
    if evidence.outcome.retrieval == "unknown":
        return None
    if evidence.needed:
        return f"every needed passage was there, and {_describe_failure(evidence)}"
    if not evidence.answerable:
        return f"there was nothing to answer from, and {_describe_failure(evidence)}"
    return f"{evidence.outcome.note or 'the gold set lists no passage'}, and {_describe_failure(evidence)}"


def ignored_context(evidence: CaseEvidence) -> str | None:
    """The needed passage was there, and the answer does not use it."""
    if not evidence.relevant or not evidence.bad:
        return None
    used = {
        item.passage_id
        for claim in evidence.claims
        if claim.support == "supported"
        for item in claim.evidence
    }
    if evidence.claims and not used & evidence.relevant:
        return "a needed passage reached the prompt, and no supported claim rests on it"
    if (
        evidence.outcome.retrieval != "hit"
        or evidence.correct is not False
        or evidence.unknown_reason
    ):
        return None
    if evidence.answer == "unknown":
        return "every needed passage was there, and the answer is wrong and claims nothing of them"
    if evidence.answer == "faithful":
        return (
            "every needed passage was there, and the answer does not draw the right claim from it"
        )
    return None


def missing_label(evidence: CaseEvidence) -> str | None:
    """A retrieved passage holds the answer, and the gold set does not list it."""
    if evidence.by_heuristic or evidence.correct is not True or evidence.answer != "faithful":
        return None
    if evidence.outcome.retrieval not in {"miss", "partial"}:
        return None
    listed = (
        evidence.relevant | evidence.case.relevant.keys()
    )  # a grade of 0 is a person's word too
    rests_on = {item.passage_id for claim in evidence.claims for item in claim.evidence}
    unlisted = rests_on & (evidence.judged_relevant - listed)
    if not unlisted:
        return None
    return f"the right answer rests on '{min(unlisted)}', which the gold set does not list"


def answered_from_memory(evidence: CaseEvidence) -> str | None:
    """The answer is correct although the passage was missing."""
    if (
        evidence.outcome.retrieval != "miss"
        or evidence.correct is not True
        or not evidence.answerable
    ):
        return None
    if missing_label(evidence):
        return None  # it has its answer from a passage
    return "the answer is right, and no needed passage reached the prompt"


def _inconclusive_reason(evidence: CaseEvidence) -> str | None:
    """What is not known of a case that no rule fits, if it could show a fault."""
    unseen = evidence.outcome.retrieval == "unknown"
    retrieval = f"what was retrieved is not known: {evidence.outcome.note}" if unseen else None
    if evidence.declined:
        if evidence.case.expects_answer is None:
            return "the app declined, and the gold set does not say if it should"
        return retrieval if evidence.answerable else None
    if evidence.unknown_reason:
        return evidence.unknown_reason
    if evidence.declined is None and not evidence.answerable:
        return "there is no answer, and no verdict says whether the app declined"
    if evidence.correct is False and not unseen:
        return "the answer is wrong, and the gold set lists no passage to say why"
    return retrieval


def _describe_failure(evidence: CaseEvidence) -> str:
    if evidence.declined:
        return "the app declined to answer"
    count = sum(claim.support != "supported" for claim in evidence.claims)
    if count:
        claims = "claim is" if len(evidence.claims) == 1 else "claims are"
        return f"{count} of {len(evidence.claims)} {claims} not supported by what was there"
    if evidence.answer == "unfaithful":
        return "the judge finds it not supported by what was there"
    return "the answer is wrong"


def _describe_pass(evidence: CaseEvidence) -> str:
    if evidence.declined:
        return "there was nothing to answer from, and the app declined"
    correct = "correct" if evidence.correct else "not compared with a reference"
    if evidence.answer == "unknown":
        return correct
    return f"the answer is {evidence.answer} and {correct}"


RULES: Mapping[FailureMode, Callable[[CaseEvidence], str | None]] = {
    rule.__name__: rule
    for rule in (
        retrieval_miss,
        should_have_abstained,
        over_refused,
        distracted,
        fabricated,
        ignored_context,
        missing_label,
        answered_from_memory,
    )
}


def classify_failure(evidence: CaseEvidence) -> tuple[FailureMode, dict[FailureMode, str]]:
    """Return the primary failure mode, and a reason for it and for every other that fits.

    The reasons are in the order of `FAILURE_MODES`. 'inconclusive' and 'passed' stand alone: a
    mode that the known verdicts show is named, however many others are missing.
    """
    reasons = {
        name: reason
        for name in FAILURE_MODES
        if name in RULES and (reason := RULES[name](evidence))
    }
    if reasons:
        return next(iter(reasons)), reasons
    unknown = _inconclusive_reason(evidence)
    failure = "inconclusive" if unknown else "passed"
    return failure, {failure: unknown or _describe_pass(evidence)}


async def link_case(
    case: Case,
    trace: Trace,
    verdicts: Mapping[str, Verdict],
    k: int,
    *,
    measured: MissMeasurements | None = None,
    judge: Judge | None = None,
    prompts: Prompts = BUILT_IN,
    calibration: Calibration | None = None,
) -> Link:
    """Return the failure mode of a case, its missed passages, and the one each claim needed.

    Parameters
    ----------
    case : Case
    trace : Trace
    verdicts : mapping of str to Verdict
        By metric; any may be missing.
    k : int
        How many retrieved passages count as context where the prompt was not seen.
    measured : MissMeasurements or None
        Of the run. None: of the missed passages, what the ranks in the trace alone show.
    judge : Judge or None
        Asked what the missed passages say about the claims; None: the heuristic judge.
    prompts : Prompts
    calibration : Calibration or None
        Verdicts in its uncertain band decide nothing.
    """
    outcome = measured.outcomes.get(case.id) if measured else None
    evidence = CaseEvidence.from_verdicts(case, trace, verdicts, k, calibration, outcome)
    failure, reasons = classify_failure(evidence)
    misses = measured.missed.get(case.id) if measured else None
    if misses is None:
        misses = classify_from_trace(trace, evidence.outcome, k)
    return Link(
        case_id=case.id,
        retrieval=evidence.outcome.retrieval,
        answer=evidence.answer,
        correct=evidence.correct,
        failure=failure,
        also=tuple(other for other in reasons if other != failure),
        reason=reasons[failure],
        reasons=reasons,
        missed=misses,
        claims=await link_claims(
            evidence.unfaithful, misses, question=case.question, judge=judge, prompts=prompts
        ),
    )
