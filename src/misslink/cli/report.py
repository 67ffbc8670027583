"""misslink report: render a run folder's page again."""

from __future__ import annotations

from pathlib import Path

import typer

from misslink.cli.output import print_json

__all__ = ["report"]


def report(
    run: Path = typer.Argument(..., help="A run folder that misslink evaluate wrote."),
    out: Path | None = typer.Option(
        None, "--out", help="The page to write.", show_default="RUN/report.html"
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the path as JSON."),
) -> None:
    """Write the HTML report of a run; it asks no model."""
    from misslink.errors import InputError
    from misslink.files import read_run

    read = read_run(run)
    try:
        path = read.html(out or run / "report.html")
    except InputError as refused:  # by who writes pages, and knows of no options
        raise InputError(f"{refused.problem} with --out", path=refused.path) from None
    if as_json:
        print_json({"run": str(run), "report": str(path)})
    else:
        print(path)
