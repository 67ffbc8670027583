"""A sequential interval as it narrowed, unit by unit, drawn around no difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.watching.live_report.verdict import amount

__all__ = ["LiveChart", "live_chart"]

_WIDTH, _HEIGHT = 640, 250
_LEFT, _TOP, _RIGHT, _BOTTOM = 66, 14, 624, 212
_TWO = 2


@dataclass(frozen=True)
class LiveChart:
    """The drawing, in units of its own view box: paths, and places with their labels."""

    width: int
    height: int
    frame: tuple[float, float, float, float]
    band: str
    line: str
    zero: float
    ys: tuple[tuple[float, str], ...]
    xs: tuple[tuple[float, str, str], ...]


def live_chart(rows: Sequence[Mapping[str, Any]], unit: str) -> LiveChart | None:
    """Draw what `misslink.watching.live_report.compare.over_time` gives.

    Returns
    -------
    LiveChart or None
        None: there are fewer than two intervals. The axis is fitted to the later half, since the
        first intervals are wide beyond any use; they are cut at its ends.
    """
    drawn = [row for row in rows if row["difference"]["low"] is not None]
    if len(drawn) < _TWO:
        return None
    late = drawn[len(drawn) // 2 :]
    least = min(0.0, *(row["difference"]["low"] for row in late))
    most = max(0.0, *(row["difference"]["high"] for row in late))
    margin = (most - least or 1.0) * 0.15
    least, most = least - margin, most + margin
    first, last = drawn[0]["units"], drawn[-1]["units"]

    def x(units: int) -> float:
        along: float = (units - first) / max(last - first, 1)
        return round(_LEFT + (_RIGHT - _LEFT) * along, 1)

    def y(value: float) -> float:
        inside = (min(max(value, least), most) - least) / (most - least)
        return float(round(_BOTTOM - (_BOTTOM - _TOP) * inside, 1))

    def path(key: str, points: Sequence[Mapping[str, Any]]) -> str:
        return "L".join(f"{x(row['units'])} {y(row['difference'][key])}" for row in points)

    ticks = sorted({least, 0.0, most}, reverse=True)
    return LiveChart(
        width=_WIDTH,
        height=_HEIGHT,
        frame=(_LEFT, _TOP, _RIGHT, _BOTTOM),
        band=f"M{path('high', drawn)}L{path('low', drawn[::-1])}Z",
        line=f"M{path('value', drawn)}",
        zero=y(0.0),
        ys=tuple((y(tick), amount(tick, unit)) for tick in ticks),
        xs=((_LEFT, f"{first:,} units", "start"), (_RIGHT, f"{last:,} units", "end")),
    )
