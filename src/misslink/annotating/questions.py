"""What people are asked of an answer, by metric, and which answers of a run it can be asked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from misslink.errors import InputError, known_names
from misslink.types import Case, Run, Trace

__all__ = ["BY_CLAIMS", "USUAL", "Question", "asked_of_run", "metrics_of", "question_of"]

BY_CLAIMS = "faithfulness"  # its claims are asked about one by one, too
_BY_REFERENCES = frozenset({"correctness", "completeness"})
USUAL = (BY_CLAIMS, "answer_relevance", "correctness")
_MOST = 5  # metrics at once, two digits each
_WORDS = {
    BY_CLAIMS: ("Is every claim supported by the passages?", "faithful", "unfaithful"),
    "answer_relevance": ("Does the answer address the question?", "relevant", "irrelevant"),
    "correctness": ("Does the answer say what the reference says?", "correct", "incorrect"),
    "completeness": (
        "Does the answer hold everything that the reference says?", "complete", "incomplete"
    ),
    "helpfulness": ("Does the answer help who asked?", "helpful", "unhelpful"),
    "abstention": ("Does the answer decline to answer?", "declines", "answers"),
}  # fmt: skip


@dataclass(frozen=True)
class Question:
    """What is asked of an answer.

    Parameters
    ----------
    name : str
        The metric.
    ask : str
    good, bad : str
        The two labels.
    key_good, key_bad : str
        The keys that give them: digits, two a metric, which no other key of the page is.
    per_claim : bool
        Whether it is asked of each claim, too.
    """

    name: str
    ask: str
    good: str
    bad: str
    key_good: str
    key_bad: str
    per_claim: bool


def question_of(metric: str, place: int) -> Question:
    """Return what is asked for a metric, the `place`-th of those asked, from 0 to 4."""
    ask, good, bad = _WORDS.get(
        metric, (f"Is the answer good by the metric {metric.replace('_', ' ')}?", "good", "bad")
    )
    keys = str(2 * place + 1), str((2 * place + 2) % 10)
    return Question(metric, ask, good, bad, *keys, metric == BY_CLAIMS)


def asked_of_run(run: Run, wanted: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the metrics that people are asked about.

    Parameters
    ----------
    run : Run
    wanted : sequence of str
        None given: faithfulness, answer relevance and correctness, as far as the run has
        verdicts of them, and all of them where it has no verdict.
    name : str
        The run folder, for messages.

    Raises
    ------
    InputError
        A metric is unknown, there are more than five, or no answer can be asked about.
    """
    judged = {verdict.metric for verdict in run.verdicts}
    known = sorted(judged | set(_WORDS))
    for metric in wanted:
        if metric not in known:
            raise InputError(
                f"no metric to label is called '{metric}'; {known_names(metric, known)}"
            )
    metrics = tuple(dict.fromkeys(wanted)) or tuple(m for m in USUAL if m in judged or not judged)
    if len(metrics) > _MOST:
        raise InputError(
            f"more than {_MOST} metrics at once do not fit on the keys; give fewer --metric"
        )
    if not metrics:
        raise InputError(
            f"its verdicts are of {', '.join(sorted(judged))}; name what is labelled with --metric",
            path=name,
        )
    traces = {trace.case_id: trace for trace in run.traces}
    if not any(metrics_of(case, traces.get(case.id), metrics) for case in run.cases):
        raise InputError(
            f"no case has an answer that could be labelled for {', '.join(metrics)}"
            + (": there is no reference answer" if set(metrics) <= _BY_REFERENCES else ""),
            path=name,
        )
    return metrics


def metrics_of(case: Case, trace: Trace | None, metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics that one case can be asked about: none without an answer."""
    if trace is None or trace.error is not None or not (trace.answer or "").strip():
        return ()
    referred = any(text.strip() for text in case.references)
    return tuple(metric for metric in metrics if referred or metric not in _BY_REFERENCES)
