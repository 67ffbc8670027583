"""Runs of canaries as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from misslink.cli.output import cell, say, shown

if TYPE_CHECKING:
    from misslink.watching.canaries.results import Result

__all__ = ["print_history", "print_run"]

_FIGURES = {
    "health": "healthy canaries",
    "coverage": "expected passages found",
    "top_score": "relevance of the best",
    "answered": "questions answered",
}
_STATUS = {"learning": "learning", "ok": "ok", "alarm": "ALARM"}


def print_run(document: Mapping[str, Any], results: Sequence[Result]) -> None:
    """Print what one run found: its figures, what is ill or unmeasured, its alarms."""
    from rich.console import Console
    from rich.table import Table

    from misslink.report.trend_markdown import seconds_of

    console = Console()
    figures = Table(show_header=False)
    for key, label in _FIGURES.items():
        text = shown(document[key], key, as_decimal=key == "top_score")
        figures.add_row(cell(console, label), cell(console, text))
    figures.add_row(cell(console, "seconds"), cell(console, seconds_of(document)))
    console.print(figures)
    ill = [one for one in results if one.healthy is not True]
    if ill:
        table = Table()
        for column in ("canary", "owner", "health", "why"):
            table.add_column(column, overflow="fold")
        lost = {one["id"] for one in document["degraded"]}
        for one in ill:
            state = "not measured" if one.healthy is None else "ill"
            state = "degraded" if one.canary in lost else state
            texts = (one.canary, one.owner or "", state, one.said)
            table.add_row(*(cell(console, text) for text in texts))
        console.print(table)
    for alarm in document["alarms"]:
        say(console, f"{alarm['state']}: {alarm['sentence']}", "bold")
    for suspect in document["suspects"]:
        say(console, f"since the run before: {suspect}")
    for note in document["notes"]:
        say(console, note)
    if document["reason"]:
        say(console, document["reason"])
    said = _STATUS[document["status"]]
    say(console, f"run {document['run']} of '{document['name']}': {said}", "bold")


def print_history(document: Mapping[str, Any]) -> None:
    """Print the runs of a series, the latest last, and its alarms."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from misslink.report.trend_markdown import seconds_of
    from misslink.report.wording import plural

    console = Console()
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("run", "at", "health", "found", "score", "sec", "ill", "failed", "status"):
        table.add_column(column, overflow="fold", no_wrap=True)
    for run in document["runs"]:
        texts = (
            str(run["run"]),
            run["at"][5:16].replace("T", " "),
            _value(run["health"], "health"),
            _value(run["coverage"], "coverage").partition(" [")[0],
            _value(run["top_score"], "top_score", as_decimal=True).partition(" [")[0],
            seconds_of(run).partition(" (")[0],
            str(len(run["degraded"])),
            str(run["errors"]),
            _STATUS[run["status"]],
        )
        table.add_row(*(cell(console, text) for text in texts))
    console.print(table)
    for alarm in document["alarms"]:
        say(console, f"{alarm['state']}: {alarm['sentence']}")
    if document["waiting"]:
        say(console, f"{plural(document['waiting'], 'message')} to a webhook not yet delivered")
    for one in document["refused"]:
        say(console, f"the message of run {one['run']} is not sent again: {one['error']}")
    say(console, f"'{document['name']}': {_STATUS[document['status']]}", "bold")


def _value(estimate: Mapping[str, Any], name: str, *, as_decimal: bool = False) -> str:
    if estimate["value"] is None:
        return "none"
    return shown(estimate, name, as_decimal=as_decimal)
