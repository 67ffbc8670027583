"""Errors of a run, and the fixes of its missed passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.documents import summary_of, whatif_of
from misslink.linking.whatif.forecast import EffectModel, ExposureChange
from misslink.types import (
    Estimate,
    Link,
    MissStatus,
    MissType,
    Reason,
    RetrievalMiss,
    Run,
    Trace,
    Verdict,
)

_DECIDING_METRICS = ("faithfulness", "correctness")


def count_errors(traces: Sequence[Trace], verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Count the cases that the app failed on, that the judge failed on, and without an answer."""
    app = {trace.case_id for trace in traces if trace.error is not None}
    judge = {
        verdict.case_id
        for verdict in verdicts
        if verdict.status == "failed" and verdict.metric in _DECIDING_METRICS
    }
    silent = sum(trace.answer is None and trace.error is None for trace in traces)
    if all(trace.answer is None for trace in traces):  # of a retriever no answer is expected
        silent = 0
    return {"app": len(app), "judge": len(judge - app), "no_answer": silent}


RERANK_POOL = 50  # candidates that a reranker gets


@dataclass(frozen=True)
class Fix:
    """A change of the retriever, the index or the prompt.

    Parameters
    ----------
    name : str
        Such as 'larger_k'; of `FIXES`.
    kind : str
        The miss type or status that it fixes; `miss_type_advice` has its sentence.
    retrieves, missed : int
        How many missed passages it would retrieve, of how many.
    basis : {'measured_rank', 'at_most', 'whatif'}
        Whether that follows from measured ranks, is an upper bound, or was tried by what-if.
    cases : tuple of str
        Ids of the cases of these passages.
    avoided : Estimate
        Failures that it would avoid; missing with a reason code where nothing forecasts it.
    evidence : Reason
        ``fix_gains`` (the whole interval is above 0), ``not_enough_data``, or why there is no
        forecast.
    option : str or None
        The what-if option that was tried.
    """

    name: str
    kind: MissType | MissStatus
    retrieves: int
    missed: int
    basis: Literal["measured_rank", "at_most", "whatif"]
    cases: tuple[str, ...]
    avoided: Estimate
    evidence: Reason
    option: str | None = None

    @property
    def weight(self) -> float:
        """How much a passage or case of the fix counts: half if it is an upper bound."""
        return 0.5 if self.basis == "at_most" else 1.0


@dataclass(frozen=True)
class _FixRule:
    kind: MissType | MissStatus
    measured: bool = False  # measured ranks say that the fix would retrieve the passage
    options: tuple[str, ...] = ()  # how what-if calls it, up to '='

    def applies(self, miss: RetrievalMiss) -> bool:
        if self.kind == "ranked_low":
            return (
                miss.status == "not_retrieved"
                and miss.true_rank is not None
                and miss.true_rank <= RERANK_POOL
            )
        return self.kind in (miss.kind, *miss.also)


FIXES: dict[str, _FixRule] = {
    "index_documents": _FixRule("not_indexed"),
    "keep_in_prompt": _FixRule("dropped_from_prompt"),
    "rechunk": _FixRule("split_evidence", options=("chunk",)),
    "remove_duplicates": _FixRule("duplicate_crowding", measured=True, options=("mmr",)),
    "hybrid_search": _FixRule("keyword_match", measured=True, options=("hybrid", "bm25")),
    "larger_k": _FixRule("below_cutoff", measured=True, options=("k",)),
    "expand_queries": _FixRule("vocabulary_mismatch"),
    "fine_tune_embedding": _FixRule("domain_mismatch", options=("embedding",)),
    "rerank": _FixRule("ranked_low", options=("rerank",)),
}


def can_search_fix(link: Link) -> bool:
    """Whether a better search can retrieve what the case missed: not where its query lost what it needs."""
    return link.failure != "lost_context"


def rank_fixes(run: Run, *, seed: int = 0) -> tuple[Fix, ...]:
    """Return the fixes of missed passages, best first.

    A fix whose whole forecast is above 0 comes first, by failures avoided; then the others by the
    missed passages that they would retrieve, of which an upper bound counts half; what was tried
    without a detectable gain comes last. A fix that the run's own evidence speaks against is left
    out: its forecast is below 0, or cases fail less after a miss.

    Parameters
    ----------
    run : Run
    seed : int
        Random seed of the forecast's interval.
    """
    model = EffectModel.from_run(run)
    matters = model.missed_matters()
    total = sum(len(link.missed) for link in run.links)
    whatif = whatif_of(run)
    is_listed = bool(summary_of(run).diagnosis.corpus)
    fixes = []
    for name, rule in FIXES.items():
        counts = {
            place: count
            for place, link in enumerate(run.links)
            if can_search_fix(link) and (count := sum(map(rule.applies, link.missed)))
        }
        retrieves = sum(counts.values())
        basis: Literal["measured_rank", "at_most", "whatif"]
        # Among the passages of the traces alone, a rank by words is only a lower bound.
        measured = rule.measured and (is_listed or name != "hybrid_search")
        basis = "measured_rank" if measured else "at_most"
        winner, tried = None, whatif.options if whatif else ()
        # The first is the best that what-if tried.
        option = next((o for o in tried if o.name.partition("=")[0] in rule.options), None)
        if option is not None and option.newly_retrieved is not None:
            basis, retrieves, avoided = "whatif", option.newly_retrieved, option.failures_avoided
            winner = next((m.winner for n, m in option.metrics.items() if "recall" in n), None)
            counts = counts or {place: 1 for place, link in enumerate(run.links) if link.missed}
        elif name == "larger_k":
            avoided = Estimate.missing(Reason(code="longer_context_unchecked"))
        elif measured:
            changes = []
            for place, n in counts.items():
                link = run.links[place]
                after = "hit" if n >= len(link.missed) else "partial"
                changes.append(ExposureChange(place, after, better=True, failed=link.failed))
            avoided = model.avoided(changes, seed)
        else:
            avoided = Estimate.missing(Reason(code="needs_whatif"))
        evidence = _evidence(avoided, matters)
        if winner == "":  # what-if saw no detectable difference in recall
            evidence = evidence and Reason(code="not_enough_data")
        if evidence is not None and retrieves and winner != "today":
            cases = tuple(run.links[place].case_id for place in counts)
            by = option.name if option and basis == "whatif" else None
            fixes.append(
                Fix(name, rule.kind, retrieves, total, basis, cases, avoided, evidence, by)
            )
    return tuple(sorted(fixes, key=_order))


def _evidence(avoided: Estimate, matters: Estimate) -> Reason | None:
    """What the run says of a fix; None if it speaks against it."""
    shown = matters if avoided.low is None or avoided.high is None else avoided
    if shown.low is None or shown.high is None:
        return avoided.reason_code or Reason(code="not_enough_data")
    if shown.high < 0:
        return None
    if shown.low <= 0:
        return Reason(code="not_enough_data")
    return avoided.reason_code or Reason(code="fix_gains")


def _order(fix: Fix) -> tuple[int, float, int]:
    if fix.evidence.code == "fix_gains":
        return 0, -(fix.avoided.value or 0.0), -fix.retrieves
    return 2 if fix.basis == "whatif" else 1, -fix.retrieves * fix.weight, -fix.retrieves
