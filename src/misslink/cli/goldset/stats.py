"""misslink goldset stats: what a gold set holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json, say

__all__ = ["stats"]

_MOST = 12  # values of a tag that are listed; the rest is counted
_SPREADS = {
    "relevant": "relevant passages a case",
    "evidence": "evidence texts a case",
    "references": "reference answers a case",
    "question_words": "words a question",
}


def stats(
    goldset: Path = typer.Argument(..., help="A gold set: a file, folder, pattern or URL."),
    as_json: bool = AS_JSON,
) -> None:
    """Count what a gold set holds."""
    from misslink.files.addresses import shown
    from misslink.files.goldset import read_goldset
    from misslink.goldset.described import described

    document = {"goldset": shown(goldset), **described(read_goldset(goldset).cases)}
    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(document: Mapping[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    total = document["cases"]
    say(console, f"{document['goldset']}: {total:,} cases", "bold")
    table = Table(box=box.SIMPLE_HEAD)
    for name, justify in (("", "left"), ("value", "left"), ("cases", "right"), ("share", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    tags = {f"tag {name}": counts for name, counts in document["tags"].items()}
    groups = {
        "category": document["categories"],
        "tier": document["tiers"],
        **tags,
        "answerable": document["answerable"],
        "with": document["with"],
    }
    for name, counts in groups.items():
        if set(counts) == {""}:
            continue
        for place, (value, count) in enumerate(list(counts.items())[:_MOST]):
            shown = cell(console, value or "(not said)"), f"{count:,}", f"{count / total:.0%}"
            table.add_row(cell(console, "" if place else name), *shown)
        if len(counts) > _MOST:
            table.add_row("", f"and {len(counts) - _MOST} more", "", "")
    console.print(table)
    if document["grades"]:
        listed = ", ".join(f"{n:,} of {grade}" for grade, n in document["grades"].items())
        say(console, f"Grades: {listed}.")
    for name, words in _SPREADS.items():
        spread = document[name]
        say(
            console,
            f"{words[0].upper()}{words[1:]}: {spread['median']:g} in the middle, from "
            f"{spread['least']:g} to {spread['most']:g}.",
        )
