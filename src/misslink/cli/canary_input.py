"""What the canary commands take alike, and where they may write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from misslink.cli.writing import check_place
from misslink.errors import InputError

__all__ = ["HISTORY", "NAME", "STDOUT", "check_places"]

NAME: Any = typer.Option("main", "--name", help="Of the series of runs that belong together.")
HISTORY: Any = typer.Option(
    Path(".misslink/canary.sqlite"), "--history", help="Where runs are kept, an SQLite file."
)

STDOUT = "-"


def check_places(markdown: Path | None, html: Path | None, *, as_json: bool) -> None:
    """Refuse a place where no summary or page can be written.

    Raises
    ------
    InputError
        There, or where both print to stdout or into one file.
    """
    if markdown is not None and str(markdown) == STDOUT:
        if as_json:
            raise InputError("--json and --markdown - both print to stdout; write one into a file")
        markdown = None
    if markdown is not None:
        check_place(markdown, "--markdown")
    if html is not None:
        check_place(html, "--html")
        if markdown is not None and markdown.resolve() == html.resolve():
            raise InputError("--markdown and --html name one file; give two")
