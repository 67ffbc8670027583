"""What is known about one case: retrieval outcome, answer outcome, claims, and what its reference tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from misslink.linking.judge_calibration import Calibration
from misslink.matching.abstention import claim_spans, content_stems, declines
from misslink.matching.claim_matching import MatchingContext, strip_polarity
from misslink.matching.references import compare
from misslink.matching.support import match_claims, match_support
from misslink.retrieval import RetrievalOutcome, relevant_ids, retrieval_outcome
from misslink.text.near_duplicates import is_near_duplicate, passage_stems
from misslink.text.normalization import fold, sentence_spans
from misslink.types import Case, Claim, Passage, RetrievalMiss, Support, Trace, Verdict

AnswerOutcome = Literal["faithful", "unfaithful", "declined", "unknown"]
RetrievalLevel = Literal["hit", "partial", "miss", "unlabelled", "not_needed", "unknown"]
Sufficiency = Literal["yes", "partly", "no", "unknown"]

MIN_COMPLETE = 0.75  # share of the best reference's claims that a complete answer states
_SUFFICIENCY: dict[float, Sufficiency] = {1.0: "yes", 0.5: "partly", 0.0: "no"}
_NUMBER = re.compile(r"\d+")
_NUMBERED_NAME = re.compile(r"([^\W\d_]+)[ -]?(\d+|\b[A-Z])\b")


@dataclass(frozen=True)
class CaseEvidence:
    """The retrieval outcome, the answer outcome, and the claims between them.

    Parameters
    ----------
    case, trace : Case, Trace
    outcome : RetrievalOutcome
        By the labels alone.
    missed : sequence of RetrievalMiss
        Without near-duplicates of passages in the prompt, which lack nothing.
    context : sequence of Passage
        The passages in the prompt.
    relevant : frozenset of str
        Ids of the passages in the prompt that satisfy a need of any alternative; of an unlabelled
        case those that the judge calls relevant.
    answer : {'faithful', 'unfaithful', 'declined', 'unknown'}
        Unknown where no verdict decides it, or the deciding one is uncertain.
    declined : bool or None
        Whether the app declined to answer; a blank answer declines.
    correct : bool or None
        The label of the correctness verdict, as the share of correct answers counts it.
    complete : bool or None
        Whether the answer states at least 75% of the claims of the best reference.
    omitted : sequence of str
        Reference claims that the answer does not state.
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
    outcome: RetrievalOutcome
    missed: tuple[RetrievalMiss, ...]
    context: tuple[Passage, ...]
    relevant: frozenset[str]
    answer: AnswerOutcome
    declined: bool | None
    correct: bool | None
    complete: bool | None
    omitted: tuple[str, ...]
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
        missed: Sequence[RetrievalMiss] | None = None,
    ) -> CaseEvidence:
        """Gather the evidence of one case from its verdicts by metric.

        A missing verdict, or one in the uncertain band of `calibration`, decides nothing.
        """
        faithfulness, correctness = verdicts.get("faithfulness"), verdicts.get("correctness")
        relevance, completeness = verdicts.get("context_relevance"), verdicts.get("completeness")
        sufficiency = verdicts.get("context_sufficiency")
        declined = _has_declined(trace, faithfulness, verdicts.get("abstention"))
        correct, correct_unknown = _decided_label(correctness, calibration)
        answer, answer_unknown = _answer_outcome(
            trace, faithfulness, declined, correct, calibration
        )
        context = trace.context(k)
        outcome = outcome or retrieval_outcome(case, trace, k)
        stated = completeness.value if completeness else None
        judged_relevant = frozenset(
            id_ for id_, value in (relevance.passages if relevance else {}).items() if value
        )
        relevant = frozenset(relevant_ids(case, context))
        if outcome.retrieval == "unlabelled":
            relevant = judged_relevant & {passage.id for passage in context}
        evidence = cls(
            case=case,
            trace=trace,
            outcome=outcome,
            missed=outcome.missed,
            context=context,
            relevant=relevant,
            answer=answer,
            declined=declined,
            correct=correct,
            complete=None if stated is None or declined else stated >= MIN_COMPLETE,
            omitted=_omitted(case, completeness, declined=bool(declined)),
            all_claims=faithfulness.claims if faithfulness and not declined else (),
            judged_relevant=judged_relevant,
            sufficient_judge=_sufficiency(sufficiency),
            by_heuristic=faithfulness is None
            or any(v.judge.startswith("heuristic") for v in (faithfulness, relevance) if v),
            judged=bool(verdicts),
            unknown_reason=answer_unknown or correct_unknown,
        )
        return evidence.with_misses(outcome.missed if missed is None else missed)

    def with_misses(self, missed: Sequence[RetrievalMiss]) -> CaseEvidence:
        """The same case with what is known of its missed passages."""
        texts = [passage.text for passage in self.context]
        question = self.case.judged_question
        lacking = (
            miss
            for miss in missed
            if not any(_repeats(miss.text or "", text, question) for text in texts)
        )
        return replace(self, missed=tuple(lacking))

    @property
    def note(self) -> str | None:
        """What the labels could not say about retrieval, and why."""
        return self.outcome.note

    @property
    def retrieval(self) -> RetrievalLevel:
        """How much of what the labels ask for reached the prompt, near-duplicates among it."""
        by_labels = self.outcome.retrieval
        if by_labels not in {"partial", "miss"}:
            return by_labels
        if not self.missed:
            return "hit"
        needed = len(self.outcome.found) + len(self.outcome.missed)
        return by_labels if len(self.missed) == needed else "partial"

    @property
    def sufficient_value(self) -> Sufficiency:
        """Whether the prompt held the answer: the labels decide, else the judge, else the reference."""
        by_labels: dict[str, Sufficiency] = {"hit": "yes", "miss": "no", "not_needed": "no"}
        value = by_labels.get(self.retrieval, self.sufficient_judge)
        asks_reference = self.by_reference or (self.by_heuristic and self.retrieval == "partial")
        if value != "unknown" or not asks_reference:
            return value
        by_reference, lacking = self._by_reference
        # Word overlap misses paraphrases: at a partial hit a missed passage has to hold the rest.
        missed = [miss.text or miss.evidence or "" for miss in self.missed]
        holds_rest = any(
            states_claim(text, claim, self.case.judged_question)
            for text in missed
            for claim in lacking
        )
        known = self.by_reference or by_reference == "yes" or holds_rest
        return by_reference if known else "unknown"

    @property
    def by_reference(self) -> bool:
        """Whether the reference tells if the context sufficed, as neither labels nor judge do."""
        return self.retrieval == "unlabelled" and self.sufficient_judge == "unknown"

    @property
    def lacking(self) -> tuple[str, ...]:
        """Claims of the reference that the prompt lacks, where the reference tells."""
        return self._by_reference[1] if self.by_reference else ()

    @cached_property
    def _by_reference(self) -> tuple[Sufficiency, tuple[str, ...]]:
        return reference_support(
            self.case.judged_question,
            self.case.references,
            [passage.text for passage in self.context],
        )

    @property
    def sufficient(self) -> bool | None:
        """`sufficient_value` as a truth value; partly counts as no, None is unknown."""
        value = self.sufficient_value
        return None if value == "unknown" else value == "yes"

    @property
    def is_searched(self) -> bool:
        """Whether a search of the corpus tells what is missing, because the labels do not.

        They name no passage, or all that they name is in the prompt and the judge finds it lacking.
        """
        if self.retrieval == "unlabelled":
            return self.failed and self.sufficient is not True and not self.has_no_answer
        return self.retrieval == "hit" and self.failed and self.sufficient_judge in {"partly", "no"}

    @property
    def failed(self) -> bool:
        """Whether the answer is unfaithful, wrong or incomplete, or the choice to answer was wrong."""
        expected = self.case.expects_answer
        if self.declined:
            if expected is None:  # unlabelled
                return self.sufficient is True or self.reference_answers
            return expected
        if expected is False:
            return self.declined is False
        if self.answer == "unfaithful" or self.correct is False or self.complete is False:
            return True
        return bool(self.bad_claims)

    @property
    def reference_answers(self) -> bool:
        """Whether there is a reference that does not itself decline to answer."""
        return any(not declines(reference) for reference in self.case.references)

    @property
    def has_no_answer(self) -> bool:
        """Whether the gold set says that there is no answer: by its flag, or by every reference."""
        if self.retrieval != "unlabelled":
            return self.retrieval == "not_needed"
        references = self.case.references
        # "None." may be the answer, to what a function returns, say.
        return bool(references) and all(
            declines(reference) and fold(reference).strip(" .!") != "none"
            for reference in references
        )

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

    @property
    def bad_claims(self) -> tuple[tuple[int, Claim], ...]:
        """The claims that are unsupported, contradicted or wrong, with their index."""
        return tuple(
            (index, claim)
            for index, claim in enumerate(self.claims)
            if claim.support != "supported" or self._is_wrong(claim)
        )

    def _is_wrong(self, claim: Claim) -> bool:
        """It contradicts the reference, or in an incorrect answer rests on no relevant passage.

        What a relevant passage supports and the reference does not mention is no error.
        """
        if claim.correct is not None or self.correct is not False:
            return claim.correct is False
        rests_on = {item.passage_id for item in claim.evidence}
        return rests_on.isdisjoint(self.relevant)


