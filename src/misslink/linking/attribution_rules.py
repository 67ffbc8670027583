"""Attribution: the failure mode and the owner of a case, by the evidence that each mode requires."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from misslink.failure_modes import FAILURE_MODES
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Judge
from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.claim_support import link_claims
from misslink.linking.judge_calibration import Calibration
from misslink.linking.miss_measurement import MissMeasurements
from misslink.linking.missed_passages import classify_from_trace
from misslink.linking.searches import list_searches, locate_losses
from misslink.render.reasons import describe_loss, describe_reason
from misslink.text.near_duplicates import passage_stems
from misslink.types import (
    Case,
    Claim,
    ClaimLink,
    FailureEvidence,
    FailureMode,
    Link,
    Reason,
    RetrievalMiss,
    Trace,
    Verdict,
)

# A stale copy says the same but for a few words. `is_near_duplicate` would pass over short ones:
# one changed word of twenty changes three of its shingles.
_MIN_COPY_JACCARD = 0.6


def describe_evidence(item: FailureEvidence) -> str:
    """One piece of evidence as a sentence."""
    details = {
        "passage": item.passage_id,
        "turn": item.turn,
        "query": item.query,
        "step": describe_loss(item.lost_at, item.search),
    }
    return describe_reason(Reason(code=item.reason_code, **details))


@dataclass(frozen=True)
class Attribution:
    """The primary failure mode (None: the answer was not judged), the others, and the evidence."""

    failure: FailureMode | None
    reason: str
    also: tuple[FailureMode, ...] = ()
    notes: tuple[FailureMode, ...] = ()
    evidence: tuple[FailureEvidence, ...] = ()

    @property
    def reasons(self) -> dict[FailureMode, str]:
        """The first sentence of evidence for each mode and note."""
        reasons: dict[FailureMode, str] = {}
        if self.failure is not None:
            reasons[self.failure] = self.reason
        for item in self.evidence:
            reasons.setdefault(item.failure, describe_evidence(item))
        return reasons


def attribute_failure(
    evidence: CaseEvidence,
    ties: Mapping[int, ClaimLink],
    omitted_ties: Sequence[ClaimLink] = (),
    *,
    corpus_searched: bool = False,
    lost: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Attribution:
    """Return the failure mode of a case.

    Each bad claim is explained once; the mode that explains most of them is the primary one.

    Parameters
    ----------
    evidence : CaseEvidence
    ties : mapping of int to ClaimLink
        Index of a bad claim to the missed passage that says most about it, where any does.
    omitted_ties : sequence of ClaimLink
        The same for reference claims that the answer omits and nothing in the prompt supports.
    corpus_searched : bool
        Whether all of the index was searched for the passages that an unlabelled case needs.
    lost : mapping of str to mapping
        By missed passage, what shows that the conversation names it and the app's query lost it.
    """
    if not evidence.judged:
        return Attribution(None, "no judge looked at the answer")
    if not evidence.failed:
        if unknown := _unknown_outcome(evidence):
            return Attribution("inconclusive", unknown)
        notes = tuple(_notes(evidence))
        return Attribution(
            "passed",
            describe_evidence(notes[0]) if notes else _describe_pass(evidence),
            notes=tuple(note.failure for note in notes),
            evidence=notes,
        )
    rules = _Rules(evidence, ties, omitted_ties, corpus_searched, lost)
    if evidence.retrieval == "not_needed":
        found = [_answered_unanswerable(evidence)]
    else:
        found = [rules.explain_claim(index, claim) for index, claim in evidence.bad_claims]
        found = found or [rules.explain_answer()]
    known = [item for item in found if item.failure != "inconclusive"]
    if not known:
        reason = evidence.unknown_reason or evidence.note or describe_evidence(found[0])
        return Attribution("inconclusive", reason)
    order = list(FAILURE_MODES)
    counts = Counter(item.failure for item in known)
    modes = sorted(counts, key=lambda mode: (-counts[mode], order.index(mode)))
    first = next(item for item in known if item.failure == modes[0])
    return Attribution(modes[0], describe_evidence(first), tuple(modes[1:]), (), tuple(known))


class _Rules:
    """Explains the bad claims of one failed case, or the answer where no claim is bad."""

    def __init__(
        self,
        evidence: CaseEvidence,
        ties: Mapping[int, ClaimLink],
        omitted_ties: Sequence[ClaimLink],
        corpus_searched: bool,
        lost: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.evidence = evidence
        self.ties, self.omitted_ties = ties, omitted_ties
        self.corpus_searched, self.lost = corpus_searched, lost
        self.misses = {miss.passage_id: miss for miss in evidence.missed}
        in_prompt = (passage.id for passage in evidence.context)
        self.first_relevant = next((id_ for id_ in in_prompt if id_ in evidence.relevant), None)

    def explain_claim(self, index: int, claim: Claim) -> FailureEvidence:
        evidence = self.evidence
        if evidence.retrieval == "unlabelled" and evidence.sufficient is not True:
            return self._explain_unlabelled(index, claim)
        quote = claim.evidence[0] if claim.evidence else None
        passage = quote.passage_id if quote else None
        words = quote.quote if quote else None
        # The heuristic judge takes a sentence about another subject for a denial.
        doubtful = evidence.by_heuristic and evidence.retrieval == "miss"
        if claim.support == "contradicted" and quote and not doubtful:
            return FailureEvidence(
                failure="contradicts_context",
                claim=index,
                passage_id=passage,
                quote=words,
                reason_code="contradicted_by_prompt",
            )
        if claim.support == "supported":
            rests_on = {item.passage_id for item in claim.evidence}
            labelled = [item for item in claim.evidence if item.passage_id in evidence.relevant]
            if labelled:
                failure, code = "gold_suspect", "reference_contradicts_label"
                passage, words = labelled[0].passage_id, labelled[0].quote
            elif claim.correct is False and self._rests_on_copy(rests_on):
                failure, code = "conflicting_sources", "copy_says_otherwise"
            elif evidence.sufficient is False:
                return self._link(index, self.ties.get(index))
            else:
                failure, code = "distracted", "irrelevant_passage"
            return FailureEvidence(
                failure=failure, claim=index, passage_id=passage, quote=words, reason_code=code
            )
        tie = self.ties.get(index)
        if tie is not None or evidence.sufficient is False:
            return self._link(index, tie)
        if evidence.sufficient is None and not self._missed_texts_known():
            return _unknown(index)
        used = any(other.support == "supported" for other in evidence.claims)
        return FailureEvidence(
            failure="fabricated" if used or evidence.sufficient is None else "ignored_context",
            claim=index,
            passage_id=self.first_relevant,
            reason_code="claim_unsupported" if used else "nothing_used",
        )

    def _explain_unlabelled(self, index: int, claim: Claim) -> FailureEvidence:
        """Explain a bad claim by a search of the corpus; never by the generator."""
        # What a passage in the prompt says of a claim comes before what a search returns.
        by_prompt = claim.support != "unsupported" and bool(claim.evidence)
        insufficient = self.evidence.sufficient is False
        tie = self.ties.get(index) if insufficient or not by_prompt else None
        if tie is None and insufficient and self.omitted_ties:
            return self._link(None, self.omitted_ties[0])
        return _unknown(index) if tie is None and by_prompt else self._link(index, tie)

    def explain_answer(self) -> FailureEvidence:
        """Explain a refusal, or an answer that is wrong or incomplete without a bad claim."""
        evidence = self.evidence
        if self.omitted_ties:
            return self._link(None, self.omitted_ties[0])
        if evidence.sufficient is False:
            return self._link(None, None)
        if evidence.sufficient is None:
            return _unknown(None)
        if evidence.declined:
            return FailureEvidence(
                failure="over_refused", passage_id=self.first_relevant, reason_code="declined"
            )
        if evidence.unknown_reason is not None:
            return _unknown(None)
        used = {
            item.passage_id
            for claim in evidence.claims
            if claim.support == "supported"
            for item in claim.evidence
        }
        if not used:
            return FailureEvidence(
                failure="ignored_context",
                passage_id=self.first_relevant,
                reason_code="nothing_used",
            )
        return FailureEvidence(failure="incomplete", passage_id=min(used), reason_code="left_out")

    def _link(self, index: int | None, tie: ClaimLink | None) -> FailureEvidence:
        """The mode of the missed passage: not indexed, dropped before the prompt, or missed."""
        evidence = self.evidence
        miss: RetrievalMiss | None = None
        if tie is not None:
            miss = self.misses.get(tie.passage_id)
        elif evidence.missed and evidence.retrieval != "unlabelled":
            miss = max(evidence.missed, key=lambda miss: miss.grade)
        if miss is None:
            if evidence.retrieval not in {"unlabelled", "unknown"}:
                return FailureEvidence(
                    failure="retrieval_miss", claim=index, reason_code="context_insufficient"
                )
            holds_none = self.corpus_searched and not self.ties and not self.omitted_ties
            if holds_none and evidence.sufficient is False:
                return FailureEvidence(
                    failure="not_indexed", claim=index, reason_code="nothing_in_corpus"
                )
            return _unknown(index)
        quote = tie.quote if tie else miss.evidence
        if miss.status == "not_retrieved" and miss.passage_id in self.lost:
            return FailureEvidence(
                failure="lost_context",
                claim=index,
                passage_id=miss.passage_id,
                quote=quote,
                **self.lost[miss.passage_id],
            )
        if evidence.retrieval == "unlabelled":
            code = "found_by_search"
        else:
            code = "passage_missing" if tie is None else "passage_missing_for_claim"
        return FailureEvidence(
            failure="retrieval_miss" if miss.status == "not_retrieved" else miss.status,
            claim=index,
            passage_id=miss.passage_id,
            quote=quote,
            reason_code=code,
            lost_at=miss.lost_at,
            search=miss.search,
        )

    def _missed_texts_known(self) -> bool:
        """Whether a partial hit's missed passages could be compared with the claims."""
        return self.evidence.retrieval == "partial" and all(
            miss.text or miss.evidence for miss in self.evidence.missed
        )

    def _rests_on_copy(self, passage_ids: set[str]) -> bool:
        """Whether one of these unlabelled passages nearly repeats a relevant passage."""
        evidence = self.evidence
        relevant = [p.text for p in evidence.context if p.id in evidence.relevant]
        if evidence.retrieval != "unlabelled":  # there they are what a search returned
            relevant += [miss.text for miss in evidence.missed if miss.text]
        cited = [p.text for p in evidence.context if p.id in passage_ids]
        asked = frozenset(passage_stems(evidence.case.judged_question))
        return any(_is_copy(one, other, asked) for one in cited for other in relevant)


