"""Attribution: the failure mode and the owner of a case, by the evidence that each mode requires.

Read with `misslink.linking.case_evidence`, which says what failed. Here, top to bottom: a case is
linked, its bad claims are counted by mode, and `FailureRules` has the rule of each mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from misslink.failure_modes import FAILURE_MODES, FAILURES, MISS_MODES
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Judge
from misslink.linking.case_evidence import (
    CaseEvidence,
    keeps_subject,
    reference_claims,
    states_claim,
)
from misslink.linking.claim_support import link_claims
from misslink.linking.judge_calibration import Calibration
from misslink.linking.miss_measurement import MissMeasurements, measure_misses, word_questions
from misslink.linking.missed_passages import list_searches, locate_losses
from misslink.matching.assertion import is_negated
from misslink.render.reasons import describe_loss, describe_reason
from misslink.text.near_duplicates import passage_stems
from misslink.text.normalization import sentence_spans
from misslink.types import (
    Case,
    Claim,
    ClaimLink,
    Evidence,
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
_MIN_REFERENCE_WORDS = 2  # one word stands in many a sentence


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
        Of the run. None: the case is measured by itself, without a corpus and an embedding.
    judge : Judge or None
        Asked what the missed passages say about the claims; None: the heuristic judge.
    prompts : Prompts
    calibration : Calibration or None
        Verdicts in its uncertain band decide nothing.
    """
    if measured is None:
        measured = await measure_misses(
            word_questions([case], verdicts.values()), [trace], k, embedder=None, corpus=None
        )
    outcome = measured.outcomes[case.id]
    misses = locate_losses(measured.missed[case.id], trace)
    evidence = CaseEvidence.from_verdicts(case, trace, verdicts, k, calibration, outcome, misses)
    searched = False
    bad = _claims_to_explain(evidence)
    omitted = await _omitted_claims(evidence, judge, prompts) if evidence.failed else ()
    if queries := search_queries(evidence, [claim.text for claim in omitted]):
        if measured.deepen:  # for the true ranks of what is found
            trace = await measured.deepen(case, trace, lambda _: True)
        found = measured.search(queries, trace, k)
        evidence = evidence.with_misses(locate_losses(found, trace))
        searched = measured.corpus is not None and len(queries) > 1
    claim_count = len(evidence.all_claims)
    numbered = [*sorted(bad.items()), *enumerate(omitted, start=claim_count)]
    ties = await link_claims(
        numbered, evidence.missed, question=case.judged_question, judge=judge, prompts=prompts
    )
    related = {tie.index: tie for tie in ties if tie.relation != "unrelated"}
    if evidence.lacking:
        related = _tie_reference(evidence, claim_count)
    lost = {
        miss.passage_id: shown
        for miss in evidence.missed
        if (shown := measured.find_in_conversation(case, trace, miss.passage_id, k))
    }
    link = attribute_failure(
        evidence,
        {index: tie for index, tie in related.items() if index in bad},
        [tie for index, tie in related.items() if index >= claim_count],
        corpus_searched=searched,
        lost=lost,
    )
    inferred = evidence.is_searched and link.failure in MISS_MODES
    if inferred:
        named = {item.passage_id for item in link.evidence}
        misses = tuple(miss for miss in evidence.missed if miss.passage_id in named)
    by_reference = evidence.by_reference and link.failure in FAILURES
    return link.model_copy(
        update={
            "missed": misses,
            "claims": tuple(tie for tie in ties if tie.index in bad),
            "searches": list_searches(trace, outcome),
            "basis": "inferred" if inferred or by_reference else "observed",
        }
    )


def _tie_reference(evidence: CaseEvidence, start: int) -> dict[int, ClaimLink]:
    """The first passage of a search that holds what the prompt lacks of the reference, by claim."""
    question = evidence.case.judged_question
    return {
        index: ClaimLink(
            index=index,
            passage_id=miss.passage_id,
            relation="would_support",
            true_rank=miss.true_rank,
            by="heuristic",
        )
        for index, claim in enumerate(evidence.lacking, start=start)
        for miss in reversed(evidence.missed)
        if miss.text and states_claim(miss.text, claim, question)
    }


def _claims_to_explain(evidence: CaseEvidence) -> dict[int, Claim]:
    return dict([*evidence.unfaithful, *evidence.bad_claims])


def search_queries(evidence: CaseEvidence, omitted: Sequence[str]) -> list[str]:
    """The queries of the search that stands for missing labels; empty where nothing is searched.

    The question comes first, then the bad claims and the omitted ones.
    """
    if not evidence.is_searched:
        return []
    texts = [claim.text for claim in _claims_to_explain(evidence).values()]
    return [evidence.case.judged_question, *texts, *omitted]


