"""The checklist by which retrieval is debugged, answered with the numbers of one run.

Chunks, embedding, recall, precision, vocabulary, boundaries: each question with what was
measured, one sentence, and whether it is well. ``ok`` is None where the interval does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from misslink.linking.chunks import chunk_quality, places_lost
from misslink.linking.measuring import Measured
from misslink.linking.thresholds import above, below
from misslink.retrieval import outcome, relevant_ids
from misslink.stats import mean, proportion
from misslink.stats.auroc import Marked, auroc
from misslink.stats.median import median
from misslink.stats.written import percent
from misslink.types import Case, Estimate, Passage, Trace

__all__ = ["checklist"]

# Hosmer, Lemeshow and Sturdivant (2013), Applied logistic regression, call an area from 0.7 on
# acceptable and from 0.9 on outstanding. To tell a needed passage from a random one is easy, to
# tell it from the others that the same search gave is not.
_OUTSTANDING = 0.9
_ACCEPTABLE = 0.7
_RECALL = 0.8  # under it more than one needed passage in five is missing from the context
_SPLIT = 0.1  # more than one evidence in ten cut in two is a matter of the chunk size

Item = dict[str, Any]


def checklist(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    measured: Measured,
    k: int,
    *,
    corpus: Sequence[Passage] | None = None,
    seed: int = 0,
) -> list[Item]:
    """Answer the checklist for one run.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        Matched by ``case_id``.
    measured : Measured
        What `misslink.linking.measure` found of them.
    k : int
        How many retrieved passages count as the context where the prompt was not seen.
    corpus : sequence of Passage or None
        Whose chunks are looked at. None: those that the traces show, which is said.
    seed : int
        Of the intervals that are drawn.

    Returns
    -------
    list of dict
        Each with 'name', 'question', 'numbers' (Estimates as dicts, and counts), 'finding' (one
        sentence) and 'ok'. Always the same six, also of a run without any case; a number that
        could not be computed is an Estimate with a reason.
    """
    by_case = {trace.case_id: trace for trace in traces}
    pairs = [(case, by_case[case.id]) for case in cases if case.id in by_case]
    lost = places_lost([trace for _, trace in pairs], k, seed=seed)
    return [
        _item("chunk_quality", "Are the chunks whole, of one size, and each there once?",
              *chunk_quality([trace for _, trace in pairs], corpus, lost)),
        _item("embedding_quality", "Does the embedding put a question nearer to what it needs "
              "than to anything else?", *_embedding(measured)),
        _item("recall", f"Is what is needed among the first {k}, and if not, further down?",
              *_recall(pairs, measured, k, seed)),
        _item("precision", "Do the retriever's scores tell relevant passages from the others it "
              "gave?", *_precision(pairs, measured)),
        _item("vocabulary", "Do questions and needed passages use the same words?",
              *_vocabulary(measured)),
        _item("boundaries", "Does evidence stay within one chunk?", *_boundaries(measured)),
    ]  # fmt: skip


def _item(
    name: str, question: str, numbers: Mapping[str, Any], finding: str, ok: bool | None
) -> Item:
    shown = {
        key: value.model_dump() if isinstance(value, Estimate) else value
        for key, value in numbers.items()
    }
    return {"name": name, "question": question, "numbers": shown, "finding": finding, "ok": ok}


def _embedding(measured: Measured) -> tuple[dict[str, Any], str, bool | None]:
    known, random = measured.pairs.known, measured.pairs.random
    area = auroc(known, random)
    numbers = {
        "auroc": area,
        "median_cosine_known": median([cosine for _, cosine in known]),
        "median_cosine_random": median([cosine for _, cosine in random]),
    }
    if area.value is None:
        why = "no embedding was at hand" if measured.embedding is None else area.reason
        return numbers, f"Not measured: {why}.", None
    finding = (
        f"A question is nearer to a passage it needs than to a random one in {percent(area)} of "
        f"{len(known)} known and {len(random)} random pairs ({measured.embedding})."
    )
    return numbers, finding, above(area, _OUTSTANDING)


def _recall(
    pairs: Sequence[tuple[Case, Trace]], measured: Measured, k: int, seed: int
) -> tuple[dict[str, Any], str, bool | None]:
    first: list[float] = []
    deep: list[float] = []
    for case, trace in pairs:
        found = measured.found.get(case.id) or outcome(case, trace, k)
        needed = len(found.found) + len(found.missed)
        if not needed:
            continue
        first.append(len(found.found) / needed)
        if trace.depth is not None or not found.missed:
            reached = sum(lost.true_rank is not None for lost in found.missed)
            deep.append((len(found.found) + reached) / needed)
    missing = Estimate.missing("no case needs a passage and was seen to retrieve")
    at_k = mean(first, seed=seed) if first else missing
    at_depth = missing
    if deep and any(trace.depth is not None for _, trace in pairs):
        at_depth = mean(deep, seed=seed)
    elif first:
        at_depth = Estimate.missing("the retriever was not asked deeper")
    numbers: dict[str, Any] = {"recall_in_context": at_k, "recall_at_depth": at_depth}
    numbers["not_indexed"] = sum(
        lost.subtype == "not_indexed" for missed in measured.missed.values() for lost in missed
    )
    if at_k.value is None:
        return numbers, f"Not measured: {at_k.reason}.", None
    finding = f"{percent(at_k)} of what is needed reached the context"
    if at_depth.value is not None:
        depth = max(trace.depth or 0 for _, trace in pairs)
        finding += f", {percent(at_depth)} is among the first {depth}"
    return numbers, f"{finding}.", above(at_k, _RECALL)


def _precision(
    pairs: Sequence[tuple[Case, Trace]], measured: Measured
) -> tuple[dict[str, Any], str, bool | None]:
    relevant, irrelevant, rising = _scored(pairs)
    what = "the retriever's own scores"
    if not (relevant and irrelevant) and measured.pairs.relevant:
        relevant, irrelevant = list(measured.pairs.relevant), list(measured.pairs.irrelevant)
        what, rising = "cosines, since the traces have no scores", True
    area = auroc(relevant, irrelevant) if rising else auroc(irrelevant, relevant)
    numbers: dict[str, Any] = {
        "auroc": area,
        "median_relevant": median([score for _, score in relevant]),
        "median_irrelevant": median([score for _, score in irrelevant]),
        "precision": proportion(len(relevant), len(relevant) + len(irrelevant)),
    }
    if area.value is None:
        return numbers, (
            "Not measured: no retrieved passages, relevant and irrelevant ones, have a score."
        ), None  # fmt: skip
    finding = (
        f"A relevant passage scores better than an irrelevant one in {percent(area)} of cases, by "
        f"{what} ({len(relevant)} relevant, {len(irrelevant)} irrelevant; "
        f"{'high' if rising else 'low'} is better)."
    )
    return numbers, finding, above(area, _ACCEPTABLE)


def _scored(
    pairs: Sequence[tuple[Case, Trace]],
) -> tuple[list[Marked], list[Marked], bool]:
    """Scores of relevant and of irrelevant retrieved passages, and whether high ones are good.

    Some retrievers give similarities, others distances; their own order tells which.
    """
    relevant: list[Marked] = []
    irrelevant: list[Marked] = []
    rising = falling = 0
    for case, trace in pairs:
        scored = [one for one in trace.retrieved if one.score is not None]
        ends = [one.score for one in scored if one.score is not None]
        rising += len(ends) > 1 and ends[0] > ends[-1]
        falling += len(ends) > 1 and ends[0] < ends[-1]
        if not scored or case.expects_answer is None or trace.unmeasured is not None:
            continue
        fitting = relevant_ids(case, trace.retrieved)
        for one, score in zip(scored, ends, strict=True):
            (relevant if one.id in fitting else irrelevant).append((case.id, score))
    return relevant, irrelevant, rising >= falling


def _vocabulary(measured: Measured) -> tuple[dict[str, Any], str, bool | None]:
    found, missed = measured.pairs.shared_found, measured.pairs.shared_missed
    area = auroc(found, missed)
    numbers = {
        "median_shared_found": median([share for _, share in found]),
        "median_shared_missed": median([share for _, share in missed]),
        "auroc": area,
    }
    said = [
        f"{name} ones share {percent(share)}"
        for name, share in (
            ("found", numbers["median_shared_found"]),
            ("missed", numbers["median_shared_missed"]),
        )
        if share.value is not None
    ]
    if not said:
        return numbers, "Not measured: no needed passage has a known text.", None
    finding = (
        f"Of needed passages {' and '.join(said)} of their question's content words in the median."
    )
    # What tells found from missed passages as well as this is what the retriever lives by.
    return numbers, finding, below(area, _ACCEPTABLE)


def _boundaries(measured: Measured) -> tuple[dict[str, Any], str, bool | None]:
    located = measured.whole + measured.split
    share = proportion(measured.split, located)
    if not located:
        share = Estimate.missing("no evidence text was given, or none was found")
        return {"split": share}, f"Not measured: {share.reason}.", None
    finding = f"{measured.split} of {located} evidence texts that were found lie over two chunks"
    return {"split": share}, f"{finding} ({percent(share)}).", below(share, _SPLIT)
