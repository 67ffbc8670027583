"""misslink goldset merge: several gold sets made one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import typer

from misslink.cli.goldset.places import check_places
from misslink.cli.options import AS_JSON
from misslink.cli.output import print_json, say
from misslink.errors import InputError

__all__ = ["merge"]

_FEWEST = 2
_SHOWN = 5


def merge(
    goldsets: list[Path] = typer.Argument(..., help="Two gold sets or more, JSON Lines."),
    out: Path = typer.Option(..., "--out", help="The gold set to write."),
    prefer: Literal["first", "last", "grades-max"] | None = typer.Option(
        None,
        "--prefer",
        help="What holds where two sets say different things of one id; grades-max takes the "
        "highest grade of each passage.",
        show_default="refused",
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a file that is there."),
    as_json: bool = AS_JSON,
) -> None:
    """Merge gold sets by the ids of their cases."""
    from misslink.files.addresses import shown
    from misslink.files.goldset import read_goldset
    from misslink.goldset.merging import merged
    from misslink.goldset.writing import write_goldset

    if len(goldsets) < _FEWEST:
        raise InputError("one gold set alone cannot be merged; name two or more")
    check_places({"--out": out}, goldsets)
    found = merged([read_goldset(path) for path in goldsets], prefer)
    write_goldset(found.cases, out, overwrite=overwrite)
    document = {
        "goldset": str(out),
        "from": [shown(path) for path in goldsets],
        "cases": len(found.cases),
        "repeated": found.repeated,
        "settled": list(found.settled),
        "same_question": [list(ids) for ids in found.same_question],
    }
    if as_json:
        print_json(document)
    else:
        _print(document, prefer)


def _print(document: Mapping[str, Any], prefer: str | None) -> None:
    from rich.console import Console

    console = Console()
    say(console, f"{document['goldset']}: {document['cases']:,} cases", "bold")
    if document["repeated"]:
        say(console, f"{document['repeated']:,} stood in more than one set with the same content.")
    if document["settled"]:
        say(console, f"Settled by --prefer {prefer}: {_listed(document['settled'])}.")
    for ids in document["same_question"][:_SHOWN]:
        say(console, f"The same question under several ids: {', '.join(ids)}.")
    more = len(document["same_question"]) - _SHOWN
    if more > 0:
        say(console, f"And {more:,} more questions under several ids; --json lists all.")


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
