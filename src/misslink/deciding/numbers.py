"""The numbers of a run that are computed from its cases, traces, verdicts and links."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from misslink.linking import Calibration, summarise
from misslink.registry import judged_metrics
from misslink.retrieval import parse, score
from misslink.stats import proportion
from misslink.stats.median import median
from misslink.summary import Reading, lower_is_better, mean_read, mean_scores, numbers_of
from misslink.types import Cause, Estimate, Link, Run, Verdict

__all__ = [
    "ROUNDING",
    "SHARES",
    "UNKNOWN",
    "Value",
    "associations",
    "coverage",
    "errors",
    "judged",
    "judged_numbers",
    "latency",
    "low_numbers",
    "number_in",
    "rank",
    "share",
]

ROUNDING = 1e-9  # what two numbers may differ by and be the same: 0.87 - 0.84 is 0.03
# Under ``link.``: what a share is of, and how a link tells it.
SHARES: dict[str, tuple[tuple[str, ...], Callable[[Link], str]]] = {
    "causes": (get_args(Cause), lambda link: link.cause),
    "retrieval": (get_args(Link.model_fields["retrieval"].annotation), lambda x: x.retrieval),
    "answers": (get_args(Link.model_fields["answer"].annotation), lambda link: link.answer),
}
_GOOD_OUTCOMES = frozenset({"fine", "hit", "none_needed", "faithful"})
_TOLD = {"causes": "the cause", "retrieval": "the retrieval", "answers": "the answer"}
UNKNOWN = frozenset({"undecided", "unknown"})  # a case of which an axis says nothing


@dataclass(frozen=True)
class Value:
    """A number of a run.

    Parameters
    ----------
    name : str
        As it was asked for, normalised: ``retrieval.recall@5`` is ``recall@5``.
    estimate : Estimate
        Its value is None, with a reason, where it cannot be computed.
    of_case : mapping of str to float or None, or None
        Case id to a value in [0, 1], where the number is a mean over the cases that have one.
        None: it is no such mean.
    lower_is_better : bool
    """

    name: str
    estimate: Estimate
    of_case: Mapping[str, float | None] | None
    lower_is_better: bool


def judged_numbers(run: Run) -> dict[str, tuple[str, Reading]]:
    """Each number of the judged metrics: which metric it is of, and how a verdict is read."""
    metrics = dict.fromkeys(judged_metrics.names())
    # A run may hold verdicts of a plugin that is not installed here.
    metrics |= dict.fromkeys(verdict.metric for verdict in run.verdicts)
    return {name: (metric, read) for metric in metrics for name, read in numbers_of(metric).items()}


def rank(run: Run, name: str) -> Value:
    """Return the mean of a rank metric."""
    metric = parse(name)
    asked = str(metric)
    of_case = score(run.cases, run.traces, [asked])[asked]
    estimate = mean_scores(of_case.values(), seed=number_in(run, "seed", 0))
    low = getattr(metric, "better", "high") == "low"
    return Value(asked, _of_cases(run, estimate), of_case, low)


def judged(run: Run, name: str, metric: str, read: Reading) -> Value:
    """Return the mean of one number of a judged metric."""
    verdicts = [verdict for verdict in run.verdicts if verdict.metric == metric]
    of_case: dict[str, float | None] = {case.id: None for case in run.cases}
    of_case |= {verdict.case_id: read(verdict) for verdict in verdicts}
    estimate = mean_read(verdicts, read, seed=number_in(run, "seed", 0))
    if not verdicts and run.verdicts:
        estimate = Estimate.missing(f"this run was not judged by {metric}")
    return Value(name, _of_cases(run, estimate), of_case, name in low_numbers(run))


def coverage(run: Run, name: str, metric: str) -> Value:
    """Return the share scored, of the verdicts of a metric that ought to have been scored.

    Those that failed, and those that were skipped because the app failed, ought to have been; what
    was skipped for itself had nothing to judge.
    """
    of_case: dict[str, float | None] = {case.id: None for case in run.cases}
    crashed = {t.case_id for t in run.traces if t.error is not None and t.answer is None}
    for verdict in run.verdicts:
        if verdict.metric == metric:
            skipped = verdict.status == "skipped" and verdict.case_id not in crashed
            of_case[verdict.case_id] = None if skipped else float(verdict.status == "scored")
    tried = [value for value in of_case.values() if value is not None]
    estimate = proportion(int(sum(tried)), len(tried))
    if not tried:
        estimate = Estimate.missing(_untried(run.verdicts, metric))
    return Value(name, _of_cases(run, estimate), of_case, lower_is_better=False)


def share(run: Run, axis: str, outcome: str) -> Value:
    """Return the share of an outcome among the cases whose link tells; see `SHARES`.

    A case that is undecided may as well have it as not: it counts only where the share of the
    undecided themselves is asked for.
    """
    told = SHARES[axis][1]
    of_case: dict[str, float | None] = {case.id: None for case in run.cases}
    of_case |= {
        link.case_id: float(told(link) == outcome)
        for link in run.links
        if outcome in UNKNOWN or told(link) not in UNKNOWN
    }
    known = [value for value in of_case.values() if value is not None]
    estimate = proportion(int(sum(known)), len(known))
    if not known:
        why = f"of no case {_TOLD[axis]} is known" if run.links else "no case has a link"
        estimate = Estimate.missing(why)
    low = outcome not in _GOOD_OUTCOMES
    return Value(f"link.{axis}.{outcome}", _of_cases(run, estimate), of_case, low)


def errors(run: Run) -> Value:
    """Return the share of the cases in which the app failed."""
    of_case: dict[str, float | None] = {case.id: None for case in run.cases}
    of_case |= {trace.case_id: float(trace.error is not None) for trace in run.traces}
    known = [value for value in of_case.values() if value is not None]
    estimate = proportion(int(sum(known)), len(known))
    if not known:
        estimate = Estimate.missing("no case has a trace")
    return Value("errors", _of_cases(run, estimate), of_case, lower_is_better=True)


def associations(run: Run) -> dict[str, Any]:
    """Return the document of the link, as ``summary.json`` has it, computed anew."""
    return summarise(
        run.links,
        cases=run.cases,
        verdicts=run.verdicts,
        seed=number_in(run, "seed", 0),
        calibration=Calibration.of_run(run),
    )


def latency(run: Run) -> Estimate:
    """Return the median time the app took, in seconds."""
    known = [trace.latency_s for trace in run.traces if trace.latency_s is not None]
    return median(known) if known else Estimate.missing("no trace says how long the app took")


def low_numbers(run: Run) -> set[str]:
    """Numbers that are better when low: by who registered them, and by what the run recorded."""
    known = lower_is_better(judged_metrics.get(name) for name in judged_metrics.names())
    recorded = run.summary.get("lower_is_better")
    return {*known, *(map(str, recorded) if isinstance(recorded, list) else ())}


def number_in(run: Run, name: str, default: int) -> int:
    """Return a whole number that the run was made with, such as its k or its seed."""
    found = run.manifest.get(name, run.summary.get(name))
    return found if isinstance(found, int) and not isinstance(found, bool) else default


def _untried(verdicts: tuple[Verdict, ...], metric: str) -> str:
    if any(verdict.metric == metric for verdict in verdicts):
        return "no case gave the judge anything to judge"
    return f"this run was not judged by {metric}" if verdicts else "no judge was asked"


def _of_cases(run: Run, estimate: Estimate) -> Estimate:
    return estimate if run.cases else Estimate.missing("there are no cases")
