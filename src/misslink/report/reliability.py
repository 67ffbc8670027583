"""The reliability diagram: what the judge's probabilities say, and what people say of such cases.

Its rows are those of ``reliability`` in the document that ``misslink calibrate --json`` prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.files.numbers import finite
from misslink.report.documents import count_in, estimate_in, list_in, number_in, rows_in
from misslink.report.wording import Shown, decimal, shown

__all__ = ["Band", "Bin", "Reliability", "reliability"]

_SIZE, _EDGE = 300.0, 36.0
_RADII = (3.0, 8.0)  # of a dot with few cases, and of the one with most


@dataclass(frozen=True)
class Bin:
    """Cases of about one probability: what was predicted, how many were good, and its place."""

    span: str
    predicted: str
    good: Shown
    x: float
    y: float
    low: float
    high: float
    radius: float


@dataclass(frozen=True)
class Band:
    """Where the judge is not to be believed: the place in the diagram, and a sentence."""

    x: float
    width: float
    says: str


@dataclass(frozen=True)
class Reliability:
    """The reliability diagram: a square of ``size``, its axes ``edge`` from the left and bottom."""

    size: float
    edge: float
    bins: tuple[Bin, ...]
    band: Band | None = None


def reliability(document: Mapping[str, JsonValue]) -> Reliability | None:
    """Draw the diagram of a calibration; None where no bin of it can be drawn.

    Parameters
    ----------
    document : mapping
        ``reliability`` and ``uncertain_band`` of it are read; what does not fit reads as absent.
    """
    rows = rows_in(document.get("reliability"))
    most = max((count_in(row, "n") for row in rows), default=0)
    bins = tuple(one for row in rows if (one := _bin(row, most)))
    return Reliability(_SIZE, _EDGE, bins, _band(document)) if bins else None


def _bin(row: Mapping[str, JsonValue], most: int) -> Bin | None:
    """One bin with its place; None for one that holds no case or cannot be read."""
    low, high, predicted = (number_in(row, name) for name in ("low", "high", "predicted"))
    good, n = estimate_in(row, "good"), count_in(row, "n")
    if low is None or high is None or predicted is None or good.value is None or n < 1:
        return None
    ends = [good.value if end is None else end for end in (good.low, good.high)]
    least, largest = _RADII
    return Bin(
        span=f"{decimal(low)} to {decimal(high)}",
        predicted=decimal(predicted),
        good=shown("good", good),
        x=_x(predicted),
        y=_y(good.value),
        low=_y(ends[0]),
        high=_y(ends[1]),
        radius=round(least + (largest - least) * (n / most) ** 0.5, 1),
    )


def _band(document: Mapping[str, JsonValue]) -> Band | None:
    """The band of the calibration; None where there is none, or it is no pair of probabilities."""
    match [finite(end) for end in list_in(document.get("uncertain_band"))]:
        case [float(low), float(high)] if 0 <= low <= high <= 1:
            says = (
                f"From {decimal(low)} to {decimal(high)}, shaded, it is not to be believed either "
                "way: such cases are called undecided."
            )
            return Band(_x(low), round(_x(high) - _x(low), 1), says)
    return None


def _x(share: float) -> float:
    return round(_EDGE + (_SIZE - 2 * _EDGE) * min(max(share, 0.0), 1.0), 1)


def _y(share: float) -> float:
    return round(_SIZE - _EDGE - (_SIZE - 2 * _EDGE) * min(max(share, 0.0), 1.0), 1)
