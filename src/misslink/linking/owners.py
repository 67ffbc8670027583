"""The failure mode and the owner of a case, read off its needs table.

Top to bottom: a case is linked; each bad claim, or the answer as a whole, is explained by the need
behind it: one that was lost before the answer belongs to the stage that lost it, one that was shown to
the generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from operator import itemgetter
from typing import Any

from misslink.failure_modes import FAILURE_MODES, FAILURES, MISS_MODES
from misslink.judge.calibration import Calibration
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Judge
from misslink.linking.answer_outcome import AnswerOutcome
from misslink.linking.claim_support import PairRelations, judge_claim_needs, link_claims
from misslink.linking.miss_measurement import MissMeasurements, measure_misses, word_questions
from misslink.linking.missed_passages import (
    list_searches,
    locate_losses,
    own_values,
    says_beyond,
    subject_names,
)
from misslink.linking.needs import (
    LABELLED,
    Candidate,
    LocatedNeed,
    NeedLocator,
    NeedsTable,
    drop_repeats,
    keeps_subject,
    list_needs,
    stated_sufficiency,
    states_claim,
)
from misslink.linking.search_trail import AND, SearchTrail, is_another_text
from misslink.render.reasons import describe_loss, describe_reason
from misslink.retrieval import RetrievalOutcome
from misslink.text.near_duplicates import jaccard_at_least, passage_words
from misslink.text.normalization import content_stems, fold, sentence_spans
from misslink.types import (
    Case,
    Claim,
    ClaimLink,
    Evidence,
    FailureEvidence,
    FailureMode,
    Link,
    Need,
    Reason,
    RetrievalMiss,
    Trace,
    Verdict,
)

# A stale copy says the same but for a few words. `is_near_duplicate` would pass over short ones:
# one changed word of twenty changes three of its shingles.
_MIN_COPY_JACCARD = 0.6
_SHARED = 0.5  # of a claim's content words, that it shares with the need behind it
_DATA_STAGES = {
    "reference_contradicts_label": "data",
    "reference_contradicted": "data",
    "reference_says_other": "data",
    "copy_says_otherwise": "index",
    "stale_passage": "index",
    "passage_altered": "prompt",
}
# The modes of the stages that are not the retriever's, and what says so where no passage is known.
_STAGE_MODES: Mapping[str, tuple[FailureMode, str]] = {
    "search": ("not_searched", "no_search"),
    "prompt": ("dropped_from_prompt", "all_dropped"),
    "index": ("not_indexed", "nothing_in_corpus"),
}


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
    """Return where each need of a case was lost, its failure mode, and its missed passages.

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
        Asked at most once what the passages say about needs and claims; None: the heuristic judge.
    prompts : Prompts
    calibration : Calibration or None
        Verdicts in its uncertain band decide nothing.
    """
    if measured is None:
        measured = await measure_misses(
            word_questions([case], verdicts.values()), [trace], k, embedder=None, corpus=None
        )
    outcome = measured.outcomes[case.id]
    known = AnswerOutcome.from_verdicts(case, trace, verdicts, k, calibration, outcome)
    needs = list_needs(known, outcome)
    losses = locate_losses(measured.missed[case.id], trace, case.judged_question)
    losses = tuple(miss for miss in losses if not _part_suffices(known, needs, miss))
    missed = drop_repeats(losses, known.context, case.judged_question)
    level = _retrieval_level(outcome, missed)
    failed = known.failed(stated_sufficiency(known, level))
    # What the index answers outside of the prompt, the app should not have declined.
    examined = failed or (known.declined_unlabelled and level == "unlabelled")
    asked = examined and any(need.source == "question" for need in needs)
    found: tuple[RetrievalMiss, ...] = ()
    if examined and (queries := search_queries(known, level, needs)):
        if measured.deepen:  # for the true ranks of what is found
            trace = await measured.deepen(case, trace, lambda _: True)
        misses = locate_losses(measured.search(queries, trace, k), trace, case.judged_question)
        found = drop_repeats(misses, known.context, case.judged_question)
    search = SearchTrail(case, trace, measured, k)
    candidates = search.candidates(missed, found) if examined or missed else ()
    bad = known.bad_claims if failed else ()
    told = known
    if judge and failed and NeedLocator(known, level, candidates).contradicts_judge(needs):
        told = replace(known, sufficient_judge="unknown")
    said: PairRelations = {}
    if judge is not None and examined and _decides(told, level, candidates):
        texts = [need.text for need in needs if need.source != "label"]
        texts += [claim.text for _, claim in bad]
        shown = tuple(passage.text for passage in known.context if passage.text.strip())
        outside = tuple(candidate.text for candidate in candidates if candidate.text)
        said = await judge_claim_needs(
            tuple(dict.fromkeys(texts)), shown, outside, case.judged_question, judge, prompts
        )
    locator = NeedLocator(
        told,
        level,
        candidates,
        said,
        failed=failed,
        asked=measured.place_question(case.judged_question, trace, k) if asked else None,
        lacks=measured.pool.lacks_fact if measured.pool.listed else None,
        unsearched=search.is_absent,
    )
    table = locator.table(needs) if examined else locator.passed_table(needs)
    located = any(row.candidate for row in table.lost)
    if not failed and not located:
        table = locator.passed_table(needs)
    if known.states_reference and not table.lost:
        known = replace(known, answer="unknown")
    failed = known.failed(table.sufficient) or (examined and located)
    holding = {row.need.passage_id for row in table.lost}
    compared = [c.miss for c in candidates if c.labelled or c.miss.passage_id in holding]
    ties = link_claims(bad, compared, said)
    related = {tie.index: tie for tie in ties if tie.relation != "unrelated"}
    link = OwnerRules(known, level, table, locator, related, search, failed=failed).link()
    is_inferred = level not in LABELLED or any(
        row.candidate and not row.candidate.labelled for row in table.rows
    )
    if link.failure in MISS_MODES and is_inferred:
        named = {item.passage_id for item in link.evidence} | holding
        losses = tuple(c.miss for c in candidates if c.miss.passage_id in named)
    by_reference = level == "unlabelled" and told.sufficient_judge == "unknown"
    inferred = is_inferred and (link.failure in MISS_MODES or by_reference)
    basis = "inferred" if inferred and link.failure in FAILURES else "observed"
    searches = list_searches(trace, outcome)
    update = {"missed": losses, "claims": ties, "searches": searches, "basis": basis}
    return link.model_copy(update=update)


def _part_suffices(known: AnswerOutcome, needs: Sequence[Need], miss: RetrievalMiss) -> bool:
    """Whether the shown part of a cut passage holds what the reference says: its text decides."""
    if miss.passage_id not in known.trace.shown:
        return False
    part = NeedLocator(known, "partial")
    return known.sufficient_judge == "yes" or all(
        need.source == "reference" and part.find_shown(need) is not None for need in needs
    )


def _retrieval_level(outcome: RetrievalOutcome, missed: Sequence[RetrievalMiss]) -> str:
    """How much of what the labels ask for reached the prompt, near-duplicates among it."""
    if outcome.retrieval not in {"partial", "miss"}:
        return outcome.retrieval
    if not missed:
        return "hit"
    needed = len(outcome.found) + len(outcome.missed)
    return outcome.retrieval if len(missed) == needed else "partial"


def search_queries(known: AnswerOutcome, level: str, needs: Sequence[Need]) -> list[str]:
    """The queries of the search that stands for missing labels; empty where nothing is searched.

    The question comes first, then the needs and the bad claims. Labels name no passage there, or
    all that they name is in the prompt and a judge finds it lacking, or it has not the words of a
    need.
    """
    is_open = level not in {*LABELLED, "not_needed"} and known.trace.unmeasured is None
    if level == "hit" and known.sufficient_judge != "yes":
        shown = NeedLocator(known, level)
        is_open = shown.denied or shown.lacks_words_of(needs)
    if known.has_no_answer or not is_open:
        return []
    texts = [known.case.judged_question, *(need.text for need in needs if need.text)]
    return list(dict.fromkeys([*texts, *(claim.text for _, claim in known.bad_claims)]))


def _decides(known: AnswerOutcome, level: str, candidates: Sequence[Candidate]) -> bool:
    """Whether what a judge says of needs and passages can change the owner."""
    if known.sufficient_judge == "yes" or known.has_no_answer or not candidates:
        return False
    stages = {candidate.lost_at for candidate in candidates}
    settled = level == "miss" and known.sufficient_judge == "no" and len(stages) == 1
    return not settled or bool(known.bad_claims)


@dataclass(frozen=True)
class OwnerRules:
    """What explains a case.

    Parameters
    ----------
    known : AnswerOutcome
    level : str
        How much of what the labels ask for reached the prompt, as `Link.retrieval`.
    table : NeedsTable
    locator : NeedLocator
    ties : mapping of int to ClaimLink
        Index of a bad claim to the missed passage that says most about it, where any does.
    search : SearchTrail
    failed : bool
    """

    known: AnswerOutcome
    level: str
    table: NeedsTable
    locator: NeedLocator
    ties: Mapping[int, ClaimLink]
    search: SearchTrail
    failed: bool

    def link(self) -> Link:
        """The link of the case, without its missed passages."""
        known, sufficient = self.known, self.table.sufficient
        if not known.judged:
            return self._link(None, str(Reason(code="answer_unjudged")))
        if not self.failed:
            if unknown := known.undecided(sufficient):
                return self._link("inconclusive", unknown)
            if (noted := self._note()) is not None:
                notes = (noted.failure,)
                return self._link("passed", describe_evidence(noted), [noted], notes=notes)
            passed = Reason(code="passed", answer=known.answer, correct=bool(known.correct))
            declined = Reason(code="rightly_declined")
            return self._link("passed", str(declined if known.declined else passed))
        if known.has_no_answer and not known.declined:
            explained = [self._explain_unanswerable()]
        elif known.bad_claims:
            explained = [self._explain_claim(index, claim) for index, claim in known.bad_claims]
        else:
            explained = [self._explain_beside_reference() or self._explain_answer()]
        certain = [item for item in explained if item.failure != "inconclusive"]
        if not certain:
            note = self.search.measured.outcomes[known.case.id].note
            reason = known.unknown_reason or note or describe_evidence(explained[0])
            return self._link("inconclusive", reason, unexplained=True)
        found, order = [item.failure for item in certain], list(FAILURE_MODES)
        modes = sorted(set(found), key=lambda mode: (-found.count(mode), order.index(mode)))
        first = next(item for item in certain if item.failure == modes[0])
        return self._link(modes[0], describe_evidence(first), certain, also=tuple(modes[1:]))

    def _link(
        self,
        failure: FailureMode | None,
        reason: str,
        explained: Sequence[FailureEvidence] = (),
        **more: Any,
    ) -> Link:
        reasons = {failure: reason} if failure else {}
        for item in explained:
            if item.failure not in reasons:
                reasons[item.failure] = describe_evidence(item)
        known = self.known
        return Link(
            case_id=known.case.id,
            retrieval=self.level,
            sufficient=self.table.sufficient,
            sufficient_judge=known.sufficient_judge,
            answer=known.answer,
            correct=known.correct,
            complete=known.complete,
            failure=failure,
            needs=self._needs(explained),
            evidence=tuple(explained),
            reason=reason,
            reasons=reasons,
            **more,
        )

    def _needs(self, explained: Sequence[FailureEvidence]) -> tuple[Need, ...]:
        """The needs; lost at the data or the index is one that a passage in the prompt contradicts."""
        rows = self.table.rows
        only, moved = rows[0] if len(rows) == 1 else None, dict[int, dict[str, Any]]()
        for item in explained:
            row = only if item.claim is None else self._behind[item.claim] or only
            stage: str | None = _DATA_STAGES.get(item.reason_code)
            if row and row.is_lost:
                named = (c for c in self.locator.candidates if c.miss.passage_id == item.passage_id)
                misread = item.failure == "contradicts_context"  # which tells of no other passage
                stage = next((c.lost_at for c in named if not misread), None)
            if row and stage:
                moved[id(row)] = {"lost_at": stage, "passage_id": item.passage_id}
        return tuple(
            row.need.model_copy(update=moved[id(row)]) if id(row) in moved else row.need
            for row in rows
        )

    @cached_property
    def _behind(self) -> dict[int, LocatedNeed | None]:
        """By bad claim, or by any where none is, the need that it is about.

        It contradicts it, shares half of its words, or its passage.
        """
        rows, found = self.table.rows, dict[int, LocatedNeed | None]()
        facts = [(r, content_stems(r.need.text)) for r in rows if r.need.source == "reference"]
        for index, claim in self.known.bad_claims or enumerate(self.known.claims):
            words = content_stems(claim.text)
            shared = [(len(words & stems), row) for row, stems in facts]
            count, best = max(shared, key=itemgetter(0), default=(0, None))
            if claim.correct is False and best:
                denied = (one for one in shared if one[1].need.stated == "contradicts")
                _, best = max(denied, key=itemgetter(0), default=(0, best))
            elif not words or count < _SHARED * len(words):
                tie = self.ties.get(index)
                tied = (row for row in rows if tie and row.need.passage_id == tie.passage_id)
                is_question = bool(rows) and rows[0].need.source == "question"
                best = rows[0] if is_question else next(tied, None)
            found[index] = best
        return found

    @cached_property
    def _supported(self) -> tuple[Claim, ...]:
        """The claims of the answer that rest on the prompt."""
        return tuple(claim for claim in self.known.claims if claim.support == "supported")

    @cached_property
    def _unstated(self) -> list[LocatedNeed]:
        """The needs that the answer does not state, or that it states from no passage."""
        return [r for r in self.table.rows if r.need.stated != "states" or not self._supported]

    @cached_property
    def _standing_in(self) -> LocatedNeed | None:
        """One of these that was lost."""
        return next((row for row in self._unstated if row.is_lost), None)

    def _explain_claim(self, index: int, claim: Claim) -> FailureEvidence:
        """Why a claim is bad."""
        need = self._behind[index]
        if claim.support == "supported" and not claim.messages:
            return self._explain_wrong(index, claim, need)
        if claim.support == "contradicted" and claim.evidence:
            cited = claim.evidence[0]
            return _because("contradicts_context", "contradicted_by_prompt", index, cited)
        if upstream := self._explain_upstream(index, need, need or self._standing_in):
            return upstream
        if claim.correct is False and need is not None and (holder := need.need.passage_id):
            return _because("contradicts_context", "states_reference", index, passage=holder)
        if self._supported:
            return _because("fabricated", "claim_unsupported", index, passage=self._first_relevant)
        return _because("ignored_context", "nothing_used", index, passage=self._first_relevant)

    def _explain_upstream(
        self, index: int | None, need: LocatedNeed | None, lost: LocatedNeed | None
    ) -> FailureEvidence | None:
        """The stage that lost what a claim, or the answer, needed; None where the prompt held it."""
        if lost is not None and lost.is_lost:
            return self._explain_miss(index, lost)
        if any(row.is_unknown for row in (self._unstated if need is None else [need])):
            return _because("inconclusive", "unknown_sufficiency", index)
        return None

    def _explain_wrong(
        self, index: int, claim: Claim, need: LocatedNeed | None, *, answers: bool = False
    ) -> FailureEvidence:
        """Why a claim is wrong although a passage in the prompt supports it."""
        known, question, full = self.known, self.known.case.judged_question, self._texts
        cited = claim.evidence[0] if claim.evidence else None
        for item in claim.evidence:
            text = full.get(item.passage_id, "")
            if item.passage_id in known.trace.shown and fold(item.quote) not in fold(text):
                return _because("dropped_from_prompt", "passage_altered", index, item)
            stored = self.search.stored_text(item.passage_id)
            if stored and is_another_text(stored, text) and fold(item.quote) not in fold(stored):
                return _because("conflicting_sources", "stale_passage", index, item)
            if need and need.candidate and need.candidate.miss.passage_id == item.passage_id:
                return self._explain_miss(index, need)  # its full text holds what was not shown
        if self._rests_on_copy(claim, need):
            return _because("conflicting_sources", "copy_says_otherwise", index, cited)
        holder = need.need.passage_id if need and not need.is_lost else None
        # A text outside the prompt that states the reference speaks for it.
        is_elsewhere = need is not None and need.candidate is not None and need.need.by == "matcher"
        texts = [full.get(item.passage_id, "") for item in claim.evidence]
        # A number that follows from two quotes stands in neither.
        derived = len(texts) > 1 and any(map(str.isdigit, own_values(claim.text, question)))
        for item, text in zip(claim.evidence, texts, strict=True):
            relevant, own = item.passage_id in known.relevant, holder == item.passage_id
            told = (relevant or answers or holder in full) and (
                derived or says_beyond(content_stems(item.quote), claim.text, question)
            )
            about = told and subject_names(question) <= passage_words(
                " ".join(texts) if derived else text
            )
            misread = (
                need is not None
                and (content_stems(claim.text) - content_stems(need.need.text)).isdisjoint(
                    passage_words(text)
                )
                and states_claim(item.quote, need.need.text, question)
            )
            if misread or (relevant and own and not about):
                return _because("contradicts_context", "states_reference", index, item)
            labelled = self.level in LABELLED
            if (own or holder is None) and (
                (relevant and labelled) or (about and (relevant or answers) and not is_elsewhere)
            ):
                code = "reference_contradicts_label" if labelled else "reference_contradicted"
                if need is not None and need.need.stated == "omits":
                    code = "reference_says_other"
                return _because("gold_suspect", code, index, item)
            if told and holder in full and keeps_subject(question, full[holder], text):
                return _because("conflicting_sources", "copy_says_otherwise", index, item)
        says_opposite = holder is None and claim.correct is False
        why: tuple[FailureMode, str] = (
            ("gold_suspect", "reference_contradicted")
            if says_opposite and known.sufficient_judge == "yes"
            else ("distracted", "irrelevant_passage")
        )
        lost = need if need is not None and need.is_lost else self._standing_in
        return self._explain_upstream(index, need, lost) or _because(*why, index, cited)

    def _explain_beside_reference(self) -> FailureEvidence | None:
        """Why a faithful answer to the question does not state the reference; None of any other answer.

        A reference is evidence only as far as it answers the question.
        """
        known, needs = self.known, [row.need for row in self.table.rows]
        omitted = [need for need in needs if need.stated != "states"]
        is_of_reference = bool(omitted) and omitted[0].source == "reference"
        if known.answer != "faithful" or not is_of_reference or self._states_part:
            return None
        for index, claim in enumerate(known.claims if len(omitted) == len(needs) else ()):
            if self._answers(claim):
                row = self._behind[index] or self.table.rows[0]
                item = self._explain_wrong(index, claim, row, answers=True)
                return None if item.failure in {"distracted", *MISS_MODES} else item
        return None

    @cached_property
    def _states_part(self) -> bool:
        """Whether the answer to one of several things asked is a part of a reference that it does not state."""
        question = self.known.case.judged_question
        if self.known.addressed == 0 or not AND.search(question):
            return False
        facts = [content_stems(r.need.text) for r in self.table.rows if r.need.stated == "omits"]
        texts = [claim.text for claim in self._supported]
        said = [
            own_values(t, question) or content_stems(t) - content_stems(question) for t in texts
        ]
        return any(own and own <= fact for own in said for fact in facts)

    def _answers(self, claim: Claim) -> bool:
        """Whether a supported claim answers the question, by a model judge or the quoted sentence.

        That one shares more with the question than any other sentence of its passage.
        """
        if claim.support != "supported" or not claim.evidence:
            return False
        if not self.known.by_heuristic:
            return self.known.addressed == 1
        cited = claim.evidence[0]
        text = next((p.text for p in self.known.context if p.id == cited.passage_id), "")
        asked = content_stems(self.known.case.judged_question)
        shares = {text[a:b]: len(asked & content_stems(text[a:b])) for a, b in sentence_spans(text)}
        own = [share for sentence, share in shares.items() if cited.quote in sentence]
        others = [share for sentence, share in shares.items() if cited.quote not in sentence]
        return bool(own) and max(own) > max(others, default=0)

    def _explain_answer(self) -> FailureEvidence:
        """Why an answer declines, or is wrong or incomplete without a bad claim."""
        known = self.known
        if upstream := self._explain_upstream(None, None, self._standing_in):
            return upstream
        if known.declined:
            code = "declined" if (known.trace.answer or "").strip() else "answered_nothing"
            return _because("over_refused", code, passage=self._first_relevant)
        if known.unknown_reason is not None and known.addressed != 0:
            return _because("inconclusive", "unknown_sufficiency")
        used = {item.passage_id for claim in self._supported for item in claim.evidence}
        if not used:
            return _because("ignored_context", "nothing_used", passage=self._first_relevant)
        if not self._states_part and all(r.need.stated == "omits" for r in self.table.rows):
            return _because("off_the_point", "another_question", passage=min(used))
        return _because("incomplete", "left_out", passage=min(used))

    def _explain_unanswerable(self) -> FailureEvidence:
        """Why there is an answer although the gold set says that there is none."""
        known = self.known
        holds = known.sufficient_judge == "yes"  # or, by words alone, those of the question
        if known.by_heuristic:
            asked = content_stems(known.case.judged_question)
            texts = {passage.id: passage_words(passage.text) for passage in known.context}
            answering = filter(self._answers, known.claims)
            holds = any(asked <= texts[claim.evidence[0].passage_id] for claim in answering)
        if known.answer == "faithful" and holds:
            cited = next((item for claim in known.claims for item in claim.evidence), None)
            return _because("gold_suspect", "answerable_after_all", cited=cited)
        return _because("should_have_abstained", "answered")

    def _explain_miss(self, index: int | None, lost: LocatedNeed) -> FailureEvidence:
        """The stage that lost a need."""
        candidate, need = lost.candidate, lost.need
        if candidate is None:
            return self._explain_unlocated(index, need)
        tie = self.ties.get(index) if index is not None else None
        if need.by == "label" and tie is not None:  # labels do not say which passage holds it
            named = (c for c in self.locator.candidates if c.miss.passage_id == tie.passage_id)
            candidate = next(named, candidate)
        miss, clue = candidate.miss, dict(candidate.clue)
        stage_mode, _ = _STAGE_MODES.get(candidate.lost_at, ("retrieval_miss", ""))
        mode = clue.pop("mode", stage_mode)
        code = "passage_missing" if candidate.labelled else "found_by_search"
        if clue.get("reason_code") == "stale_passage":
            mode = "conflicting_sources"
        shown = {"reason_code": code, "lost_at": miss.lost_at, "search": miss.search, **clue}
        if index is not None and shown["reason_code"] in {"passage_missing", "passage_cut"}:
            shown["reason_code"] += "_for_claim"
        quote = tie.quote if tie and tie.passage_id == miss.passage_id else miss.evidence
        return FailureEvidence(
            failure=mode, claim=index, passage_id=miss.passage_id, quote=quote, **shown
        )

    def _explain_unlocated(self, index: int | None, need: Need) -> FailureEvidence:
        """A need that is not in the prompt, and of which no passage is known that holds it."""
        if need.lost_at == "index" and need.by == "judge":
            return _because("not_indexed", "reference_not_indexed", index)
        if why := _STAGE_MODES.get(need.lost_at or ""):
            return _because(*why, index)
        if self.known.trace.unmeasured:  # nobody saw what was retrieved
            return _because("inconclusive", "unknown_sufficiency", index)
        if self.locator.lacks and self.known.context:
            return _because("inconclusive", "reference_not_found", index)
        by_words = need.source == "reference"
        code = "reference_not_in_prompt" if by_words else "context_insufficient"
        return _because("retrieval_miss", code, index)

    @cached_property
    def _texts(self) -> dict[str, str]:
        """By id, the passages as they were retrieved."""
        return {passage.id: passage.text for passage in self.known.trace.retrieved}

    @cached_property
    def _first_relevant(self) -> str | None:
        return next((p.id for p in self.known.context if p.id in self.known.relevant), None)

    def _rests_on_copy(self, claim: Claim, need: LocatedNeed | None) -> bool:
        """Whether the claim rests on a passage that nearly repeats a relevant one.

        Relevant is what is labelled, judged relevant or holds the need. A passage is no copy of itself, or
        of what it was before a part of it was cut.
        """
        known, rests_on = self.known, {item.passage_id for item in claim.evidence}
        trusted = known.relevant if self.level in LABELLED or not known.by_heuristic else ()
        holder = need.need.passage_id if need else None
        told = [(one.id, one.text) for one in known.context if one.id in {holder, *trusted}]
        missed = [(each.miss.passage_id, each) for each in self.locator.candidates]
        told += [(id_, each.text) for id_, each in missed if each.labelled or id_ == holder]
        cited = [one.text for one in known.context if one.id in rests_on]
        texts = [text for id_, text in told if id_ not in rests_on]
        return any(_is_copy(*each, known.case.judged_question) for each in product(cited, texts))

    def _note(self) -> FailureEvidence | None:
        """What a passed case says about the gold set or the model's memory."""
        known = self.known
        outcome = self.search.measured.outcomes[known.case.id].retrieval
        if known.correct is not True or outcome not in {"miss", "partial"}:
            return None
        if known.answer == "faithful" and not known.by_heuristic:
            listed = known.relevant | known.case.relevant.keys()
            for cited in (item for claim in known.claims for item in claim.evidence):
                if cited.passage_id in known.judged_relevant - listed:
                    return _because("missing_label", "unlisted_passage", cited=cited)
        if self.level == "miss" and not known.claims:
            return _because("answered_from_memory", "from_memory")
        return None


@lru_cache(maxsize=256)  # of one case
def _is_copy(passage: str, other: str, question: str) -> bool:
    """Whether two passages share most words, among them those that the question asks about.

    A passage of the same form about another subject is no copy.
    """
    here, there = passage_words(passage), passage_words(other)
    if not jaccard_at_least(here, there, _MIN_COPY_JACCARD) or fold(passage) == fold(other):
        return False
    return keeps_subject(question, other, passage) and keeps_subject(question, passage, other)


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
    step, passage = describe_loss(item.lost_at, item.search), item.passage_id
    details = {"passage": passage, "turn": item.turn, "query": item.query, "step": step}
    return describe_reason(Reason(code=item.reason_code, **details))
