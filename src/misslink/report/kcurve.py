"""Recall and precision against the cut-off k, as SVG geometry and as rows.

Beyond what the app retrieved, the true ranks of missed passages tell what a larger k would bring.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from misslink.report.wording import Shown, percent, plural, shown
from misslink.types import Case, Estimate, Passage, Run, Trace

if TYPE_CHECKING:
    from misslink.retrieval import Hits

__all__ = ["Curve", "Line", "Tick", "curve"]

# Cut-offs that are told: all of the first ten, then ever fewer, as the eye has it on a log scale.
_CUTOFFS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 750, 1000)
_NAMED = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # of them, those on the axis
_WIDTH, _HEIGHT = 640.0, 290.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 546.0, 26.0, 246.0
_APART = 34.0  # a label has two lines
_LOWEST = 16.0  # a label's first line above the axis, so that the second is not among its names
_CLOSE = 18.0  # between two names on the axis
_MEASURES = ("recall", "precision")


@dataclass(frozen=True)
class Tick:
    """A place on an axis and its name."""

    at: float
    label: str


@dataclass(frozen=True)
class Line:
    """One metric: its line, the band of its interval, and the label at its right end."""

    name: str
    path: str
    band: str
    label_y: float
    last: str


@dataclass(frozen=True)
class Curve:
    """The whole drawing, and ``rows`` of cut-off, recall and precision; ``k`` is the run's.

    ``k_x`` is where it stands on the drawing, None where it lies beyond.
    """

    width: float
    height: float
    frame: tuple[float, float, float, float]
    xs: tuple[Tick, ...]
    ys: tuple[Tick, ...]
    lines: tuple[Line, ...]
    k: int
    k_x: float | None
    rows: tuple[tuple[int, Shown, Shown], ...]
    facts: tuple[str, ...]


def curve(run: Run, k: int) -> Curve | None:
    """Recall and precision at every cut-off up to the depth that is known of all cases.

    Parameters
    ----------
    run : Run
    k : int
        Cut-off of the run, from 1.

    Returns
    -------
    Curve or None
        None where no case has relevant passages and a ranking, or only one cut-off is known.
    """
    hits, measured = _hits(run)
    if hits is None:
        return None
    depth, known = _depth(hits, measured, k)
    cutoffs = sorted({*(j for j in _CUTOFFS if j <= depth), min(k, depth), depth})
    if len(cutoffs) == 1:
        return None
    means = {name: _means(hits, name, cutoffs) for name in _MEASURES}
    places = [_x(j, depth) for j in cutoffs]
    return Curve(
        width=_WIDTH,
        height=_HEIGHT,
        frame=(_LEFT, _TOP, _RIGHT, _BOTTOM),
        xs=_named(depth, k),
        ys=tuple(Tick(_y(share), percent(share)) for share in (0, 0.5, 1)),
        lines=_lines(means, places),
        k=k,
        k_x=_x(k, depth) if k <= depth else None,
        rows=tuple(
            (j, shown(f"recall@{j}", recall), shown(f"precision@{j}", precision))
            for j, recall, precision in zip(cutoffs, *means.values(), strict=True)
        ),
        facts=(known, *_asked(measured, k)),
    )


def _hits(run: Run) -> tuple[Hits | None, list[Trace]]:
    """The hits of all measured cases that need something, at their true ranks."""
    import numpy as np

    from misslink.retrieval import collect, needs, why_unmeasured

    traces = {trace.case_id: trace for trace in run.traces}
    cases: list[Case] = []
    measured: list[Trace] = []
    for case in run.cases:
        trace = traces.get(case.id)
        if trace and not why_unmeasured(trace) and needs(case, trace.retrieved):
            cases.append(case)
            measured.append(trace)
    if not cases:
        return None, []
    rankings = [_ranking(trace) for trace in measured]
    hits = collect(cases, [[passage for passage, _ in ranking] for ranking in rankings])
    # What lies between is not known by name and needed by nobody, so it takes no place here; a
    # hit's place in the short list becomes its true rank.
    of_case = hits.case[hits.row]
    true = [
        rankings[case][place - 1][1]
        for case, place in zip(of_case.tolist(), hits.rank.tolist(), strict=True)
    ]
    return replace(hits, rank=np.array(true, dtype=np.int64)), measured


def _ranking(trace: Trace) -> list[tuple[Passage, int]]:
    """What was retrieved and what was found further down, best first, each with its true rank."""
    ranking = [(passage, at) for at, passage in enumerate(trace.retrieved, 1)]
    held = {passage.id for passage in trace.retrieved}
    deeper = sorted((one for one in trace.deeper if one.id not in held), key=lambda one: one.rank)
    return ranking + [(one, max(one.rank, len(ranking) + 1)) for one in deeper]


def _depth(hits: Hits, measured: Sequence[Trace], k: int) -> tuple[int, str]:
    """The depth to which the ranks of all cases are known, and a sentence that says so."""
    found = hits.best(hits.sums(hits.found, None) / hits.needs)
    depths = [
        trace.depth or max(len(trace.retrieved), k)
        for trace, share in zip(measured, found, strict=True)
        if share != 1  # of a complete one nothing further down matters
    ]
    cases = plural(len(measured), "case")
    if depths:
        depth = min(depths)
        return depth, f"Ranks are known to {depth:,} for all {cases} with needed passages."
    widest = max(len(trace.retrieved) for trace in measured)
    last = int(hits.rank.max())
    return max(k, widest, last), f"All that {cases} need was found, at rank {last:,} at the latest."


def _asked(measured: Sequence[Trace], k: int) -> tuple[str, ...]:
    """How many passages the app itself retrieves, where that is another number than k."""
    widths = Counter(len(trace.retrieved) for trace in measured)
    width, count = widths.most_common(1)[0]
    if width == k or not width:
        return ()
    often = "always" if count == len(measured) else f"in {count:,} of {len(measured):,} cases"
    return (f"The app itself retrieves {plural(width, 'passage')}, {often}.",)


def _means(hits: Hits, name: str, cutoffs: Sequence[int]) -> list[Estimate]:
    """The mean at each cut-off, all of them in one pass."""
    from misslink.retrieval import parse
    from misslink.retrieval.families import per_case
    from misslink.stats import mean

    values, known = per_case([parse(f"{name}@{j}") for j in cutoffs], hits)
    return [mean(own[has].tolist()) for own, has in zip(values, known, strict=True)]


def _lines(means: dict[str, list[Estimate]], places: Sequence[float]) -> tuple[Line, ...]:
    drawn = {name: _points(places, [one.value for one in found]) for name, found in means.items()}
    ends = {name: points[-1][1] for name, points in drawn.items()}
    upper, lower = sorted(ends, key=ends.__getitem__)
    gap = ends[lower] - ends[upper]
    if gap < _APART:  # two labels that would overlap move apart by as much as they lack
        ends[upper] -= (_APART - gap) / 2
        ends[lower] += (_APART - gap) / 2
    return tuple(
        Line(
            name=name,
            path=_path(drawn[name]),
            band=_path(
                _points(places, [one.high for one in found])
                + _points(places, [one.low for one in found])[::-1]
            )
            + "Z",
            label_y=round(min(ends[name], _BOTTOM - _LOWEST), 1),
            last=shown(name, found[-1]).value,
        )
        for name, found in means.items()
    )


def _named(depth: int, k: int) -> tuple[Tick, ...]:
    """Names on the axis: k first, then as many others as do not run into one that is there."""
    ticks: list[Tick] = []
    for j in dict.fromkeys((k, 1, depth, *_NAMED)):
        x = _x(j, depth)
        if j <= depth and all(abs(tick.at - x) >= _CLOSE for tick in ticks):
            ticks.append(Tick(x, f"{j:,}"))
    return tuple(sorted(ticks, key=lambda tick: tick.at))


def _points(places: Sequence[float], shares: Sequence[float | None]) -> list[tuple[float, float]]:
    """The points of a line; what was not measured has none."""
    return [(x, _y(share)) for x, share in zip(places, shares, strict=True) if share is not None]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _x(j: int, depth: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * math.log(j) / math.log(max(depth, 2)), 1)


def _y(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)