def keeps_subject(question: str, passage: str, other: str) -> bool:
    """Whether another passage has what the question names in a passage: its words, and "Aria-3".

    "3" alone may be of anything in the data sheet of the Aria-5.
    """
    asked, here, there = (
        {
            *passage_stems(text),
            *((name.lower(), number) for name, number in _NUMBERED_NAME.findall(text)),
        }
        for text in (question, passage, other)
    )
    return asked & here <= there


def _repeats(missed: str, other: str, question: str) -> bool:
    """Whether a passage holds a missed one, or nearly repeats it, its numbers and what is asked about."""
    if missed.strip() and fold(missed) in fold(other):
        return True
    if not is_near_duplicate(missed, other):
        return False
    same_numbers = set(_NUMBER.findall(missed)) == set(_NUMBER.findall(other))
    return same_numbers and keeps_subject(question, missed, other)


def _sufficiency(verdict: Verdict | None) -> Sufficiency:
    if verdict is None or verdict.value is None:
        return "unknown"
    return _SUFFICIENCY.get(verdict.value, "yes" if verdict.label else "partly")


def _omitted(case: Case, completeness: Verdict | None, *, declined: bool) -> tuple[str, ...]:
    """The reference claims that the answer omits; after a refusal the reference's sentences."""
    if completeness is not None and completeness.claims:
        return tuple(c.text for c in completeness.claims if c.support == "unsupported")
    if not declined or not case.references:
        return ()
    text = case.references[0]
    return tuple(text[start:end] for start, end in sentence_spans(text))


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
        return "declined", None
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


