"""The flow from retrieval outcome over answer outcome to cause, as SVG geometry and as rows.

Every combination of the three is one ribbon, as wide as its cases are many, so that the eye can
follow it from the left edge to the right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.report.glossary import ANSWERS, CAUSES, FAILURES, RETRIEVALS
from misslink.report.places import view
from misslink.types import Link

__all__ = ["Flow", "Node", "Ribbon", "flow"]

_Triple = tuple[str, str, str]  # retrieval outcome, answer outcome, cause

_BAR = 10.0  # width of a node
_GAP = 19.0  # between nodes, so that the labels of two thin ones never meet
_TALL = 200.0  # all cases together
_COLUMNS = (136.0, 336.0, 536.0)  # left of the first stands "None needed 100,000"
_WIDTH = 734.0
_TOP = 26.0
_FILTERS = ("retrieval", "answer", "cause")
_ORDERS = (tuple(RETRIEVALS), tuple(ANSWERS), tuple(CAUSES))
_LABELS = (RETRIEVALS, ANSWERS, {cause: words.label for cause, words in CAUSES.items()})


@dataclass(frozen=True)
class Node:
    """One outcome: a bar with its label, its count and the view of its cases."""

    column: int
    key: str
    label: str
    count: int
    x: float
    y: float
    width: float
    height: float
    fragment: str


@dataclass(frozen=True)
class Ribbon:
    """The cases of one combination: a path of two curved bands, and the same in words.

    ``tone`` is 'linked' (a miss and an unfaithful answer), 'failed' or 'fine'; ``fragment`` the
    view of its cases.
    """

    retrieval: str
    answer: str
    cause: str
    count: int
    tone: str
    path: str
    fragment: str


@dataclass(frozen=True)
class Flow:
    """The whole drawing, ``width`` by ``height`` units; ``columns`` are the x of its nodes."""

    width: float
    height: float
    columns: tuple[float, ...]
    nodes: tuple[Node, ...]
    ribbons: tuple[Ribbon, ...]


def flow(links: Sequence[Link]) -> Flow | None:
    """Lay out the flow of `links`; None where there are none.

    Nodes stand in the order of severity, worst on top; the areas are proportional to cases.
    """
    counts: Counter[_Triple] = Counter((one.retrieval, one.answer, one.cause) for one in links)
    if not counts:
        return None
    unit = _TALL / counts.total()
    nodes = [_column(index, counts, unit) for index in range(3)]
    tops = [{node.key: node.y for node in column} for column in nodes]
    order = sorted(counts, key=lambda triple: [_ORDERS[i].index(triple[i]) for i in range(3)])
    bands = _bands(order, counts, tops, unit)
    ribbons = tuple(
        Ribbon(
            retrieval=RETRIEVALS[triple[0]],
            answer=ANSWERS[triple[1]],
            cause=CAUSES[triple[2]].label,
            count=counts[triple],
            tone=_tone(triple),
            path=_path(bands[triple], counts[triple] * unit),
            fragment=view(**dict(zip(_FILTERS, triple, strict=True))),
        )
        for triple in order
    )
    everything = tuple(node for column in nodes for node in column)
    height = max(node.y + node.height for node in everything) + 8
    return Flow(_WIDTH, round(height, 1), _COLUMNS, everything, ribbons)


def _column(index: int, counts: Counter[_Triple], unit: float) -> list[Node]:
    sums: Counter[str] = Counter()
    for triple, count in counts.items():
        sums[triple[index]] += count
    y = _TOP
    nodes = []
    for key in _ORDERS[index]:
        if sums[key]:
            tall = sums[key] * unit
            label = _LABELS[index][key]
            nodes.append(
                Node(
                    index,
                    key,
                    label,
                    sums[key],
                    _COLUMNS[index],
                    round(y, 1),
                    _BAR,
                    round(max(tall, 1), 1),
                    view(**{_FILTERS[index]: key}),
                )
            )
            y += tall + _GAP
    return nodes


def _bands(
    order: Sequence[_Triple],
    counts: Counter[_Triple],
    tops: Sequence[dict[str, float]],
    unit: float,
) -> dict[_Triple, list[float]]:
    """Top edge of every ribbon where it leaves and enters: left, middle in, middle out, right."""
    # Ribbons are stacked in the order of the far end, so that few of them cross.
    stacks = ((0, (0, 1, 2)), (1, (1, 0, 2)), (1, (1, 2, 0)), (2, (2, 1, 0)))
    edges: dict[_Triple, list[float]] = {triple: [] for triple in order}
    for column, keys in stacks:
        next_free = dict(tops[column])
        places = {triple: [_ORDERS[i].index(triple[i]) for i in keys] for triple in order}
        for triple in sorted(order, key=places.__getitem__):
            edges[triple].append(next_free[triple[column]])
            next_free[triple[column]] += counts[triple] * unit
    return edges


def _path(tops: Sequence[float], tall: float) -> str:
    first = _band(_COLUMNS[0] + _BAR, tops[0], _COLUMNS[1], tops[1], tall)
    second = _band(_COLUMNS[1] + _BAR, tops[2], _COLUMNS[2], tops[3], tall)
    return f"{first} {second}"


def _band(x0: float, y0: float, x1: float, y1: float, tall: float) -> str:
    mid = (x0 + x1) / 2
    return (
        f"M{x0:.1f} {y0:.1f}C{mid:.1f} {y0:.1f} {mid:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        f"V{y1 + tall:.1f}"
        f"C{mid:.1f} {y1 + tall:.1f} {mid:.1f} {y0 + tall:.1f} {x0:.1f} {y0 + tall:.1f}Z"
    )


def _tone(triple: _Triple) -> str:
    retrieval, answer, cause = triple
    if retrieval == "miss" and answer == "unfaithful":
        return "linked"
    return "failed" if cause in FAILURES else "fine"
