"""What the verdicts say about an answer: declined, faithful, correct, complete, and whether it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from misslink.judge.calibration import Calibration
from misslink.linking.missed_passages import says_beyond, subject_names
from misslink.matching import declines
from misslink.retrieval import RetrievalOutcome, relevant_ids, retrieval_outcome
from misslink.text.languages import is_other_language
from misslink.text.near_duplicates import passage_words
from misslink.text.normalization import fold, sentence_spans
from misslink.types import Case, Claim, Passage, Reason, Trace, Verdict

Faithful = Literal["faithful", "unfaithful", "declined", "unknown"]
Sufficiency = Literal["yes", "partly", "no", "unknown"]

MIN_COMPLETE = 0.75  # share of the best reference's claims that a complete answer states
_SUFFICIENCY: dict[float, Sufficiency] = {1.0: "yes", 0.5: "partly", 0.0: "no"}


@dataclass(frozen=True)
class AnswerOutcome:
    """What the verdicts say about one answer.

    Parameters
    ----------
    case, trace : Case, Trace
    context : sequence of Passage
        What the model saw: the passages in the prompt, each with its shown part.
    relevant : frozenset of str
        Ids of the passages in the prompt that satisfy a label of any alternative; of an unlabelled
        case those that the judge calls relevant.
    answer : {'faithful', 'unfaithful', 'declined', 'unknown'}
        Unknown where no verdict decides it, or the deciding one is uncertain.
    declined : bool or None
        Whether the app declined to answer; a blank answer declines.
    addressed : float or None
        How much of the question the answer addresses, by a model judge: 0, 0.5 or 1.
    correct : bool or None
        The label of the correctness verdict, as the share of correct answers counts it.
    complete : bool or None
        Whether the answer states what the best reference does, and declines no part of it.
    reference_claims : sequence of Claim
        The judge's claims of the best reference: stated (supported), contradicted or omitted.
    all_claims : sequence of Claim
        Every claim of the faithfulness verdict, also of an uncertain one.
    judged_relevant : frozenset of str
        Passages that the judge calls relevant.
    sufficient_judge : {'yes', 'partly', 'no', 'unknown'}
        Whether the passages in the prompt hold a full answer, in the judge's own word.
    by_heuristic : bool
        Whether the verdicts come from the heuristic judge.
    judged : bool
        Whether any verdict about the answer exists.
    unknown_reason : str or None
        Which verdict is missing or uncertain, and why; None where all that is needed is known.
    """

    case: Case
    trace: Trace
    context: tuple[Passage, ...]
    relevant: frozenset[str]
    answer: Faithful
    declined: bool | None
    addressed: float | None
    correct: bool | None
    complete: bool | None
    reference_claims: tuple[Claim, ...]
    all_claims: tuple[Claim, ...]
    judged_relevant: frozenset[str]
    sufficient_judge: Sufficiency
    by_heuristic: bool
    judged: bool
    unknown_reason: str | None

    @classmethod
    def from_verdicts(
        cls,
        case: Case,
        trace: Trace,
        verdicts: Mapping[str, Verdict],
        k: int,
        calibration: Calibration | None = None,
        outcome: RetrievalOutcome | None = None,
    ) -> AnswerOutcome:
        """Read the verdicts of one case, by metric.

        A missing verdict, or one in the uncertain band of `calibration`, decides nothing.
        """
        faithfulness, relevance = verdicts.get("faithfulness"), verdicts.get("context_relevance")
        sufficiency, completeness = map(verdicts.get, ("context_sufficiency", "completeness"))
        response = verdicts.get("answer_relevance")
        declined = _has_declined(trace, faithfulness, verdicts.get("abstention"))
        correct, correct_unknown = _decided_label(verdicts.get("correctness"), calibration)
        answer, answer_unknown = _read_faithfulness(
            trace, faithfulness, declined, correct, calibration
        )
        by_heuristic = faithfulness is None or any(
            verdict.judge.startswith("heuristic")
            for verdict in (faithfulness, relevance)
            if verdict
        )
        context = trace.context(k)
        outcome = outcome or retrieval_outcome(case, trace, k)
        rated = relevance.passages if relevance else {}
        judged_relevant = frozenset(name for name, value in rated.items() if value)
        relevant = frozenset(relevant_ids(case, context))
        if outcome.retrieval == "unlabelled":
            relevant = judged_relevant & {passage.id for passage in context}
        word = sufficiency.value if sufficiency else None
        known = cls(
            case=case,
            trace=trace,
            context=context,
            relevant=relevant,
            answer=answer,
            declined=declined,
            addressed=None if by_heuristic or response is None else response.value,
            correct=correct,
            complete=None if declined else _is_complete(trace, completeness, response),
            reference_claims=completeness.claims if completeness else (),
            all_claims=faithfulness.claims if faithfulness and not declined else (),
            judged_relevant=judged_relevant,
            sufficient_judge="unknown" if word is None else _SUFFICIENCY.get(word, "partly"),
            by_heuristic=by_heuristic,
            judged=bool(verdicts),
            unknown_reason=answer_unknown or correct_unknown,
        )
        is_answer = known.answer == "faithful" and by_heuristic
        if is_answer and known.has_no_answer and _declines_part(trace):
            # A fact beside it that the passages state is no answer to what has none.
            return replace(known, answer="declined", declined=True)
        if not known._is_unread:
            return known
        unread = None if correct else str(Reason(code="language_unread"))
        return replace(known, answer="unknown", unknown_reason=unread)

    @property
    def _is_unread(self) -> bool:
        """Whether words alone speak against the answer, and other evidence says that they prove nothing.

        They do not compare two languages; and where the answer is correct, a passage on the subject
        has all that an unsupported claim says beyond the question.
        """
        if not self.by_heuristic or self.answer != "unfaithful":
            return False
        question, texts = self.case.judged_question, [passage.text for passage in self.context]
        if is_other_language(self.trace.answer or "", texts):
            return True
        held = [passage_words(text) for text in texts]
        about = [each for each in held if subject_names(question) <= each]
        return bool(self.correct) and all(
            any(says_beyond(each, claim.text, question) for each in about)
            for claim in self.all_claims
            if claim.support != "supported"
        )

    @property
    def states_reference(self) -> bool:
        """Whether all that the heuristic judge finds unsupported in a right answer is what the reference says.

        Words then speak against the passages, and not against the answer.
        """
        return (
            self.by_heuristic
            and self.answer == "unfaithful"
            and self.correct is True
            and self.complete is not False
            and all(claim.correct for _, claim in self.bad_claims)
        )

    def failed(self, sufficient: Sufficiency = "unknown") -> bool:
        """Whether the answer failed, where the prompt held the answer as `sufficient` says."""
        expected = self.case.expects_answer
        if self.declined:
            if expected is None:  # unlabelled
                return sufficient == "yes" or not all(map(declines, self.case.references))
            return expected
        if expected is False:
            return self.declined is False
        if self.answer == "unfaithful" or False in (self.correct, self.complete):
            return True
        return bool(self.bad_claims) or (self.addressed == 0 and self.correct is not True)

    def undecided(self, sufficient: Sufficiency) -> str | None:
        """Why it is not known whether a case failed that did not show it; None where it passed."""
        expected = self.case.expects_answer
        if self.declined:
            if expected is None and sufficient == "unknown":
                return str(Reason(code="declined_unlabelled"))
            return None
        if expected is False:
            return str(Reason(code="abstention_unjudged"))
        return self.unknown_reason

    @property
    def declined_unlabelled(self) -> bool:
        """Whether it declined where neither label nor reference says if there is an answer."""
        return bool(self.declined) and self.case.expects_answer is None and not self.case.references

    @property
    def has_no_answer(self) -> bool:
        """Whether the gold set says that there is no answer: by its flag, or by every reference."""
        references, expected = self.case.references, self.case.expects_answer
        if expected is not None:
            return not expected
        # "None." may be the answer, to what a function returns, say.
        return bool(references) and all(
            declines(reference) and fold(reference).strip(" .!") != "none"
            for reference in references
        )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that a failure mode may rest on; none of an uncertain verdict."""
        return self.all_claims if self.answer in {"faithful", "unfaithful"} else ()

    @cached_property
    def bad_claims(self) -> tuple[tuple[int, Claim], ...]:
        """The claims that are unsupported, contradicted or wrong, with their index."""
        return tuple(
            (index, claim)
            for index, claim in enumerate(self.claims)
            if claim.support != "supported" or self._is_wrong(claim)
        )

    def _is_wrong(self, claim: Claim) -> bool:
        """It contradicts the reference, or in an incorrect answer rests on no relevant passage.

        What a relevant passage supports and the reference does not mention is no error, and neither
        is what does not answer the question.
        """
        if claim.correct is not None or self.correct is not False or self.addressed == 0:
            return claim.correct is False
        rests_on = {item.passage_id for item in claim.evidence}
        return rests_on.isdisjoint(self.relevant)


