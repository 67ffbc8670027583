"""Charts of the report as SVG geometry: flow, map and curve over the cutoff."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from misslink.document_model import Document, parse_document
from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.parts import items_of
from misslink.render.format import (
    FormattedEstimate,
    format_estimate,
    format_percent,
    pluralize,
    shorten,
)
from misslink.report.cutoff_advice import advise_cutoff
from misslink.report.glossary import ANSWERS, RETRIEVALS
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.types import Estimate, Outcome, Passage, Run, Trace

if TYPE_CHECKING:
    from misslink.retrieval import Hits


_OutcomeTriple = tuple[str, str, str]  # retrieval outcome, answer outcome, failure mode

_BAR_WIDTH = 10.0  # width of a node
_NODE_GAP = 19.0  # between nodes, so that the labels of two thin ones never meet
_DIAGRAM_HEIGHT = 200.0  # all cases together
_COLUMN_POSITIONS = (136.0, 336.0, 536.0)  # left of the first stands "None needed 100,000"
_FLOW_WIDTH = 734.0
_FLOW_TOP = 26.0
_FILTERS = ("retrieval", "answer", "failure")
_OUTCOME_ORDERS = (tuple(RETRIEVALS), tuple(ANSWERS), tuple(FAILURE_MODES))
_OUTCOME_LABELS = (
    RETRIEVALS,
    ANSWERS,
    {failure: words.label for failure, words in FAILURE_MODES.items()},
)


@dataclass(frozen=True)
class FlowNode:
    """All cases of one outcome, in the column of its kind."""

    column: int
    key: str
    label: str
    count: int
    y: float
    height: float
    fragment: str


@dataclass(frozen=True)
class FlowRibbon:
    """The cases with the same three outcomes."""

    retrieval: str
    answer: str
    failure: str
    count: int
    tone: str
    path: str
    fragment: str


@dataclass(frozen=True)
class Flow:
    """The flow; ``columns`` are where its columns begin, ``bar`` the width of a node."""

    width: float
    height: float
    columns: tuple[float, ...]
    bar: float
    nodes: tuple[FlowNode, ...]
    ribbons: tuple[FlowRibbon, ...]


def draw_sankey(links: Sequence[Outcome]) -> Flow | None:
    """Lay out the flow of `links`, with the most severe outcome on top; None without links."""
    counts: Counter[_OutcomeTriple] = Counter(
        (link.retrieval, link.answer, link.failure or "inconclusive") for link in links
    )
    if not counts:
        return None
    unit = _DIAGRAM_HEIGHT / counts.total()
    nodes = [_node_column(index, counts, unit) for index in range(3)]
    tops = [{node.key: node.y for node in column} for column in nodes]
    order = sorted(
        counts, key=lambda triple: [_OUTCOME_ORDERS[i].index(triple[i]) for i in range(3)]
    )
    bands = _ribbon_edges(order, counts, tops, unit)
    ribbons = tuple(
        FlowRibbon(
            retrieval=RETRIEVALS[triple[0]],
            answer=ANSWERS[triple[1]],
            failure=FAILURE_MODES[triple[2]].label,
            count=counts[triple],
            tone=_ribbon_tone(triple),
            path=_ribbon_path(bands[triple], counts[triple] * unit),
            fragment=view_fragment(**dict(zip(_FILTERS, triple, strict=True))),
        )
        for triple in order
    )
    everything = tuple(node for column in nodes for node in column)
    height = max(node.y + node.height for node in everything) + 8
    return Flow(_FLOW_WIDTH, round(height, 1), _COLUMN_POSITIONS, _BAR_WIDTH, everything, ribbons)


def _node_column(index: int, counts: Counter[_OutcomeTriple], unit: float) -> list[FlowNode]:
    sums: Counter[str] = Counter()
    for triple, count in counts.items():
        sums[triple[index]] += count
    y = _FLOW_TOP
    nodes = []
    for key in _OUTCOME_ORDERS[index]:
        if sums[key]:
            tall = sums[key] * unit
            label = _OUTCOME_LABELS[index][key]
            nodes.append(
                FlowNode(
                    column=index,
                    key=key,
                    label=label,
                    count=sums[key],
                    y=round(y, 1),
                    height=round(max(tall, 1), 1),
                    fragment=view_fragment(**{_FILTERS[index]: key}),
                )
            )
            y += tall + _NODE_GAP
    return nodes


def _ribbon_edges(
    order: Sequence[_OutcomeTriple],
    counts: Counter[_OutcomeTriple],
    tops: Sequence[dict[str, float]],
    unit: float,
) -> dict[_OutcomeTriple, list[float]]:
    """Top edge of every ribbon where it leaves and enters: left, middle in, middle out, right."""
    # Ribbons are stacked in the order of the far end, so that few of them cross.
    stacks = ((0, (0, 1, 2)), (1, (1, 0, 2)), (1, (1, 2, 0)), (2, (2, 1, 0)))
    edges: dict[_OutcomeTriple, list[float]] = {triple: [] for triple in order}
    for column, keys in stacks:
        next_free = dict(tops[column])
        places = {triple: [_OUTCOME_ORDERS[i].index(triple[i]) for i in keys] for triple in order}
        for triple in sorted(order, key=places.__getitem__):
            edges[triple].append(next_free[triple[column]])
            next_free[triple[column]] += counts[triple] * unit
    return edges


def _ribbon_path(tops: Sequence[float], tall: float) -> str:
    first = _curved_band(
        _COLUMN_POSITIONS[0] + _BAR_WIDTH, tops[0], _COLUMN_POSITIONS[1], tops[1], tall
    )
    second = _curved_band(
        _COLUMN_POSITIONS[1] + _BAR_WIDTH, tops[2], _COLUMN_POSITIONS[2], tops[3], tall
    )
    return f"{first} {second}"


def _curved_band(x0: float, y0: float, x1: float, y1: float, tall: float) -> str:
    mid = (x0 + x1) / 2
    return (
        f"M{x0:.1f} {y0:.1f}C{mid:.1f} {y0:.1f} {mid:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        f"V{y1 + tall:.1f}"
        f"C{mid:.1f} {y1 + tall:.1f} {mid:.1f} {y0 + tall:.1f} {x0:.1f} {y0 + tall:.1f}Z"
    )


def _ribbon_tone(triple: _OutcomeTriple) -> str:
    retrieval, answer, failure = triple
    if retrieval == "miss" and answer == "unfaithful":
        return "linked"
    return "failed" if failure in FAILURES else "fine"


_MAP_SIZE = 560.0  # a square: both axes of the map have one scale
_MAP_EDGE = 12.0  # so that no mark is cut by the frame
_TITLE_LENGTH = 300  # characters of a tooltip
_UNLINKED = "other"
_MODE_SHAPES = {
    **{name: mode.shape for name, mode in FAILURE_MODES.items()},
    _UNLINKED: "M-5-1H5V1H-5Z",
}


class MapPoint(Document):
    """A question or a passage on the embedding map."""

    id: str
    x: float | None
    y: float | None
    text: str
    failure: str


class MapLine(Document):
    """From a question to a passage it missed."""

    case_id: str
    passage_id: str


class EmbeddingMap(Document):
    """``map.json``."""

    method: str
    embedding: str
    queries: tuple[MapPoint, ...]
    passages: tuple[MapPoint, ...]
    lines: tuple[MapLine, ...]
    left_out: int
    queries_left_out: int


@dataclass(frozen=True)
class MapMark:
    """A question in the color and shape of its failure mode, or a passage.

    A passage is ``needed`` where a question missed it.
    """

    kind: str
    id: str
    x: float
    y: float
    text: str
    href: str
    needed: bool = False

    @property
    def owner(self) -> str:
        return FAILURE_MODES[self.kind].owner if self.kind in FAILURE_MODES else "unknown"

    @property
    def shape(self) -> str:
        return _MODE_SHAPES[self.kind]

    @property
    def label(self) -> str:
        return FAILURE_MODES[self.kind].label if self.kind in FAILURE_MODES else "Not linked"


@dataclass(frozen=True)
class Scatter:
    """The drawn map, as wide as it is high.

    ``segments`` lead from a question to a passage that it missed; ``keys`` are a mark of each kind,
    and how many questions have it.
    """

    size: float
    facts: str
    dots: tuple[MapMark, ...]
    segments: tuple[tuple[MapMark, MapMark], ...]
    marks: tuple[MapMark, ...]
    keys: tuple[tuple[MapMark, int], ...]


def draw_scatter(run: Run) -> Scatter | None:
    """Lay out the run's map; None if it has none."""
    if not run.map:
        return None
    document = parse_document(EmbeddingMap, run.map, "map.json")
    numbers = number_cases(run.cases)
    questions, passages = (_place_points(p, numbers) for p in (document.queries, document.passages))
    if not questions:
        return None
    segments = tuple(
        (questions[line.case_id], passages[line.passage_id])
        for line in document.lines
        if line.case_id in questions and line.passage_id in passages
    )
    missed = {passage.id for _, passage in segments}
    dots = (replace(dot, needed=dot.id in missed) for dot in passages.values())
    order = list(_MODE_SHAPES)
    counts = Counter(mark.kind for mark in questions.values())
    of_kind = {mark.kind: mark for mark in questions.values()}
    return Scatter(
        size=_MAP_SIZE,
        facts=_map_facts(document),
        dots=tuple(sorted(dots, key=lambda dot: dot.needed)),  # needed ones last, to be on top
        segments=segments,
        marks=tuple(sorted(questions.values(), key=lambda mark: -order.index(mark.kind))),
        keys=tuple((of_kind[kind], counts[kind]) for kind in order if kind in of_kind),
    )


