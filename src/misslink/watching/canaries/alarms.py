"""Has the app got worse? Canary runs on control charts, and alarms that open once and recover."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.errors import InputError
from misslink.stats.control_charts import Chart, chart
from misslink.stats.control_limits import limits_for
from misslink.stats.in_control import learn_baseline
from misslink.watching.canaries.episodes import episodes_of, notes_of, on_its_scale
from misslink.watching.canaries.measures import USUAL, Alarm, Measure, Reading

__all__ = ["USUAL", "Alarm", "Measure", "Reading", "Watched", "look"]

_FEWEST = 10  # runs to learn from; with fewer, limits are so wide that they see little
_RAREST = 20  # runs; more frequent false alarms are no watch


@dataclass(frozen=True)
class Watched:
    """What the charts say after the last reading.

    Parameters
    ----------
    status : {"learning", "ok", "alarm"}
        Nothing is learnt yet; nothing is wrong; an alarm is open or held.
    alarms : tuple of Alarm
        Those open or held, and those that recovered with the last reading.
    charts : mapping of str to Chart
        By measure, as far as learnt.
    reason : str or None
        Why something is not watched (yet).
    notes : tuple of str
        What is no alarm but should be known: a question that moved, a change for the better, runs
        that were not learnt from.
    episodes : tuple of Alarm
        All alarms of the history in the order in which they opened.
    """

    status: Literal["learning", "ok", "alarm"]
    alarms: tuple[Alarm, ...]
    charts: Mapping[str, Chart]
    reason: str | None
    notes: tuple[str, ...] = ()
    episodes: tuple[Alarm, ...] = ()


def look(
    readings: Sequence[Reading],
    measures: Sequence[Measure] = USUAL,
    *,
    learn: int = 20,
    false_alarm_every: float = 370.0,
    since: int | None = None,
    calm: int = 5,
) -> Watched:
    """Put the runs of a history on control charts and say what is wrong after the last.

    The same history gives the same answer, and a longer one does not change what was said of its
    beginning. Alarms are of changes for the worse; one for the better is a note.

    Parameters
    ----------
    readings : sequence of Reading
        Comparable ones (the same questions, the same k), in the order of their runs; none is
        fine.
    measures : sequence of Measure
        What is watched. A measure without any value in the first `learn` readings is not.
    learn : int
        From how many runs in a row it is learnt what is usual, at least 10.
    false_alarm_every : float
        How many runs of an app that does not change pass between false alarms of any measure,
        at least 20. See docs/canary.md for what that costs, and how well it is kept.
    since : int or None
        The run from which on the history counts: what was before an accepted change is another
        app. None counts all.
    calm : int
        How many readings in a row must be in control until an alarm has recovered, at least 1.

    Raises
    ------
    InputError
        An option is out of its range, or the runs are not in order.
    """
    _check(readings, learn, false_alarm_every, calm)
    series = [each for each in readings if since is None or each.run >= since]
    first = series[:learn]
    begun = [m for m in measures if any(m.plotted(each) is not None for each in first)]
    charts: dict[str, Chart] = {}
    episodes: list[Alarm] = []
    reasons: dict[str, list[str]] = {}  # why something is not learnt, and which measures
    notes: list[str] = []
    for measure in begun:
        values = [measure.plotted(each) for each in series]
        step = measure.step(first)
        usable = [measure.learnable(value) for value in values]
        baseline = learn_baseline(usable, learn, step, tail=measure.tail)
        if isinstance(baseline, str):
            clause = f"{baseline}{_unlearnable(values, measure)}"
            reasons.setdefault(clause, []).append(measure.called)
            continue
        limits = limits_for(baseline.n, float(false_alarm_every), measures=len(begun))
        drawn = chart(values, baseline, limits)
        found = episodes_of(series, drawn, measure, calm)
        charts[measure.name] = on_its_scale(drawn, measure)
        episodes += found
        notes += notes_of(series, drawn, baseline, measure, step)
    why = [f"{_all_of(named, begun)}: {clause}" for clause, named in reasons.items()]
    if not begun:
        why = ["nothing was measured yet"]
    return _watched(series, begun, charts, episodes, why, notes)


def _watched(
    series: Sequence[Reading],
    begun: Sequence[Measure],
    charts: Mapping[str, Chart],
    episodes: list[Alarm],
    reasons: list[str],
    notes: list[str],
) -> Watched:
    episodes.sort(key=lambda alarm: alarm.run)  # stable: of one run, in the order of the measures
    last = series[-1].run if series else None
    status: Literal["learning", "ok", "alarm"] = "learning"
    if any(alarm.ended is None for alarm in episodes):
        status = "alarm"
    elif begun and begun[0].name in charts:  # the first measure is what the others explain
        status = "ok"
    return Watched(
        status=status,
        alarms=tuple(a for a in episodes if a.ended is None or a.ended == last),
        charts=charts,
        reason="; ".join(reasons) or None,
        notes=tuple(notes),
        episodes=tuple(episodes),
    )


def _all_of(named: Sequence[str], begun: Sequence[Measure]) -> str:
    """Names of measures in one list, which is short where it is all of several."""
    return "all measures" if 1 < len(named) == len(begun) else ", ".join(named)


def _unlearnable(values: Sequence[float | None], measure: Measure) -> str:
    """What to do about runs that are too bad to learn from; empty where there are none."""
    bad = sum(1 for value in values if value is not None and measure.learnable(value) is None)
    if not bad or measure.least is None:
        return ""
    side = "below" if measure.better == "high" else "above"
    runs = f"{bad} run{'s are' if bad > 1 else ' is'}"
    limit = measure.written(measure.least)
    return f" ({runs} {side} {limit} and not learnt from: put the app or its canaries right)"


def _check(readings: Sequence[Reading], learn: int, every: float, calm: int) -> None:
    if learn < _FEWEST:
        raise InputError(f"--learn is {learn}; it must be at least {_FEWEST} runs")
    if not every >= _RAREST:
        raise InputError(f"a false alarm every {every:g} runs is too often; take {_RAREST} or more")
    if calm < 1:
        raise InputError(f"an alarm cannot recover after {calm} runs; take 1 or more")
    for before, after in itertools.pairwise(readings):
        if after.run <= before.run:
            raise InputError(
                f"run {after.run} stands behind run {before.run} in the history; "
                "give the runs in their order, each once"
            )
