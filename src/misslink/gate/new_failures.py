"""Cases that fail now and passed in the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from misslink.compare.missing_values import (
    judged_metrics_behind,
    unfinished_judging,
    unjudged_cases,
    unmeasured_cases,
)
from misslink.compare.run_metrics import (
    LINK_AXES,
    ROUNDING_TOLERANCE,
    UNKNOWN_OUTCOMES,
    is_rank_metric,
    metric_value,
)
from misslink.errors import InputError
from misslink.failure_modes import FAILURES
from misslink.gate.baseline_diff import BaselineDiff
from misslink.gate.criteria import (
    Gate,
    NewFailures,
    matches_filter,
    no_case_reason,
    select_gate_cases,
)
from misslink.gate.outcome import GateDecision, GateOutcome
from misslink.render.format import metric_cutoff, question_count
from misslink.render.reasons import describe_reason
from misslink.retrieval import case_needs, match_needs, retrieval_cutoff
from misslink.types import Case, Estimate, Link, Reason, RetrievalMiss, Run, Trace


def decide_new_failures(diff: BaselineDiff, gate: Gate, spec: NewFailures) -> GateOutcome:
    """Count the cases with a failure mode, or retrieval outcome, that they did not have before.

    A case that the baseline does not have is new. A case that is inconclusive now and did not fail
    before may have failed: the gate passes only if so many are allowed.

    Raises
    ------
    InputError
        The baseline has no cases.
    """
    baseline, run = diff.baseline_run, diff.run
    if diff.baseline is None:
        reason = Reason(code="no_baseline")
        missing = Estimate.missing(reason)
        return GateOutcome(
            gate,
            "new_failures",
            passed=True,
            estimate=missing,
            reasons=(reason,),
            lower_is_better=True,
        )
    if baseline is None:
        raise diff.criteria.error(
            gate, "it counts cases, and a summary.json has none; name a run folder as --baseline"
        )
    axis, failing = "failures", frozenset({spec.failure}) if spec.failure else FAILURES
    if spec.retrieval is not None:
        axis, failing = "retrieval", frozenset({spec.retrieval})
    selected = {case.id for case in run.cases if matches_filter(case, spec)}
    outcomes = _outcomes_by_case(run, axis, selected)
    earlier = _outcomes_by_case(baseline, axis, diff.both)
    known_outcomes = {
        name: value for name, value in outcomes.items() if value not in UNKNOWN_OUTCOMES
    }
    new = tuple(
        name
        for name, value in known_outcomes.items()
        if value in failing and earlier.get(name) not in failing
    )
    unknown = tuple(
        name
        for name in outcomes
        if name not in known_outcomes
        and earlier.get(name, "inconclusive") not in {*UNKNOWN_OUTCOMES, *failing}
    )
    count = float(len(new))
    no_interval = "a count has no interval"
    outcome = GateOutcome(
        gate=gate,
        metric="new_failures",
        passed=len(new) + len(unknown) <= spec.at_most,
        estimate=Estimate(
            value=count,
            low=None,
            high=None,
            n=len(known_outcomes),
            method="count",
            reason=no_interval,
        ),
        reasons=(
            Reason(
                code="new_failures",
                n=len(new),
                allowed=spec.at_most,
                failure=spec.failure,
                retrieval=spec.retrieval,
            ),
        ),
        notes=(
            *_case_notes(diff, new, len(outcomes) - len(known_outcomes)),
            *(diff.judged_otherwise if axis == "failures" else ()),
        ),
        cases=(*new, *unknown),
        lower_is_better=True,
    )
    if not selected:
        return replace(outcome, passed=False, reasons=(no_case_reason(spec, run),))
    metrics = judged_metrics_behind(run, f"link.{axis}")
    if unjudged := unjudged_cases(select_gate_cases(run, spec), metrics):
        reason = unfinished_judging(unjudged, "who fails")
        return replace(outcome, passed=False, reasons=(reason,))
    unjudged = unjudged_cases(baseline, metrics)
    unsettled = [n for n in new if n in unjudged and earlier.get(n) in UNKNOWN_OUTCOMES]
    if unsettled:
        reason = unfinished_judging(unsettled, "who failed before", "the baseline")
        certain = len(new) - len(unsettled) + len(unknown)
        if certain <= spec.at_most < certain + len(unsettled):
            return replace(outcome, reasons=(reason,))
        sentence = describe_reason(reason)
        note = f"{sentence[:1].upper()}{sentence[1:]}."
        outcome = replace(outcome, notes=(*outcome.notes, note))
    if not known_outcomes:
        reason = Reason(code="outcomes_unknown", axis=axis)
        return replace(outcome, passed=False, reasons=(reason,))
    if unknown:
        reason = _inconclusive_reason(run, axis, unknown)
        return replace(outcome, reasons=(*outcome.reasons, reason))
    return outcome


def _outcomes_by_case(run: Run, axis: str, ids: Collection[str]) -> dict[str, str]:
    outcome_of = LINK_AXES[axis][1]
    return {link.case_id: outcome_of(link) for link in run.links if link.case_id in ids}


def _inconclusive_reason(run: Run, axis: str, unknown: tuple[str, ...]) -> Reason:
    """More cases may have failed."""
    reasons = unmeasured_cases(run)
    missing = Counter(reasons[name] for name in unknown if name in reasons)
    return Reason(code="inconclusive_now", n=len(unknown), axis=axis, reasons=dict(missing))


def _case_notes(diff: BaselineDiff, new: tuple[str, ...], inconclusive: int) -> list[str]:
    notes = []
    if added := sum(name not in diff.both for name in new):
        are = "is" if added == 1 else "are"
        notes.append(f"{question_count(added)} of these {are} not in the baseline.")
    if inconclusive:
        are = "is" if inconclusive == 1 else "are"
        notes.append(f"{question_count(inconclusive)} {are} inconclusive now and not counted.")
    return notes


@dataclass(frozen=True)
class PassageMove:
    """A relevant passage with a lower rank now; None if it is not retrieved."""

    passage_id: str
    now: int | None
    before: int


@dataclass(frozen=True)
class RegressedCase:
    """A case to look at, with what changed.

    Parameters
    ----------
    case : Case
    newly_missed : tuple of RetrievalMiss
        Passages missed now and not in the baseline; without a baseline, all missed passages.
    now, before : str
        Its failure mode; "" if unknown.
    trace : Trace or None
        In the run.
    moved : tuple of PassageMove
        For a rank metric: passages with a lower rank than in the baseline.
    values : pair of float or None
        Of the metric in the baseline and in the run.
    answer : str
        The outcome of the answer if it changed; else "".
    """

    case: Case
    newly_missed: tuple[RetrievalMiss, ...]
    now: str
    before: str
    trace: Trace | None = None
    moved: tuple[PassageMove, ...] = ()
    values: tuple[float, float] | None = None
    answer: str = ""


@dataclass(frozen=True)
class CaseGroup:
    """Cases of one category, tier or value of a tag: their mean now and before."""

    name: str
    cases: int
    now: float
    before: float | None


def regressed_cases(decision: GateDecision, outcome: GateOutcome) -> list[RegressedCase]:
    """Return the cases of an outcome, those to look at first."""
    cases = {case.id: case for case in decision.run.cases}
    now = {link.case_id: link for link in decision.run.links}
    links = decision.baseline.links if decision.baseline else ()
    earlier = {link.case_id: link for link in links if link.case_id in decision.both}
    traces, before = _traces_by_case(decision.run), _traces_by_case(decision.baseline)
    values = [
        _value_by_case(run, outcome) if run else {} for run in (decision.baseline, decision.run)
    ]
    cases_to_show = []
    for name in outcome.cases:
        link, previous = now.get(name), earlier.get(name)
        compared = name in decision.both and all(name in by_case for by_case in values)
        changed_answer = link and previous and link.answer != previous.answer
        entry = RegressedCase(
            cases[name],
            _newly_missed(link, previous),
            (link.failure or "inconclusive") if link else "",
            (previous.failure or "inconclusive") if previous else "",
            traces.get(name),
            values=(values[0][name], values[1][name]) if compared else None,
            answer=link.answer if link and changed_answer else "",
        )
        if is_rank_metric(outcome.metric) and compared:
            entry = replace(
                entry, moved=_moved_passages(entry, before.get(name), metric_cutoff(outcome.metric))
            )
        cases_to_show.append(entry)
    return cases_to_show


def describe_location(miss: RetrievalMiss, trace: Trace | None, k: int) -> str:
    """Where a missed passage is now, in words that follow its name; `k` is the usual cutoff."""
    takes = retrieval_cutoff(trace, k) if trace else k
    seen = trace is not None and trace.prompted is not None
    if miss.status == "dropped_from_prompt":
        return "was retrieved, and dropped before the prompt"
    if miss.true_rank is not None:
        decides = f", and the app takes {takes}" if miss.true_rank > takes else ""
        return f"is at rank {miss.true_rank} now{decides}"
    if miss.status == "not_indexed":
        return "is not in the index now"
    if miss.depth:
        return f"is not among the first {miss.depth} now"
    return "did not reach the prompt" if seen else "was not retrieved"


def regressed_groups(decision: GateDecision, outcome: GateOutcome) -> list[CaseGroup]:
    """Return the groups of compared cases that got worse, or without a baseline the lowest.

    A group of all cases, or without a value, is left out.
    """
    now = _value_by_case(decision.run, outcome)
    before = _value_by_case(decision.baseline, outcome) if decision.baseline else {}
    earlier = {name: value for name, value in before.items() if name in decision.both}
    compared = now.keys() & earlier.keys() if decision.baseline else now.keys()
    cases = [case for case in decision.run.cases if case.id in compared]
    groups = []
    for name, ids in _group_members(cases).items():
        if len(ids) == len(cases):
            continue
        mean_now = sum(now[case_id] for case_id in ids) / len(ids)
        mean_before = sum(earlier[case_id] for case_id in ids) / len(ids) if earlier else None
        groups.append(CaseGroup(name, len(ids), mean_now, mean_before))
    sign = 1.0 if outcome.lower_is_better else -1.0
    if earlier:
        worse = [(sign * (g.now - g.before), g) for g in groups if g.before is not None]
        worse = [(size, g) for size, g in worse if size > ROUNDING_TOLERANCE]
        return [g for _, g in sorted(worse, key=lambda pair: -pair[0])]
    whole = outcome.estimate.value
    if whole is None:
        return []
    return sorted(
        (g for g in groups if sign * (g.now - whole) > ROUNDING_TOLERANCE),
        key=lambda g: -sign * g.now,
    )


def _newly_missed(link: Link | None, earlier: Link | None) -> tuple[RetrievalMiss, ...]:
    if link is None:
        return ()
    missed_before = {miss.passage_id for miss in earlier.missed} if earlier else set()
    fresh = {miss.passage_id: miss for miss in link.missed if miss.passage_id not in missed_before}
    return tuple(fresh.values())


def _traces_by_case(run: Run | None) -> dict[str, Trace]:
    return {trace.case_id: trace for trace in run.traces} if run else {}


def _moved_passages(
    entry: RegressedCase, before: Trace | None, k: int | None
) -> tuple[PassageMove, ...]:
    """Relevant passages within the cutoff in the baseline that have a lower rank now."""
    if entry.trace is None or before is None:
        return ()
    needs = {
        need.id: need
        for alternative in case_needs(entry.case, before.retrieved)
        for need in alternative
    }
    ranks = {hit.need.id: hit.rank for hit in match_needs([*needs.values()], entry.trace.retrieved)}
    return tuple(
        PassageMove(hit.passages[-1].id, ranks.get(hit.need.id), hit.rank)
        for hit in match_needs([*needs.values()], before.retrieved)
        if (k is None or hit.rank <= k) and not 0 < ranks.get(hit.need.id, 0) <= hit.rank
    )


def _value_by_case(run: Run, outcome: GateOutcome) -> dict[str, float]:
    try:
        values = metric_value(select_gate_cases(run, outcome.gate), outcome.metric).of_case or {}
    except InputError:  # a count of cases has no value per case
        return {}
    return {name: value for name, value in values.items() if value is not None}


def _group_members(cases: Iterable[Case]) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {}
    for case in cases:
        axes = {**case.tags}
        axes |= {"category": case.category} if case.category is not None else {}
        axes |= {"tier": case.tier} if case.tier is not None else {}
        for axis, value in axes.items():
            members.setdefault(f"{axis}: {value}", []).append(case.id)
    return members