def _unknown(index: int | None) -> FailureEvidence:
    return FailureEvidence(failure="inconclusive", claim=index, reason_code="unknown_sufficiency")


def _is_copy(one: str, other: str, asked: frozenset[str]) -> bool:
    """Whether two passages share most content words, among them those that the question asks about.

    A passage of the same form about another subject is no copy.
    """
    here, there = set(passage_stems(one)), set(passage_stems(other))
    alike = bool(here) and len(here & there) >= _MIN_COPY_JACCARD * len(here | there)
    return alike and asked & there <= here


def _unknown_outcome(evidence: CaseEvidence) -> str | None:
    """Why it is not known whether a case failed; None where it passed."""
    expected = evidence.case.expects_answer
    if evidence.declined:
        if expected is None and evidence.sufficient is None:
            return "the app declined, and nothing says whether there is an answer"
        return None
    if expected is False:
        return "there is no answer, and no verdict says whether the app declined"
    return evidence.unknown_reason


def _answered_unanswerable(evidence: CaseEvidence) -> FailureEvidence:
    if evidence.sufficient_judge == "yes" and evidence.answer == "faithful":
        cited = [item for claim in evidence.claims for item in claim.evidence]
        return FailureEvidence(
            failure="gold_suspect",
            passage_id=cited[0].passage_id if cited else None,
            quote=cited[0].quote if cited else None,
            reason_code="answerable_after_all",
        )
    return FailureEvidence(failure="should_have_abstained", reason_code="answered")


