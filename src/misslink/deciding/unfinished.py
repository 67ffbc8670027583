"""What a run did not get to ask: its judging was stopped at a cap, and may go on."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Set as AbstractSet

from misslink.deciding import numbers
from misslink.deciding.figures import cases_in_words
from misslink.types import Run, Verdict

__all__ = ["judged_metrics_of", "unasked", "why_unknown"]

_OF_LINKS = frozenset({"faithfulness", "correctness", "abstention"})  # what causes are read from


def judged_metrics_of(run: Run, name: str) -> frozenset[str]:
    """The judged metrics whose verdicts a number of the run rests on.

    Of ``coverage.METRIC`` that one too: what was never asked is covered as little as what failed.
    """
    judged = numbers.judged_numbers(run)
    if name in judged:
        return frozenset({judged[name][0]})
    room, _, rest = name.partition(".")
    if room == "coverage":
        return frozenset({rest})
    return _OF_LINKS if room == "link" and not rest.startswith("retrieval.") else frozenset()


def unasked(run: Run, metrics: AbstractSet[str]) -> frozenset[str]:
    """Return the cases of which one of `metrics` was never put to the judge.

    A verdict that was skipped for itself (nothing to judge) has no prompt, or stands beside others
    of the same reply; one whose question was not put has a prompt, and nothing came back to it.
    """
    if not run.manifest.get("unfinished"):
        return frozenset()
    answered = {_reply(verdict) for verdict in run.verdicts if _came_back(verdict)}
    return frozenset(
        verdict.case_id
        for verdict in run.verdicts
        if verdict.metric in metrics
        and verdict.status == "skipped"
        and verdict.prompt is not None
        and _reply(verdict) not in answered
    )


def why_unknown(left: Collection[str], what: str, of: str = "this run") -> str:
    """Why a gate fails of which the judge was not asked everything, of the run or the baseline."""
    return (
        f"the judging of {of} was stopped before its end ({cases_in_words(len(left))} left), so "
        f"{what} is not known; run the same  misslink evaluate  command again"
    )


def _reply(verdict: Verdict) -> tuple[str, str]:
    return verdict.case_id, verdict.prompt.name if verdict.prompt else ""


def _came_back(verdict: Verdict) -> bool:
    return (
        verdict.status != "skipped" or verdict.raw is not None or verdict.usage is not None
    ) and verdict.prompt is not None
