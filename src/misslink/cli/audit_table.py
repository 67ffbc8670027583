"""What an audit of a judge found, as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from misslink.cli.output import cell, say, shown

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_audit"]

_WORDS = {
    "padding": "padding",
    "passage_order": "reversed",
    "passage_shuffle": "shuffled",
    "again": "asked again",
}
_SHOWN_REASONS = 5


def print_audit(document: Mapping[str, Any]) -> None:
    """Print a table a metric, what holds beyond chance, and what a reader must know.

    Parameters
    ----------
    document : mapping
        As ``audit.json`` has it.
    """
    from rich.console import Console

    console = Console()
    say(console, f"{document['judge']} asked again about {document['cases']} cases", "bold")
    for metric, changes in document["metrics"].items():
        _print_metric(console, metric, changes)
    for entry in document.get("preferences", {}).values():
        _print_order(console, entry)
    entries = [
        *(entry for changes in document["metrics"].values() for entry in changes.values()),
        *document.get("preferences", {}).values(),
    ]
    findings = [entry["finding"] for entry in entries if entry["finding"]]
    for finding in findings or ["No verdict moves beyond chance with what must not matter."]:
        say(console, finding)
    for note in document["notes"]:
        say(console, note)
    _print_left_out(console, document)


def _print_metric(console: Console, metric: str, changes: Mapping[str, Any]) -> None:
    from rich import box
    from rich.table import Table

    title = cell(console, metric)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("change")
    table.add_column("cases", justify="right")
    for column in ("flipped [95 %]", "to good", "to bad", "score moved by"):
        table.add_column(column)
    for change, entry in changes.items():
        shares = (_brief(entry[name]) for name in ("flipped", "to_good", "to_bad"))
        row = (_WORDS.get(change, change), str(entry["n"]), *shares, _moved(entry["shift"]))
        table.add_row(*(cell(console, text) for text in row))
    console.print(table)


def _print_order(console: Console, entry: Mapping[str, Any]) -> None:
    places = entry["places"]
    say(
        console,
        f"Order of two answers: the better one changes with it in {_brief(entry['flipped'])} of "
        f"{entry['n']} pairs; both times the first one shown in {places['first']}, the second in "
        f"{places['second']}.",
    )


def _print_left_out(console: Console, document: Mapping[str, Any]) -> None:
    """Why cases have no number: once a reason, however many changes it stands under."""
    reasons: dict[str, int] = {}
    for changes in document["metrics"].values():
        for entry in changes.values():
            for reason, count in entry["left_out"].items():
                reasons[reason] = max(count, reasons.get(reason, 0))
    ordered = sorted(reasons.items(), key=lambda one: -one[1])
    for reason, count in ordered[:_SHOWN_REASONS]:
        say(console, f"Left out: {count} {'case' if count == 1 else 'cases'}: {reason}.")
    if len(ordered) > _SHOWN_REASONS:
        say(console, f"And {len(ordered) - _SHOWN_REASONS} other reasons; --json lists them all.")


def _brief(estimate: Mapping[str, Any]) -> str:
    return "-" if estimate["value"] is None else shown(estimate)


def _moved(estimate: Mapping[str, Any]) -> str:
    """A shift in percentage points, with its interval."""
    from misslink.stats.written import points
    from misslink.types import Estimate

    if estimate["value"] is None:
        return "-"
    return points(Estimate.model_validate(dict(estimate))).replace(" points", "")