def _notes(evidence: CaseEvidence) -> list[FailureEvidence]:
    """What a passed case says about the gold set or the model's memory."""
    if evidence.correct is not True or evidence.outcome.retrieval not in {"miss", "partial"}:
        return []
    cited = [item for claim in evidence.claims for item in claim.evidence]
    if evidence.answer == "faithful" and cited:
        listed = evidence.relevant | evidence.case.relevant.keys()
        unlisted = [
            item
            for item in cited
            if item.passage_id not in listed and item.passage_id in evidence.judged_relevant
        ]
        if unlisted and not evidence.by_heuristic:
            return [
                FailureEvidence(
                    failure="missing_label",
                    passage_id=unlisted[0].passage_id,
                    quote=unlisted[0].quote,
                    reason_code="unlisted_passage",
                )
            ]
    if evidence.retrieval == "miss" and not evidence.claims:
        return [FailureEvidence(failure="answered_from_memory", reason_code="from_memory")]
    return []


def _describe_pass(evidence: CaseEvidence) -> str:
    if evidence.declined:
        return "there was nothing to answer from, and the app declined"
    correct = "correct" if evidence.correct else "not compared with a reference"
    if evidence.answer == "unknown":
        return correct
    return f"the answer is {evidence.answer} and {correct}"


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
    misses = measured.missed.get(case.id) if measured else None
    evidence = CaseEvidence.from_verdicts(case, trace, verdicts, k, calibration, outcome, misses)
    if misses is None:
        misses = classify_from_trace(trace, evidence.outcome, k)
    misses = locate_losses(misses, trace)
    evidence = evidence.with_misses(misses)
    searched = False
    bad = dict([*evidence.unfaithful, *evidence.bad_claims])
    omitted = await _omitted_claims(evidence, judge, prompts) if evidence.failed else ()
    unlabelled = evidence.retrieval == "unlabelled" and evidence.sufficient is not True
    if measured is not None and unlabelled and evidence.failed:
        texts = [claim.text for claim in (*bad.values(), *omitted)]
        searched_misses = measured.search([case.judged_question, *texts], trace, k)
        evidence = evidence.with_misses(locate_losses(searched_misses, trace))
        searched = measured.corpus is not None and bool(texts)
    numbered = [*sorted(bad.items()), *enumerate(omitted, start=len(evidence.all_claims))]
    links = await link_claims(
        numbered, evidence.missed, question=case.judged_question, judge=judge, prompts=prompts
    )
    related = {link.index: link for link in links if link.relation != "unrelated"}
    claim_count = len(evidence.all_claims)
    lost = {
        miss.passage_id: shown
        for miss in evidence.missed
        if measured and (shown := measured.find_in_conversation(case, trace, miss.passage_id, k))
    }
    attribution = attribute_failure(
        evidence,
        {index: link for index, link in related.items() if index in bad},
        [link for index, link in related.items() if index >= claim_count],
        corpus_searched=searched,
        lost=lost,
    )
    inferred = evidence.retrieval == "unlabelled" and attribution.failure in {
        "retrieval_miss",
        "lost_context",
        "not_indexed",
        "dropped_from_prompt",
    }
    if inferred:
        named = {item.passage_id for item in attribution.evidence}
        misses = tuple(miss for miss in evidence.missed if miss.passage_id in named)
    return Link(
        case_id=case.id,
        retrieval=evidence.retrieval,
        sufficient=evidence.sufficient_value,
        sufficient_judge=evidence.sufficient_judge,
        answer=evidence.answer,
        correct=evidence.correct,
        complete=evidence.complete,
        failure=attribution.failure,
        also=attribution.also,
        notes=attribution.notes,
        evidence=attribution.evidence,
        reason=attribution.reason,
        reasons=attribution.reasons,
        missed=misses,
        claims=tuple(link for link in links if link.index < claim_count and link.index in bad),
        searches=list_searches(trace, evidence.outcome),
        basis="inferred" if inferred else "observed",
    )


async def _omitted_claims(
    evidence: CaseEvidence,
    judge: Judge | None,
    prompts: Prompts,
) -> tuple[Claim, ...]:
    """The reference claims that the answer omits and that a passage outside the prompt may hold."""
    claims = tuple(Claim(text=text, support="unsupported") for text in evidence.omitted)
    if not claims or evidence.sufficient is False:
        return claims
    searched = evidence.retrieval == "unlabelled" and evidence.sufficient is None
    if evidence.bad_claims or not (evidence.missed or searched):
        return ()  # they explain nothing
    in_prompt = [
        RetrievalMiss(passage_id=passage.id, grade=1, text=passage.text)
        for passage in evidence.context
        if passage.text.strip()
    ]
    links = await link_claims(
        list(enumerate(claims)),
        in_prompt,
        question=evidence.case.judged_question,
        judge=judge,
        prompts=prompts,
    )
    held = {link.index for link in links if link.relation != "unrelated"}
    return tuple(claim for index, claim in enumerate(claims) if index not in held)
