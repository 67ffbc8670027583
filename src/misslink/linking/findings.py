"""What a run found, in numbers: how many answers fail, and whether missing passages explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.documents import replay_of, summary_of, whatif_of
from misslink.linking.association import failed_share
from misslink.linking.whatif.forecast import EffectModel, ExposureChange
from misslink.render.format import CLUSTERED_SHARE
from misslink.render.headline import Findings, describe_findings
from misslink.retrieval import cluster_cases, unmeasured_reason
from misslink.retrieval.outcomes import EXPOSURE_BY_LABELS
from misslink.stats.exposure import EXPOSURES, ExposedCases, exposure_risks, exposure_trend
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

_FEW_CASES = 20  # below it counts are reported and nothing is inferred
_SIGNIFICANT = 0.05
# Of the failures at most, if perfect retrieval is not the first thing to do.
_SMALL_FRACTION = 1 / 3
_SMALL_GAP = 0.1  # between the risks of none and all, as a share of the cases
_DECIDING_METRICS = ("faithfulness", "correctness")


def describe_run(run: Run) -> str:
    """Return the headline of a run for page, terminal, markdown and notebook."""
    return " ".join(describe_findings(find(run)))


def find(run: Run) -> Findings:
    """Compute the findings of a run from its links, verdicts and replay."""
    decided = [link for link in run.links if link.failed is not None]
    failed = [link for link in decided if link.failed]
    lacking = [link for link in failed if link.retrieval in ("miss", "partial")]
    unsupported, compared, supported, contradicted = _count_claims(run, lacking)
    labelled = [link for link in run.links if link.retrieval in EXPOSURE_BY_LABELS]
    with_labels = {c.id for c in run.cases if c.relevant or c.relevant_any or c.evidence}
    unmeasured = (unmeasured_reason(t) for t in run.traces if t.case_id in with_labels)
    clusters = cluster_cases(run.cases)
    exposed = [link for link in decided if link.retrieval in EXPOSURE_BY_LABELS]
    cases = ExposedCases(
        [EXPOSURES.index(EXPOSURE_BY_LABELS[link.retrieval]) for link in exposed],
        [float(bool(link.failed)) for link in exposed],
        [clusters.get(link.case_id, link.case_id) for link in exposed],
    )
    risks = exposure_risks(cases)
    by_exposure = _explain_by_exposure(run, decided, cases, risks)
    usage = summary_of(run).usage
    return Findings(
        cases=len(run.cases),
        errors=count_errors(run.traces, run.verdicts),
        judged=any(link.failure for link in run.links),
        failed=_as_share(failed_share(decided, clusters)),
        exposure={level: _as_share(risks[f"risk_given_{level}"]) for level in EXPOSURES},
        why=by_exposure and (_explain_by_replay(run) or by_exposure),
        by_exposure=by_exposure,
        lacking=len(lacking),
        unsupported_claims=unsupported,
        compared_claims=compared,
        supported_by_missed=supported,
        contradicted_by_missed=contradicted,
        labelled=len(labelled),
        incomplete=sum(link.retrieval != "hit" for link in labelled),
        unmeasured=None if labelled else next(filter(None, unmeasured), None),
        not_asked=usage.not_asked if usage else 0,
        stopped_by=usage.stopped_by if usage else None,
    )


def _as_share(estimate: Estimate) -> Estimate:
    clustered = estimate.method.startswith("cluster")
    return estimate.model_copy(update={"method": CLUSTERED_SHARE}) if clustered else estimate


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


def _count_claims(run: Run, links: Sequence[Link]) -> tuple[int, int, int, int]:
    """Count the unsupported claims of these cases: all, compared, supported, contradicted by a miss."""
    of_case = {v.case_id: v.claims for v in run.verdicts if v.metric == "faithfulness"}
    unsupported = {
        (link.case_id, index)
        for link in links
        for index, claim in enumerate(of_case.get(link.case_id, ()))
        if claim.support != "supported"
    }
    # A tie may also be of a claim that the prompt supports and the reference contradicts.
    ties = {
        (link.case_id, tie.index): tie.relation
        for link in links
        for tie in link.claims
        if tie.relation != "unrelated"
    }
    known = {
        link.case_id for link in links if all(miss.text or miss.evidence for miss in link.missed)
    }
    compared = {claim for claim in unsupported if claim[0] in known or claim in ties}
    relations = [ties[claim] for claim in unsupported & ties.keys()]
    supported = relations.count("would_support")
    return len(unsupported), len(compared), supported, len(relations) - supported


def _explain_by_replay(run: Run) -> Reason | None:
    replay = replay_of(run)
    causal = replay.causal_fraction if replay else None
    if causal is None or causal.value is None:
        return None
    return Reason(code="replayed", fraction=causal)


def _explain_by_exposure(
    run: Run, decided: Sequence[Link], cases: ExposedCases, risks: Mapping[str, Estimate]
) -> Reason | None:
    """Why answers fail, as far as the passages that reached the prompts can tell."""
    failed = sum(bool(link.failed) for link in decided)
    if not failed or len(decided) < _FEW_CASES:
        return None
    if all(link.retrieval == "hit" for link in decided if link.failed):
        by_generator = sum(link.owner == "generator" for link in decided if link.failed)
        return Reason(code="complete", generator=2 * by_generator > failed)
    if not cases.bad:
        inferred = sum(link.basis == "inferred" for link in decided)
        unknown = sum(link.unexplained for link in decided)
        matched = any(link.retrieval == "unlabelled" for link in run.links)
        return Reason(code="unlabelled", inferred=inferred, unknown=unknown, matched=matched)
    trend = exposure_trend(cases)
    if trend.p is not None and trend.p < _SIGNIFICANT and (trend.slope or 0) < 0:
        lacking = sum(bad for bad, _ in cases.table()[:2])
        return Reason(code="missing_passages", most=2 * lacking > failed)
    fraction, gap = risks["attributable_fraction"], risks["risk_difference"]
    all_complete = len(cases.bad) == cases.table()[2][1]
    if not all_complete and fraction.high is not None and fraction.high < _SMALL_FRACTION:
        # Without a gap misses do not matter; with one they explain few failures.
        return Reason(code="generator" if (gap.value or 0) <= _SMALL_GAP else "few_associated")
    return Reason(code="too_few")


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
