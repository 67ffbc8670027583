"""Training triplets for an embedding model: question, missed passage, hard negative."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from misslink.io.atomic import atomic_write
from misslink.linking.miss_measurement import word_questions
from misslink.parts import by_case
from misslink.retrieval import case_needs, relevant_ids, satisfies
from misslink.retrieval.matching import has_evidence_part
from misslink.text.near_duplicates import is_near_duplicate
from misslink.text.normalization import stems
from misslink.types import Case, Passage, Reason, RetrievalMiss, Run, Trace, Verdict

# Overlapping chunks share a part of their text, which near-duplicates alone do not tell. Half of
# the shorter one's content words in runs of three is far more than two texts share by their topic.
_MIN_OVERLAP = 0.5
_RUN_LENGTH = 3


def make_triplets(run: Run) -> tuple[list[dict[str, str]], dict[str, int]]:
    """Make a triplet of every missed passage whose text is known.

    Returns
    -------
    triplets : list of dict
        ``query``, ``positive`` (the missed passage), ``negative`` (the best ranked retrieved
        passage that is not relevant) and ``case_id``.
    left_out : dict of str to int
        Reason to number of missed passages. A negative is never one that satisfies a need of the
        case, that carries a part of the evidence, that a judge found relevant, or that repeats
        half or more of a relevant passage.
    """
    traces = by_case(run.traces)
    cases = {case.id: case for case in word_questions(run.cases, run.scores)}
    relevance_of = by_case(run.verdicts_of("context_relevance"))
    rows: list[dict[str, str]] = []
    left_out: Counter[str] = Counter()
    for link in run.links:
        case, trace = cases[link.case_id], traces[link.case_id]
        if link.retrieval == "unlabelled" and link.missed:
            left_out["unconfirmed_miss"] += len(link.missed)
            continue
        with_text = [missed for missed in link.missed if (missed.text or "").strip()]
        if lacking := len(link.missed) - len(with_text):
            left_out["missed_text_unknown"] += lacking
        negative = _hard_negative(case, trace, with_text, relevance_of.get(case.id))
        if negative is None:
            if with_text:
                left_out["no_hard_negative"] += len(with_text)
            continue
        rows += [
            {
                "query": case.judged_question,
                "positive": missed.text or "",
                "negative": negative.text,
                "case_id": case.id,
            }
            for missed in with_text
        ]
    return rows, {str(Reason(code=code)): n for code, n in left_out.items()}


def write_triplets(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write one JSON object per line, replacing the file as a whole."""
    atomic_write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), path)


def _hard_negative(
    case: Case, trace: Trace, missed: Sequence[RetrievalMiss], relevance: Verdict | None
) -> Passage | None:
    relevant = relevant_ids(case, trace.retrieved)
    relevant |= {id_ for id_, value in (relevance.passages if relevance else {}).items() if value}
    all_needs = [need for alternative in case_needs(case, trace.retrieved) for need in alternative]
    good = [each_passage.text or "" for each_passage in missed]
    good += [each_passage.text for each_passage in trace.retrieved if each_passage.id in relevant]
    for passage in trace.retrieved:
        taken = passage.id in relevant or not passage.text.strip()
        if taken or any(
            satisfies(need, passage) or has_evidence_part(need, passage) for need in all_needs
        ):
            continue
        if not any(texts_overlap(passage.text, text) for text in good):
            return passage
    return None


def texts_overlap(text: str, other: str) -> bool:
    """Whether two texts are nearly the same, or share half of the shorter one."""
    if is_near_duplicate(text, other):
        return True
    runs, other_runs = _stem_runs(text), _stem_runs(other)
    shorter = min(len(runs), len(other_runs))
    return bool(shorter) and len(runs & other_runs) >= _MIN_OVERLAP * shorter


def _stem_runs(text: str) -> set[tuple[str, ...]]:
    words = stems(text)
    return set(zip(*(words[offset:] for offset in range(_RUN_LENGTH)), strict=False))
