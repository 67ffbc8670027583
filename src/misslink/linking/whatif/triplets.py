"""What a retriever's embedding could learn from: question, missed passage, hard negative."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from misslink.errors import InputError
from misslink.judging.embedded.lexical import stems
from misslink.linking.duplicates import nearly_same
from misslink.retrieval import needs, relevant_ids, satisfies
from misslink.retrieval.matching import telling_part
from misslink.types import Case, Missed, Passage, Run, Trace, Verdict

__all__ = ["triplets", "write_triplets"]

# Overlapping chunks share a part of their text, which near-duplicates alone do not tell. Half of
# the shorter one's content words in runs of three is far more than two texts share by their topic.
_CONTAINED = 0.5
_RUN = 3


def triplets(run: Run) -> tuple[list[dict[str, str]], dict[str, int]]:
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
    traces = {trace.case_id: trace for trace in run.traces}
    cases = {case.id: case for case in run.cases}
    said = {v.case_id: v for v in run.verdicts if v.metric == "context_relevance"}
    found: list[dict[str, str]] = []
    left_out: Counter[str] = Counter()
    for link in run.links:
        case, trace = cases[link.case_id], traces[link.case_id]
        known = [missed for missed in link.missed if (missed.text or "").strip()]
        if lacking := len(link.missed) - len(known):
            left_out["the text of the missed passage is not known"] += lacking
        negative = _negative(case, trace, known, said.get(case.id))
        if negative is None:
            if known:
                left_out["no retrieved passage is surely irrelevant"] += len(known)
            continue
        found += [
            {
                "query": case.question,
                "positive": missed.text or "",
                "negative": negative.text,
                "case_id": case.id,
            }
            for missed in known
        ]
    return found, dict(left_out)


def write_triplets(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write one JSON object a line, the file replaced whole; InputError where it cannot be."""
    aside = path.with_name(f".{path.name}.partial")
    try:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, path)  # noqa: PTH105 (it says what it does)
    except OSError as problem:
        why = problem.strerror or problem
        raise InputError(f"it cannot be written ({why}); name another file", path=path) from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def _negative(
    case: Case, trace: Trace, missed: Sequence[Missed], said: Verdict | None
) -> Passage | None:
    relevant = relevant_ids(case, trace.retrieved)
    relevant |= {id_ for id_, value in (said.passages if said else {}).items() if value}
    wanted = [need for alternative in needs(case, trace.retrieved) for need in alternative]
    good = [one.text or "" for one in missed]
    good += [one.text for one in trace.retrieved if one.id in relevant]
    for passage in trace.retrieved:
        taken = passage.id in relevant or not passage.text.strip()
        if taken or any(satisfies(need, passage) or telling_part(need, passage) for need in wanted):
            continue
        if not any(repeats(passage.text, text) for text in good):
            return passage
    return None


def repeats(one: str, other: str) -> bool:
    """Whether two texts say nearly the same, or half of the shorter one stands in the other."""
    if nearly_same(one, other):
        return True
    here, there = _runs(one), _runs(other)
    shorter = min(len(here), len(there))
    return bool(shorter) and len(here & there) >= _CONTAINED * shorter


def _runs(text: str) -> set[tuple[str, ...]]:
    words = stems(text)
    return set(zip(*(words[at:] for at in range(_RUN)), strict=False))
