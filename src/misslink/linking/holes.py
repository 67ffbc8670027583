"""Gold holes: retrieved passages that answer the question, and that the gold set does not list.

They are for a person to accept; nothing is accepted by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.retrieval import Need, needs, relevant_ids, satisfies, score
from misslink.retrieval.matching import telling_part
from misslink.stats import mean
from misslink.text import valid_text
from misslink.types import Case, Estimate, Link, Passage, Trace, Verdict

__all__ = ["Hole", "accepted", "gold_holes", "hole_document", "write_accepted"]

METRICS = "hit@{k}", "recall@{k}", "precision@{k}", "ndcg@{k}", "mrr"
_SHOWN = 300  # characters of a passage's text in a document
_HEURISTIC = "embedded"  # how the names of the judges begin that understand nothing
_TAG = "gold_hole"  # of a case with a passage added
_NO_JUDGE = (
    "no language model judged which passages are relevant, and the embedded judge cannot say"
)


@dataclass(frozen=True)
class Hole:
    """A retrieved passage that nobody judged and that answers the question.

    Parameters
    ----------
    case_id, passage_id : str
    rank : int
        In what was retrieved, from 1.
    question : str
    text : str
        Of the passage.
    reason : str
        What says so, in one sentence.
    """

    case_id: str
    passage_id: str
    rank: int
    question: str
    text: str
    reason: str


def gold_holes(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    verdicts: Sequence[Verdict],
    links: Sequence[Link],
    k: int,
) -> tuple[Hole, ...]:
    """Find the passages that the gold set should list.

    A passage of the context is one where nobody judged it (the gold set lists it with no grade,
    not even 0, and it carries none of the evidence, nor a part of any), a language model calls it
    relevant (context_relevance), and either the right and faithful answer rests on it, or the
    context suffices (context_sufficiency) although a needed passage is missing. With all of them
    there it is they that suffice, and a further relevant passage shows nothing.

    Parameters
    ----------
    cases, traces, verdicts, links
        Of one run, in any order. A case without trace or link has no hole; one of which the gold
        set lists nothing has none either, for nobody judged any passage of it.
    k : int
        How many retrieved passages count as context where the prompt was not seen.

    Returns
    -------
    tuple of Hole
        In the order of the cases, then by rank. Empty where only the embedded judge was asked.

    References
    ----------
    Buckley and Voorhees (2004), Retrieval evaluation with incomplete information.
    """
    trace_of = {trace.case_id: trace for trace in traces}
    link_of = {link.case_id: link for link in links}
    said: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        if _understands(verdict):
            said.setdefault(verdict.case_id, {})[verdict.metric] = verdict
    return tuple(
        hole
        for case in cases
        if case.id in trace_of
        and case.id in link_of
        and "context_relevance" in said.get(case.id, {})
        for hole in _of_case(case, trace_of[case.id], said[case.id], link_of[case.id], k)
    )


def _of_case(
    case: Case, trace: Trace, said: Mapping[str, Verdict], link: Link, k: int
) -> Iterator[Hole]:
    relevance = said["context_relevance"]
    context = trace.context(k)
    if not any(relevance.passages.get(passage.id) == 1 for passage in context):
        return
    if not needs(case, trace.retrieved):
        return
    places = {passage.id: at for at, passage in reversed([*enumerate(trace.retrieved, start=1)])}
    listed = relevant_ids(case, trace.retrieved)
    for passage in context:
        if relevance.passages.get(passage.id) != 1 or passage.id in listed:
            continue
        if _is_judged(case, passage):
            continue
        why = _shown_by(passage, said, link)
        if why is not None:
            reason = f"{relevance.judge} calls it relevant, and {why}"
            at = places[passage.id]
            yield Hole(case.id, passage.id, at, case.question, passage.text, reason)


def _is_judged(case: Case, passage: Passage) -> bool:
    """Whether the gold set says anything of a passage, by its id or by its text."""
    if passage.id in case.relevant or any(passage.id in ids for ids in case.relevant_any):
        return True
    evidence = [Need(text, grade, text) for text, grade in case.evidence.items()]
    return any(satisfies(need, passage) or telling_part(need, passage) for need in evidence)


def _shown_by(passage: Passage, said: Mapping[str, Verdict], link: Link) -> str | None:
    """What shows that the passage holds an answer; None where nothing does."""
    faithfulness, sufficiency = said.get("faithfulness"), said.get("context_sufficiency")
    right = link.correct is True and link.answer == "faithful" and faithfulness is not None
    if faithfulness is not None and right:
        for claim in faithfulness.claims:
            rests_on = {item.passage_id for item in claim.evidence}
            if claim.support == "supported" and passage.id in rests_on:
                return "the right answer rests on it"
    missing = link.retrieval in {"miss", "partial"}
    if missing and sufficiency is not None and sufficiency.label is True:
        return "what was there suffices for an answer although a needed passage was missing"
    return None


def accepted(cases: Sequence[Case], holes: Sequence[Hole]) -> tuple[Case, ...]:
    """Return the cases with the holes added at grade 1, as if a person had accepted them all.

    A passage is added by its id; where a case gives evidence, its text is added as evidence too,
    for there the ids do not count. Where it gives alternatives, its holes together are a further
    one, for together they hold an answer.

    Parameters
    ----------
    cases : sequence of Case
    holes : sequence of Hole
        Of these cases; those of others change nothing.
    """
    of_case: dict[str, list[Hole]] = {}
    for hole in holes:
        of_case.setdefault(hole.case_id, []).append(hole)
    return tuple(_with(case, of_case[case.id]) if case.id in of_case else case for case in cases)


def _with(case: Case, holes: Sequence[Hole]) -> Case:
    ids = [hole.passage_id for hole in holes]
    more: dict[str, Any] = {"relevant": {**case.relevant, **dict.fromkeys(ids, 1)}}
    if any(case.evidence.values()):
        texts = [hole.text for hole in holes if hole.text.strip()]
        more["evidence"] = {**case.evidence, **dict.fromkeys(texts, 1)}
    if case.relevant_any:
        more["relevant_any"] = (*case.relevant_any, tuple(ids))
    return case.model_copy(update=more)


def hole_document(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    verdicts: Sequence[Verdict],
    holes: Sequence[Hole],
    k: int,
    *,
    scores: Mapping[str, Mapping[str, float | None]] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the holes and the rank metrics without and with them, as ``summary.json`` has them.

    Parameters
    ----------
    cases, traces, verdicts
        Of one run.
    holes : sequence of Hole
        As `gold_holes` found them.
    k : int
        Cut-off of the metrics.
    scores : mapping or None
        What `misslink.retrieval.score` gave for these cases, where it has been worked out.
    seed : int
        Of the intervals that are drawn.

    Returns
    -------
    dict
        ``holes``: each with ``case_id``, ``passage_id``, ``rank``, ``question``, ``text`` (its
        first 300 characters) and ``reason``; ``metrics``: name to ``without`` and ``with``, both
        Estimate; ``reason``: why no hole could be looked for, or None.
    """
    names = [metric.format(k=k) for metric in METRICS]
    known = scores or {}
    lacking = [name for name in names if name not in known]
    without = {**known, **(score(cases, traces, lacking) if lacking else {})}
    changed = {hole.case_id for hole in holes}
    more = [case for case in accepted(cases, holes) if case.id in changed]
    again = score(more, [trace for trace in traces if trace.case_id in changed], names)
    metrics = {}
    for name in names:
        before = _estimate(without[name], seed)
        after = _estimate({**without[name], **again[name]}, seed) if changed else before
        metrics[name] = {"without": before.model_dump(), "with": after.model_dump()}
    return {
        "holes": [
            {
                "case_id": hole.case_id,
                "passage_id": hole.passage_id,
                "rank": hole.rank,
                "question": hole.question,
                "text": hole.text[:_SHOWN],
                "reason": hole.reason,
            }
            for hole in holes
        ],
        "metrics": metrics,
        "reason": None if any(map(_says_relevance, verdicts)) else _NO_JUDGE,
    }


