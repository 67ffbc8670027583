"""A judge that says what a test gives it, and the verdicts that the metrics read from it."""

import asyncio
from typing import get_args

from fake_judge import FakeJudge
from misslink.judge.examination import (
    Examination,
    ExaminationWithReference,
    ExaminedClaim,
    ExaminedClaimWithReference,
    ExaminedPassage,
    ExaminedReferenceClaim,
)
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

TEXTS = {"a": "The harbour opened in 1904.", "b": "Ships pay a toll.", "c": "Gulls nest there."}
PASSAGES = tuple(Passage(id=i, text=t, rank=r) for r, (i, t) in enumerate(TEXTS.items(), 1))
SUPPORTED = ("It opened in 1904.", "supported", "opened in 1904")
INVENTED = ("It has a casino.", "unsupported", None)
FALSE_QUOTE = ("It has a zoo.", "supported", "it has a zoo")

# Each field of an examination that a judge may leave out, and its values, the best first.
OPTIONAL_FIELDS = {
    name: sorted(
        get_args(get_args(field.annotation)[0]) or (True, False),  # or a yes or no
        key=lambda value: -value if isinstance(value, int) else 0,
    )
    for name, field in Examination.model_fields.items()
    if not field.is_required()
}
BEST_FIELDS = {name: values[0] for name, values in OPTIONAL_FIELDS.items()}


class ScriptedJudge(FakeJudge):
    """Answers with the reply it was given for the ask's name, else with `reply`."""

    def __init__(self, reply, **by_name):
        def say(ask):
            given = by_name.get(ask.name, reply)
            return given(ask) if callable(given) else given

        super().__init__(say, "scripted")


def judged(case, trace, judge, *names, k=5):
    """The verdicts by metric; of every registered metric where none is named."""
    metrics = [judged_metrics.get(name) for name in names or judged_metrics.names()]
    found = asyncio.run(judge_case(Subject(case, trace, k), metrics, judge))
    return {verdict.metric: verdict for verdict in found}


def verdicts(parsed, case=None, answer="", **reply):
    """The verdicts of every metric on passages a and b of three, and the judge.

    An answer that is not given is the claims of the reply, one after the other.
    """
    if answer == "":
        texts = [claim.claim.rstrip(".") for claim in getattr(parsed, "claims", ())]
        answer = ". ".join(texts or ["It opened"]) + "."
    case = case or Case(id="1", question="When did it open?")
    trace = Trace(case_id=case.id, retrieved=PASSAGES, prompted=("a", "b"), answer=answer)
    judge = ScriptedJudge(Reply(parsed, reply.pop("raw", "{}"), **reply))
    return judged(case, trace, judge), judge


def plain(*claims, passages=(), response="answers", **more):
    """An examination without references; a claim is text, support, quote."""
    said = tuple(ExaminedClaim(claim=t, support=s, quote=q) for t, s, q in claims)
    relevant = tuple(ExaminedPassage(passage=n, relevant=r) for n, r in passages)
    return Examination(claims=said, passages=relevant, response=response, **more)


def referenced(claims, reference_claims, response="answers", passages=(), **more):
    """One with references; a claim is text, agreement, or text, support, quote, agreement."""
    full = [
        claim if len(claim) > 2 else (claim[0], "unsupported", None, claim[1]) for claim in claims
    ]
    return ExaminationWithReference(
        claims=tuple(
            ExaminedClaimWithReference(claim=t, support=s, quote=q, reference=r)
            for t, s, q, r in full
        ),
        passages=tuple(ExaminedPassage(passage=n, relevant=r) for n, r in passages),
        response=response,
        reference_claims=tuple(
            ExaminedReferenceClaim(reference=n, text=t, answer=a) for n, t, a in reference_claims
        ),
        **more,
    )
