"""Missing labels: retrieved passages that answer the question but that the gold set does not list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from misslink.documents import MetricWithLabels, MissingLabelDocument, MissingLabelsDocument
from misslink.errors import InputError
from misslink.io.atomic import atomic_write
from misslink.parts import LazyMapping, by_case, light_items, select_items
from misslink.retrieval import (
    LabelledNeed,
    case_needs,
    mean_scores,
    relevant_ids,
    satisfies,
    score_cases,
)
from misslink.retrieval.matching import has_evidence_part
from misslink.text.normalization import valid_text
from misslink.types import Case, Link, Outcome, Passage, Reason, Scored, Trace, Verdict

RANK_METRICS = "hit@{k}", "recall@{k}", "precision@{k}", "ndcg@{k}", "mrr"
_MAX_TEXT = 300  # characters of a passage's text in a document
_HEURISTIC = "heuristic"  # how the names of the judges begin that understand nothing
_TAG = "missing_label"  # of a case with a passage added


def find_missing_labels(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    verdicts: Sequence[Verdict],
    links: Sequence[Link],
    k: int,
) -> tuple[MissingLabelDocument, ...]:
    """Find the passages that the gold set should list.

    A passage of the context is one if the gold set does not label it (no grade, not even 0, and no part
    of the evidence), a language model calls it relevant (context_relevance), and either the correct and
    faithful answer rests on it, or the context suffices (context_sufficiency) although a needed passage
    is missing.

    Parameters
    ----------
    cases, traces, verdicts, links
        Of one run, in any order. A case without labels has no missing label.
    k : int
        How many retrieved passages count as context where the prompt was not seen.

    Returns
    -------
    tuple of MissingLabel
        In the order of the cases, then by rank. Empty where only the heuristic judge was used.

    References
    ----------
    Buckley and Voorhees (2004), Retrieval evaluation with incomplete information.
    """
    trace_of = by_case(traces)
    link_of = {
        link.case_id: link for link in light_items(links) if _is_supported(link) or _lacks(link)
    }
    places_of: dict[str, dict[str, int]] = {}  # of a case its model verdicts by metric
    for place, score in enumerate(light_items(verdicts)):
        if _is_model_verdict(score) and score.case_id in link_of and score.case_id in trace_of:
            places_of.setdefault(score.case_id, {})[score.metric] = place
    of_case = {id_: LazyMapping(places, verdicts.__getitem__) for id_, places in places_of.items()}
    found = (
        _missing_labels_of_case(case, trace_of[case.id], of_case[case.id], link_of[case.id], k)
        for case in cases
        if case.id in of_case
    )
    return tuple(chain.from_iterable(found))


def _missing_labels_of_case(
    case: Case, trace: Trace, by_metric: Mapping[str, Verdict], link: Outcome, k: int
) -> Iterator[MissingLabelDocument]:
    relevance = by_metric.get("context_relevance")
    if relevance is None or not case_needs(case, trace.retrieved):
        return
    ranks = {passage.id: rank for rank, passage in reversed([*enumerate(trace.retrieved, start=1)])}
    listed = relevant_ids(case, trace.retrieved) | {
        *case.relevant,
        *(id_ for ids in case.relevant_any for id_ in ids),
    }
    evidence = [LabelledNeed(text, grade, text) for text, grade in case.evidence.items()]
    for passage in trace.context(k):
        if relevance.passages.get(passage.id) != 1 or passage.id in listed:
            continue
        if any(satisfies(need, passage) or has_evidence_part(need, passage) for need in evidence):
            continue
        why = _supporting_reason(passage, by_metric, link)
        if why is not None:
            yield MissingLabelDocument(
                case_id=case.id,
                passage_id=passage.id,
                rank=ranks[passage.id],
                question=case.question,
                text=passage.text,
                reason=str(Reason(code="label_missing", judge=relevance.judge, why=str(why))),
            )


def _supporting_reason(
    passage: Passage, by_metric: Mapping[str, Verdict], link: Outcome
) -> Reason | None:
    """What shows that the passage holds an answer; None where nothing does."""
    if _is_supported(link) and (faithfulness := by_metric.get("faithfulness")) is not None:
        supported = (claim for claim in faithfulness.claims if claim.support == "supported")
        if any(passage.id == item.passage_id for claim in supported for item in claim.evidence):
            return Reason(code="answer_rests_on_it")
    if _lacks(link) and (sufficiency := by_metric.get("context_sufficiency")) is not None:
        return Reason(code="suffices_without_relevant") if sufficiency.label is True else None
    return None


def _is_supported(link: Outcome) -> bool:
    return link.correct is True and link.answer == "faithful"


def _lacks(link: Outcome) -> bool:
    return link.retrieval in {"miss", "partial"}


def add_missing_labels(
    cases: Sequence[Case], holes: Sequence[MissingLabelDocument]
) -> tuple[Case, ...]:
    """Return the cases with the missing labels added at grade 1, as if all were accepted.

    A passage is added by its id. A case with evidence gets its text as evidence too, as ids do not count
    there; a case with alternatives gets its missing labels together as one more alternative.
    """
    of_case: dict[str, list[MissingLabelDocument]] = {}
    for hole in holes:
        of_case.setdefault(hole.case_id, []).append(hole)
    return tuple(
        _add_labels(case, of_case[case.id]) if case.id in of_case else case for case in cases
    )


def _add_labels(case: Case, holes: Sequence[MissingLabelDocument]) -> Case:
    ids = [hole.passage_id for hole in holes]
    more: dict[str, Any] = {"relevant": {**case.relevant, **dict.fromkeys(ids, 1)}}
    if any(case.evidence.values()):
        texts = [hole.text for hole in holes if hole.text.strip()]
        more["evidence"] = {**case.evidence, **dict.fromkeys(texts, 1)}
    if case.relevant_any:
        more["relevant_any"] = (*case.relevant_any, tuple(ids))
    return case.model_copy(update=more)


def missing_label_document(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    verdicts: Sequence[Verdict],
    holes: Sequence[MissingLabelDocument],
    k: int,
    *,
    scores: Mapping[str, Mapping[str, float | None]] | None = None,
    seed: int = 0,
) -> MissingLabelsDocument:
    """Return the missing labels and the rank metrics without and with them, as ``summary.json`` has them.

    Parameters
    ----------
    cases, traces, verdicts
        Of one run.
    holes : sequence of MissingLabel
        As `find_missing_labels` found them.
    k : int
        Cut-off of the metrics.
    scores : mapping or None
        What `misslink.retrieval.score_cases` gave for these cases, where it has been worked out.
    seed : int
        Of the intervals that are drawn.

    Returns
    -------
    MissingLabelsDocument
        ``holes``: each with ``case_id``, ``passage_id``, ``rank``, ``question``, ``text`` (its
        first 300 characters) and ``reason``; ``metrics``: name to ``without`` and ``with``, both
        Estimate; ``reason``: why no hole could be looked for, or None.
    """
    names = [metric.format(k=k) for metric in RANK_METRICS]
    base_scores = scores or {}
    lacking = [name for name in names if name not in base_scores]
    without = {**base_scores, **(score_cases(cases, traces, lacking) if lacking else {})}
    changed = {hole.case_id for hole in holes}
    more = add_missing_labels(select_items(cases, changed), holes)
    again = score_cases(more, select_items(traces, changed), names)
    metrics = {}
    for name in names:
        before = mean_scores(without[name].values(), seed=seed)
        after = mean_scores({**without[name], **again[name]}.values(), seed=seed)
        metrics[name] = MetricWithLabels(without_labels=before, with_labels=after)
    looked_for = any(
        v.metric == "context_relevance" and _is_model_verdict(v) for v in light_items(verdicts)
    )
    return MissingLabelsDocument(
        holes=tuple(hole.replace(text=hole.text[:_MAX_TEXT]) for hole in holes),
        metrics=metrics,
        reason=None if looked_for else str(Reason(code="no_judge_of_passages")),
    )


def write_labelled_cases(
    path: str | Path, cases: Sequence[Case], holes: Sequence[MissingLabelDocument]
) -> int:
    """Write the cases that have missing labels as lines of a gold set, for review.

    Each line has the labels of `add_missing_labels`, last in their lists, and the tag ``missing_label``.

    Returns
    -------
    int
        The number of lines. No file is written if it is 0.

    Raises
    ------
    InputError
        The file exists (a review may be in it), or it cannot be written.
    """
    changed = {hole.case_id for hole in holes}
    lines = []
    for case in add_missing_labels([case for case in cases if case.id in changed], holes):
        tagged = case.model_copy(update={"tags": {**case.tags, _TAG: "yes"}})
        line = tagged.model_dump(exclude_defaults=True)
        # The dates of `asked_at` are the only values that JSON does not know.
        text = json.dumps(line, ensure_ascii=False, default=str)
        lines.append(valid_text(text) + "\n")
    if lines and Path(path).exists():
        problem = "it is there already, and a review may be in it; name another file"
        raise InputError(problem, path=path)
    if lines:
        atomic_write("".join(lines), Path(path))
    return len(lines)


def _is_model_verdict(verdict: Scored) -> bool:
    return verdict.status == "scored" and not verdict.judge.startswith(_HEURISTIC)
