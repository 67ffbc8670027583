"""Why a case failed: one rule a cause, each returning the evidence that puts a case there."""

from __future__ import annotations

from collections.abc import Callable

from misslink.linking.facts import Facts
from misslink.types import Cause

__all__ = ["RULES", "causes_of"]

SUFFICIENT = "the judge finds that the passages that were there hold a full answer"


def retrieval_miss(facts: Facts) -> str | None:
    """A needed passage never reached the prompt, and the answer is unfaithful or wrong."""
    if not facts.found.missed or not facts.bad or not facts.answerable:
        return None
    missed, needed = len(facts.found.missed), facts.needed
    what = "the needed passage" if needed == 1 else f"{missed} of {needed} needed passages"
    return f"{what} never reached the prompt, and {_how_bad(facts)}"


def should_have_abstained(facts: Facts) -> str | None:
    """There was nothing to answer from, and the app answered."""
    if facts.declined is not False:
        return None
    if facts.case.expects_answer is False:
        return "the corpus holds no answer, and the app gave one"
    if facts.found.retrieval == "miss" and facts.bad:
        return f"no needed passage was there to answer from, and {_how_bad(facts)}"
    return None


def over_refused(facts: Facts) -> str | None:
    """The passage was there, and the app declined."""
    if not facts.declined or facts.case.expects_answer is not True:
        return None
    if facts.found.retrieval == "hit":
        return "every needed passage reached the prompt, and the app declined to answer"
    if facts.found.retrieval == "none_needed":
        return "the gold set says that there is an answer, and the app declined to give one"
    if facts.found.retrieval == "partial" and facts.sufficient:
        return f"{SUFFICIENT}, and the app declined to answer"
    return None


def distracted(facts: Facts) -> str | None:
    """A wrong claim rests on an irrelevant passage."""
    if not facts.needed:
        return None  # nobody said which passages are relevant
    irrelevant = {passage.id for passage in facts.context} - facts.relevant
    for claim in facts.claims:
        wrong = claim.correct is False or (facts.correct is False and claim.correct is not True)
        rests_on = {item.passage_id for item in claim.evidence}
        if wrong and claim.support == "supported" and rests_on and rests_on <= irrelevant:
            return f"a wrong claim rests on the irrelevant passage '{min(rests_on)}'"
    return None


def fabricated(facts: Facts) -> str | None:
    """A claim is not supported although the context was complete."""
    if facts.answer != "unfaithful" or (not facts.answerable and facts.declined is None):
        return None  # it may as well have declined, and that was right
    if facts.found.retrieval in {"partial", "miss"}:
        return f"{SUFFICIENT}, and {_how_bad(facts)}" if facts.sufficient else None
    if facts.found.retrieval == "unknown":
        return None
    if facts.needed:
        return f"every needed passage was there, and {_how_bad(facts)}"
    if not facts.answerable:
        return f"there was nothing to answer from, and {_how_bad(facts)}"
    return f"{facts.found.note or 'the gold set lists no passage'}, and {_how_bad(facts)}"


def ignored_context(facts: Facts) -> str | None:
    """The needed passage was there, and the answer does not use it."""
    if not facts.relevant or not facts.bad:
        return None
    used = {
        item.passage_id
        for claim in facts.claims
        if claim.support == "supported"
        for item in claim.evidence
    }
    if facts.claims and not used & facts.relevant:
        return "a needed passage reached the prompt, and no supported claim rests on it"
    if facts.found.retrieval != "hit" or facts.correct is not False or facts.missing:
        return None
    if facts.answer == "unknown":
        return "every needed passage was there, and the answer is wrong and claims nothing of them"
    if facts.answer == "faithful":
        return (
            "every needed passage was there, and the answer does not draw the right claim from it"
        )
    return None


def gold_hole(facts: Facts) -> str | None:
    """A retrieved passage holds the answer, and the gold set does not list it."""
    if facts.by_heuristic or facts.correct is not True or facts.answer != "faithful":
        return None
    if facts.found.retrieval not in {"miss", "partial"}:
        return None
    listed = facts.relevant | facts.case.relevant.keys()  # a grade of 0 is a person's word too
    rests_on = {item.passage_id for claim in facts.claims for item in claim.evidence}
    unlisted = rests_on & (facts.judged_relevant - listed)
    if not unlisted:
        return None
    return f"the right answer rests on '{min(unlisted)}', which the gold set does not list"


def right_by_memory(facts: Facts) -> str | None:
    """The answer is correct although the passage was missing."""
    if facts.found.retrieval != "miss" or facts.correct is not True or not facts.answerable:
        return None
    if gold_hole(facts):
        return None  # it has its answer from a passage
    return "the answer is right, and no needed passage reached the prompt"


# In the order in which the first that fits is the primary one.
RULES: tuple[tuple[Cause, Callable[[Facts], str | None]], ...] = (
    ("retrieval_miss", retrieval_miss),
    ("should_have_abstained", should_have_abstained),
    ("over_refused", over_refused),
    ("distracted", distracted),
    ("fabricated", fabricated),
    ("ignored_context", ignored_context),
    ("gold_hole", gold_hole),
    ("right_by_memory", right_by_memory),
)


def causes_of(facts: Facts) -> tuple[Cause, dict[Cause, str]]:
    """Name every cause that fits a case.

    Parameters
    ----------
    facts : Facts

    Returns
    -------
    primary : str
    reasons : dict of str to str
        Cause to one sentence of evidence: the primary cause first, then those that contribute, in
        the order of `RULES`. 'undecided' and 'fine' stand alone: a cause that what is known
        already shows is named, however much else is missing.
    """
    fitting = {cause: reason for cause, rule in RULES if (reason := rule(facts))}
    if fitting:
        return next(iter(fitting)), fitting
    cause, reason = _without_rule(facts)
    return cause, {cause: reason}


def _without_rule(facts: Facts) -> tuple[Cause, str]:
    doubt = _doubt(facts)
    return ("undecided", doubt) if doubt else ("fine", _fine(facts))


def _doubt(facts: Facts) -> str | None:
    """What is not known of a case that no rule fits, if it could show a fault."""
    unseen = facts.found.retrieval == "unknown"
    retrieval = f"what was retrieved is not known: {facts.found.note}" if unseen else None
    if facts.declined:
        if facts.case.expects_answer is None:
            return "the app declined, and the gold set does not say if it should"
        return retrieval if facts.answerable else None
    if facts.missing:
        return facts.missing
    if facts.declined is None and not facts.answerable:
        return "there is no answer, and no verdict says whether the app declined"
    if facts.correct is False and not unseen:
        return "the answer is wrong, and the gold set lists no passage to say why"
    return retrieval


def _how_bad(facts: Facts) -> str:
    if facts.declined:
        return "the app declined to answer"
    count = sum(claim.support != "supported" for claim in facts.claims)
    if count:
        claims = "claim is" if len(facts.claims) == 1 else "claims are"
        return f"{count} of {len(facts.claims)} {claims} not supported by what was there"
    if facts.answer == "unfaithful":
        return "the judge finds it not supported by what was there"
    return "the answer is wrong"


def _fine(facts: Facts) -> str:
    if facts.declined:
        return "there was nothing to answer from, and the app declined"
    said = "correct" if facts.correct else "not held against a reference"
    return f"the answer is {facts.answer} and {said}" if facts.answer != "unknown" else said