def _place_points(points: Iterable[MapPoint], numbers: Mapping[str, int]) -> dict[str, MapMark]:
    """The marks by id; coordinates in the document run from 0 to 1, upwards."""
    return {
        point.id: MapMark(
            _known_mode(point.failure),
            point.id,
            _map_coordinate(point.x),
            _map_coordinate(1 - point.y),
            shorten(point.text, _TITLE_LENGTH),
            case_fragment(numbers[point.id]) if point.id in numbers else "",
        )
        for point in points
        if point.x is not None and point.y is not None
    }


def _map_coordinate(share: float) -> float:
    return round(_MAP_EDGE + min(max(share, 0.0), 1.0) * (_MAP_SIZE - 2 * _MAP_EDGE), 1)


def _known_mode(failure: str) -> str:
    """A known failure mode or 'other': no text of a document becomes a name on the page."""
    return failure if failure in FAILURE_MODES else _UNLINKED


def _map_facts(document: EmbeddingMap) -> str:
    methods = {"umap": "UMAP", "pca": "principal components (PCA)"}
    method, embedding = document.method, document.embedding
    facts = "Laid out" + (f" by {methods.get(method, method)}" if method else "")
    facts += f" from the vectors of {embedding}." if embedding else "."
    counts = (("Passages", document.left_out), ("Questions", document.queries_left_out))
    for label, left_out in counts:
        if left_out:
            facts += f" {label} not drawn, for want of room: {left_out:,}."
    return facts


