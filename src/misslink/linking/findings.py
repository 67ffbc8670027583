"""What a run found, in numbers: how many answers fail, and whether missing passages explain it."""

from __future__ import annotations

from collections.abc import Sequence

from misslink.documents import replay_of
from misslink.render.headline import Findings, describe_findings
from misslink.retrieval import cluster_cases, unmeasured_reason
from misslink.stats import proportion
from misslink.stats.exposure import EXPOSURES, ExposedCases, exposure_risks, exposure_trend
from misslink.types import Link, Reason, Run, Trace, Verdict

LEVELS = {"miss": "none", "partial": "some", "hit": "all"}  # of the relevant passages
_FEW_CASES = 20  # below it counts are reported and nothing is inferred
_SIGNIFICANT = 0.05
_SMALL_FRACTION = (
    1 / 3
)  # of the failures at most, if perfect retrieval is not the first thing to do
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
    labelled = [link for link in run.links if link.retrieval in LEVELS]
    with_labels = {c.id for c in run.cases if c.relevant or c.relevant_any or c.evidence}
    unmeasured = (unmeasured_reason(t) for t in run.traces if t.case_id in with_labels)
    fails = {name: [link.failed for link in decided if link.retrieval == name] for name in LEVELS}
    by_exposure = _explain_by_exposure(run, decided, len(failed))
    return Findings(
        cases=len(run.cases),
        errors=count_errors(run.traces, run.verdicts),
        judged=any(link.failure for link in run.links),
        failed=proportion(len(failed), len(decided)),
        exposure={
            level: proportion(sum(map(bool, fails[name])), len(fails[name]))
            for name, level in LEVELS.items()
        },
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
    )


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


def _explain_by_exposure(run: Run, decided: Sequence[Link], failed: int) -> Reason | None:
    """Why answers fail, as far as the passages that reached the prompts can tell."""
    if not failed or len(decided) < _FEW_CASES:
        return None
    labelled = [link for link in decided if link.retrieval in LEVELS]
    if not labelled:
        inferred = sum(link.basis == "inferred" for link in decided)
        unknown = sum(link.unexplained for link in decided)
        matched = any(link.retrieval == "unlabelled" for link in run.links)
        return Reason(code="unlabelled", inferred=inferred, unknown=unknown, matched=matched)
    clusters = cluster_cases(run.cases)
    cases = ExposedCases(
        [EXPOSURES.index(LEVELS[link.retrieval]) for link in labelled],
        [float(bool(link.failed)) for link in labelled],
        [clusters.get(link.case_id, link.case_id) for link in labelled],
    )
    trend = exposure_trend(cases)
    if trend.p is not None and trend.p < _SIGNIFICANT and (trend.slope or 0) < 0:
        lacking = sum(bad for bad, _ in cases.table()[:2])
        return Reason(code="missing_passages", most=2 * lacking > failed)
    risks = exposure_risks(cases)
    fraction, gap = risks["attributable_fraction"], risks["risk_difference"]
    all_complete = len(labelled) == cases.table()[2][1]
    if not all_complete and fraction.high is not None and fraction.high < _SMALL_FRACTION:
        # Without a gap misses do not matter; with one they explain few failures.
        return Reason(code="generator" if (gap.value or 0) <= _SMALL_GAP else "few_associated")
    return Reason(code="too_few")
