"""The retrieval checklist: chunks, embedding, recall, precision, vocabulary and chunk boundaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from misslink.documents import ChecklistItem
from misslink.linking.miss_measurement import MissMeasurements
from misslink.parts import by_case, light_items
from misslink.retrieval import relevant_ids, unmeasured_reason
from misslink.stats import mean, proportion
from misslink.stats.intervals import median, quartiles
from misslink.stats.roc import CaseScore, auroc
from misslink.text.near_duplicates import first_duplicates, flag_duplicates
from misslink.types import Case, Estimate, Observed, Passage, Reason, Trace

_MAX_CUT_SHARE = 0.5  # from here on a chunk is more often cut within a sentence than not
# From here on one place in ten of a context repeats what another one says.
_MAX_REPEATED_SHARE = 0.1
_MAX_CHUNKS = 5_000  # held against each other for near-duplicates: 2 s
_MAX_COMPARED = 30  # of a context, each pair of which is compared
# Prose that goes on: it ends on a word or a comma, or begins in lower case. A chunk of a list, of
# code or of a heading ends on a word too, which is why half of the chunks may.
_ENDS_WITHIN = re.compile(r"[\w,;(\[\u2013\u2014-]")
_BEGINS_WITHIN = re.compile(r"\s*[a-z\u00df-\u00f6\u00f8-\u00ff]")
# Hosmer, Lemeshow and Sturdivant (2013), Applied logistic regression, call an area from 0.7 on
# acceptable and from 0.9 on outstanding. To tell a needed passage from a random one is easy, to
# tell it from the others that the same search gave is not.
_OUTSTANDING_AUROC = 0.9
_ACCEPTABLE_AUROC = 0.7
_MIN_RECALL = 0.8  # under it more than one needed passage in five is missing from the context
_MAX_SPLIT_SHARE = 0.1  # more than one evidence in ten cut in two is a matter of the chunk size

_Answer = tuple[dict[str, Any], Reason, bool | None]  # numbers, finding, verdict


def build_checklist(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    measured: MissMeasurements,
    k: int,
    *,
    corpus: Sequence[Passage] | None = None,
    seed: int = 0,
) -> tuple[ChecklistItem, ...]:
    """Answer the retrieval checklist for one run.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        Matched by ``case_id``.
    measured : MissMeasurements
    k : int
        How many retrieved passages count as the context where the prompt was not seen.
    corpus : sequence of Passage or None
        None: the chunks in the traces, which the finding says.
    seed : int
        Random seed for bootstrap intervals.

    Returns
    -------
    tuple of ChecklistItem
        Six items; ``ok`` is None where the interval does not decide.
    """
    trace_of, rows = by_case(traces), {row.case_id: row for row in light_items(traces)}
    cases = [case for case in cases if case.id in rows]
    seen = _SeenPassages(corpus)
    for case in cases:
        seen.add(case, trace_of[case.id], k)
    answers: dict[str, _Answer] = {
        "chunk_quality": _chunk_quality(seen, listed=corpus is not None, seed=seed),
        "embedding_quality": _embedding_quality(measured),
        "recall": _context_recall([(case, rows[case.id]) for case in cases], measured, seed),
        "precision": _score_separation(seen, measured),
        "vocabulary": _vocabulary_overlap(measured),
        "boundaries": _chunk_boundaries(measured),
    }
    return tuple(
        ChecklistItem(
            name=name,
            question=str(Reason(code=f"ask_{name}", k=k)),
            numbers=numbers,
            finding=str(finding),
            ok=ok,
        )
        for name, (numbers, finding, ok) in answers.items()
    )


class _SeenPassages:
    """What chunks and scores are measured by; traces are read once.

    Some retrievers give similarities, others distances: ``rising`` is in how many cases more the
    first score is the higher one.
    """

    def __init__(self, corpus: Sequence[Passage] | None) -> None:
        self.has_corpus, self.texts = corpus is not None, dict[str, str]()
        self.repeated: list[float] = []  # share of a context's places that repeat another of it
        self.relevant: list[CaseScore] = []
        self.irrelevant: list[CaseScore] = []
        self.rising = 0
        self._add_texts(corpus or ())

    def add(self, case: Case, trace: Trace, k: int) -> None:
        """Add those of a case."""
        if not self.has_corpus:
            self._add_texts((*trace.retrieved, *trace.deeper))
        texts = [passage.text for passage in trace.context(k) if passage.text.strip()]
        if compared := texts[:_MAX_COMPARED]:
            repeats = sum(first is not None for first in first_duplicates(compared))
            self.repeated.append(repeats / len(compared))
        scored = [passage for passage in trace.retrieved if passage.score is not None]
        ends = [passage.score for passage in scored if passage.score is not None]
        if len(ends) > 1:
            self.rising += (ends[0] > ends[-1]) - (ends[0] < ends[-1])
        if not scored or case.expects_answer is None or unmeasured_reason(trace):
            return
        fitting = relevant_ids(case, trace.retrieved)
        for passage, score in zip(scored, ends, strict=True):
            (self.relevant if passage.id in fitting else self.irrelevant).append((case.id, score))

    def _add_texts(self, passages: Iterable[Passage]) -> None:
        self.texts |= {passage.id: passage.text for passage in passages if passage.text.strip()}


def _not_measured(why: str | Reason | None) -> Reason:
    return Reason(code="check_not_measured", why=str(why))


def _is_at_least(estimate: Estimate, least: float) -> bool | None:
    """Whether an estimate is at least `least`: None where its interval holds both answers."""
    if estimate.value is None:
        return None
    if estimate.low is not None and estimate.low >= least:
        return True
    return False if estimate.high is not None and estimate.high < least else None


def _is_below(estimate: Estimate, most: float) -> bool | None:
    at_least = _is_at_least(estimate, most)
    return None if at_least is None else not at_least


def _chunk_quality(seen: _SeenPassages, *, listed: bool, seed: int) -> _Answer:
    """The chunks of the corpus, else of the traces.

    Of more than 5,000 chunks every n-th is compared with the others of this sample, so the
    near-duplicate share is then a lower bound.
    """
    repeated_places = Estimate.missing(Reason(code="no_text_prompted"))
    if seen.repeated:
        repeated_places = mean(seen.repeated, seed=seed)
    texts = list(seen.texts.values())
    lengths = [len(text) for text in texts]
    spread = quartiles(lengths)
    cut_count = sum(
        bool(_ENDS_WITHIN.match(text.rstrip()[-1:]) or _BEGINS_WITHIN.match(text)) for text in texts
    )
    cut = proportion(cut_count, len(texts))
    sample = texts[:: -(-len(texts) // _MAX_CHUNKS) or 1]
    copies = proportion(sum(flag_duplicates(sample)), len(sample))
    numbers: dict[str, Any] = {
        "passages": len(texts),
        "median_characters": median(lengths),
        "lower_quartile_characters": spread and spread[0],
        "upper_quartile_characters": spread and spread[1],
        "cut_within_a_sentence": cut,
        "near_duplicates": copies,
        "places_lost_to_duplicates": repeated_places,
    }
    if not texts or spread is None:
        return numbers, _not_measured(Reason(code="no_text_seen")), None
    finding = Reason(code="checked_chunks", listed=listed, **numbers)
    checks = [_is_below(cut, _MAX_CUT_SHARE), _is_below(repeated_places, _MAX_REPEATED_SHARE)]
    ok = False if False in checks else None if None in checks else True
    return numbers, finding, ok


def _embedding_quality(measured: MissMeasurements) -> _Answer:
    known_pairs, random = measured.pairs.known, measured.pairs.random
    area = auroc(known_pairs, random)
    numbers = {
        "auroc": area,
        "median_cosine_known": median([cosine for _, cosine in known_pairs]),
        "median_cosine_random": median([cosine for _, cosine in random]),
    }
    if area.value is None:
        why = Reason(code="no_embedding_seen") if measured.embedding is None else area.why
        return numbers, _not_measured(why), None
    pairs = {"known": len(known_pairs), "random": len(random)}
    finding = Reason(code="checked_embedding", embedding=measured.embedding, **pairs, **numbers)
    return numbers, finding, _is_at_least(area, _OUTSTANDING_AUROC)


def _context_recall(
    pairs: Sequence[tuple[Case, Observed]], measured: MissMeasurements, seed: int
) -> _Answer:
    first: list[float] = []
    deep: list[float] = []
    for case, trace in pairs:
        outcome = measured.outcomes[case.id]
        needed = len(outcome.found) + len(outcome.missed)
        if not needed:
            continue
        first.append(len(outcome.found) / needed)
        if trace.depth is not None or not outcome.missed:
            reached = sum(miss.true_rank is not None for miss in outcome.missed)
            deep.append((len(outcome.found) + reached) / needed)
    missing = Estimate.missing(Reason(code="no_relevant_and_search"))
    at_k = mean(first, seed=seed) if first else missing
    at_depth = Estimate.missing(Reason(code="not_asked_deeper")) if first else missing
    if deep and any(trace.depth is not None for _, trace in pairs):
        at_depth = mean(deep, seed=seed)
    numbers: dict[str, Any] = {"recall_in_context": at_k, "recall_at_depth": at_depth}
    numbers["not_indexed"] = sum(
        miss.status == "not_indexed" for missed in measured.missed.values() for miss in missed
    )
    if at_k.value is None:
        return numbers, _not_measured(at_k.reason), None
    depth = max(trace.depth or 0 for _, trace in pairs)
    finding = Reason(code="checked_recall", depth=depth, **numbers)
    return numbers, finding, _is_at_least(at_k, _MIN_RECALL)


def _score_separation(seen: _SeenPassages, measured: MissMeasurements) -> _Answer:
    relevant, irrelevant, rising = seen.relevant, seen.irrelevant, seen.rising >= 0
    by_cosine = False
    if not (relevant and irrelevant) and measured.pairs.relevant:
        relevant, irrelevant = list(measured.pairs.relevant), list(measured.pairs.irrelevant)
        by_cosine = rising = True
    area = auroc(relevant, irrelevant) if rising else auroc(irrelevant, relevant)
    numbers: dict[str, Any] = {
        "auroc": area,
        "median_relevant": median([score for _, score in relevant]),
        "median_irrelevant": median([score for _, score in irrelevant]),
        "precision": proportion(len(relevant), len(relevant) + len(irrelevant)),
    }
    if area.value is None:
        return numbers, _not_measured(Reason(code="no_scores_of_both")), None
    counts = {"relevant": len(relevant), "irrelevant": len(irrelevant)}
    finding = Reason(code="checked_scores", by_cosine=by_cosine, rising=rising, **counts, **numbers)
    return numbers, finding, _is_at_least(area, _ACCEPTABLE_AUROC)


def _vocabulary_overlap(measured: MissMeasurements) -> _Answer:
    retrieved_shares, missed_shares = measured.pairs.shared_found, measured.pairs.shared_missed
    area = auroc(retrieved_shares, missed_shares)
    numbers = {
        "median_shared_found": median([share for _, share in retrieved_shares]),
        "median_shared_missed": median([share for _, share in missed_shares]),
        "auroc": area,
    }
    if not (retrieved_shares or missed_shares):
        return numbers, _not_measured(Reason(code="no_relevant_text")), None
    finding = Reason(code="checked_vocabulary", **numbers)
    # What tells found from missed passages as well as this is what the retriever lives by.
    return numbers, finding, _is_below(area, _ACCEPTABLE_AUROC)


def _chunk_boundaries(measured: MissMeasurements) -> _Answer:
    located = measured.whole + measured.split
    share = proportion(measured.split, located)
    if not located:
        share = Estimate.missing(Reason(code="no_evidence_located"))
        return {"split": share}, _not_measured(share.reason), None
    finding = Reason(code="checked_boundaries", cut=measured.split, located=located, share=share)
    return {"split": share}, finding, _is_below(share, _MAX_SPLIT_SHARE)
