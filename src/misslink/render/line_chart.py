"""Line charts of a metric over the cutoff k, as characters or as an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from misslink.render.format import shorten
from misslink.stats.intervals import MeanBand

_LABELLED_CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)  # cut-offs on the axis
_ROWS, _COLUMNS = 11, 64  # of the drawing with characters
_AXIS = 5  # characters of a number on the upright axis, with the axis itself
_MARKS = "●○◆◇■□▲△"
_LETTERS = "abcdefgh"  # for a terminal that knows no such marks
_OVERLAP_MARK = "*"
_WIDTH, _HEIGHT = 720.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 470.0, 34.0, 258.0
_LABEL_GAP = 15.0  # between two labels
_LABEL = 24  # characters of a label
# Told apart by people who see no red and green (Okabe and Ito, Color universal design).
_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f", "#a65628"),
)
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.title{font-weight:600;font-size:14px}"
    ".grid{stroke:#ddd}.line{fill:none;stroke-width:2}.band{opacity:.15}"
    "@media(prefers-color-scheme:dark){svg{background:#16181c}text{fill:#ddd}.grid{stroke:#444}}"
)


@dataclass(frozen=True)
class ChartLine:
    """One line: its name and, for each k from 1, the mean and its interval."""

    name: str
    band: MeanBand


@dataclass(frozen=True)
class LineChart:
    """Lines over the same cut-offs, k = 1, 2, 3 and so on; at most eight of them."""

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
    height = _HEIGHT * max(1, len(charts))
    description = "; ".join(f"{chart.title}: {_describe_chart(chart)}" for chart in charts)
    size = f'viewBox="0 0 {_WIDTH:g} {height:g}" width="{_WIDTH:g}" height="{height:g}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="t d">',
        f'<title id="t">By cut-off k</title><desc id="d">{_escape_xml(description)}</desc>',
        f"<style>{_STYLE}</style>",
    ]
    for number, chart in enumerate(charts):
        parts.append(f'<g transform="translate(0 {number * _HEIGHT:g})">')
        parts += [*_svg_frame(chart), *_svg_lines(chart), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _grid_cells(values: Sequence[float], depth: int) -> list[tuple[int, int]]:
    """Column and row of each point, every column between two cut-offs filled."""
    cells = []
    for column in range(_COLUMNS):
        exact = math.exp(column / (_COLUMNS - 1) * math.log(max(depth, 2)))
        k = min(len(values), max(1, math.floor(exact + 1e-9)))
        if values:
            cells.append((column, round((1 - values[k - 1]) * (_ROWS - 1))))
    return cells


def _axis_labels(depth: int) -> str:
    """The axis with its cut-offs, as many as do not run into one another."""
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


def _svg_frame(chart: LineChart) -> list[str]:
    """Return the title, the grid and the axis labels."""
    drawn = [
        f'<text class="title" x="{_LEFT:g}" y="18">{_escape_xml(shorten(chart.title, 70))}</text>'
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = _y_position(share)
        drawn.append(f'<path class="grid" d="M{_LEFT:g} {y:g}H{_RIGHT:g}"/>')
        drawn.append(f'<text x="{_LEFT - 8:g}" y="{y + 4:g}" text-anchor="end">{share:g}</text>')
    for k in (k for k in _LABELLED_CUTOFFS if k <= chart.depth):
        x = _x_position(k, chart.depth)
        drawn.append(f'<text x="{x:g}" y="{_BOTTOM + 18:g}" text-anchor="middle">{k}</text>')
    drawn.append(f'<text x="{_RIGHT:g}" y="{_BOTTOM + 34:g}" text-anchor="end">cut-off k</text>')
    if not chart.depth:
        drawn.append(f'<text x="{_LEFT + 12:g}" y="{_TOP + 40:g}">No query has a value.</text>')
    return drawn


def _svg_lines(chart: LineChart) -> list[str]:
    drawn: list[str] = []
    with_points = [
        (line, colour)
        for line, colour in zip(chart.lines, _COLOURS, strict=False)
        if line.band.value
    ]
    for line, colour in with_points:
        upper = _svg_points(line.band.high, chart.depth)
        lower = _svg_points(line.band.low, chart.depth)[::-1]
        drawn.append(f'<path class="band" fill="{colour}" d="{_svg_path(upper + lower)}Z"/>')
        points = _svg_points(line.band.value, chart.depth)
        if len(points) == 1:  # a line of one point is not seen
            drawn.append(f'<circle fill="{colour}" cx="{points[0][0]}" cy="{points[0][1]}" r="3"/>')
        drawn.append(f'<path class="line" stroke="{colour}" d="{_svg_path(points)}"/>')
    ends = sorted(with_points, key=lambda end: -end[0].band.value[-1])
    label_y = -math.inf
    lowest = _BOTTOM - _LABEL_GAP * (len(ends) - 1)
    for place, (line, colour) in enumerate(ends):
        label_y = max(
            label_y + _LABEL_GAP,
            min(_y_position(line.band.value[-1]) + 4, lowest + _LABEL_GAP * place),
        )
        label = _escape_xml(f"{shorten(line.name, _LABEL)} {line.band.value[-1]:.2f}")
        drawn.append(
            f'<rect fill="{colour}" x="{_RIGHT + 8:g}" y="{label_y - 9:g}" width="9" height="9"/>'
        )
        drawn.append(f'<text x="{_RIGHT + 22:g}" y="{label_y:g}">{label}</text>')
    return drawn


def _describe_chart(chart: LineChart) -> str:
    return ", ".join(
        f"{line.name} {line.band.value[0]:.2f} at k = 1 and {line.band.value[-1]:.2f} at "
        f"k = {len(line.band.value)}"
        for line in chart.lines
        if line.band.value
    )


def _escape_xml(text: str) -> str:
    """Text that is no markup, and that an XML reader takes."""
    return escape("".join(c if c.isprintable() else " " for c in text))


def _svg_points(shares: Sequence[float], depth: int) -> list[tuple[float, float]]:
    return [(_x_position(k, depth), _y_position(share)) for k, share in enumerate(shares, 1)]


def _svg_path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _x_position(k: int, depth: int) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * math.log(k) / math.log(max(depth, 2)), 1)


def _y_position(share: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * share, 1)