# Cutoffs that are told: all of the first ten, then ever fewer, as the eye has it on a log scale.
_CUTOFFS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 750, 1000)
_LABELLED_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # of them, those on the axis
_WIDTHS, _HEIGHT = (640.0, 350.0), 290.0
_LEFT, _LABELS, _TOP, _BOTTOM = 52.0, 94.0, 26.0, 246.0
_LABEL_GAP = 34.0  # a label has two lines
_MIN_LABEL_GAP = (
    16.0  # a label's first line above the axis, so that the second is not among its names
)
_MIN_LINE_GAP = 18.0  # between two names on the axis
_MEASURES = ("recall", "precision")


@dataclass(frozen=True)
class AxisTick:
    """A name on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class CurveLine:
    """The line of a metric with its band; ``last`` is its value at the deepest cutoff."""

    name: str
    path: str
    band: str
    label_y: float
    last: str


@dataclass(frozen=True)
class CutoffCurve:
    """Recall and precision by cutoff for a window; ``rows`` are a cutoff and both metrics."""

    width: float
    height: float
    frame: tuple[float, float, float, float]
    xs: tuple[AxisTick, ...]
    ys: tuple[AxisTick, ...]
    lines: tuple[CurveLine, ...]
    k: int
    k_x: float | None
    rows: tuple[tuple[int, FormattedEstimate, FormattedEstimate], ...]
    facts: tuple[str, ...]


def draw_cutoff_curves(run: Run, k: int) -> tuple[CutoffCurve, ...]:
    """Draw recall and precision at every cutoff up to the depth that is known of all cases.

    Returns the drawing for a wide and for a narrow window; nothing where no case has relevant
    passages and a ranking, or only one cutoff is known.
    """
    hits, measured = _collect_hits(run)
    if hits is None:
        return ()
    depth, depth_note = _known_depth(hits, measured, k)
    cutoffs = sorted({*(j for j in _CUTOFFS if j <= depth), min(k, depth), depth})
    if len(cutoffs) == 1:
        return ()
    from misslink.stats import mean

    means, of_cases = {}, {}
    for name in _MEASURES:
        of_cases[name] = _cutoff_values(hits, name, cutoffs)
        means[name] = [mean(values) for values in of_cases[name]]
    rows = tuple(
        (j, format_estimate(f"recall@{j}", recall), format_estimate(f"precision@{j}", precision))
        for j, recall, precision in zip(cutoffs, *means.values(), strict=True)
    )
    passages = sum(trace.width for trace in measured)
    advice = advise_cutoff(
        dict(zip(cutoffs, of_cases["recall"], strict=True)),
        {j: one.value or 0.0 for j, one in zip(cutoffs, means["precision"], strict=True)},
        k,
        sum(trace.characters for trace in measured) / max(passages, 1),
    )
    facts = (depth_note, *_retrieved_note(measured, k), advice)
    curves = []
    for width in _WIDTHS:
        right = width - _LABELS
        places = [_x_position(j, depth, right) for j in cutoffs]
        curves.append(
            CutoffCurve(
                width=width,
                height=_HEIGHT,
                frame=(_LEFT, _TOP, right, _BOTTOM),
                xs=_axis_ticks(depth, k, right),
                ys=tuple(AxisTick(_y_position(y), format_percent(y)) for y in (0, 0.5, 1)),
                lines=_curve_lines(means, places),
                k=k,
                k_x=_x_position(k, depth, right) if k <= depth else None,
                rows=rows,
                facts=facts,
            )
        )
    return tuple(curves)


class _Measured(NamedTuple):
    """What is told of a trace: how many passages it retrieved, how long, and to which depth."""

    width: int
    characters: int
    depth: int | None


def _collect_hits(run: Run) -> tuple[Hits | None, list[_Measured]]:
    """The hits of all measured cases that need something, at their true ranks."""
    import numpy as np

    from misslink.retrieval import case_needs, collect_hits, compared_trace, unmeasured_reason

    trace_of = compared_trace(run.traces)
    places: list[int] = []
    measured: list[_Measured] = []
    for place, case in enumerate(run.cases):
        trace = trace_of(case)
        if trace and not unmeasured_reason(trace) and case_needs(case, trace.retrieved):
            places.append(place)
            measured.append(_Measured(len(trace.retrieved), trace.characters, trace.depth))
    if not places:
        return None, []
    cases = items_of(run.cases, places)
    ranks: list[array[int]] = []

    def rankings() -> Iterator[list[Passage]]:
        for case in cases:
            ranking = _full_ranking(trace_of(case))
            ranks.append(array("q", [rank for _, rank in ranking]))
            yield [passage for passage, _ in ranking]

    hits = collect_hits(cases, rankings())
    # What lies between is not known by name and needed by nobody, so it takes no place here; a
    # hit's place in the short list becomes its true rank.
    of_case = hits.case[hits.row]
    true = [
        ranks[case][place - 1]
        for case, place in zip(of_case.tolist(), hits.rank.tolist(), strict=True)
    ]
    return replace(hits, rank=np.array(true, dtype=np.int64)), measured


def _full_ranking(trace: Trace) -> list[tuple[Passage, int]]:
    """What was retrieved and what was found further down, best first, each with its true rank."""
    ranking = [(passage, rank) for rank, passage in enumerate(trace.retrieved, 1)]
    retrieved = {passage.id for passage in trace.retrieved}
    deeper = sorted(
        (passage for passage in trace.deeper if passage.id not in retrieved),
        key=lambda passage: passage.rank,
    )
    return ranking + [(passage, max(passage.rank, len(ranking) + 1)) for passage in deeper]


def _known_depth(hits: Hits, measured: Sequence[_Measured], k: int) -> tuple[int, str]:
    """The depth to which the ranks of all cases are known, and a sentence that says so."""
    recalls = hits.best(hits.sums(hits.satisfied, None) / hits.needs)
    depths = [
        trace.depth or max(trace.width, k)
        for trace, share in zip(measured, recalls, strict=True)
        if share != 1  # of a complete one nothing further down matters
    ]
    cases = pluralize(len(measured), "case")
    if depths:
        depth = min(depths)
        return depth, f"Ranks are known to {depth:,} for all {cases} with relevant passages."
    widest = max(trace.width for trace in measured)
    last = int(hits.rank.max())
    return max(k, widest, last), f"All that {cases} need was found, at rank {last:,} at the latest."


def _retrieved_note(measured: Sequence[_Measured], k: int) -> tuple[str, ...]:
    """How many passages the app itself retrieves, where that is another number than k."""
    widths = Counter(trace.width for trace in measured)
    width, count = widths.most_common(1)[0]
    if width == k or not width:
        return ()
    often = "always" if count == len(measured) else f"in {count:,} of {len(measured):,} cases"
    return (f"The app itself retrieves {pluralize(width, 'passage')}, {often}.",)


def _cutoff_values(hits: Hits, name: str, cutoffs: Sequence[int]) -> list[list[float]]:
    """The values of the cases at each cutoff, all of them in one pass."""
    from misslink.retrieval import parse_metric
    from misslink.retrieval.evaluate import evaluate_metrics

    values, measured = evaluate_metrics([parse_metric(f"{name}@{j}") for j in cutoffs], hits)
    return [own[has].tolist() for own, has in zip(values, measured, strict=True)]


def _curve_lines(
    means: dict[str, list[Estimate]], places: Sequence[float]
) -> tuple[CurveLine, ...]:
    drawn = {
        name: _line_points(places, [estimate.value for estimate in estimates])
        for name, estimates in means.items()
    }
    ends = {name: points[-1][1] for name, points in drawn.items()}
    upper, lower = sorted(ends, key=ends.__getitem__)
    gap = ends[lower] - ends[upper]
    if gap < _LABEL_GAP:  # two labels that would overlap move apart by as much as they lack
        ends[upper] -= (_LABEL_GAP - gap) / 2
        ends[lower] += (_LABEL_GAP - gap) / 2
    return tuple(
        CurveLine(
            name=name,
            path=_svg_path(drawn[name]),
            band=_svg_path(
                _line_points(places, [estimate.high for estimate in estimates])
                + _line_points(places, [estimate.low for estimate in estimates])[::-1]
            )
            + "Z",
            label_y=round(min(ends[name], _BOTTOM - _MIN_LABEL_GAP), 1),
            last=format_estimate(name, estimates[-1]).value,
        )
        for name, estimates in means.items()
    )


def _axis_ticks(depth: int, k: int, right: float) -> tuple[AxisTick, ...]:
    """Names on the axis: k first, then as many others as do not run into one that is there."""
    ticks: list[AxisTick] = []
    for j in dict.fromkeys((k, 1, depth, *_LABELLED_CUTOFFS)):
        x = _x_position(j, depth, right)
        if j <= depth and all(abs(tick.at - x) >= _MIN_LINE_GAP for tick in ticks):
            ticks.append(AxisTick(x, f"{j:,}"))
    return tuple(sorted(ticks, key=lambda tick: tick.at))


def _line_points(
    places: Sequence[float], shares: Sequence[float | None]
) -> list[tuple[float, float]]:
    """The points of a line; what was not measured has none."""
    return [
        (x, _y_position(share))
        for x, share in zip(places, shares, strict=True)
        if share is not None
    ]


def _svg_path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _x_position(j: int, depth: int, right: float) -> float:
    return round(_LEFT + (right - _LEFT) * math.log(j) / math.log(max(depth, 2)), 1)


def _y_position(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)
