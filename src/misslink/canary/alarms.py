"""Control charts of canary runs, and alarms that open once and recover."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from misslink.render.format import format_points, format_whole_points, pluralize
from misslink.stats.control_charts import (
    ChartName,
    ChartPoint,
    ControlChart,
    ProcessBaseline,
    chart_limits,
    control_chart,
    learn_baseline,
)
from misslink.stats.paired_tests import more_failures_p, paired_difference
from misslink.types import Estimate, Reason

_SCORE_STEP, _LATENCY_STEP = 0.01, 0.05  # smallest differences that count, as shares of a value
_MAX_MORE_DIGITS = 7  # that are tried to tell two values apart
_MIN_SECONDS = 1e-4  # what is faster is taken for this, since 0 has no logarithm


@dataclass(frozen=True)
class RunReading:
    """One canary run, as the charts see it.

    Parameters
    ----------
    run : int
        Its id in the history; later runs have higher ids.
    at : float
        When it was, in seconds since 1970.
    values : mapping of str to float or None
        What was measured, by the measure's name; None where it was not measured in this run.
    n : int
        How many questions it asked, at least 1.
    suspects : tuple of str
        What has changed since the run before, one sentence each.
    healthy : mapping of str to bool
        Of each canary whose health was measured.
    """

    run: int
    at: float
    values: Mapping[str, float | None]
    n: int
    suspects: tuple[str, ...] = ()
    healthy: Mapping[str, bool] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class CanaryMeasure:
    """Something that every run measures.

    Parameters
    ----------
    name : str
        Its key in `Reading.values`.
    better : {"high", "low"}
        Which direction is good news.
    unit : {"share", "score", "s"}
        A share of the questions from 0 to 1, a score of any range, or seconds; seconds are
        compared by their ratio (on a logarithmic chart).
    least : float or None
        Runs below are not learnt from: an app that is broken from the first run on would become
        the norm. None learns from any.
    label : str or None
        What it is called in sentences; None for its name.
    """

    name: str
    better: Literal["high", "low"] = "high"
    unit: Literal["share", "score", "s"] = "share"
    least: float | None = None
    label: str | None = None

    @property
    def called(self) -> str:
        """What it is called in sentences."""
        return self.label or self.name

    @property
    def is_ratio(self) -> bool:
        """Whether it is compared by ratios, on a logarithmic chart."""
        return self.unit == "s"

    @property
    def tail(self) -> Literal[-1, 0, 1]:
        """Where the long tail lies: of a share towards what is worse, of others nowhere."""
        if self.unit != "share":
            return 0
        return -1 if self.better == "high" else 1

    def plotted(self, reading: RunReading) -> float | None:
        """Return the reading's value on the chart's scale, or None if it was not measured."""
        value = reading.values.get(self.name)
        if value is None or not math.isfinite(value):
            return None
        return math.log(max(value, _MIN_SECONDS)) if self.is_ratio else float(value)

    def chart_to_value(self, plotted: float) -> float:
        """Return the value of a place on the chart."""
        return math.exp(plotted) if self.is_ratio else plotted

    def written(self, value: float, more_digits: int = 0) -> str:
        """Return a value for people: whole percent of a share, else three digits."""
        if self.unit == "share":
            text = f"{100 * value:.{more_digits}f}%"
        else:
            text = f"{value:.{3 + more_digits}g}" + (" s" if self.unit == "s" else "")
        return text.replace("-", "\N{MINUS SIGN}")

    def format_distinct(self, value: float, other: float) -> tuple[str, str]:
        """Return two values for people, with digits enough to tell them apart.

        Examples
        --------
        >>> CanaryMeasure("top score", unit="score").format_distinct(0.60012, 0.5996)
        ('0.6001', '0.5996')
        """
        for digits in range(_MAX_MORE_DIGITS):
            texts = self.written(value, digits), self.written(other, digits)
            if texts[0] != texts[1]:
                return texts
        return self.written(value), self.written(other)

    def format_shift(self, shift: Estimate) -> str:
        """Return a difference with its sign and interval."""
        if shift.value is None or shift.low is None or shift.high is None:
            return "a change of unknown size"
        if self.unit == "share":
            low, high = format_whole_points(shift.low), format_whole_points(shift.high)
            return f"{format_points(shift.value)} [{low}, {high}]"  # n counts runs, not cases
        plus = "+" if shift.value > 0 else ""
        ends = f"[{self.written(shift.low)}, {self.written(shift.high)}]"
        return f"{plus}{self.written(shift.value)} {ends}"

    def learnable(self, plotted: float | None) -> float | None:
        """Return the value, or None if it is below `least`: charts do not learn from it."""
        is_bad = plotted is not None and self.least is not None and plotted < self.least
        return None if is_bad else plotted

    def step(self, readings: Sequence[RunReading]) -> float:
        """Return the smallest difference that counts on the chart: of a share, one question.

        Parameters
        ----------
        readings : sequence of Reading
            Those to learn from.
        """
        if self.is_ratio:
            return math.log1p(_LATENCY_STEP)
        if self.unit == "share":
            sizes = [reading.n for reading in readings if reading.n > 0]
            return 1 / statistics.median(sizes) if sizes else _SCORE_STEP
        seen = [abs(v) for reading in readings if (v := self.plotted(reading)) is not None]
        return _SCORE_STEP * statistics.median(seen or [0.0]) or _SCORE_STEP


AlarmState = Literal["open", "held", "recovered"]


@dataclass(frozen=True)
class CanaryAlarm:
    """A measure that got worse, from the run that showed it to its recovery.

    Parameters
    ----------
    measure : str
        Which.
    chart : {"ewma", "cusum", "jump", "paired"}
        Which chart signalled first; paired: the test of newly failing canaries.
    since : int
        The run in which the change seems to have begun.
    run : int
        The run in which the alarm opened.
    value : float
        The last reading (of an alarm that recovered: the one it recovered with).
    expected : float
        What was learnt.
    shift : Estimate
        The mean of the readings from `since` to the last that signalled, minus `expected`, with
        an interval of Student's t that knows how well `expected` was learnt. Where a change is
        found because it is large, its size is overstated a little.
    is_new : bool
        Whether it opened with the last reading.
    state : {"open", "held", "recovered"}
        A chart still signals; none does, but not for long enough; back to what was learnt.
    suspects : tuple of str
        What changed in the runs from `since` to `run`.
    change : str
        What got worse, by how much, for people.
    ended : int or None
        The run in which it recovered; None while it has not.
    """

    measure: str
    chart: ChartName | Literal["paired"]
    since: int
    run: int
    value: float
    expected: float
    shift: Estimate
    is_new: bool
    state: AlarmState
    suspects: tuple[str, ...]
    change: str = ""
    ended: int | None = None

    @property
    def sentence(self) -> str:
        """The change with its suspects."""
        if self.suspects:
            return f"{self.change}. Changed by then: {'; '.join(self.suspects)}."
        return f"{self.change}. No change of the corpus or the embedding is known from these runs."


DEFAULT_MEASURES = (
    CanaryMeasure("health", least=0.5),
    CanaryMeasure("coverage"),
    CanaryMeasure("top_score", unit="score", label="top score"),
    CanaryMeasure("errors", better="low", label="the share of failed questions"),
    CanaryMeasure("latency_s", better="low", unit="s", label="median latency"),
)


_MAX_LOOK_BACK = 200  # readings that are searched for the beginning of a change
_CALM_RUNS = 5  # readings in a row that must be in control until an alarm has recovered
_HALF = 0.5


def find_alarms(
    series: Sequence[RunReading], drawn: ControlChart, measure: CanaryMeasure
) -> list[CanaryAlarm]:
    """Return the alarms of a measure, in the order in which they opened.

    One opens when a chart signals for the worse, and lasts until some readings in a row did not;
    whatever signals in between belongs to it. A run that did not measure it changes nothing.
    """
    alarms = []
    free = drawn.end  # where a change may have begun: not in what was learnt or in another alarm
    for state, opening, signalled, seen in _find_stretches(drawn, measure):
        since = _find_change_point(drawn, measure, opening, free)
        point, last = drawn.points[opening], drawn.points[seen].value
        assert last is not None  # noqa: S101 (a stretch is seen where something was measured)
        alarm = CanaryAlarm(
            measure=measure.name,
            chart=(point.below if measure.better == "high" else point.above)[0],
            since=series[since].run,
            run=series[opening].run,
            value=measure.chart_to_value(last),
            expected=measure.chart_to_value(drawn.centre),
            shift=_estimate_shift(drawn, measure, since, signalled),
            is_new=opening == len(series) - 1,
            state=state,
            suspects=tuple(  # from a run earlier on, for when it began is an estimate
                dict.fromkeys(
                    suspect
                    for run in series[max(free, since - 1) : opening + 1]
                    for suspect in run.suspects
                )
            ),
            ended=series[seen].run if state == "recovered" else None,
        )
        alarms.append(dataclasses.replace(alarm, change=_describe_change(alarm, measure)))
        free = seen + 1
    return alarms


def _find_stretches(
    drawn: ControlChart, measure: CanaryMeasure
) -> Iterator[tuple[AlarmState, int, int, int]]:
    """The state of each alarm, and where it opened, signalled last, and is seen last."""
    opening = None
    signalled = seen = quiet = 0
    for place, point in enumerate(drawn.points):
        is_bad = bool(point.below if measure.better == "high" else point.above)
        if point.value is None or (opening is None and not is_bad):
            continue
        opening, seen = place if opening is None else opening, place
        signalled, quiet = (place, 0) if is_bad else (signalled, quiet + 1)
        if quiet >= _CALM_RUNS:
            yield "recovered", opening, signalled, seen
            opening = None
    if opening is not None:
        yield "held" if quiet else "open", opening, signalled, seen


_PAIRED_LEVEL = 0.0005  # of the paired test: in 370 runs without a change it errs in at most 17%
_PAIRED_RUNS = 20  # earlier runs that it compares with


def find_paired_alarms(
    series: Sequence[RunReading], health: Sequence[CanaryAlarm]
) -> list[CanaryAlarm]:
    """Return alarms of canaries that fail now and did not before, by an exact paired test.

    It needs one earlier run, so it also works while charts learn. While an alarm lasts, runs are
    compared with those before it; it recovers as other alarms do. None opens within an alarm of
    `health`, which says the same.
    """
    measure = DEFAULT_MEASURES[0]
    alarms: list[CanaryAlarm] = []
    earlier: list[RunReading] = []
    quiet: list[RunReading] = []
    for reading in series:
        if not reading.healthy:
            continue
        history = {
            name: [run.healthy[name] for run in earlier[-_PAIRED_RUNS:] if name in run.healthy]
            for name in reading.healthy
        }
        history = {name: healthy for name, healthy in history.items() if healthy}
        counts = [(len(healthy), healthy.count(False)) for healthy in history.values()]
        now = [reading.healthy[name] for name in history]
        is_signal = more_failures_p(counts, [not healthy for healthy in now]) < _PAIRED_LEVEL
        if alarms and alarms[-1].ended is None:
            quiet = [] if is_signal else [*quiet, reading]
            is_over = len(quiet) >= _CALM_RUNS
            alarms[-1] = dataclasses.replace(
                alarms[-1],
                value=sum(now) / len(now) if now else alarms[-1].value,
                state="recovered" if is_over else "held" if quiet else "open",
                ended=reading.run if is_over else None,
                is_new=False,
            )
            earlier = quiet if is_over else earlier
        elif is_signal and not any(
            alarm.run <= reading.run and (alarm.ended is None or alarm.ended > reading.run)
            for alarm in health
        ):
            quiet = []
            usual = [1 - fails / runs for runs, fails in counts]
            alarm = CanaryAlarm(
                measure=measure.name,
                chart="paired",
                since=reading.run,
                run=reading.run,
                value=sum(now) / len(now),
                expected=sum(usual) / len(usual),
                shift=paired_difference(usual, list(map(float, now))).difference,
                is_new=reading is series[-1],
                state="open",
                suspects=reading.suspects,
            )
            alarms.append(alarm)
        else:
            earlier.append(reading)
    return [dataclasses.replace(alarm, change=_describe_change(alarm, measure)) for alarm in alarms]


_SAME_EVENT_RUNS = 2  # an estimate of when a change began is off by a run or two


def group_alarms(alarms: Sequence[CanaryAlarm]) -> list[list[CanaryAlarm]]:
    """Group alarms of measures and charts that began together: one change, one event.

    In the order in which the events opened.
    """
    events: list[list[CanaryAlarm]] = []
    for alarm in sorted(alarms, key=lambda alarm: alarm.run):
        event = events[-1] if events else []
        latest = max((other.run for other in event), default=0)
        # A second chart of a measure tells of the same change while the first alarm lasts.
        over = any(
            other.measure == alarm.measure and other.ended is not None and other.ended <= alarm.run
            for other in event
        )
        if event and alarm.since <= latest + _SAME_EVENT_RUNS and not over:
            event.append(alarm)
        else:
            events.append([alarm])
    return events


def chart_notes(
    series: Sequence[RunReading],
    drawn: ControlChart,
    baseline: ProcessBaseline,
    measure: CanaryMeasure,
    step: float,
) -> list[str]:
    """Return what is no alarm and should be known, one sentence each."""
    notes = []
    if any(point.value is not None for point in drawn.points[: baseline.begin]):
        begin, end = series[baseline.begin].run, series[baseline.end - 1].run
        notes.append(
            f"{measure.called} was learned from runs {begin} to {end}; the runs before were not steady"
        )
    if baseline.left_out:
        runs = ", ".join(str(series[place].run) for place in baseline.left_out)
        notes.append(f"{measure.called} was too far off to learn from in run {runs}")
    last = drawn.points[-1]
    if last.value is None or len(series) <= drawn.end:
        return notes
    seen, learnt = measure.format_distinct(
        measure.chart_to_value(last.value), measure.chart_to_value(drawn.centre)
    )
    now, usual = f"{seen} in run {series[-1].run}", f"{learnt} is usual"
    is_high = measure.better == "high"
    worse, better = (last.below, last.above) if is_high else (last.above, last.below)
    moved = (drawn.centre - last.value if is_high else last.value - drawn.centre) / step
    if better:
        note = f"{measure.called} is better than usual: {now}, {usual}"
        notes.append(f"{note}; with --accept-change, a return to the old level is an alarm")
    elif baseline.is_floor and not worse and moved >= _HALF:
        by = f" by {pluralize(round(moved), 'question')}" if measure.unit == "share" else ""
        change = f"{measure.called} moved{by}"
        notes.append(
            f"{change} and never did in the runs learned from: {now}, {usual}; it becomes an alarm if it stays"
        )
    return notes


def unlog_chart(drawn: ControlChart, measure: CanaryMeasure) -> ControlChart:
    """Return a chart in the unit of its measure; `sd` stays that of logarithms for seconds."""
    if not measure.is_ratio:
        return drawn

    def in_unit(drawing: ControlChart | ChartPoint, *names: str) -> dict[str, Any]:
        values = ((name, getattr(drawing, name)) for name in names)
        return {name: None if v is None else measure.chart_to_value(v) for name, v in values}

    points = tuple(
        dataclasses.replace(point, **in_unit(point, "value", "ewma", "low", "high"))
        for point in drawn.points
    )
    limits = in_unit(drawn, "centre", "jump_low", "jump_high")
    return dataclasses.replace(drawn, **limits, points=points)


def _find_change_point(drawn: ControlChart, measure: CanaryMeasure, opening: int, free: int) -> int:
    """Where the change most probably began: the maximum of the likelihood for a step of any size.

    Pignatiello and Samuel (2001), Journal of Quality Technology 33.
    """
    sign = -1 if measure.better == "high" else 1
    best, where, total, count = -1.0, opening, 0.0, 0
    for place in range(opening, max(free, opening - _MAX_LOOK_BACK) - 1, -1):
        value = drawn.points[place].value
        if value is None:
            continue
        total += sign * (value - drawn.centre) / drawn.sd
        count += 1
        gain = total * total / count if total > 0 else 0.0
        if gain > best:
            best, where = gain, place
    return where


def _estimate_shift(
    drawn: ControlChart, measure: CanaryMeasure, since: int, until: int
) -> Estimate:
    from scipy.special import stdtrit

    seen = [p.value for p in drawn.points[since : until + 1] if p.value is not None]
    n, learnt = len(seen), drawn.learnt_from
    moved = math.fsum(seen) / n - drawn.centre
    half = float(stdtrit(learnt - 1, 0.975)) * drawn.sd * math.sqrt(1 / n + 1 / learnt)
    ends = [moved, moved - half, moved + half]
    if measure.is_ratio:
        ends = [measure.chart_to_value(drawn.centre) * math.expm1(end) for end in ends]
    if measure.unit == "share":  # which neither falls below 0 nor rises above 1
        ends = [min(max(end, -drawn.centre), 1 - drawn.centre) for end in ends]
    value, low, high = ends
    return Estimate(value=value, low=low, high=high, n=n, method="t-test against the learning runs")


def _describe_change(alarm: CanaryAlarm, measure: CanaryMeasure) -> str:
    moved = "fell" if measure.better == "high" else "rose"
    when = f"from run {alarm.since}" if alarm.since != alarm.run else f"in run {alarm.run}"
    now, usual = measure.format_distinct(alarm.value, alarm.expected)
    basis = f"n = {alarm.shift.n}; {alarm.chart} chart"
    if alarm.chart == "paired":
        basis = f"exact paired test of {alarm.shift.n} canaries with their earlier runs"
    size = f"on average {measure.format_shift(alarm.shift)} ({basis}, run {alarm.run})"
    text = f"{measure.called} {moved} {when}"
    if alarm.ended is not None:
        return f"{text}: {usual} is usual, {size}; recovered in run {alarm.ended}"
    return f"{text}: {now} now, {usual} is usual; {size}"


@dataclass(frozen=True)
class AlarmStatus:
    """State of the charts after the last reading; `episodes` lists all alarms."""

    status: Literal["learning", "ok", "alarm"]
    alarms: tuple[CanaryAlarm, ...]
    charts: Mapping[str, ControlChart]
    reason: str | None
    notes: tuple[str, ...] = ()
    episodes: tuple[CanaryAlarm, ...] = ()


def detect_alarms(
    readings: Sequence[RunReading],
    measures: Sequence[CanaryMeasure] = DEFAULT_MEASURES,
    *,
    learn: int = 20,
) -> AlarmStatus:
    """Put the runs of a history on control charts and say what is wrong after the last.

    The same history gives the same answer, and a longer one does not change the alarms of its
    beginning. Alarms are of changes for the worse; one for the better is a note.

    Parameters
    ----------
    readings : sequence of Reading
        Comparable ones (the same questions, the same k), in the order of their runs; none is
        fine.
    measures : sequence of Measure
        What is watched. A measure without any value in the first `learn` readings is not.
    learn : int
        From how many runs in a row it is learnt what is usual, at least 10: with fewer, limits
        are so wide that they see little.
    """
    first = readings[:learn]
    begun = [m for m in measures if any(m.plotted(reading) is not None for reading in first)]
    charts: dict[str, ControlChart] = {}
    episodes: list[CanaryAlarm] = []
    unlearnt: dict[str, list[str]] = {}  # why something is not learnt, and which measures
    notes: list[str] = []
    for measure in begun:
        values = [measure.plotted(reading) for reading in readings]
        step = measure.step(first)
        usable = [measure.learnable(value) for value in values]
        baseline = learn_baseline(usable, learn, step, tail=measure.tail)
        if isinstance(baseline, Reason):
            clause = f"{baseline}{_learning_advice(values, measure)}"
            unlearnt.setdefault(clause, []).append(measure.called)
            continue
        limits = chart_limits(baseline.n, measures=len(begun))
        drawn = control_chart(values, baseline, limits)
        charts[measure.name] = unlog_chart(drawn, measure)
        episodes += find_alarms(readings, drawn, measure)
        notes += chart_notes(readings, drawn, baseline, measure, step)
    health = [alarm for alarm in episodes if alarm.measure == DEFAULT_MEASURES[0].name]
    episodes += find_paired_alarms(readings, health)
    episodes.sort(key=lambda alarm: alarm.run)  # stable: of one run, in the order of the measures
    last = readings[-1].run if readings else None
    alarms = [alarm for alarm in episodes if alarm.ended is None or alarm.ended == last]
    status: Literal["learning", "ok", "alarm"] = "learning"
    if any(alarm.ended is None for alarm in alarms):
        status = "alarm"
    elif begun and begun[0].name in charts:  # the first measure is what the others explain
        status = "ok"
    reasons = [
        f"{'all measures' if 1 < len(named) == len(begun) else ', '.join(named)}: {clause}"
        for clause, named in unlearnt.items()
    ]
    return AlarmStatus(
        status=status,
        alarms=tuple(alarms),
        charts=charts,
        reason="; ".join(reasons) or (None if begun else "nothing is measured yet"),
        notes=tuple(notes),
        episodes=tuple(episodes),
    )


def _learning_advice(values: Sequence[float | None], measure: CanaryMeasure) -> str:
    """What to do about runs that are too bad to learn from; empty where there are none."""
    bad = sum(1 for value in values if value is not None and measure.learnable(value) is None)
    if not bad or measure.least is None:
        return ""
    runs = pluralize(bad, "run is", "runs are")
    limit = measure.written(measure.least)
    return f" ({runs} below {limit} and not learned from; fix the app or its canaries)"
