"""How often the alarms of `misslink canary` are false, and how fast they see a real drop.

    python benchmarks/canary/canary_run_length.py            # prints the tables, some minutes
    python benchmarks/canary/canary_run_length.py --write    # also into the .md and docs/canary.md
    python benchmarks/canary/canary_run_length.py --paired   # the paired test alone, into the .md
    python benchmarks/canary/canary_run_length.py --smoke    # few histories, to see that it runs

Whole canary sets are simulated with a fixed seed: five measures a run, of which health is drawn
question by question from chances of its own, learnt with `learn_baseline`, watched within the
limits of `limits_for`. The charts themselves are computed here for thousands of histories at once,
and held against `misslink.canary.alarms.detect_alarms`, one by one, before anything is counted.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from misslink.canary.alarms import (
    DEFAULT_MEASURES,
    CanaryMeasure,
    RunReading,
    detect_alarms,
    find_paired_alarms,
)
from misslink.stats import proportion
from misslink.stats.control_charts import ChartLimits, ProcessBaseline, chart_limits, learn_baseline
from misslink.types import Estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEED = 8
HISTORIES = 1_000  # of each row; a share of 63% has a standard error of 1.5 points
EVERY = 370
QUIET = 20  # runs in control before a drop
AFTER = 500  # runs that are watched after it
QUESTIONS = (10, 30, 100)
LEARN = (10, 20, 50)
DROPS = (0.02, 0.05, 0.10)
# Of the questions, which share is answered right how often; together 0.9.
NOISE = {
    "none: each question always the same": ((0.9, 1.0), (0.1, 0.0)),
    "some: a fifth is a toss-up": ((0.8, 1.0), (0.2, 0.5)),
    "most: each is right 9 times in 10": ((1.0, 0.9),),
}
ROOT = Path(__file__).parents[2]
PAGES = Path(__file__).with_suffix(".md"), ROOT / "docs" / "canary.md"
MARKS = "<!-- run lengths -->", "<!-- /run lengths -->"
PAIRED_MARKS = "<!-- paired -->", "<!-- /paired -->"
PAIRED_HISTORIES = 200
EARLIER = (1, 5, 20)  # runs before a loss
LOST = 0.15, 0.27  # share of the canaries that fail at once from one run on


@dataclasses.dataclass(frozen=True)
class Watch:
    """The histories of a measure on its charts: where watching begins, and the first alarm."""

    begins: Ints  # place in the history; its length where nothing was learnt
    alarm: Ints  # place of the first alarm; the length of the history where there is none


def drawn(
    noise: tuple[tuple[float, float], ...], n: int, factor: Floats, rng: np.random.Generator
) -> Floats:
    """Shares of right answers: histories x runs, each chance times the run's factor."""
    total = np.zeros((HISTORIES, len(factor)))
    left = n
    for place, (share, chance) in enumerate(noise):
        size = left if place == len(noise) - 1 else round(share * n)
        left -= size
        total += rng.binomial(size, chance * factor, size=total.shape)
    return total / n


def simulated(
    noise: tuple[tuple[float, float], ...], n: int, factor: Floats, rng: np.random.Generator
) -> dict[str, Floats]:
    """What a canary set measures; only health drops."""
    same = np.ones_like(factor)
    shape = HISTORIES, len(factor)
    return {
        "health": drawn(noise, n, factor, rng),
        "coverage": drawn(noise, n, same, rng),
        "top_score": rng.normal(0.7, 0.02, shape),
        "errors": rng.binomial(n, 0.002, shape) / n,
        "latency_s": rng.lognormal(0.0, 0.15, shape),
    }


def watched(measure: CanaryMeasure, values: Floats, n: int, learn: int, measures: int) -> Watch:
    """Learn each history and put it on its charts, all at once."""
    plotted = np.log(values) if measure.is_ratio else values
    reading = [RunReading(place, 0.0, {measure.name: 1.0}, n) for place in range(learn)]
    runs = values.shape[1]
    learnt: list[ProcessBaseline | None] = []
    for history, own in zip(plotted, values, strict=True):
        step = measure.step(
            [
                dataclasses.replace(r, values={measure.name: v})
                for r, v in zip(reading, own, strict=False)
            ]
        )
        usable = [measure.learnable(value) for value in history[: 4 * learn].tolist()]
        found = learn_baseline(usable, learn, step, tail=measure.tail)
        learnt.append(None if isinstance(found, str) else found)
    limits = [None if b is None else chart_limits(b.n, measures=measures) for b in learnt]
    begins = np.array([runs if b is None else b.end for b in learnt])
    sign = -1.0 if measure.better == "high" else 1.0

    def column(of: Callable[[ProcessBaseline], float]) -> Floats:
        return np.array([1.0 if b is None else of(b) for b in learnt])

    def bound(of: Callable[[ChartLimits], float]) -> Floats:
        return np.array([np.inf if each is None else of(each) for each in limits])

    centre, sd = column(lambda b: b.centre + b.offset), column(lambda b: b.sd)
    scores = (plotted - centre[:, None]) / sd[:, None]
    skew = column(lambda b: b.skew)[:, None]
    if measure.tail:
        scores = 6 / skew * (np.cbrt(skew * scores / 2 + 1) - 1) + skew / 6
    scores *= sign
    alarm = first_alarm(
        scores, begins, bound(lambda x: x.ewma), bound(lambda x: x.cusum), bound(lambda x: x.jump)
    )
    return Watch(begins=begins, alarm=alarm)


