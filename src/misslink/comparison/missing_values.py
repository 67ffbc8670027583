"""Count the cases without a value of a metric, and give the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any

from misslink.comparison.pairing import is_scored_only
from misslink.comparison.run_metrics import MetricValue, judged_readings
from misslink.documents import manifest_of
from misslink.parts import by_case, case_ids
from misslink.retrieval import case_needs, unmeasured_reason
from misslink.types import Reason, Run, Verdict

_MAX_REASONS = 3  # of one run
_LINK_METRICS = frozenset({"faithfulness", "correctness", "abstention"})


def count_missing_values(
    a: tuple[Run, MetricValue], b: tuple[Run, MetricValue], ids: Sequence[str]
) -> dict[str, Any] | None:
    """Count the cases without a value in one run or in both, with the most frequent reasons.

    Returns
    -------
    dict or None
        ``in_a``, ``in_b`` (only there), ``in_both`` and ``reasons``, each
        ``{"run", "reason", "cases"}``. None if no value is missing.
    """
    values = [value.of_case or {} for _, value in (a, b)]
    none_in_a, none_in_b = (
        {name for name in ids if case_values.get(name) is None} for case_values in values
    )
    if not none_in_a | none_in_b:
        return None
    reasons = []
    for letter, (run, value), missing in (("a", a, none_in_a), ("b", b, none_in_b)):
        reason_of = _reason_lookup(run, value.name)
        counts = Counter(reason_of(name) for name in ids if name in missing)
        reasons += [
            {"run": letter, "reason": reason, "cases": count}
            for reason, count in counts.most_common(_MAX_REASONS)
        ]
    return {
        "in_a": len(none_in_a - none_in_b),
        "in_b": len(none_in_b - none_in_a),
        "in_both": len(none_in_a & none_in_b),
        "reasons": reasons,
    }


def one_sided_missing_values(
    sides: Sequence[tuple[tuple[Run, MetricValue], tuple[Run, MetricValue]]], ids: Sequence[str]
) -> list[dict[str, Any]]:
    """List the cases with a value in one run only, by run and reason, most cases first.

    `sides` are the two runs with each metric. An entry has ``run`` (the one without the value),
    ``reason``, ``cases`` and ``metrics``.
    """
    groups: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for letter, mine in (("a", 0), ("b", 1)):
        failed = {t.case_id for t in sides[0][mine][0].traces if t.error is not None}
        for side in sides:
            (run, value), (_, other) = side[mine], side[1 - mine]
            reason_of = _reason_lookup(run, value.name)
            of_case, of_other = value.of_case or {}, other.of_case or {}
            for name in ids:
                if of_case.get(name) is None and of_other.get(name) is not None:
                    reason = _sentence("case_app_failed") if name in failed else reason_of(name)
                    if reason.startswith("failed: "):  # each with its own error
                        reason = _sentence("case_verdict_failed")
                    cases, metrics = groups.setdefault((letter, reason), ({}, {}))
                    cases[name] = metrics[value.name] = None
    entries = [
        {"run": letter, "reason": reason, "cases": list(cases), "metrics": list(metrics)}
        for (letter, reason), (cases, metrics) in groups.items()
    ]
    return sorted(entries, key=lambda entry: -len(entry["cases"]))


def _reason_lookup(run: Run, name: str) -> Callable[[str], str]:
    """A function that says why a case has no value of a metric."""
    readings = judged_readings(run)
    metric = name.removeprefix("coverage.")
    if metric in readings:
        return _verdict_reason(run, readings[metric][0])
    if is_scored_only(run):
        return lambda _: _sentence("not_in_table")
    if not name.startswith("link."):
        return _retrieval_reason(run)
    linked = set(case_ids(run.links))
    # On the other axes the failure mode may be known where they are not.
    failures = name.startswith("link.failures.")
    code = "inconclusive_failure" if failures else "no_such_value"
    silent, unlinked = map(_sentence, (code, "no_failure_mode"))
    return lambda case_id: silent if case_id in linked else unlinked


@cache
def _sentence(code: str) -> str:
    return str(Reason(code=code))


def _verdict_reason(run: Run, metric: str) -> Callable[[str], str]:
    verdicts = {score.case_id: score for score in run.scores if score.metric == metric}

    def reason(case_id: str) -> str:
        verdict = verdicts.get(case_id)
        if verdict is None and is_scored_only(run):
            return _sentence("not_in_table")
        if verdict is None:
            return _sentence("case_without_verdict" if run.verdicts else "not_judged")
        if verdict.status == "scored":
            return _sentence("verdict_without_part")
        return f"{verdict.status}: {verdict.reason}"

    return reason


def _retrieval_reason(run: Run) -> Callable[[str], str]:
    traces = by_case(run.traces)
    cases = by_case(run.cases)

    def reason(case_id: str) -> str:
        trace = traces.get(case_id)
        if not case_needs(cases[case_id], trace.retrieved if trace else ()):
            return _sentence("no_relevant_label")
        if trace is None:
            return _sentence("case_without_trace")
        return unmeasured_reason(trace) or _sentence("case_not_measured")

    return reason


def unmeasured_cases(run: Run) -> dict[str, str]:
    """Return the cases in which nothing could be measured, with the code of the reason.

    A mean leaves them out, so an app that fails on hard questions looks better.
    """
    reasons = dict.fromkeys(case_ids(run.cases), "no_value" if is_scored_only(run) else "no_trace")
    for trace in run.traces:
        if trace.error is not None:
            reasons[trace.case_id] = "app_failed"
        elif unmeasured_reason(trace):
            reasons[trace.case_id] = "retrieval_unknown"
        else:
            reasons.pop(trace.case_id, None)
    return reasons


def newly_unmeasured(
    run: Run, value: MetricValue, before: tuple[Run, MetricValue] | None, both: Collection[str]
) -> dict[str, str]:
    """Return the unmeasured cases that a metric leaves out, with the reason.

    With `before`, only cases in `both` that the metric did not leave out there.
    """
    missing = _left_out(run, value)
    if before is None:
        return missing
    left_out, values = _left_out(*before), before[1].of_case
    return {
        name: reason
        for name, reason in missing.items()
        if name in both
        and (name not in left_out if values is None else values.get(name) is not None)
    }


def _left_out(run: Run, value: MetricValue) -> dict[str, str]:
    if value.of_case is None and not value.name.startswith(("link.", "latency")):
        return {}
    values = value.of_case or {}
    return {name: why for name, why in unmeasured_cases(run).items() if values.get(name) is None}


def unmeasured_notes(run: Run, value: MetricValue) -> Iterator[Reason]:
    """Yield a note if a metric leaves unmeasured cases out."""
    if reasons := newly_unmeasured(run, value, None, ()):
        counts = Counter(reasons.values())
        yield Reason(code="unmeasured_left_out", metric=value.name, reasons=counts)


def judged_metrics_behind(run: Run, name: str) -> frozenset[str]:
    """Return the judged metrics whose verdicts a metric depends on."""
    readings = judged_readings(run)
    if name in readings:
        return frozenset({readings[name][0]})
    group, _, metric_path = name.partition(".")
    if group == "coverage":
        return frozenset({metric_path})
    return (
        _LINK_METRICS
        if group == "link" and not metric_path.startswith("retrieval.")
        else frozenset()
    )


def unjudged_cases(run: Run, metrics: AbstractSet[str]) -> frozenset[str]:
    """Return the cases for which an unfinished run never asked the judge about one of `metrics`.

    A verdict that is skipped because there is nothing to judge has no prompt, or others of the
    same reply; a skipped question has a prompt and no reply.
    """
    if not manifest_of(run).unfinished:
        return frozenset()
    answered = {
        (verdict.case_id, verdict.prompt.name)
        for verdict in run.verdicts  # whole: a reply may be its text alone
        if verdict.prompt and _has_reply(verdict)
    }
    return frozenset(
        verdict.case_id
        for verdict in run.scores
        if verdict.metric in metrics
        and verdict.status == "skipped"
        and verdict.prompt is not None
        and (verdict.case_id, verdict.prompt.name) not in answered
    )


def _has_reply(verdict: Verdict) -> bool:
    return verdict.status != "skipped" or verdict.raw is not None or verdict.usage is not None


def unfinished_judging(unjudged: Collection[str], unknown: str, run: str = "this run") -> Reason:
    """A gate fails because the judge was not asked about all cases of a run."""
    return Reason(code="unfinished_judging", run=run, unjudged=len(unjudged), unknown=unknown)
