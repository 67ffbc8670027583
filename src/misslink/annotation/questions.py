"""Questions that annotators answer, one per metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from misslink.errors import InputError, known_names
from misslink.types import Case, Run, Trace

CLAIM_METRIC = "faithfulness"  # labelled per claim, too
_REFERENCE_METRICS = frozenset({"correctness", "completeness"})
DEFAULT_METRICS = (CLAIM_METRIC, "answer_relevance", "correctness")
_MAX_METRICS = 5  # metrics at once, two digits each
_QUESTION_TEXTS = {
    CLAIM_METRIC: ("Is every claim supported by the passages?", "faithful", "unfaithful"),
    "answer_relevance": ("Does the answer address the question?", "relevant", "irrelevant"),
    "correctness": ("Does the answer say what the reference says?", "correct", "incorrect"),
    "completeness": (
        "Does the answer state everything that the reference says?", "complete", "incomplete"
    ),
    "helpfulness": ("Does the answer help who asked?", "helpful", "unhelpful"),
    "abstention": ("Does the answer decline to answer?", "declines", "answers")
}  # fmt: skip


@dataclass(frozen=True)
class LabelQuestion:
    """The question of one metric, its two labels, and the keys that give them."""

    name: str
    ask: str
    good: str
    bad: str
    key_good: str
    key_bad: str
    per_claim: bool


def question_for(metric: str, place: int) -> LabelQuestion:
    """Return the question of a metric, which is the `place`-th of at most five."""
    ask, good, bad = _QUESTION_TEXTS.get(
        metric, (f"Is the answer good by the metric {metric.replace('_', ' ')}?", "good", "bad")
    )
    keys = str(2 * place + 1), str((2 * place + 2) % 10)
    return LabelQuestion(metric, ask, good, bad, *keys, metric == CLAIM_METRIC)


def metrics_to_label(run: Run, requested: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the metrics to label: those wanted, else the judged ones of the default metrics.

    Raises InputError for an unknown metric, more than five, or if no answer can be labelled;
    `name` is the run folder in messages.
    """
    judged = {verdict.metric for verdict in run.verdicts}
    labelable = sorted(judged | set(_QUESTION_TEXTS))
    for metric in requested:
        if metric not in labelable:
            raise InputError(
                f"no metric to label is called '{metric}'; {known_names(metric, labelable)}"
            )
    metrics = tuple(dict.fromkeys(requested)) or tuple(
        m for m in DEFAULT_METRICS if m in judged or not judged
    )
    if len(metrics) > _MAX_METRICS:
        raise InputError(f"at most {_MAX_METRICS} metrics fit on the keys; give fewer --metric")
    if not metrics:
        raise InputError(
            f"its verdicts are of {', '.join(sorted(judged))}; name the metrics to label with --metric",
            path=name,
        )
    traces = {trace.case_id: trace for trace in run.traces}
    if not any(case_metrics(case, traces.get(case.id), metrics) for case in run.cases):
        raise InputError(
            f"no case has an answer that could be labelled for {', '.join(metrics)}"
            + (": there is no reference answer" if set(metrics) <= _REFERENCE_METRICS else ""),
            path=name,
        )
    return metrics


def case_metrics(case: Case, trace: Trace | None, metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics that a case can be labelled for; none without an answer."""
    if trace is None or trace.error is not None or not (trace.answer or "").strip():
        return ()
    referred = any(text.strip() for text in case.references)
    return tuple(metric for metric in metrics if referred or metric not in _REFERENCE_METRICS)