def write_accepted(path: str | Path, cases: Sequence[Case], holes: Sequence[Hole]) -> int:
    """Write the cases that have holes as lines of a gold set, for a person to review.

    Each line is the case with its holes added as `accepted` does, last in their lists, and with
    the tag ``gold_hole``, so that the cases touched can be told apart. What is agreed to can be
    copied into the gold set as it stands.

    Parameters
    ----------
    path : path
        A new file.
    cases : sequence of Case
    holes : sequence of Hole

    Returns
    -------
    int
        How many lines; where there is no hole, none, and no file is written.

    Raises
    ------
    InputError
        The file is there already, for somebody's review may be in it, or it cannot be written.
    """
    changed = {hole.case_id for hole in holes}
    lines = []
    for case in accepted([case for case in cases if case.id in changed], holes):
        tagged = case.model_copy(update={"tags": {**case.tags, _TAG: "yes"}})
        line = tagged.model_dump(exclude_defaults=True)
        # The dates of `asked_at` are the only values that JSON does not know.
        told = json.dumps(line, ensure_ascii=False, default=str)
        lines.append(valid_text(told) + "\n")
    if lines:
        try:
            with Path(path).open("x", encoding="utf-8") as file:
                file.write("".join(lines))
        except FileExistsError:
            problem = "it is there already, and a review may be in it; name another file"
            raise InputError(problem, path=path) from None
        except OSError as trouble:
            raise InputError(f"it cannot be written: {trouble.strerror}", path=path) from None
    return len(lines)


def _understands(verdict: Verdict) -> bool:
    return verdict.status == "scored" and not verdict.judge.startswith(_HEURISTIC)


def _says_relevance(verdict: Verdict) -> bool:
    return verdict.metric == "context_relevance" and _understands(verdict)


def _estimate(values: Mapping[str, float | None], seed: int) -> Estimate:
    known = [value for value in values.values() if value is not None]
    if not known:
        return Estimate.missing("no case has relevant passages and a ranking")
    return mean(known, seed=seed)
