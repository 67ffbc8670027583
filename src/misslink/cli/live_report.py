"""misslink live report: the document printed, as a table, as markdown or as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli.canary_input import STDOUT, check_places
from misslink.cli.output import cell, print_json, say
from misslink.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["show_report"]

_NAME = 15  # characters of a name that is not folded


def show_report(
    log: Path,
    options: Mapping[str, Any],
    *,
    html: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Print the report of a live log, and write it where that is wanted.

    Parameters
    ----------
    log : Path
    options : mapping
        As `misslink.watching.live_report.document.live_report` takes them.
    html, markdown : Path or None
    as_json : bool

    Raises
    ------
    InputError
        The log or an option is wrong, or a place cannot be written.
    """
    from misslink.files.whole import put
    from misslink.manifest import shown_path
    from misslink.report.live import build, render
    from misslink.report.live_markdown import markdown as as_markdown
    from misslink.watching.live_report.document import live_report

    check_places(markdown, html, as_json=as_json)
    if {one.resolve() for one in (markdown, html) if one} & {log.resolve()}:
        raise InputError("--markdown or --html names the live log; give another")
    document = {"log": shown_path(log), **live_report(log, **options)}
    if html is not None:
        put(render(build(document)), html)
    printed = markdown is not None and str(markdown) == STDOUT
    if markdown is not None:
        text = as_markdown(document)
        print(text, end="") if printed else put(text, markdown)
    if as_json:
        print_json(document)
    elif not printed:
        _print(document)


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    from misslink.report.live_rows import disagreement_words

    console = Console()
    for sentence in disagreement_words(document):
        say(console, sentence, "bold")
    say(console, document["verdict"]["sentence"], "bold")
    _print_variants(console, document)
    for one in document["comparisons"]:
        _print_comparison(console, one, document)
    _print_lists(console, document["interleaving"])
    _print_shadows(console, document["shadows"])
    _print_offline(console, document)
    for note in document["notes"]:
        say(console, f"note: {note}")


def _print_variants(console: Console, document: Mapping[str, Any]) -> None:
    from misslink.report.live_rows import VARIANT_HEADS, variant_rows

    _table(console, VARIANT_HEADS, variant_rows(document), right=(1, 2, 3, 4, 5))
    say(console, f"Sample ratio: {document['sample_ratio']['sentence']}.")


def _print_comparison(
    console: Console, one: Mapping[str, Any], document: Mapping[str, Any]
) -> None:
    from misslink.report.live_rows import (
        GUARD_HEADS,
        cuped_words,
        guard_rows,
        metric_heads,
        metric_rows,
    )

    control, variant = document["control"], one["variant"]
    if one["metrics"]:
        _table(console, metric_heads(control, variant), metric_rows(one))
        say(
            console,
            f"{variant} minus {control}. Any time: valid however often one looks, p after Holm. "
            "Fixed: for one look, at a size planned beforehand.",
        )
    for words in cuped_words(one):
        say(console, words)
    if one["guardrails"]:
        _table(console, GUARD_HEADS, guard_rows(one))


def _print_lists(console: Console, lists: Mapping[str, Any] | None) -> None:
    from misslink.report.live_rows import list_heads, list_rows

    if lists is not None:
        _table(console, list_heads(lists), list_rows(lists))


def _print_shadows(console: Console, shadows: list[Mapping[str, Any]]) -> None:
    from misslink.report.live_rows import SHADOW_HEADS, shadow_rows

    for one in shadows:
        _table(console, SHADOW_HEADS, shadow_rows(one))


def _print_offline(console: Console, document: Mapping[str, Any]) -> None:
    from misslink.report.live_rows import beside_heads, beside_rows

    rows = beside_rows(document)
    if rows:
        _table(console, beside_heads(document), rows)


def _table(
    console: Console,
    heads: tuple[str, ...],
    rows: list[tuple[str, ...]],
    right: tuple[int, ...] = (),
) -> None:
    from rich.table import Table

    table = Table()
    for place, head in enumerate(heads):
        widest = max((len(row[place]) for row in rows), default=0)
        table.add_column(
            cell(console, head),
            overflow="fold",
            justify="right" if place in right else "left",
            no_wrap=not place and widest <= _NAME,
        )
    for row in rows:
        table.add_row(*(cell(console, text) for text in row))
    console.print(table)
