"""Which cases of a run are audited: drawn, with as many of either call as there are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.types import Case, Run

__all__ = ["Sample", "draw"]


@dataclass(frozen=True)
class Sample:
    """The cases that were drawn, in the run's order.

    Parameters
    ----------
    cases : sequence of Case
    good, bad : int
        How many the run's judge calls so; of the others there is no verdict to go by.
    """

    cases: tuple[Case, ...]
    good: int
    bad: int


def draw(run: Run, metric: str, size: int, seed: int = 0) -> Sample:
    """Draw cases of a run, half of those that its judge calls good and half of the others.

    A flip away from a rare call would otherwise hardly be seen: of 50 cases of a run in which one
    in ten is bad, 5 could turn good. So shares over the sample are not shares over the run.

    Parameters
    ----------
    run : Run
        Only cases with an answer are drawn.
    metric : str
        Whose verdicts are the calls. In a run that was not judged by it, cases are drawn at random.
    size : int
        How many at most, 1 or more. Where one call has too few, the other fills up.
    seed : int

    Returns
    -------
    Sample
        Empty where no case has an answer, or no verdict of the metric has a label.
    """
    answered = {trace.case_id for trace in run.traces if (trace.answer or "").strip()}
    calls = {
        verdict.case_id: verdict.label
        for verdict in run.verdicts
        if verdict.metric == metric and verdict.label is not None
    }
    known = [case.id for case in run.cases if case.id in answered and case.id in calls]
    drawn = random.Random(seed)  # noqa: S311 (no secret)
    if not any(verdict.metric == metric for verdict in run.verdicts):
        chosen = _some([case.id for case in run.cases if case.id in answered], size, drawn)
    else:
        good = _some([each for each in known if calls[each]], size, drawn)
        bad = _some([each for each in known if not calls[each]], size, drawn)
        of_bad = min(len(bad), max(size // 2, size - len(good)))
        chosen = [*good[: size - of_bad], *bad[:of_bad]]
    taken = set(chosen)
    return Sample(
        tuple(case for case in run.cases if case.id in taken),
        good=sum(calls.get(each) is True for each in taken),
        bad=sum(calls.get(each) is False for each in taken),
    )


def _some(ids: Sequence[str], size: int, drawn: random.Random) -> list[str]:
    """At most so many of them, in an order that is drawn."""
    return drawn.sample(sorted(ids), min(size, len(ids)))