async def _omitted_claims(
    evidence: CaseEvidence, judge: Judge | None, prompts: Prompts
) -> tuple[Claim, ...]:
    """The reference claims that the answer omits and that a passage outside the prompt may hold."""
    omitted = evidence.lacking or evidence.omitted
    claims = tuple(Claim(text=text, support="unsupported") for text in omitted)
    if not claims or evidence.sufficient is False:
        return claims
    if evidence.bad_claims or not (evidence.missed or evidence.is_searched):
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


def attribute_failure(
    evidence: CaseEvidence,
    ties: Mapping[int, ClaimLink],
    omitted_ties: Sequence[ClaimLink] = (),
    *,
    corpus_searched: bool = False,
    lost: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Link:
    """Return the failure mode of a case and what shows it, without its missed passages.

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
        return _link(evidence, None, "no judge evaluated the answer")
    if not evidence.failed:
        if unknown := _unknown_outcome(evidence):
            return _link(evidence, "inconclusive", unknown)
        if note := _note(evidence):
            return _link(evidence, "passed", describe_evidence(note), [note], notes=(note.failure,))
        return _link(evidence, "passed", _describe_pass(evidence))
    rules = FailureRules(evidence, ties, omitted_ties, corpus_searched, lost)
    if evidence.has_no_answer and not evidence.declined:
        explained = [rules.explain_unanswerable()]
    elif evidence.bad_claims:
        explained = [rules.explain_claim(index, claim) for index, claim in evidence.bad_claims]
    else:
        explained = [rules.explain_answer()]
    known = [item for item in explained if item.failure != "inconclusive"]
    if not known:
        reason = evidence.unknown_reason or evidence.note or describe_evidence(explained[0])
        return _link(evidence, "inconclusive", reason, unexplained=True)
    order = list(FAILURE_MODES)
    counts = Counter(item.failure for item in known)
    modes = sorted(counts, key=lambda mode: (-counts[mode], order.index(mode)))
    first = next(item for item in known if item.failure == modes[0])
    return _link(evidence, modes[0], describe_evidence(first), known, also=tuple(modes[1:]))


def _link(
    case: CaseEvidence,
    failure: FailureMode | None,
    reason: str,
    explained: Sequence[FailureEvidence] = (),
    **more: Any,
) -> Link:
    reasons = {failure: reason} if failure else {}
    for item in explained:
        reasons.setdefault(item.failure, describe_evidence(item))
    return Link(
        case_id=case.case.id,
        retrieval=case.retrieval,
        sufficient=case.sufficient_value,
        sufficient_judge=case.sufficient_judge,
        answer=case.answer,
        correct=case.correct,
        complete=case.complete,
        failure=failure,
        evidence=tuple(explained),
        reason=reason,
        reasons=reasons,
        **more,
    )


@dataclass(frozen=True)
class FailureRules:
    """The rule of every failure mode; the parameters are those of `attribute_failure`."""

    evidence: CaseEvidence
    ties: Mapping[int, ClaimLink]
    omitted_ties: Sequence[ClaimLink]
    corpus_searched: bool
    lost: Mapping[str, Mapping[str, Any]]

    def explain_claim(self, index: int, claim: Claim) -> FailureEvidence:
        """Why a claim is bad: the first rule that fits."""
        evidence = self.evidence
        if evidence.retrieval == "unlabelled" and evidence.sufficient is not True:
            return self._explain_unlabelled(index, claim)
        # The heuristic judge takes a sentence about another subject for a denial.
        doubtful = evidence.by_heuristic and evidence.retrieval == "miss"
        if claim.support == "contradicted" and claim.evidence and not doubtful:
            return _because(
                "contradicts_context", "contradicted_by_prompt", index, claim.evidence[0]
            )
        if claim.support == "supported" and not claim.messages:
            return self._explain_wrong(index, claim)
        tie = self.ties.get(index)
        if tie is not None or evidence.sufficient is False:
            return self._explain_miss(index, tie)
        if evidence.sufficient is None and not self._missed_texts_known():
            return _because("inconclusive", "unknown_sufficiency", index)
        used = any(other.support == "supported" for other in evidence.claims)
        mode = "fabricated" if used or evidence.sufficient is None else "ignored_context"
        code = "claim_unsupported" if used else "nothing_used"
        if evidence.sufficient is None:
            code = "claim_untied"
        return _because(mode, code, index, passage=self._first_relevant)

    def _explain_wrong(self, index: int, claim: Claim) -> FailureEvidence:
        """Why a claim is wrong although a passage in the prompt supports it."""
        evidence, cited = self.evidence, claim.evidence[0] if claim.evidence else None
        labelled = evidence.retrieval != "unlabelled"
        # Without labels a passage that states the reference speaks for it, and against the cited one.
        told = evidence.by_reference and evidence.sufficient is True
        doubted = not labelled and (told or any(map(self._states_reference, evidence.relevant)))
        for item in claim.evidence:
            if item.passage_id in evidence.relevant:
                if self._states_reference(item.passage_id):
                    return _because("contradicts_context", "states_reference", index, item)
                if not doubted:
                    code = "reference_contradicts_label" if labelled else "reference_contradicted"
                    return _because("gold_suspect", code, index, item)
        if evidence.retrieval == "unknown" and evidence.sufficient is None:
            return _because("inconclusive", "unknown_sufficiency", index)
        if self._rests_on_copy(claim):
            return _because("conflicting_sources", "copy_says_otherwise", index, cited)
        if self.evidence.sufficient is False:
            return self._explain_miss(index, self.ties.get(index))
        return _because("distracted", "irrelevant_passage", index, cited)

    def explain_answer(self) -> FailureEvidence:
        """Why an answer declines, or is wrong or incomplete without a bad claim."""
        evidence = self.evidence
        if self.omitted_ties or evidence.sufficient is False:
            return self._explain_miss(None, next(iter(self.omitted_ties), None))
        if evidence.sufficient is None:
            return _because("inconclusive", "unknown_sufficiency")
        if evidence.declined:
            return _because("over_refused", "declined", passage=self._first_relevant)
        if evidence.unknown_reason is not None:
            return _because("inconclusive", "unknown_sufficiency")
        supported = (claim for claim in evidence.claims if claim.support == "supported")
        used = {item.passage_id for claim in supported for item in claim.evidence}
        if not used:
            return _because("ignored_context", "nothing_used", passage=self._first_relevant)
        return _because("incomplete", "left_out", passage=min(used))

    def explain_unanswerable(self) -> FailureEvidence:
        """Why there is an answer although the gold set says that there is none."""
        evidence = self.evidence
        if evidence.sufficient_judge == "yes" and evidence.answer == "faithful":
            cited = next((item for claim in evidence.claims for item in claim.evidence), None)
            return _because("gold_suspect", "answerable_after_all", cited=cited)
        return _because("should_have_abstained", "answered")

    def _explain_unlabelled(self, index: int, claim: Claim) -> FailureEvidence:
        """Explain a bad claim by a search of the corpus; never by the generator."""
        # What a passage in the prompt says of a claim comes before what a search returns.
        by_prompt = claim.support != "unsupported" and bool(claim.evidence)
        insufficient = self.evidence.sufficient is False
        tie = self.ties.get(index) if insufficient or not by_prompt else None
        if tie is not None and by_prompt and self._rests_on_copy(claim, tie.passage_id):
            cited = claim.evidence[0]
            return _because("conflicting_sources", "copy_says_otherwise", index, cited)
        if tie is None and insufficient and self.omitted_ties:
            return self._explain_miss(None, self.omitted_ties[0])
        rests = insufficient and claim.support == "supported"  # a wrong claim, on other passages
        if tie is None and by_prompt and not (rests or self.evidence.lacking):
            return _because("inconclusive", "unknown_sufficiency", index)
        return self._explain_miss(index, tie)

    def _explain_miss(self, index: int | None, tie: ClaimLink | None) -> FailureEvidence:
        """The mode of the missed passage: not indexed, dropped before the prompt, or missed."""
        evidence, miss = self.evidence, None
        if tie is not None:
            miss = {miss.passage_id: miss for miss in evidence.missed}.get(tie.passage_id)
        elif not evidence.is_searched:
            # A claim that no passage with a text is about needed one without, if any is missed.
            miss = max(
                evidence.missed,
                key=lambda miss: (
                    index is not None and not (miss.text or miss.evidence),
                    miss.grade,
                ),
                default=None,
            )
        if miss is None:
            if evidence.retrieval not in {"unlabelled", "unknown"}:
                return _because("retrieval_miss", "context_insufficient", index)
            holds_none = self.corpus_searched and not self.ties and not self.omitted_ties
            # Shared words find too few passages to say that the index holds none.
            if holds_none and evidence.sufficient is False and not evidence.by_reference:
                return _because("not_indexed", "nothing_in_corpus", index)
            if holds_none and evidence.lacking:
                return _because("inconclusive", "reference_not_found", index)
            if evidence.sufficient is False and evidence.reference_answers:
                return _because("retrieval_miss", "reference_not_in_prompt", index)
            return _because("inconclusive", "unknown_sufficiency", index)
        mode: FailureMode = "retrieval_miss" if miss.status == "not_retrieved" else miss.status
        code = "passage_missing" if index is None else "passage_missing_for_claim"
        if miss.passage_id in evidence.trace.shown:
            code = "passage_cut" if index is None else "passage_cut_for_claim"
        shown: Mapping[str, Any] = {
            "reason_code": "found_by_search" if evidence.is_searched else code,
            "lost_at": miss.lost_at,
            "search": miss.search,
        }
        if mode == "retrieval_miss" and miss.passage_id in self.lost:
            mode, shown = "lost_context", self.lost[miss.passage_id]
        quote = tie.quote if tie else miss.evidence
        return FailureEvidence(
            failure=mode, claim=index, passage_id=miss.passage_id, quote=quote, **shown
        )

    @property
    def _first_relevant(self) -> str | None:
        evidence = self.evidence
        return next((p.id for p in evidence.context if p.id in evidence.relevant), None)

    def _states_reference(self, passage_id: str) -> bool:
        """Whether a sentence of the passage has every word of a reference, and denies as it does."""
        texts = (p.text for p in self.evidence.context if p.id == passage_id)
        sentences = [text[start:end] for text in texts for start, end in sentence_spans(text)]
        return any(
            len(words) >= _MIN_REFERENCE_WORDS
            and words <= set(passage_stems(sentence))
            and is_negated(sentence) == is_negated(reference)
            for reference in self.evidence.case.references
            for words in (set(passage_stems(reference)),)
            for sentence in sentences
        )

    def _holds_reference(self, text: str) -> bool:
        """Whether a passage holds a claim of a reference; word overlap alone makes none relevant."""
        case = self.evidence.case
        return any(
            states_claim(text, claim, case.judged_question)
            for reference in case.references
            for claim in reference_claims(reference)
        )

    def _missed_texts_known(self) -> bool:
        """Whether a partial hit's missed passages could be compared with the claims."""
        return self.evidence.retrieval == "partial" and all(
            miss.text or miss.evidence for miss in self.evidence.missed
        )

    def _rests_on_copy(self, claim: Claim, tied: str | None = None) -> bool:
        """Whether the claim rests on a passage that nearly repeats a relevant one, which lacks it.

        Copies share most content words, among them those that the question asks about: a passage of
        the same form about another subject is no copy. Of what a search returned only the passage
        that the claim is tied to counts.
        """
        evidence = self.evidence
        rests_on = {item.passage_id for item in claim.evidence}
        relevant = [
            p.text
            for p in evidence.context
            if p.id in evidence.relevant - rests_on
            and (not evidence.by_reference or self._holds_reference(p.text))
        ]
        relevant += [
            miss.text
            for miss in evidence.missed
            if miss.text and (miss.passage_id == tied or not evidence.is_searched)
        ]
        question, claimed = evidence.case.judged_question, set(passage_stems(claim.text))
        for passage in (p for p in evidence.context if p.id in rests_on):
            here = set(passage_stems(passage.text))
            for text in relevant:
                there = set(passage_stems(text))
                alike = len(here & there) >= _MIN_COPY_JACCARD * len(here | there)
                differs = claim.correct is False or bool((claimed & here) - there)
                if alike and differs and keeps_subject(question, text, passage.text):
                    return True
        return False


def _because(
    failure: FailureMode,
    code: str,
    claim: int | None = None,
    cited: Evidence | None = None,
    *,
    passage: str | None = None,
) -> FailureEvidence:
    """The evidence of a mode: the passage that a claim cites, or another one without a quote."""
    return FailureEvidence(
        failure=failure,
        claim=claim,
        passage_id=cited.passage_id if cited else passage,
        quote=cited.quote if cited else None,
        reason_code=code,
    )


def describe_evidence(item: FailureEvidence) -> str:
    """One piece of evidence as a sentence."""
    details = {
        "passage": item.passage_id,
        "turn": item.turn,
        "query": item.query,
        "step": describe_loss(item.lost_at, item.search),
    }
    return describe_reason(Reason(code=item.reason_code, **details))


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


def _note(evidence: CaseEvidence) -> FailureEvidence | None:
    """What a passed case says about the gold set or the model's memory."""
    if evidence.correct is not True or evidence.outcome.retrieval not in {"miss", "partial"}:
        return None
    if evidence.answer == "faithful" and not evidence.by_heuristic:
        listed = evidence.relevant | evidence.case.relevant.keys()
        for cited in (item for claim in evidence.claims for item in claim.evidence):
            if cited.passage_id in evidence.judged_relevant - listed:
                return _because("missing_label", "unlisted_passage", cited=cited)
    if evidence.retrieval == "miss" and not evidence.claims:
        return _because("answered_from_memory", "from_memory")
    return None


def _describe_pass(evidence: CaseEvidence) -> str:
    if evidence.declined:
        return "there was nothing to answer from, and the app declined"
    correct = "correct" if evidence.correct else "not compared with a reference"
    return (
        correct
        if evidence.answer == "unknown"
        else f"the answer is {evidence.answer} and {correct}"
    )