def _is_complete(
    trace: Trace, completeness: Verdict | None, response: Verdict | None
) -> bool | None:
    """Whether an answer states enough of the reference, and declines no part of what was asked."""
    partly = response is not None and response.value == _PARTLY
    stated = completeness.value if completeness else None
    if partly and stated != 1 and _declines_part(trace):
        return False
    if stated is None:
        return None
    return stated > MIN_COMPLETE or (stated == MIN_COMPLETE and not partly)


def _declines_part(trace: Trace) -> bool:
    answer = trace.answer or ""
    return any(declines(answer[start:end]) for start, end in sentence_spans(answer))


_PARTLY = 0.5  # the value of an answer that addresses a part of the question


def _has_declined(
    trace: Trace, faithfulness: Verdict | None, abstention: Verdict | None
) -> bool | None:
    if trace.answer is not None and not trace.answer.strip():
        return True
    declined = abstention.parts.get("declined") if abstention else None
    if declined is None and faithfulness and faithfulness.claims:
        return False  # an answer that only declines makes no claim
    return None if declined is None else bool(declined)


def _read_faithfulness(
    trace: Trace,
    faithfulness: Verdict | None,
    declined: bool | None,
    correct: bool | None,
    calibration: Calibration | None,
) -> tuple[Faithful, str | None]:
    """Whether the answer is faithful, and the reason where that is unknown."""
    if declined:
        return "declined", None
    if faithfulness is None:
        return "unknown", str(Reason(code="faithfulness_unjudged"))
    label, uncertain = _decided_label(faithfulness, calibration)
    if label is not None:
        return "faithful" if label else "unfaithful", None
    if uncertain:
        return "unknown", uncertain
    # "Yes." claims nothing that could be unfaithful: no verdict exists, and none is missing.
    claims_nothing = faithfulness.status == "skipped" and declined is False
    if claims_nothing and correct is not None and trace.unmeasured is None:
        return "unknown", None
    return "unknown", f"faithfulness {faithfulness.status}: {faithfulness.reason}"


def _decided_label(
    verdict: Verdict | None, calibration: Calibration | None
) -> tuple[bool | None, str | None]:
    """The label of a verdict, or the reason why it failed or is uncertain."""
    if verdict is None:
        return None, None
    if verdict.status == "failed":
        return None, f"{verdict.metric} failed: {verdict.reason}"
    chance = verdict.probability if verdict.label is not None else None
    if (
        calibration is not None
        and calibration.metric == verdict.metric
        and chance is not None
        and calibration.is_uncertain(chance)
    ):
        return None, str(Reason(code="verdict_uncertain", metric=verdict.metric, chance=chance))
    return verdict.label, None
