"""Line charts of a metric over the cutoff k, as characters or as an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.stats.intervals import MeanBand

_LABELLED_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)  # cutoffs on the axis
_ROWS, _COLUMNS = 11, 64  # of the drawing with characters
_AXIS = 5  # characters of a number on the upright axis, with the axis itself
_MARKS = "●○◆◇■□▲△"
_LETTERS = "abcdefgh"  # for a terminal that knows no such marks
_OVERLAP_MARK = "*"
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 470.0, 34.0, 258.0
_LABEL_GAP = 15.0  # between two labels
# Told apart by people who see no red and green (Okabe and Ito, Color universal design).
_COLORS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#a65628"),
)
_TEMPLATE = Path(__file__).resolve().parent / "templates" / "line_chart.svg.jinja"


@dataclass(frozen=True)
class ChartLine:
    """One line: its name and, for each k from 1, the mean and its interval."""

    name: str
    band: MeanBand


@dataclass(frozen=True)
class LineChart:
    """Lines over the same cutoffs, k = 1, 2, 3 and so on; at most eight of them."""

    title: str
    lines: tuple[ChartLine, ...]

    @property
    def depth(self) -> int:
        """The largest k; 0 where no line has a point."""
        return max((len(line.band.value) for line in self.lines), default=0)


def render_characters(chart: LineChart, *, encoding: str = "utf-8") -> list[str]:
    """Draw a chart as lines of text, at most 70 characters wide.

    Parameters
    ----------
    chart : Chart
    encoding : str
        Of the terminal; one that lacks a character gets a drawing in ASCII.

    Returns
    -------
    list of str
        The title, the drawing with k on a logarithmic axis, and what each mark stands for with
        its first and last value. A sentence in place of the drawing where there is no point.
    """
    if not chart.depth:
        return [chart.title, "No query has a value, so there is nothing to draw."]
    rich = _encodable(_MARKS + "│└─", encoding)
    marks = _MARKS if rich else _LETTERS
    upright, corner, level = ("│", "└", "─") if rich else ("|", "+", "-")
    grid = [[" "] * _COLUMNS for _ in range(_ROWS)]
    for mark, line in zip(marks, chart.lines, strict=False):
        for column, row in _grid_cells(line.band.value, chart.depth):
            grid[row][column] = mark if grid[row][column] in (" ", mark) else _OVERLAP_MARK
    drawn = [chart.title]
    for row, cells in enumerate(grid):
        share = 1 - row / (_ROWS - 1)
        label = f"{share:.1f}" if row % 2 == 0 else ""
        drawn.append(f"{label:>{_AXIS - 2}} {upright}{''.join(cells)}".rstrip())
    drawn.append(" " * (_AXIS - 1) + corner + level * _COLUMNS)
    drawn.append(_axis_labels(chart.depth))
    for mark, line in zip(marks, chart.lines, strict=False):
        value = line.band.value
        summary = (
            f"{value[0]:.2f} at k = 1, {value[-1]:.2f} at k = {len(value)}" if value else "none"
        )
        drawn.append(f"{mark} {line.name}: {summary} (n = {line.band.n:,})")
    if any(_OVERLAP_MARK in cells for cells in grid):
        drawn.append(f"{_OVERLAP_MARK} several of them")
    return drawn


def render_svg(charts: Sequence[LineChart]) -> str:
    """Draw charts one under the other as one picture, with 95% intervals as bands.

    Parameters
    ----------
    charts : sequence of Chart
        Their names are escaped; the picture loads nothing and runs nothing.
    """
    from misslink.render.html import render_template

    return render_template(
        _TEMPLATE,
        [(chart, _svg_lines(chart)) for chart in charts],
        cutoffs=_LABELLED_CUTOFFS,
        x=_x_position,
        y=_y_position,
    )


def _svg_lines(chart: LineChart) -> list[dict[str, Any]]:
    """The lines with points, the highest end first, each with the height of its label."""
    lines = [pair for pair in zip(chart.lines, _COLORS, strict=False) if pair[0].band.value]
    lines.sort(key=lambda pair: -pair[0].band.value[-1])
    label_y, lowest = -math.inf, _BOTTOM - _LABEL_GAP * (len(lines) - 1)
    drawn = []
    for place, (line, color) in enumerate(lines):
        value, low, high = line.band.value, line.band.low, line.band.high
        end = min(_y_position(value[-1]) + 4, lowest + _LABEL_GAP * place)
        label_y = max(label_y + _LABEL_GAP, end)
        drawn.append(
            {
                "name": line.name,
                "color": color,
                "means": value,
                "path": _svg_path(enumerate(value, 1), chart.depth),
                "band": _svg_path(
                    [*enumerate(high, 1), *reversed([*enumerate(low, 1)])], chart.depth
                ),
                "label_y": label_y,
            }
        )
    return drawn


def _svg_path(points: Iterable[tuple[int, float]], depth: int) -> str:
    return "M" + "L".join(
        f"{_x_position(k, depth):g} {_y_position(share):g}" for k, share in points
    )


def _grid_cells(values: Sequence[float], depth: int) -> list[tuple[int, int]]:
    """Column and row of each point, every column between two cutoffs filled."""
    cells = []
    for column in range(_COLUMNS):
        exact = math.exp(column / (_COLUMNS - 1) * math.log(max(depth, 2)))
        k = min(len(values), max(1, math.floor(exact + 1e-9)))
        if values:
            cells.append((column, round((1 - values[k - 1]) * (_ROWS - 1))))
    return cells


def _axis_labels(depth: int) -> str:
    """The axis with its cutoffs, as many as do not run into one another."""
    line = [" "] * (_AXIS + _COLUMNS + 4)
    last = -2
    for k in (k for k in _LABELLED_CUTOFFS if k <= depth):
        column = _AXIS + round((_COLUMNS - 1) * math.log(k) / math.log(max(depth, 2)))
        if column > last + 1:
            line[column : column + len(str(k))] = str(k)
            last = column + len(str(k))
    return "k".rjust(_AXIS - 2) + "".join(line).rstrip()[_AXIS - 2 :]


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _x_position(k: int, depth: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * math.log(k) / math.log(max(depth, 2)), 1)


def _y_position(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)