def first_alarm(scores: Floats, begins: Ints, ewma: Floats, cusum: Floats, jump: Floats) -> Ints:
    """Place of the first signal for the worse (upwards) of any of the three charts."""
    weight, slack = ChartLimits(1.0, 1.0, 1.0).weight, ChartLimits(1.0, 1.0, 1.0).slack
    histories, runs = scores.shape
    average, total, age = np.zeros(histories), np.zeros(histories), np.zeros(histories)
    alarm = np.full(histories, runs)
    for place in range(int(begins.min()), runs):
        on = begins <= place
        age += on
        tame = np.where(on, np.clip(scores[:, place], -jump, jump), 0.0)
        average = np.where(on, average + weight * (tame - average), 0.0)
        total = np.where(on, np.maximum(0.0, total + tame - slack), 0.0)
        spread = np.sqrt(weight / (2 - weight) * (1 - (1 - weight) ** (2 * age)))
        over = (scores[:, place] > jump) | (average > ewma * spread) | (total > cusum)
        alarm = np.where(on & over & (alarm == runs), place, alarm)
    return alarm


def verify(noise: tuple[tuple[float, float], ...], n: int, learn: int) -> None:
    """Hold what is computed here against what the product says of the same histories."""
    rng = np.random.default_rng(SEED)
    factor = np.concatenate([np.ones(3 * learn), np.full(40, 0.9)])
    values = simulated(noise, n, factor, rng)
    found = {
        m.name: watched(m, values[m.name][:25], n, learn, len(DEFAULT_MEASURES))
        for m in DEFAULT_MEASURES
    }
    for history in range(25):
        readings = [
            RunReading(run, 0.0, {name: float(of[history, run]) for name, of in values.items()}, n)
            for run in range(len(factor))
        ]
        said = detect_alarms(readings, learn=learn)
        for measure in DEFAULT_MEASURES:
            alarms = [a.run for a in said.episodes if a.measure == measure.name]
            here = int(found[measure.name].alarm[history])
            assert here == (alarms[0] if alarms else len(factor)), (measure.name, history)


def in_control(name: str, n: int, learn: int) -> list[str]:
    """Chance of a false alarm within EVERY runs: of health alone, and of the whole set."""
    rng = np.random.default_rng([SEED, n, learn, 0])
    runs = 4 * learn + EVERY
    values = simulated(NOISE[name], n, np.ones(runs), rng)
    waits = []
    for measure in DEFAULT_MEASURES:
        seen = watched(measure, values[measure.name], n, learn, len(DEFAULT_MEASURES))
        wait = seen.alarm - seen.begins + 1
        waits.append(np.where((seen.begins < runs) & (seen.alarm < runs), wait, EVERY + 1))
    any_of = np.min(waits, axis=0)
    return [
        written(proportion(int((wait <= EVERY).sum()), HISTORIES)) for wait in (waits[0], any_of)
    ]


def after_a_drop(name: str, n: int, learn: int, drop: float) -> str:
    """Runs from a drop of health to its alarm: the median and the 90% quantile."""
    rng = np.random.default_rng([SEED, n, learn, round(100 * drop)])
    begins = 2 * learn + QUIET
    factor = np.concatenate([np.ones(begins), np.full(AFTER, 1 - drop / 0.9)])
    values = drawn(NOISE[name], n, factor, rng)
    seen = watched(DEFAULT_MEASURES[0], values, n, learn, len(DEFAULT_MEASURES))
    ready = (seen.begins <= begins) & (seen.alarm >= begins)
    waits = np.sort(seen.alarm[ready] - begins + 1)
    middle, late = (int(np.quantile(waits, q, method="higher")) for q in (0.5, 0.9))
    return " / ".join(f"> {AFTER}" if w > AFTER else str(w) for w in (middle, late))


