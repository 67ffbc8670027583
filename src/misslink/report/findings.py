"""What a run found: how many answers fail, whose failures they are, and what is associated with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import is_not

from misslink.calibration.labelled_failures import (
    apply_labels,
    correct_failed,
    count_judged_too,
    find_labelled_failures,
)
from misslink.documents import Replay, manifest_of, replay_of, summary_of
from misslink.failure_modes import FAILURE_MODES
from misslink.linking.association import failed_share
from misslink.linking.findings import count_errors, leading_owners
from misslink.parts import by_case, select_items
from misslink.render.format import CLUSTERED_SHARE
from misslink.render.headline import Findings, describe_findings
from misslink.retrieval import cluster_cases, unmeasured_reason
from misslink.retrieval.outcomes import EXPOSURE_BY_LABELS
from misslink.selftests.document import selftest_of
from misslink.stats.classification import ErrorRates
from misslink.stats.exposure import EXPOSURES, ExposedCases, exposure_risks, exposure_trend
from misslink.stats.prevalence import rogan_gladen
from misslink.types import Estimate, Link, Outcome, Reason, Run, Trace

# The stages, and the reasons in the evidence, that say more than the failure mode they lead to.
STAGE_MODES = {"filter": ("retrieval_miss",), "rank": ("retrieval_miss",)}
REASON_MODES = {
    "passage_cut": "dropped_from_prompt",
    "passage_altered": "dropped_from_prompt",
    "stale_passage": "conflicting_sources",
    "answered_nothing": "over_refused",
}
_FEW_CASES = 20  # below it counts are reported and nothing is inferred
_SIGNIFICANT = 0.05
# Of the failures at most, if perfect retrieval is not the first thing to do.
_SMALL_FRACTION = 1 / 3
_SMALL_GAP = 0.1  # between the risks of none and all, as a share of the cases


def describe_run(run: Run) -> str:
    """Return the headline of a run for page, terminal, markdown and notebook."""
    return " ".join(describe_findings(find(run)))


def find(run: Run) -> Findings:
    """Return the findings of a run from its links, labels, verdicts and replay.

    The links are those of the judge; labels are applied here.
    """
    # A copy of a run may share what was found, but not what it was found in.
    parts = [getattr(run, name) for name in Run.model_fields if name != "summary"]
    usage = run.summary.get("usage")  # by content: each summary that is written has one of its own
    earlier, counted, findings = run.parsed.get("findings", ([], None, None))
    if len(earlier) != len(parts) or any(map(is_not, earlier, parts)) or counted != usage:
        findings = _find(run)
        run.parsed["findings"] = parts, usage, findings
    return findings  # type: ignore[no-any-return]


def _find(run: Run) -> Findings:
    labelled_cases, corrected = find_labelled_failures(run), correct_failed(run)
    run = apply_labels(run)
    decided = [link for link in run.outcomes if link.failed is not None]
    failed = [link for link in decided if link.failed]
    labelled = [link for link in run.outcomes if link.retrieval in EXPOSURE_BY_LABELS]
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
    by_exposure = _explain_by_exposure(decided, cases, risks)
    usage, traces = summary_of(run).usage, by_case(run.traces)
    errors, most_frequent_error = count_errors(run.traces, run.scores)
    of_failed, of_labelled = (
        select_items(run.links, {link.case_id for link in those}) for those in (failed, labelled)
    )
    return Findings(
        cases=len(run.cases),
        errors=errors,
        most_frequent_error=most_frequent_error,
        judged=any(link.failure for link in run.outcomes),
        failed=_as_share(failed_share(decided, clusters)),
        exposure={level: _as_share(risks[f"risk_given_{level}"]) for level in EXPOSURES},
        why=_explain_by_replay(run) or by_exposure,
        by_exposure=by_exposure,
        owners=Counter(link.owner or "unknown" for link in failed),
        blamed=leading_owners(run),
        losses=Counter((link.owner or "unknown", loss_code(link)) for link in of_failed),
        labelled=len(labelled),
        incomplete=sum(link.retrieval != "hit" for link in labelled),
        cut=sum(_is_cut(link, traces) for link in of_labelled),
        corrected=corrected if corrected.value is not None else None,
        labels=len(labelled_cases),
        judged_too=count_judged_too(run) if labelled_cases else 0,
        by_selftest=_correct_by_selftest(run, len(failed), len(decided)),
        read_first=_surest_failures(run, failed, labelled_cases),
        unmeasured=None if labelled else next(filter(None, unmeasured), None),
        not_asked=usage.not_asked if usage else 0,
        stopped_by=usage.stopped_by if usage else None,
    )


def _correct_by_selftest(run: Run, flagged: int, decided: int) -> Estimate | None:
    """The share that fails, by the errors of this judge on planted faults and harmless changes."""
    tested = selftest_of(run)
    if tested is None or tested.judge != manifest_of(run).judge or not decided:
        return None
    alarm = tested.false_alarm
    if None in (tested.found.low, tested.found.high, alarm.value, alarm.low, alarm.high):
        return None
    passes = rogan_gladen(decided - flagged, decided, ErrorRates(_complement(alarm), tested.found))
    return None if passes.value is None else _complement(passes)


def _complement(share: Estimate) -> Estimate:
    value, low, high = (1 - (end or 0.0) for end in (share.value, share.high, share.low))
    return share.model_copy(update={"value": value, "low": low, "high": high})


def _surest_failures(
    run: Run, failed: Sequence[Outcome], labelled: Mapping[str, bool]
) -> tuple[str, ...]:
    """The flagged cases without a label, by the least probability of a good answer."""
    chance = {
        verdict.case_id: verdict.probability if verdict.probability is not None else verdict.value
        for verdict in run.scores
        if verdict.metric == "faithfulness"
    }
    waiting = [link.case_id for link in failed if link.case_id not in labelled]
    known = {case_id: chance.get(case_id) for case_id in waiting}
    return tuple(sorted(known, key=lambda case_id: (known[case_id] is None, known[case_id])))


def loss_code(link: Link) -> str:
    """The stage or the reason of a loss, where the owner rests on one; else the mode."""
    stages = (need.lost_at for need in link.needs if need.true_rank or need.lost_at != "rank")
    fits = (stage for stage in stages if stage and link.failure in STAGE_MODES.get(stage, ()))
    reasons = (item.reason_code.removesuffix("_for_claim") for item in link.evidence)
    told = (code for code in reasons if REASON_MODES.get(code) == link.failure)
    return next(fits, None) or next(told, link.failure or "inconclusive")


def _is_cut(link: Link, traces: Mapping[str, Trace]) -> bool:
    """Whether a part of each missed passage reached the prompt."""
    trace = traces.get(link.case_id) if link.missed else None
    return trace is not None and all(miss.passage_id in trace.shown for miss in link.missed)


def _as_share(estimate: Estimate) -> Estimate:
    clustered = estimate.method.startswith("cluster")
    return estimate.model_copy(update={"method": CLUSTERED_SHARE}) if clustered else estimate


def _explain_by_replay(run: Run) -> Reason | None:
    replay = replay_of(run)
    causal = replay.causal_fraction if replay else None
    if replay is None or causal is None:
        return None
    if causal.value is None:
        return replayed_owners(replay) if replay.owners else None
    return Reason(code="replayed", fraction=causal)


def replayed_owners(replay: Replay) -> Reason | None:
    """How many replayed failures have a confirmed owner, and which; None without failures."""
    failures = [case for case in replay.cases if case.failure != "passed"]
    confirmed = [case for case in failures if case.confirmed and case.failure in FAILURE_MODES]
    others = sum(case.owner != FAILURE_MODES[case.failure].owner for case in confirmed)
    owners = {owner.replace("_", " "): count for owner, count in replay.owners.items()}
    of = len(failures)
    return Reason(code="replayed_owners", owners=owners, of=of, others=others) if of else None


def _explain_by_exposure(
    decided: Sequence[Outcome], cases: ExposedCases, risks: Mapping[str, Estimate]
) -> Reason | None:
    """Why answers fail, as far as the passages that reached the prompts can tell."""
    failed = sum(bool(link.failed) for link in decided)
    if not failed or len(decided) < _FEW_CASES:
        return None
    if all(link.retrieval == "hit" for link in decided if link.failed):
        return Reason(code="complete")
    if not cases.bad:
        inferred = sum(link.basis == "inferred" for link in decided)
        return Reason(code="unlabelled", inferred=inferred) if inferred else None
    trend = exposure_trend(cases)
    if trend.p is not None and trend.p < _SIGNIFICANT and (trend.slope or 0) < 0:
        return Reason(code="missing_passages")
    fraction, gap = risks["attributable_fraction"], risks["risk_difference"]
    all_complete = len(cases.bad) == cases.table()[2][1]
    if not all_complete and fraction.high is not None and fraction.high < _SMALL_FRACTION:
        # Without a gap misses do not matter; with one they explain few failures.
        return Reason(code="generator" if (gap.value or 0) <= _SMALL_GAP else "few_associated")
    return None
