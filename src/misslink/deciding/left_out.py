"""Why a case has no value of a metric, so that nobody need guess what was left out.

Cases that one run alone lacks are told first: what is compared is then what is left of that run,
which may well be its easy cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from misslink.deciding.numbers import judged_numbers
from misslink.deciding.values import Value
from misslink.retrieval import needs, why_unmeasured
from misslink.types import Run

__all__ = ["lacking", "left_out"]

_MOST = 3  # reasons of a run that are told
_CAUSES = "link.causes."
_FAILED, _NO_VERDICT = "the app failed", "the verdict failed"


def left_out(
    a: tuple[Run, Value], b: tuple[Run, Value], ids: Sequence[str]
) -> dict[str, Any] | None:
    """Count the cases without a value in one run or in both, and say why.

    Returns
    -------
    dict or None
        ``in_a``, ``in_b``: cases that only this run has no value for; ``in_both``; ``reasons``:
        the most frequent ones, each ``{"run", "reason", "cases"}``. None where nothing is left out.
    """
    sides = [value.of_case or {} for _, value in (a, b)]
    none_in_a, none_in_b = ({name for name in ids if of.get(name) is None} for of in sides)
    if not none_in_a | none_in_b:
        return None
    reasons = []
    for letter, (run, value), gone in (("a", a, none_in_a), ("b", b, none_in_b)):
        why = _reasons(run, value.name)
        counted = Counter(why(name) for name in ids if name in gone)
        reasons += [
            {"run": letter, "reason": reason, "cases": count}
            for reason, count in counted.most_common(_MOST)
        ]
    return {
        "in_a": len(none_in_a - none_in_b),
        "in_b": len(none_in_b - none_in_a),
        "in_both": len(none_in_a & none_in_b),
        "reasons": reasons,
    }


def lacking(
    a: tuple[Run, Sequence[Value]], b: tuple[Run, Sequence[Value]], ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Say which cases have a value in one run and none in the other, the most cases first.

    Parameters
    ----------
    a, b : pair of Run and sequence of Value
        The same numbers of both, in the same order.
    ids : sequence of str
        The cases compared.

    Returns
    -------
    list of dict
        By run and reason: ``run`` ('a' or 'b', the one without the value), ``reason``, ``cases``
        (ids) and ``metrics`` (of which they have no value). Empty where nothing is lacking.
    """
    found = []
    for letter, (run, values), others in (("a", a, b[1]), ("b", b, a[1])):
        failed = {trace.case_id for trace in run.traces if trace.error is not None}
        by: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
        for value, other in zip(values, others, strict=True):
            why = _reasons(run, value.name)
            mine, theirs = value.of_case or {}, other.of_case or {}
            for name in ids:
                if mine.get(name) is None and theirs.get(name) is not None:
                    reason = _FAILED if name in failed else why(name)
                    if reason.startswith("failed: "):  # each may have failed in its own way
                        reason = _NO_VERDICT
                    cases, metrics = by.setdefault(reason, ({}, {}))
                    cases[name] = metrics[value.name] = None
        found += [
            {"run": letter, "reason": reason, "cases": list(cases), "metrics": list(metrics)}
            for reason, (cases, metrics) in by.items()
        ]
    return sorted(found, key=lambda one: -len(one["cases"]))


def _reasons(run: Run, name: str) -> Callable[[str], str]:
    """How to say why a case has no value, for one metric."""
    numbers = judged_numbers(run)
    metric = name.removeprefix("coverage.")
    if metric in numbers:
        return _of_verdicts(run, numbers[metric][0])
    return _of_links(run, name) if name.startswith("link.") else _of_retrieval(run)


def _of_verdicts(run: Run, metric: str) -> Callable[[str], str]:
    verdicts = {v.case_id: v for v in run.verdicts if v.metric == metric}

    def why(case_id: str) -> str:
        verdict = verdicts.get(case_id)
        if verdict is None:
            return "there is no verdict" if run.verdicts else "no judge was asked"
        if verdict.status == "scored":
            return "its verdict does not have this part"
        return f"{verdict.status}: {verdict.reason}"

    return why


def _of_links(run: Run, metric: str) -> Callable[[str], str]:
    known = {link.case_id for link in run.links}
    # Of the other axes the cause may well be decided where they are not.
    silent = "its cause is undecided" if metric.startswith(_CAUSES) else "its link does not say"
    return lambda name: silent if name in known else "it has no link"


def _of_retrieval(run: Run) -> Callable[[str], str]:
    traces = {trace.case_id: trace for trace in run.traces}
    cases = {case.id: case for case in run.cases}

    def why(case_id: str) -> str:
        trace = traces.get(case_id)
        if not needs(cases[case_id], trace.retrieved if trace else ()):
            return "nothing relevant is listed that could be looked for"
        if trace is None:
            return "there is no trace"
        return why_unmeasured(trace) or "it was not measured"

    return why
