"""The map of questions and passages as SVG geometry, and the same as rows.

What the coordinates are was decided when the map was made; here they only become places on paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report import places
from misslink.report.documents import count_in, number_in, rows_in, text_in
from misslink.report.glossary import CAUSES
from misslink.report.wording import in_short
from misslink.types import Run

__all__ = ["Key", "Mark", "Needed", "Scatter", "Segment", "scatter"]

_SIZE = 560.0  # a square: both axes of the map have one scale
_EDGE = 12.0  # so that no mark is cut by the frame
_TITLE = 300  # characters of a text that hovers, as the map's document has them
_NOT_LINKED = "other"
# One shape a cause, drawn around 0 in a box of about 10 units: colour is never the only sign.
_SHAPES = {
    "retrieval_miss": "M0-6L5.5 4.5H-5.5Z",
    "should_have_abstained": "M0 6L5.5-4.5H-5.5Z",
    "over_refused": "M-4.5-4.5H4.5V4.5H-4.5Z",
    "distracted": "M0-6L6 0L0 6L-6 0Z",
    "fabricated": "M-1.7-5.5H1.7V-1.7H5.5V1.7H1.7V5.5H-1.7V1.7H-5.5V-1.7H-1.7Z",
    "ignored_context": "M-5-5H5L0 0L5 5H-5L0 0Z",
    "gold_hole": "M0-6L1.8-1.8L6 0L1.8 1.8L0 6L-1.8 1.8L-6 0L-1.8-1.8Z",
    "right_by_memory": "M-3-5.2H3L6 0L3 5.2H-3L-6 0Z",
    "undecided": "M-5.5-3L-3-5.5L0-2.5L3-5.5L5.5-3L2.5 0L5.5 3L3 5.5L0 2.5L-3 5.5L-5.5 3L-2.5 0Z",
    "fine": "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0Z",
    _NOT_LINKED: "M-5-1H5V1H-5Z",
}


@dataclass(frozen=True)
class Mark:
    """A question on the map: ``kind`` is a known cause or 'other', ``href`` a fragment or ""."""

    x: float
    y: float
    kind: str
    shape: str
    title: str
    href: str


@dataclass(frozen=True)
class Segment:
    """From a question to the passage that it needed and did not get."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str


@dataclass(frozen=True)
class Needed:
    """A segment in words."""

    question: str
    href: str
    cause: str
    passage_id: str
    passage: str


@dataclass(frozen=True)
class Key:
    """An entry of the legend."""

    kind: str
    shape: str
    label: str
    count: int


@dataclass(frozen=True)
class Scatter:
    """The whole drawing; ``dots`` are passages as x, y, whether one was needed, and a text."""

    width: float
    height: float
    facts: str
    dots: tuple[tuple[float, float, bool, str], ...]
    segments: tuple[Segment, ...]
    marks: tuple[Mark, ...]
    keys: tuple[Key, ...]
    needed: tuple[Needed, ...]


def scatter(run: Run) -> Scatter | None:
    """Lay out the run's map; None where it has none."""
    document = run.map or {}
    queries = _placed(document.get("queries"))
    passages = _placed(document.get("passages"))
    if not queries:
        return None
    numbers = places.case_numbers(run.cases)
    anchors = {name: places.case(number) for name, number in numbers.items()}
    lines = [
        line
        for line in rows_in(document.get("lines"))
        if text_in(line, "case_id") in queries and text_in(line, "passage_id") in passages
    ]
    wanted = {text_in(line, "passage_id") for line in lines}
    return Scatter(
        width=_SIZE,
        height=_SIZE,
        facts=_facts(document),
        dots=tuple(
            # Needed ones last, so that they lie on top.
            sorted(
                (
                    (x, y, name in wanted, f"{name}: {text}")
                    for name, (x, y, text, _) in passages.items()
                ),
                key=lambda dot: dot[2],
            )
        ),
        segments=tuple(
            Segment(
                *queries[text_in(line, "case_id")][:2],
                *passages[text_in(line, "passage_id")][:2],
                _kind(text_in(line, "cause")),
            )
            for line in lines
        ),
        marks=tuple(_mark(place, anchors.get(name, "")) for name, place in _by_severity(queries)),
        keys=_keys(queries),
        needed=tuple(
            Needed(
                question=queries[text_in(line, "case_id")][2],
                href=anchors.get(text_in(line, "case_id"), ""),
                cause=_label(_kind(text_in(line, "cause"))),
                passage_id=text_in(line, "passage_id"),
                passage=passages[text_in(line, "passage_id")][2],
            )
            for line in lines
        ),
    )


_Place = tuple[float, float, str, str]  # x, y, text, kind


def _placed(listed: JsonValue) -> dict[str, _Place]:
    """Texts that have a place, by id; coordinates run from 0 to 1, upwards."""
    found = {}
    for row in rows_in(listed):
        x, y = number_in(row, "x"), number_in(row, "y")
        if x is not None and y is not None:
            found[text_in(row, "id")] = (
                _on_paper(x, _SIZE),
                _on_paper(1 - y, _SIZE),
                in_short(text_in(row, "text"), _TITLE),
                _kind(text_in(row, "cause")),
            )
    return found


def _on_paper(share: float, size: float) -> float:
    return round(_EDGE + min(max(share, 0.0), 1.0) * (size - 2 * _EDGE), 1)


def _kind(cause: str) -> str:
    """The cause if it is one: what stands in a document never becomes a name on the page."""
    return cause if cause in CAUSES else _NOT_LINKED


def _label(kind: str) -> str:
    return CAUSES[kind].label if kind in CAUSES else "Not linked"


def _by_severity(queries: Mapping[str, _Place]) -> list[tuple[str, _Place]]:
    """The harmless ones first, so that the worst lie on top."""
    order = list(_SHAPES)
    return sorted(queries.items(), key=lambda item: -order.index(item[1][3]))


def _mark(place: _Place, href: str) -> Mark:
    x, y, text, kind = place
    return Mark(x, y, kind, _SHAPES[kind], f"{_label(kind)}: {text}", href)


def _keys(queries: Mapping[str, _Place]) -> tuple[Key, ...]:
    counts = Counter(kind for *_, kind in queries.values())
    return tuple(
        Key(kind, shape, _label(kind), counts[kind])
        for kind, shape in _SHAPES.items()
        if counts[kind]
    )


def _facts(document: Mapping[str, JsonValue]) -> str:
    methods = {"umap": "UMAP", "pca": "principal components (PCA)"}
    method = methods.get(text_in(document, "method"), text_in(document, "method"))
    embedding = text_in(document, "embedding")
    said = "Laid out" + (f" by {method}" if method else "")
    said += f" from the vectors of {embedding}." if embedding else "."
    for what, key in (("Passages", "left_out"), ("Questions", "queries_left_out")):
        if left_out := count_in(document, key):
            said += f" {what} not drawn, for want of room: {left_out:,}."
    return said
