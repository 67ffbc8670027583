"""What commands print: one JSON document, or tables for people; progress goes to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.judging.forecast import Forecast
    from misslink.pipeline import Progress

__all__ = [
    "interruptible",
    "own_stdout",
    "plain",
    "print_forecast",
    "print_json",
    "print_summary",
    "progress_bars",
    "say",
    "shown",
]

_INTERRUPTED = 130  # what shells report for Ctrl-C
_STAGES = {
    "app": "asking the app",
    "judge": "asking the judge",
    "link": "linking",
    "replaying": "replaying the app",
    "options": "trying options",
}


def plain(text: str) -> str:
    r"""Return a text without what would move the cursor, as an app or a gold set may have put in.

    Line breaks become blanks; so a text stays on its line.

    >>> plain("red \x1b[31m and\nnext")
    'red [31m and next'
    """
    return "".join(c if c.isprintable() else " " * c.isspace() for c in text)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line as it is: no markup, no escape sequence, wrapped by the terminal alone."""
    console.print(plain(text), style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document to stdout."""
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    print(json.dumps(document, indent=2, ensure_ascii=plain, allow_nan=False))


@contextmanager
def own_stdout() -> Iterator[None]:
    """Send to stderr what the app under test prints, by whatever way, so that stdout is ours."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def interruptible(way_on: str) -> Iterator[None]:
    """Say on Ctrl-C that nothing is lost, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"misslink: interrupted; what was done is kept, and {way_on}", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show a bar a stage on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def tick(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(_STAGES.get(stage, stage), total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield tick


def print_forecast(found: Forecast) -> None:
    """Print what a run would ask and cost."""
    cost = "" if found.cost is None else f", which cost about {found.cost:.4g}"
    print(
        f"The judge would be asked {found.calls} questions ({found.from_ledger} more are answered "
        f"by the ledger): about {found.prompt_tokens} prompt tokens and "
        f"{found.completion_tokens} completion tokens{cost}.\n{found.basis}\n"
        "Nothing has been asked."
    )


def print_summary(summary: Mapping[str, Any], notes: Sequence[str] = ()) -> None:
    """Print the estimates of a run as tables, how it was judged, the sentence of the link last."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    title = Text(f"{summary['cases']} cases, judge {summary['judge']}")
    table = Table(title=title, title_justify="left")
    for column in ("level", "metric", "value [95 %]", "n"):
        table.add_column(column, justify="right" if column == "n" else "left")
    unmeasured: dict[str, list[str]] = {}
    for level in ("retrieval", "generation", "answer"):
        for metric, estimate in summary[level].items():
            if estimate["value"] is None:
                unmeasured.setdefault(estimate["reason"], []).append(metric)
            else:
                table.add_row(level, metric, shown(estimate), str(estimate["n"]))
    console.print(table)
    if summary.get("judge_note"):
        console.print(f"Of the judge: {summary['judge_note']}.", markup=False, highlight=False)
    for reason, metrics in unmeasured.items():
        console.print(f"Not measured: {', '.join(metrics)}: {reason}.", markup=False)
    for note in notes:
        console.print(note, markup=False, highlight=False)
    link = summary["link"]
    causes = Table(title="Causes", title_justify="left")
    causes.add_column("cause")
    causes.add_column("cases", justify="right")
    for cause, count in link["causes"].items():
        causes.add_row(cause, str(count))
    console.print(causes)
    console.print(_sentence(link), highlight=False, markup=False)
    if folder := summary.get("run"):
        console.print(
            f"report: {folder}/report.html", highlight=False, markup=False, soft_wrap=True
        )


def _sentence(link: Mapping[str, Any]) -> str:
    fraction = link["attributable_fraction"]
    if fraction["value"] is None:
        return f"How many unfaithful answers go with a retrieval miss: {shown(fraction)}."
    if link["risk_given_miss"]["value"] is None:
        return "No answer with a verdict followed a retrieval miss."
    if fraction["value"] <= 0:
        return (
            f"Unfaithful answers are no more frequent after a retrieval miss: unfaithful are"
            f" {shown(link['risk_given_miss'])} of answers after a miss"
            f" and {shown(link['risk_given_hit'])} after a hit."
        )
    return (
        f"{shown(fraction)} of unfaithful answers go with a retrieval miss: unfaithful are"
        f" {shown(link['risk_given_miss'])} of answers after a miss"
        f" and {shown(link['risk_given_hit'])} after a hit."
        " This is association, not proof of cause."
    )


def shown(estimate: Mapping[str, Any]) -> str:
    """An estimate of a share as people read it.

    Without an interval it is its n that says how much the value is worth.

    >>> shown({"value": 0.62, "low": 0.51, "high": 0.72, "n": 87})
    '62 % [51, 72]'
    >>> shown({"value": 0.0, "low": None, "high": None, "n": 5})
    '0 %, n = 5'
    """
    if estimate["value"] is None:
        return f"not measured: {estimate['reason']}"
    # Whole numbers, for a float would be rounded to "-0" too.
    value = f"{round(100 * estimate['value'])} %"
    ends = [estimate["low"], estimate["high"]]
    if ends == [None, None]:
        return f"{value}, n = {estimate['n']}"
    low, high = ("unbounded" if end is None else str(round(100 * end)) for end in ends)
    return f"{value} [{low}, {high}]"
