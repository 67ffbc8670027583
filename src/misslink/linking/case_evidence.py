"""What is known about one case: retrieval outcome, answer outcome and claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from misslink.linking.judge_calibration import Calibration
from misslink.retrieval import RetrievalOutcome, relevant_ids, retrieval_outcome
from misslink.types import Case, Claim, Passage, Trace, Verdict

AnswerOutcome = Literal["faithful", "unfaithful", "abstained", "unknown"]


@dataclass(frozen=True)
class CaseEvidence:
    """The retrieval outcome, the answer outcome, and the claims between them.

    Parameters
    ----------
    case, trace : Case, Trace
    outcome : RetrievalOutcome
    context : sequence of Passage
        The passages in the prompt.
    relevant : frozenset of str
        Ids of the passages in the prompt that satisfy a need of any alternative.
    answer : {'faithful', 'unfaithful', 'abstained', 'unknown'}
        Unknown where no verdict decides it, or the deciding one is uncertain.
    declined : bool or None
        Whether the app declined to answer; a blank answer declines.
    correct : bool or None
        The label of the correctness verdict, as the share of correct answers counts it.
    all_claims : sequence of Claim
        Every claim of the faithfulness verdict, also of an uncertain one.
    judged_relevant : frozenset of str
        Passages that the judge calls relevant.
    sufficient : bool or None
        Whether the judge finds that the passages hold a full answer.
    by_heuristic : bool
        Whether the verdicts come from the heuristic judge.
    unknown_reason : str or None
        Which verdict is missing or uncertain, and why; None where all that is needed is known.
    """

    case: Case
    trace: Trace
    outcome: RetrievalOutcome
    context: tuple[Passage, ...]
    relevant: frozenset[str]
    answer: AnswerOutcome
    declined: bool | None
    correct: bool | None
    all_claims: tuple[Claim, ...]
    judged_relevant: frozenset[str]
    sufficient: bool | None
    by_heuristic: bool
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
    ) -> CaseEvidence:
        """Gather the evidence of one case from its verdicts by metric.

        A missing verdict, or one in the uncertain band of `calibration`, decides nothing.
        """
        faithfulness, correctness = verdicts.get("faithfulness"), verdicts.get("correctness")
        relevance = verdicts.get("context_relevance")
        sufficiency = verdicts.get("context_sufficiency")
        declined = _has_declined(trace, faithfulness, verdicts.get("abstention"))
        correct, correct_unknown = _decided_label(correctness, calibration)
        answer, answer_unknown = _answer_outcome(
            trace, faithfulness, declined, correct, calibration
        )
        context = trace.context(k)
        return cls(
            case=case,
            trace=trace,
            outcome=outcome or retrieval_outcome(case, trace, k),
            context=context,
            relevant=frozenset(relevant_ids(case, context)),
            answer=answer,
            declined=declined,
            correct=correct,
            all_claims=faithfulness.claims if faithfulness and not declined else (),
            judged_relevant=frozenset(
                id_ for id_, value in (relevance.passages if relevance else {}).items() if value
            ),
            sufficient=sufficiency.label if sufficiency else None,
            by_heuristic=faithfulness is None
            or any(v.judge.startswith("heuristic") for v in (faithfulness, relevance) if v),
            unknown_reason=answer_unknown or correct_unknown,
        )

    @property
    def needed(self) -> int:
        """How many passages the case needs."""
        return len(self.outcome.found) + len(self.outcome.missed)

    @property
    def answerable(self) -> bool:
        """Not known to be without an answer."""
        return self.case.expects_answer is not False

    @property
    def bad(self) -> bool:
        """The answer is unfaithful or wrong, or the app declined an answerable question."""
        refused = bool(self.declined) and self.case.expects_answer is True
        return self.answer == "unfaithful" or self.correct is False or refused

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that a failure mode may rest on; none of an uncertain verdict."""
        return self.all_claims if self.answer in {"faithful", "unfaithful"} else ()

    @property
    def unfaithful(self) -> tuple[tuple[int, Claim], ...]:
        """The claims that the context does not support, with their index in the verdict."""
        return tuple(
            (index, claim)
            for index, claim in enumerate(self.all_claims)
            if claim.support != "supported"
        )


def _has_declined(
    trace: Trace, faithfulness: Verdict | None, abstention: Verdict | None
) -> bool | None:
    if trace.answer is not None and not trace.answer.strip():
        return True
    declined = abstention.parts.get("declined") if abstention else None
    if declined is None and faithfulness and faithfulness.claims:
        return False  # an answer that only declines makes no claim
    return None if declined is None else bool(declined)


def _answer_outcome(
    trace: Trace,
    faithfulness: Verdict | None,
    declined: bool | None,
    correct: bool | None,
    calibration: Calibration | None,
) -> tuple[AnswerOutcome, str | None]:
    """The answer outcome, and the reason where it is unknown."""
    if declined:
        return "abstained", None
    if faithfulness is None:
        return "unknown", "no judge checked whether the answer is faithful"
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
        return None, (
            f"{verdict.metric} is not certain: the judge gives it P = {chance:.2f}, which is in "
            "the uncertain band of its calibration"
        )
    return verdict.label, None
