"""From signals to alarms: one for each stretch in which a measure is worse, with its suspects."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.stats.control_charts import Chart, ChartName, Point
from misslink.stats.in_control import Baseline
from misslink.types import Estimate
from misslink.watching.canaries.measures import Alarm, Measure, Reading

__all__ = ["episodes_of", "notes_of", "on_its_scale"]

_LONGEST_LOOK_BACK = 200  # readings that are searched for the beginning of a change
_HALF = 0.5


@dataclass
class _Stretch:
    """Places in the series: where an alarm opened, signalled last, is seen last; its quiet runs."""

    opened: int
    chart: ChartName
    signalled: int
    seen: int
    quiet: int = 0
    is_over: bool = False


def episodes_of(
    series: Sequence[Reading], drawn: Chart, measure: Measure, calm: int
) -> list[Alarm]:
    """Return the alarms of a measure, in the order in which they opened.

    One opens when a chart signals for the worse, and lasts until `calm` readings in a row did not;
    whatever signals in between belongs to it. A run that did not measure it changes nothing.
    """
    alarms = []
    free = drawn.end  # where a change may have begun: not in what was learnt or in another alarm
    for stretch in _stretches(drawn, measure, calm):
        alarms.append(_alarm(series, drawn, measure, stretch, free))
        free = stretch.seen + 1
    return alarms


def notes_of(
    series: Sequence[Reading], drawn: Chart, baseline: Baseline, measure: Measure, step: float
) -> list[str]:
    """Return what is no alarm and should be known, one sentence each."""
    notes = []
    if any(point.value is not None for point in drawn.points[: baseline.begin]):
        begin, end = series[baseline.begin].run, series[baseline.end - 1].run
        notes.append(
            f"{measure.called} was learnt from runs {begin} to {end}; those before were not steady"
        )
    if baseline.left_out:
        runs = ", ".join(str(series[place].run) for place in baseline.left_out)
        notes.append(f"{measure.called} was too far off to learn from in run {runs}")
    if not series or drawn.points[-1].value is None or len(series) <= drawn.end:
        return notes
    last = drawn.points[-1]
    return notes + _of_the_last(series[-1], last, drawn, baseline, measure, step)


def on_its_scale(drawn: Chart, measure: Measure) -> Chart:
    """Return a chart in the unit of its measure; `sd` stays that of logarithms for seconds."""
    if not measure.is_ratio:
        return drawn
    shown = measure.shown

    def back(value: float | None) -> float | None:
        return None if value is None else shown(value)

    points = tuple(
        dataclasses.replace(
            point,
            value=back(point.value),
            ewma=back(point.ewma),
            low=back(point.low),
            high=back(point.high),
        )
        for point in drawn.points
    )
    return dataclasses.replace(
        drawn,
        centre=shown(drawn.centre),
        jump_low=shown(drawn.jump_low),
        jump_high=shown(drawn.jump_high),
        points=points,
    )


def _stretches(drawn: Chart, measure: Measure, calm: int) -> Iterator[_Stretch]:
    current: _Stretch | None = None
    for place, point in enumerate(drawn.points):
        if point.value is None:
            continue
        bad = point.below if measure.better == "high" else point.above
        if current is None:
            if bad:
                current = _Stretch(opened=place, chart=bad[0], signalled=place, seen=place)
            continue
        current.seen = place
        if bad:
            current.signalled, current.quiet = place, 0
            continue
        current.quiet += 1
        if current.quiet >= calm:
            current.is_over = True
            yield current
            current = None
    if current is not None:
        yield current


def _alarm(
    series: Sequence[Reading], drawn: Chart, measure: Measure, stretch: _Stretch, free: int
) -> Alarm:
    since = _change_point(drawn, measure, stretch.opened, free)
    value = drawn.points[stretch.seen].value
    assert value is not None  # noqa: S101 (a stretch is seen where something was measured)
    state: Literal["open", "held", "recovered"] = "held" if stretch.quiet else "open"
    if stretch.is_over:
        state = "recovered"
    found = Alarm(
        measure=measure.name,
        chart=stretch.chart,
        since=series[since].run,
        run=series[stretch.opened].run,
        value=measure.shown(value),
        expected=measure.shown(drawn.centre),
        shift=_shift(drawn, measure, since, stretch.signalled),
        is_new=stretch.opened == len(series) - 1,
        state=state,
        suspects=_suspects(series, since, stretch.opened, free),
        sentence="",
        ended=series[stretch.seen].run if stretch.is_over else None,
    )
    return dataclasses.replace(found, sentence=_sentence(found, measure))


def _change_point(drawn: Chart, measure: Measure, opened: int, free: int) -> int:
    """Where the change most probably began: the maximum of the likelihood for a step of any size.

    Pignatiello and Samuel (2001), Journal of Quality Technology 33.
    """
    sign = -1 if measure.better == "high" else 1
    best, where, total, count = -1.0, opened, 0.0, 0
    for place in range(opened, max(free, opened - _LONGEST_LOOK_BACK) - 1, -1):
        value = drawn.points[place].value
        if value is None:
            continue
        total += sign * (value - drawn.centre) / drawn.sd
        count += 1
        gain = total * total / count if total > 0 else 0.0
        if gain > best:
            best, where = gain, place
    return where


def _shift(drawn: Chart, measure: Measure, since: int, until: int) -> Estimate:
    from scipy.special import stdtrit

    seen = [p.value for p in drawn.points[since : until + 1] if p.value is not None]
    n, learnt = len(seen), drawn.learnt_from
    moved = math.fsum(seen) / n - drawn.centre
    half = float(stdtrit(learnt - 1, 0.975)) * drawn.sd * math.sqrt(1 / n + 1 / learnt)
    ends = [moved, moved - half, moved + half]
    if measure.is_ratio:
        ends = [measure.shown(drawn.centre) * math.expm1(end) for end in ends]
    if measure.unit == "share":  # which neither falls below 0 nor rises above 1
        ends = [min(max(end, -drawn.centre), 1 - drawn.centre) for end in ends]
    value, low, high = ends
    return Estimate(value=value, low=low, high=high, n=n, method="t against the learnt runs")


def _suspects(series: Sequence[Reading], since: int, opened: int, free: int) -> tuple[str, ...]:
    """What changed from one run before the change seems to have begun: that is an estimate."""
    told = (each for run in series[max(free, since - 1) : opened + 1] for each in run.suspects)
    return tuple(dict.fromkeys(told))


def _sentence(alarm: Alarm, measure: Measure) -> str:
    moved = "fell" if measure.better == "high" else "rose"
    shift = alarm.shift
    size = "change not known"
    if shift.value is not None and shift.low is not None and shift.high is not None:
        sign = "" if shift.value < 0 else "+"
        size = (
            f"on average {sign}{measure.written(shift.value)} "
            f"[{measure.written(shift.low)}, {measure.written(shift.high)}]"
        )
    when = f"from run {alarm.since}" if alarm.since != alarm.run else f"in run {alarm.run}"
    now, usual = measure.apart(alarm.value, alarm.expected)
    text = (
        f"{measure.called} {moved} {when}: {now} now, {usual} is usual; {size} "
        f"(n = {shift.n}; {alarm.chart} chart, run {alarm.run})"
    )
    if alarm.state == "recovered":
        text += f"; recovered in run {alarm.ended}"
    if alarm.suspects:
        return f"{text}. Changed meanwhile: {'; '.join(alarm.suspects)}."
    return f"{text}. No change of the corpus or the embedding is known from these runs."


def _of_the_last(
    reading: Reading,
    last: Point,
    drawn: Chart,
    baseline: Baseline,
    measure: Measure,
    step: float,
) -> list[str]:
    worse, better = (
        (last.below, last.above) if measure.better == "high" else (last.above, last.below)
    )
    assert last.value is not None  # noqa: S101 (the caller looked)
    seen, learnt = measure.apart(measure.shown(last.value), measure.shown(drawn.centre))
    now, usual = f"{seen} in run {reading.run}", f"{learnt} is usual"
    if better:
        told = f"{measure.called} is better than it was learnt: {now}, {usual}"
        return [f"{told}; accept the change, and a return to the old level will be an alarm"]
    sign = -1 if measure.better == "high" else 1
    moved = sign * (last.value - drawn.centre) / step
    if baseline.is_floor and not worse and moved >= _HALF:
        what = f"{measure.called} moved by {round(moved)} question{'s' if round(moved) > 1 else ''}"
        if measure.unit != "share":
            what = f"{measure.called} moved"
        return [f"{what} and never did while it was learnt: {now}, {usual}; an alarm if it stays"]
    return []
