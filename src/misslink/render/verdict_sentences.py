"""The sentences that say why a verdict has its value, or has none."""

from __future__ import annotations

from collections.abc import Callable

_SUFFICIENT = {"yes": "a full", "partly": "part of an", "no": "no"}
_GRADES = "useless", "hardly", "half", "mostly", "fully"


def _abstention_outcome(*, declined: bool, answerable: bool) -> str:
    wrong = "over-refused" if declined else "should have abstained"
    return (
        f"{'right' if declined != answerable else wrong}: {'declined' if declined else 'answered'}, "
        f"and the question has {'an' if answerable else 'no'} answer"
    )


VERDICT_SENTENCES: dict[str, str | Callable[..., str]] = {
    # of the answer
    "answer_declines": "the answer declines",
    "rightly_declines": "the answer rightly declines; see abstention",
    "no_claim": "the answer makes no claim",
    "answer_response": lambda response: (
        "in part" if response == "partly" else f"the answer {response} the question"
    ),
    "helpfulness_grade": lambda grade: f"graded {grade} of {len(_GRADES)}, {_GRADES[grade - 1]}",
    "abstention_outcome": _abstention_outcome,
    "answerable_unknown": "the gold set does not say whether there is an answer",
    # of the passages
    "empty_prompt": "no passage reached the prompt",
    "no_relevant_in_prompt": "no relevant passage reached the prompt",
    "passages_hold": lambda answer: f"the passages hold {_SUFFICIENT[answer]} answer",
    # of citations and references
    "no_citation": "the answer cites no passage",
    "cited_absent": "it cites passages that do not exist: {names}",
    "citation_unrated": "the judge left out one of its citations",
    "citation_quote_absent": "the judge's quote is not in the cited passage",
    "contradicts_reference": "it contradicts the reference",
    "claims_omitted": "{n} of {of} reference claims not stated",
    # what the judge was not asked or does not say
    "no_reference_asked": "the judge received no reference answer",
    "passages_unrated": "the judge did not rate any passage",
    "citations_unrated": "the judge did not rate any citation",
    "reference_claims_unrated": "the judge did not rate any reference claim",
    "helpfulness_not_judged": "the judge does not say how helpful the answer is",
    "sufficiency_not_judged": "the judge does not say whether the passages suffice",
    "criterion_left_out": "the judge left this criterion out",
    "criteria_not_judged": "the judge does not judge criteria",
}
