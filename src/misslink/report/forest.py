"""Differences with their intervals, drawn one under the other around no difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.report.wording import in_short
from misslink.stats.written import named_points

__all__ = ["Forest", "Tick", "Whisker", "forest"]

_WIDTH, _LABELS, _MARGIN, _LINE, _TOP = 640, 210, 24, 22, 26
_STEPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)  # where the axis may end
_LABEL = 30  # characters of a name


@dataclass(frozen=True)
class Whisker:
    """One difference: where its line, its ends and its middle are."""

    name: str
    verdict: str
    y: float
    low: float
    high: float
    x: float


@dataclass(frozen=True)
class Tick:
    """A mark of the axis."""

    x: float
    label: str


@dataclass(frozen=True)
class Forest:
    """The drawing, in units of its own view box; ``right`` is where the axis ends."""

    width: int
    height: int
    left: float
    right: float
    ticks: tuple[Tick, ...]
    whiskers: tuple[Whisker, ...]


def forest(rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> Forest | None:
    """Lay out differences that have a bounded interval; None where there are none.

    Parameters
    ----------
    rows : sequence of (name, verdict, metric)
        A metric as `misslink.deciding.compare.compare` has it.
    """
    drawn = [(name, verdict, found["difference"]) for name, verdict, found in rows]
    drawn = [row for row in drawn if None not in (row[2]["value"], row[2]["low"], row[2]["high"])]
    if not drawn:
        return None
    widest = max(max(abs(each["low"]), abs(each["high"])) for _, _, each in drawn)
    limit = next((step for step in _STEPS if widest <= step), _STEPS[-1])
    span = _WIDTH - _LABELS - _MARGIN

    def at(value: float) -> float:
        inside = min(max(value, -limit), limit)
        return round(_LABELS + span * (inside + limit) / (2 * limit), 1)

    return Forest(
        width=_WIDTH,
        height=_TOP + _LINE * len(drawn) + 8,
        left=at(-limit),
        right=at(limit),
        ticks=tuple(Tick(at(x), named_points(x)) for x in (-limit, 0.0, limit)),
        whiskers=tuple(
            Whisker(
                name=in_short(name, _LABEL),
                verdict=verdict,
                y=_TOP + _LINE * (place + 0.5),
                low=at(each["low"]),
                high=at(each["high"]),
                x=at(each["value"]),
            )
            for place, (name, verdict, each) in enumerate(drawn)
        ),
    )
