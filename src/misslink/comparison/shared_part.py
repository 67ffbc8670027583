"""The part of several runs that is alike: the same questions, and level 1 by the same labels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from misslink.comparison.run_metrics import select_cases
from misslink.documents import cutoff_of
from misslink.io.manifest import expected_answer, relevance_labels
from misslink.parts import by_case, case_ids, items_of, places_of, stored
from misslink.registry import judged_metrics
from misslink.retrieval import retrieval_outcome
from misslink.types import Case, Link, Reason, Run, Scored, Trace


@dataclass(frozen=True)
class SharedPart:
    """Runs with only the cases that they share, whose labels are those of the last run.

    Parameters
    ----------
    runs : tuple of Run
        In a relabelled case the ranking is scored by the last run's labels, and what a judge
        decided by other labels is left out of every run.
    relevance : frozenset of str
        Cases that list other relevant passages in one of the runs.
    expectation : frozenset of str
        Cases that expect another answer in one of the runs.
    """

    runs: tuple[Run, ...]
    relevance: frozenset[str]
    expectation: frozenset[str]

    @property
    def relabelled(self) -> frozenset[str]:
        """Cases whose labels differ."""
        return self.relevance | self.expectation


def share_cases(runs: Sequence[Run], ids: AbstractSet[str]) -> SharedPart:
    """Return the shared part of runs; `ids` are cases that ask the same in all of them."""
    *others, last = [select_cases(run, ids) for run in runs]
    labels = by_case(last.cases)

    def differing(labels_of: Callable[[Case], Any]) -> frozenset[str]:
        return frozenset(
            case.id
            for run in others
            for case in run.cases
            if labels_of(case) != labels_of(labels[case.id])
        )

    shared = SharedPart((*others, last), differing(relevance_labels), differing(expected_answer))
    if all(case == labels[case.id] for run in others for case in run.cases):
        return shared
    if shared.relevance:
        others = [_match_ids(run, last, labels) for run in others]
    return replace(shared, runs=tuple(_relabel(run, last, shared) for run in (*others, last)))


def _match_ids(run: Run, last: Run, labels: Mapping[str, Case]) -> Run:
    """The run, whose traces say so if its passages have ids of another kind than the labels.

    They are of the same kind if one is labelled, or was retrieved in the last run, too.
    """
    own, others = (
        {passage.id for trace in each.traces for passage in (*trace.retrieved, *trace.deeper)}
        for each in (run, last)
    )
    by_id, listed = set[str](), set[str]()
    for case in labels.values():
        if not case.evidence:
            by_id.add(case.id)
            listed.update(case.relevant, *case.relevant_any)
    unmatched = None
    if own and listed and own.isdisjoint(listed | others):
        unmatched = Reason(code="ids_unmatched", passage=min(own), label=min(listed), key=None)
    traces = (
        trace.model_copy(update={"unmatched": unmatched if trace.case_id in by_id else None})
        for trace in run.traces
    )
    return run.model_copy(update={"traces": stored(Trace, traces)})


def _relabel(run: Run, last: Run, shared: SharedPart) -> Run:
    """The run with the cases of another, without what was judged by other labels than theirs."""
    traces, labels, k = by_case(run.traces), by_case(last.cases), cutoff_of(run)
    by_reference, by_labels = metrics_by_labels(run)

    def comparable(verdict: Scored) -> bool:
        changed: Collection[str] = shared.expectation if verdict.metric in by_reference else ()
        changed = shared.relabelled if verdict.metric in by_labels else changed
        return verdict.case_id not in changed

    def relink(link: Link) -> Link:
        trace = traces.get(link.case_id)
        if link.case_id not in shared.relabelled or trace is None:
            return link
        outcome = retrieval_outcome(labels[link.case_id], trace, k)
        return Link(
            case_id=link.case_id,
            retrieval=outcome.retrieval,
            sufficient_judge=link.sufficient_judge,
            answer=link.answer,
            failure=None if link.failure is None else "inconclusive",
            missed=outcome.missed,
            reason=str(Reason(code="labels_differ_between_runs")),
        )

    mark = {"relabelled": len(shared.relabelled)} if shared.relabelled else {}
    return run.model_copy(
        update={
            "manifest": {**run.manifest, **mark},
            "cases": items_of(
                last.cases, map(places_of(last.cases).__getitem__, case_ids(run.cases))
            ),
            "verdicts": items_of(
                run.verdicts, (at for at, score in enumerate(run.scores) if comparable(score))
            ),
            "links": stored(Link, map(relink, run.links)),
        }
    )


def metrics_by_labels(run: Run) -> tuple[frozenset[str], frozenset[str]]:
    """The judged metrics whose value depends on the expected answer, and on all labels."""
    installed = {name: judged_metrics.get(name) for name in judged_metrics.names()}
    by_reference = {name for name, metric in installed.items() if metric.needs_reference}
    by_labels = {name for name, metric in installed.items() if metric.reads_labels}
    # Of a metric of a plugin that is not installed nothing is known.
    unknown = {score.metric for score in run.scores} - installed.keys()
    return frozenset(by_reference), frozenset(by_labels | unknown)
