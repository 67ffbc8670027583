"""Retrieval outcome of one case: hit, partial hit or miss, and the missed passages."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from misslink.parts import light_items, places_of
from misslink.retrieval import matching
from misslink.types import Case, Observed, Outcome, Passage, Reason, RetrievalMiss, Trace

Exposure = Literal["none", "some", "all"]  # of what a case needs, in the prompt
_WHOLE_SHARE = 0.8  # of a passage's text in the prompt: with less it counts as cut
MIN_WITH_ALL = 10  # cases with all by labels, below which the judge's sufficiency replaces labels
# Of the relevant passages, the fewest first.
EXPOSURE_BY_LABELS: dict[str, Exposure] = {"miss": "none", "partial": "some", "hit": "all"}
_BY_JUDGE: dict[str, Exposure] = {"no": "none", "partly": "some", "yes": "all"}


@dataclass(frozen=True)
class RetrievalOutcome:
    """Which needs of a case reached the context of its answer.

    Parameters
    ----------
    retrieval : {'hit', 'partial', 'miss', 'unlabelled', 'not_needed', 'unknown'}
        All of it, some (also where a part of a missed passage is in the prompt), nothing; no passage
        is labelled; the question has no answer; or what was retrieved was not seen.
    found : sequence of NeedMatch
        The needs that reached the context, ranks counted in the context.
    missed : sequence of RetrievalMiss
        Those that did not, in the order of the gold set.
    note : str or None
        What people should know about it: evidence found over several passages, or why the case was
        not really measured.
    """

    retrieval: Literal["hit", "partial", "miss", "unlabelled", "not_needed", "unknown"]
    found: tuple[matching.NeedMatch, ...] = ()
    missed: tuple[RetrievalMiss, ...] = ()
    note: str | None = None


def case_exposures(
    links: Iterable[Outcome], by: str | None = None
) -> tuple[Literal["labels", "sufficiency"] | None, dict[str, Exposure]]:
    """Return what decides how much of its needs each case had in the prompt, and how much it was.

    By labels, or by the judge's sufficiency where fewer than 10 cases have all by labels; None
    where the judge gives none; `by` may say which. Cases that need nothing, and cases about
    which nothing is known, are left out.
    """
    needing = [link for link in links if link.retrieval != "not_needed"]
    levels = {link.case_id: EXPOSURE_BY_LABELS.get(link.retrieval) for link in needing}
    by_labels = list(levels.values()).count("all") >= MIN_WITH_ALL if by is None else by == "labels"
    if not by_labels:
        levels = {link.case_id: _BY_JUDGE.get(link.sufficient_judge) for link in needing}
    exposures = {case_id: level for case_id, level in levels.items() if level is not None}
    return ("labels" if by_labels else "sufficiency") if exposures else None, exposures


def retrieval_outcome(case: Case, trace: Trace, k: int) -> RetrievalOutcome:
    """Return which needs reached the context, and the rank of the missed ones.

    Parameters
    ----------
    case : Case
    trace : Trace
    k : int
        Number of passages that count as the context if the trace has no prompt.

    Returns
    -------
    RetrievalOutcome
        For the best alternative: a complete one, else the one with the most satisfied needs, then
        the one with the fewest missed needs. A missed need has the rank, id and text of the passage
        that satisfies it in ``trace.retrieved`` or ``trace.deeper``. Evidence split over two
        passages has the worse of the two ranks and the miss type 'split_evidence'. Other miss types
        are assigned later.
    """
    unseen = unmeasured_reason(trace)
    if unseen:
        return RetrievalOutcome("unknown", note=unseen)
    if case.expects_answer is False:
        return RetrievalOutcome("not_needed")
    alternatives = matching.case_needs(case, trace.retrieved)
    if not alternatives:
        blind = any(case.evidence.values())
        if blind:
            note = str(Reason(code="no_text_to_match"))
            return RetrievalOutcome("unknown", note=note)
        return RetrievalOutcome("unlabelled")
    # By its id alone a passage says what is in the prompt only where it was not cut.
    shares = {} if any(case.evidence.values()) else shown_shares(trace)
    cut = {name for name, share in shares.items() if share < _WHOLE_SHARE}
    context = [passage for passage in trace.context(k) if passage.id not in cut]
    attempts = [(needs, matching.match_needs(needs, context)) for needs in alternatives]
    needs, matches = max(
        attempts, key=lambda pair: (len(pair[1]) == len(pair[0]), len(pair[1]), -len(pair[0]))
    )
    satisfied = {hit.need.id for hit in matches}
    lacking = [need for need in needs if need.id not in satisfied]
    pool = _ranked_passages(trace) if lacking else ()
    missed = tuple(_missed_passage(need, pool, trace, k) for need in lacking)
    is_partial = matches or any(miss.passage_id in cut for miss in missed)
    retrieval: Literal["hit", "partial", "miss"] = "partial" if is_partial else "miss"
    split = {hit.need.id: [part.id for part in hit.passages] for hit in matches if hit.split}
    split_note = str(Reason(code="found_split", split=split)) if split else None
    return RetrievalOutcome("hit" if not missed else retrieval, matches, missed, split_note)


def shown_shares(trace: Trace) -> dict[str, float]:
    """Share of its text in the prompt, by passage that is there in part."""
    if trace.prompted is None or not trace.shown:
        return {}
    lengths = {passage.id: len(passage.text) for passage in trace.retrieved}
    parts = trace.shown.items()
    return {name: min(1.0, len(part) / max(1, lengths.get(name, 0))) for name, part in parts}


def retrieval_cutoff(trace: Trace, k: int) -> int:
    """The rank up to which a passage counts as retrieved, 1 or more.

    As many as the app asked for where the prompt was seen; else `k`, or fewer where the app asked
    for fewer. If nothing was retrieved it is unknown, and `k` is returned.
    """
    given = len(trace.retrieved)
    return (given if trace.prompted is not None else min(k, given)) or k


def unmeasured_reason(trace: Observed) -> str | None:
    """Why level 1 of a case cannot be measured; None where it can."""
    if trace.unmeasured is None and trace.error is not None and not trace.retrieved:
        return str(Reason(code="failed_before_retrieval"))
    return str(trace.unmatched) if trace.unmatched else trace.unmeasured


def unmatched_reason(traces: Sequence[Trace]) -> Reason | None:
    """Why the passages of a run cannot be compared with its labels; None where they can."""
    return next((trace.unmatched for trace in light_items(traces) if trace.unmatched), None)


def compared_trace(traces: Sequence[Trace]) -> Callable[[Case], Any]:
    """Give the trace of a case, or None: its row where only ids are compared with the labels."""
    rows, places = light_items(traces), places_of(traces)

    def find(case: Case) -> Any:
        place = places.get(case.id)
        return None if place is None else (traces if case.evidence else rows)[place]

    return find


def _ranked_passages(trace: Trace) -> tuple[Passage, ...]:
    """All known passages, best first, each with its rank in the deeper retrieval."""
    ranked = [
        passage if passage.rank == rank else passage.model_copy(update={"rank": rank})
        for rank, passage in enumerate(trace.retrieved, start=1)
    ]
    ids = {passage.id for passage in ranked}
    ranked += [passage for passage in trace.deeper if passage.id not in ids]
    return tuple(sorted(ranked, key=lambda passage: passage.rank))


def _missed_passage(
    need: matching.LabelledNeed, pool: Sequence[Passage], trace: Trace, k: int
) -> RetrievalMiss:
    match = next(iter(matching.match_needs([need], pool)), None)
    if match is None:
        return RetrievalMiss(
            passage_id=need.id, grade=need.grade, depth=trace.depth, evidence=need.evidence
        )
    # Of two halves the one further down is what was missing.
    passage = max(match.passages, key=lambda half: half.rank)
    return RetrievalMiss(
        passage_id=passage.id,
        grade=need.grade,
        true_rank=passage.rank,
        miss_type="split_evidence" if match.split else None,
        depth=trace.depth,
        distance=beyond if (beyond := passage.rank - retrieval_cutoff(trace, k)) > 0 else None,
        score=passage.score,
        evidence=need.evidence,
        text=passage.text or None,
    )


def match_unmet_needs(case: Case, trace: Trace, k: int) -> Callable[[Passage], bool] | None:
    """Whether a passage satisfies a need that the context of the answer left open.

    Parameters
    ----------
    case : Case
    trace : Trace
    k : int
        How many passages count as the context where the prompt was not seen.

    Returns
    -------
    callable or None
        Takes a passage; true also for one that carries a telling part of an evidence, cut by a
        chunk boundary. None where nothing is missed.
    """
    missed = retrieval_outcome(case, trace, k).missed
    if not missed:
        return None
    ids = {miss.passage_id for miss in missed}
    evidence = {miss.evidence for miss in missed}
    open_needs = [
        need
        for alternative in matching.case_needs(case, trace.retrieved)
        for need in alternative
        if need.id in ids or (need.evidence is not None and need.evidence in evidence)
    ]

    def satisfies_open_need(passage: Passage) -> bool:
        return any(
            matching.satisfies(need, passage) or matching.has_evidence_part(need, passage)
            for need in open_needs
        )

    return satisfies_open_need


def cluster_cases(cases: Sequence[Case]) -> dict[str, Hashable]:
    """Return the cluster of each case: its group, else the cases that share a relevant passage."""
    parent: dict[Hashable, Hashable] = {}

    def root(node: Hashable) -> Hashable:
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = node = parent[above]
        return node

    for case in cases:
        if case.group is None:
            evidence = any(case.evidence.values())
            graded = case.evidence if evidence else case.relevant
            needed = [name for name, grade in graded.items() if grade > 0]
            needed += [id_ for ids in case.relevant_any for id_ in ids if not evidence]
            for need in needed:
                parent[root(("need", need))] = root(("case", case.id))
    return {
        case.id: root(("case", case.id)) if case.group is None else ("group", case.group)
        for case in cases
    }
