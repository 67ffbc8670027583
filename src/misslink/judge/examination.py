"""What a judge is asked about a case, and the models of its reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from misslink.judge.prompts import BUILT_IN, Criterion, Prompts
from misslink.judge.protocol import Ask


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


MAX_QUOTES = 2  # of a claim; a judge's further ones are not read


JudgedSupport = Literal["supported", "contradicted", "partly", "unsupported"]


class QuotedPart(_Part):
    """A part with ``quotes``: as such, or as ``quote``, one text or null."""

    @model_validator(mode="before")
    @classmethod
    def _read_quotes(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        quotes = data.get("quotes") or data.get("quote") or ()
        quotes = [quotes] if isinstance(quotes, str) else quotes
        return {**data, "quotes": [quote for quote in quotes if quote is not None]}


class ExaminedClaim(QuotedPart):
    """A claim of the answer, and the words of passages that decide it.

    ``span`` holds the words of the answer that make it (empty: those of ``claim``); ``claim`` is clear
    by itself, and null where it would equal the span. Evidence comes before the verdict, as a model
    writes in this order.
    """

    span: str = ""
    claim: str | None = None
    quotes: tuple[str, ...] = ()
    support: JudgedSupport

    @property
    def text(self) -> str:
        """The claim, clear by itself."""
        return self.claim or self.span


class ExaminedClaimWithReference(ExaminedClaim):
    """A claim that is compared with the reference answers too."""

    reference: Literal["agrees", "contradicts", "silent"]


class ExaminedPassage(_Part):
    """Whether a passage (from 1) helps to answer the question."""

    passage: int
    relevant: bool


class ExaminedReferenceClaim(_Part):
    """A claim of a reference answer (from 1), and whether the answer makes it."""

    reference: int
    text: str
    answer: Literal["states", "contradicts", "omits"]


@dataclass(frozen=True)
class DecisionQuestion:
    """How a decision model is asked for a field of an examination.

    ``meanings`` has what each value means; without them it is a question of yes or no. ``is_scale``:
    the values are levels, lowest first.
    """

    text: str
    meanings: Mapping[Any, str] = field(default_factory=dict)
    is_scale: bool = False


class Examination(_Part):
    """What is said of a case that has no reference answer.

    A field with a default is null where a judge cannot tell, as the heuristic one.
    """

    claims: tuple[ExaminedClaim, ...]
    passages: tuple[ExaminedPassage, ...]
    sufficient: Annotated[
        Literal["yes", "partly", "no"] | None,
        DecisionQuestion("Do the passages alone answer the question in full?"),
    ] = None
    response: Annotated[
        Literal["answers", "partly", "evades", "declines"],
        DecisionQuestion(  # whether it declines is another question
            "How does the answer respond?",
            {
                "answers": "it answers it",
                "partly": "it answers a part",
                "evades": "off topic",
            },
        ),
    ]
    helpful: Annotated[
        Literal[1, 2, 3, 4, 5] | None,
        DecisionQuestion(
            "Would the answer satisfy the asker? Longer is not better.",
            dict(enumerate(("useless", "hardly", "half", "mostly", "fully"), 1)),
            is_scale=True,
        ),
    ] = None

    def __hash__(self) -> int:
        # It is looked up often, and a hash of all that it holds takes longer than to compare.
        return hash(tuple(claim.text for claim in self.claims))


class ExaminationWithReference(Examination):
    """What is said of a case that has reference answers."""

    claims: tuple[ExaminedClaimWithReference, ...]
    reference_claims: tuple[ExaminedReferenceClaim, ...]


class StandaloneQuestion(_Part):
    """The question of a conversation, worded so that it is clear without the messages before it."""

    standalone_question: str | None = None


class ConversationExamination(Examination, StandaloneQuestion):
    """What is said of a case with a history and without a reference answer."""


class ConversationExaminationWithReference(ExaminationWithReference, StandaloneQuestion):
    """What is said of a case with a history and reference answers."""


class ExaminedCriterion(_Part):
    """Whether the answer meets a criterion of the user's own; null where a judge cannot tell."""

    criterion: str
    met: Literal["yes", "partly", "no"] | None = None


class JudgedCriteria(_Part):
    """What is said of the user's own criteria, beside an examination."""

    criteria: tuple[ExaminedCriterion, ...]


class CriteriaExamination(Examination, JudgedCriteria):
    """An examination with criteria."""


class CriteriaExaminationWithReference(ExaminationWithReference, JudgedCriteria):
    """The same with reference answers."""


class CriteriaConversationExamination(ConversationExamination, JudgedCriteria):
    """The same with a history."""


class CriteriaConversationExaminationWithReference(
    ConversationExaminationWithReference, JudgedCriteria
):
    """The same with a history and reference answers."""


# By what an examination has: criteria, a history, references.
_EXAMINATIONS: Mapping[tuple[bool, bool, bool], type[Examination]] = {
    (False, False, False): Examination,
    (False, False, True): ExaminationWithReference,
    (False, True, False): ConversationExamination,
    (False, True, True): ConversationExaminationWithReference,
    (True, False, False): CriteriaExamination,
    (True, False, True): CriteriaExaminationWithReference,
    (True, True, False): CriteriaConversationExamination,
    (True, True, True): CriteriaConversationExaminationWithReference,
}


class ExaminationRest(_Part):
    """The claims of sentences that an examination left out."""

    claims: tuple[ExaminedClaim, ...]


class ExaminationRestWithReference(ExaminationRest):
    """The same of a case that has reference answers."""

    claims: tuple[ExaminedClaimWithReference, ...]


def examine(
    question: str,
    passages: tuple[str, ...],
    answer: str,
    references: tuple[str, ...] = (),
    *,
    history: Sequence[Mapping[str, str]] = (),
    criteria: Sequence[Mapping[str, str]] = (),
    prompts: Prompts = BUILT_IN,
) -> Ask:
    """Ask for claims with support and quotes, passage relevance, and the response as a whole.

    Parameters
    ----------
    question, answer : str
    passages : sequence of str
        What the answer was written from, best first; the reply names them from 1.
    references : sequence of str
        Acceptable answers; without any the reply says nothing of correctness.
    history : sequence of mapping
        Earlier messages, oldest first, each with ``role`` and ``content``.
    criteria : sequence of mapping
        The user's own, each with ``name`` and ``question``.
    prompts : Prompts
        Where ``examination`` is read from.
    """
    inputs: dict[str, Any] = {
        "question": question,
        "passages": passages,
        "answer": answer,
        "references": references,
        "history": tuple(history),
    }
    whole = {**inputs, "criteria": tuple(criteria)} if criteria else inputs

    def ask_rest(sentences: tuple[str, ...]) -> Ask:
        schema = ExaminationRestWithReference if references else ExaminationRest
        asked = {**inputs, "sentences": sentences}
        return Ask.rendered(prompts.load("examination_rest"), asked, schema)

    schema = _EXAMINATIONS[bool(criteria), bool(history), bool(references)]
    asking = replace(prompts, criteria=tuple(Criterion(**each) for each in criteria))
    prompt = asking.load("examination")
    return Ask.rendered(prompt, whole, schema, rest=ask_rest)
