"""A run in one screen of text, 80 columns wide or fewer: the numbers, the link, what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from misslink.cli.output import cell, plain, say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from misslink.report.wording import Shown
    from misslink.types import Run

__all__ = ["print_run", "wrapped"]

_WIDEST = 100  # columns; longer lines are hard to read
_BY = {"rogan-gladen": "Rogan and Gladen"}  # the other way is called as it is in a sentence
_SAME = 1e-9  # between two ways to compute one share
_TIED = "\N{NO-BREAK SPACE}"
_INTERVAL = re.compile(r"\[[^][]{1,40}\]")
_UNIT = r"%|points|times"
# Blanks inside of "62 % [51, 72], n = 87" and "p < 0.001".
_WITHIN = re.compile(
    rf"(?<=\d) (?={_UNIT})|(?<=[\d%]) (?=\[)|(?<=points) (?=\[)|(?<=times) (?=\[)"
    r"|(?<=\b[np]) (?=[=<])|(?<=[=<]) (?=\d)"
)


def print_run(run: Run, report: str) -> None:
    """Print what a run found, what to do next, and where its report is.

    Parameters
    ----------
    run : Run
        Any: what was not measured is said in a line, with the reason.
    report : str
        Where the report was written.
    """
    from rich.console import Console

    from misslink.report.judging import judging_notes

    console = Console()
    say(console, _title(run), style="bold")
    _print_numbers(console, run)
    note = run.summary.get("judge_note")
    for line in ([f"Of the judge: {note}."] if note else []) + list(judging_notes(run)):
        _say_wrapped(console, line)
    _print_link(console, run)
    _print_steps(console, run)
    say(console, "")
    say(console, f"report: {report}")


def wrapped(text: str, width: int, indent: str = "") -> Iterator[str]:
    """Break a text into lines at blanks, but in no number and no interval.

    Parameters
    ----------
    text : str
    width : int
        Columns of the terminal, those of `indent` among them; a longer word has its own line.
    indent : str
        Begins every line but the first.

    Examples
    --------
    >>> list(wrapped("a miss: 62 % [51, 72] of 9", 14))
    ['a miss:', '62 % [51, 72]', 'of 9']
    """
    from rich.cells import cell_len

    tied = _INTERVAL.sub(lambda found: found[0].replace(" ", _TIED), plain(text))
    line = ""
    for word in _WITHIN.sub(_TIED, tied).split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            yield line.replace(_TIED, " ")
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    yield line.replace(_TIED, " ")


def _title(run: Run) -> str:
    from misslink.report.wording import plural

    k = run.summary.get("k")
    at = "" if k is None else f", k = {k}"
    return f"{plural(len(run.cases), 'case')}, judge {run.summary.get('judge', 'not recorded')}{at}"


def _print_numbers(console: Console, run: Run) -> None:
    """A row a metric that has a value; the others in a line for each reason."""
    from misslink.report.overview import levels

    table = _table(("level", "metric", "value [95 %]", "n"))
    unmeasured: dict[str, list[str]] = {}
    low = []
    for level in levels(run):
        name = level.title.rpartition(" ")[2].lower()
        for metric in level.metrics:
            if not metric.shown.measured:
                unmeasured.setdefault(metric.shown.reason, []).append(metric.shown.name)
                continue
            cells = (name, *_cells(metric.shown))
            table.add_row(*(cell(console, text) for text in cells))
            name = ""  # once for all of its metrics
            low += [metric.shown.name] if metric.low_is_good else []
    if table.row_count:
        console.print(table)
    if low:
        _say_wrapped(console, f"Lower is better: {', '.join(low)}.")
    for line in _corrected(run):
        _say_wrapped(console, line)
    for reason, names in unmeasured.items():
        _say_wrapped(console, f"Not measured: {', '.join(names)}: {reason}.")


def _corrected(run: Run) -> Iterator[str]:
    """What people would call good, beside what the judge does; and why there is no such number."""
    from misslink.calibration.kept import corrected
    from misslink.report.wording import plural, shown

    for name, one in corrected(run).items():
        raw, labels = shown(name, one.raw).brief, plural(one.labels, "label")
        called, counted = _called(run, name), one.raw.value
        if called is not None and counted is not None and abs(counted - called) > _SAME:
            raw += " from the calibration's threshold on"  # which is not the judge's own words
        if one.estimate.value is None:
            yield f"{name} {raw}, not corrected ({labels}): {one.estimate.reason}."
        else:
            people = shown(name, one.estimate).brief
            yield f"{name} {raw}, corrected {people} by {labels} ({_BY.get(one.by, one.by)})."
    notes = run.summary.get("labels_notes")
    for note in notes if isinstance(notes, list) else ():
        yield f"Of the labels: {note}"


def _called(run: Run, name: str) -> float | None:
    """The share as the run's levels have it."""
    from misslink.files.numbers import finite

    for level in ("generation", "answer"):
        of = run.summary.get(level)
        found = of.get(name) if isinstance(of, dict) else None
        if isinstance(found, dict):
            return finite(found.get("value"))
    return None


def _print_link(console: Console, run: Run) -> None:
    from misslink.report.adjusted import corrected
    from misslink.report.association import causes, headline

    said, people = headline(run), corrected(run)
    say(console, "")
    number = f"{said.share} {said.interval}".strip()
    _say_wrapped(console, f"{number} {said.words}.".lstrip(), style="bold")
    for paragraph in said.paragraphs[:1]:
        _say_wrapped(console, paragraph)
    if number and people and people.brief:
        _say_wrapped(console, people.brief)
    if number:
        _say_wrapped(console, "This is association, not proof of cause.")
    table = _table(("cause", "cases", "share [95 %]"))
    for row in causes(run):
        table.add_row(row.key, f"{row.count:,}", cell(console, row.share.brief))
    if table.row_count:
        say(console, "")
        console.print(table)


def _print_steps(console: Console, run: Run) -> None:
    from misslink.report.next import next_steps, nothing_next

    steps = next_steps(run)
    say(console, "")
    say(console, "What to do next", style="bold")
    for place, step in enumerate(steps, 1):
        _say_wrapped(console, f"{place}. {step.action} {step.why}", indent="   ")
    if not steps:
        _say_wrapped(console, nothing_next(run))


def _cells(shown: Shown) -> tuple[str, str, str]:
    value = f"{shown.value} {shown.interval}".rstrip()
    return shown.name, value, f"{shown.n:,}"


def _say_wrapped(
    console: Console, text: str, *, style: str | None = None, indent: str = ""
) -> None:
    for line in wrapped(text, min(console.width, _WIDEST), indent):
        say(console, line, style)


def _table(columns: Sequence[str]) -> Table:
    """Without lines, so that it is narrow and the same in every encoding; no number is broken."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        if column == "metric":  # the only one whose names are anybody's
            table.add_column(column, overflow="fold")
        elif column in ("n", "cases"):
            table.add_column(column, justify="right", no_wrap=True)
        else:
            table.add_column(column, no_wrap=True)
    return table