def reference_claims(reference: str) -> tuple[str, ...]:
    """The claims of a reference; one of a single word is a claim all the same."""
    spans = claim_spans(reference) or sentence_spans(reference)
    return tuple(reference[start:end] for start, end in spans)


def _factual_claims(reference: str) -> list[str]:
    """The claims that passages can state: "Yes." alone is none, and neither is a refusal."""
    claims = () if declines(reference) else reference_claims(reference)
    return [claim for claim in claims if strip_polarity(claim).strip()]


def compare_claim(claim: str, passages: Sequence[str], question: str) -> Support:
    """What passages say about a claim of a reference, read with the question.

    Passages state facts: they do not answer with the yes or no that the reference begins with.
    """
    return compare(
        strip_polarity(claim) or claim, passages, question, _judge_claim, of_reference=True
    )


def reference_support(
    question: str, references: Iterable[str], passages: Sequence[str]
) -> tuple[Sufficiency, tuple[str, ...]]:
    """Return whether passages hold one of the references, and the claims of it that they lack.

    The reference that they hold most of decides. Unknown without a reference that states something,
    and where the passages contradict it: then it may be wrong itself.
    """
    best: tuple[float, Sufficiency, tuple[str, ...]] = (-1.0, "unknown", ())
    for reference in references:
        claims = _factual_claims(reference)
        if not claims:
            continue
        relations = [compare_claim(claim, passages, question) for claim in claims]
        share = relations.count("supported") / len(claims)
        value: Sufficiency = "yes" if share == 1 else "partly" if share else "no"
        lacking = [c for c, r in zip(claims, relations, strict=True) if r != "supported"]
        if any(_contradicts(passage, claim, question) for claim in lacking for passage in passages):
            value = "unknown"
        if share > best[0]:
            best = (share, value, tuple(lacking) if value != "unknown" else ())
    return best[1:]


def states_claim(passage: str, claim: str, question: str) -> bool:
    """Whether a passage alone, on the subject of the question, states a claim of a reference."""
    return _is_on_subject(passage, claim, question) and (
        compare_claim(claim, [passage], question) == "supported"
    )


def _contradicts(passage: str, claim: str, question: str) -> bool:
    return _is_on_subject(passage, claim, question) and (
        compare_claim(claim, [passage], question) == "contradicted"
    )


def _is_on_subject(passage: str, claim: str, question: str) -> bool:
    """Whether a passage has the words that claim and question share, or half of the question's.

    Passages on like subjects differ in little else: "pump A holds 43 bar", "pump B holds 43 bar".
    """
    asked, held = content_stems(question), frozenset(passage_stems(passage))
    shared = asked & content_stems(claim)
    return shared <= held if shared else 2 * len(asked & held) >= len(asked)


def _judge_claim(claim: str, context: MatchingContext) -> Support:
    ((_, probability),) = match_claims([claim], context)
    return match_support(probability)