def written(share: Estimate) -> str:
    """A share and its interval in per cent."""
    assert share.value is not None
    assert share.low is not None
    assert share.high is not None
    return f"{100 * share.value:.0f}% [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def table() -> Iterator[str]:
    """The rows of the page, as they are done."""
    yield (
        "| questions | learnt from | noise | false alarm of health | of any measure "
        "| drop of 2 points | of 5 points | of 10 points |"
    )
    yield "| --: | --: | --- | --: | --: | --: | --: | --: |"
    for n, learn, name in itertools.product(QUESTIONS, LEARN, NOISE):
        cells = [str(n), str(learn), name.partition(":")[0], *in_control(name, n, learn)]
        cells += [after_a_drop(name, n, learn, drop) for drop in DROPS]
        yield f"| {' | '.join(cells)} |"


def healthy_runs(
    noise: tuple[tuple[float, float], ...], n: int, runs: int, rng: np.random.Generator
) -> list[RunReading]:
    """Runs in which every canary is healthy by a chance of its own."""
    chances = np.repeat([chance for _, chance in noise], [round(s * n) for s, _ in noise])
    drawn_health = rng.random((runs, n)) < chances
    return [
        RunReading(run, 0.0, {}, n, healthy={str(name): bool(h) for name, h in enumerate(healthy)})
        for run, healthy in enumerate(drawn_health)
    ]


def paired_false_alarms(name: str, n: int, histories: int = PAIRED_HISTORIES) -> int:
    """In how many histories of EVERY runs the paired test has an alarm."""
    rng = np.random.default_rng([SEED, n, len(name)])
    return sum(
        bool(find_paired_alarms(healthy_runs(NOISE[name], n, EVERY, rng), ()))
        for _ in range(histories)
    )


def paired_detections(name: str, n: int, earlier: int, share: float) -> int:
    """In how many histories a loss of canaries is an alarm in its first run."""
    rng = np.random.default_rng([SEED, n, earlier, round(100 * share)])
    seen = 0
    for _ in range(PAIRED_HISTORIES):
        *before, last = healthy_runs(NOISE[name], n, earlier + 1, rng)
        lost = rng.choice(n, round(share * n), replace=False)
        healthy = {**last.healthy, **{str(canary): False for canary in lost}}
        series = [*before, dataclasses.replace(last, healthy=healthy)]
        seen += any(alarm.run == last.run for alarm in find_paired_alarms(series, ()))
    return seen


def paired_table() -> Iterator[str]:
    """The rows of the paired test."""
    cells = [f"{share:.0%} lost after {e}" for share, e in itertools.product(LOST, EARLIER)]
    yield f"| canaries | noise | false alarm in {EVERY} runs | {' | '.join(cells)} |"
    yield f"| --: | --- | --: |{' --: |' * len(cells)}"
    for n, name in itertools.product((30, 60), NOISE):
        counts = [paired_false_alarms(name, n)]
        counts += [paired_detections(name, n, e, s) for s, e in itertools.product(LOST, EARLIER)]
        row = [str(n), name.partition(":")[0]]
        row += [written(proportion(count, PAIRED_HISTORIES)) for count in counts]
        yield f"| {' | '.join(row)} |"


def put(page: Path, lines: list[str], marks: tuple[str, str] = MARKS) -> None:
    """Put the table between its marks."""
    text = page.read_text(encoding="utf-8")
    between = re.compile(f"{re.escape(marks[0])}.*{re.escape(marks[1])}", re.DOTALL)
    assert between.search(text), f"{page} has no place for the table"
    whole = "\n".join([marks[0], *lines, marks[1]])
    page.write_text(between.sub(lambda _: whole, text), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Verify, print, and write where that is asked for."""
    global HISTORIES, QUESTIONS, LEARN, DROPS
    if "--smoke" in arguments:
        HISTORIES, QUESTIONS, LEARN, DROPS = 25, (10,), (10,), (0.10,)
    if "--paired" in arguments:
        lines = list(paired_table())
        print("\n".join(lines))
        put(PAGES[0], lines, PAIRED_MARKS)
        return
    for learn, noise in itertools.product(LEARN, NOISE.values()):
        verify(noise, 30, learn)
    print("the same first alarms as misslink.canary.alarms.detect_alarms", file=sys.stderr)
    lines = []
    for line in table():
        print(line, flush=True)
        lines.append(line)
    if "--write" in arguments:
        for page in PAGES:
            put(page, lines)


if __name__ == "__main__":
    main(sys.argv[1:])
