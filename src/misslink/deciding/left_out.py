"""Why a case has no value of a metric, so that nobody need guess what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from misslink.deciding.numbers import judged_numbers
from misslink.deciding.values import Value
from misslink.retrieval import needs, why_unmeasured
from misslink.types import Run

__all__ = ["left_out"]

_MOST = 3  # reasons of a run that are told


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
    for letter, (run, value), lacking in (("a", a, none_in_a), ("b", b, none_in_b)):
        why = _reasons(run, value.name)
        counted = Counter(why(name) for name in ids if name in lacking)
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


def _reasons(run: Run, name: str) -> Callable[[str], str]:
    """How to say why a case has no value, for one metric."""
    numbers = judged_numbers(run)
    metric = name.removeprefix("coverage.")
    if metric in numbers:
        return _of_verdicts(run, numbers[metric][0])
    return _of_links(run) if name.startswith("link.") else _of_retrieval(run)


def _of_verdicts(run: Run, metric: str) -> Callable[[str], str]:
    verdicts = {v.case_id: v for v in run.verdicts if v.metric == metric}

    def why(case_id: str) -> str:
        verdict = verdicts.get(case_id)
        if verdict is None:
            return "there is no verdict"
        if verdict.status == "scored":
            return "its verdict does not have this part"
        return f"{verdict.status}: {verdict.reason}"

    return why


def _of_links(run: Run) -> Callable[[str], str]:
    known = {link.case_id for link in run.links}
    return lambda name: "its link does not say" if name in known else "it has no link"


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
