"""misslink report: write a run's report again, in any of its forms."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from misslink.cli.output import print_json
from misslink.cli.writing import is_part_of_run
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.types import Run

__all__ = ["report", "reports_of"]

# Of the others the name is the ending.
_FILES = {"markdown": "report.md", "parquet": "cases.parquet"}
_STDOUT = Path("-")


def report(
    run: Path = typer.Argument(..., help="A run folder that misslink evaluate wrote."),
    form: str = typer.Option(
        "html",
        "--format",
        help="html, markdown, json, csv, parquet, or a form that a plugin adds.",
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        help="The file to write; - is stdout.",
        show_default="RUN/report.FORM, or RUN/cases.parquet",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the path as JSON."),
) -> None:
    """Write the report of a run, and print its summary; it asks no model."""
    from misslink.files import read_whole
    from misslink.files.addresses import shown, url_of
    from misslink.registry import exporters

    write = exporters.get(form)
    if out == _STDOUT and as_json:
        raise InputError("--json prints to stdout, and so does --out -; leave one of them out")
    if out is None and url_of(run):
        raise InputError("this run lies in a storage; say with --out where its report goes")
    read = read_whole(run, anywhere=True)
    if out == _STDOUT:
        _refuse_two_files(read, form)
        _to_stdout(write, read)
        return
    path = out or run / _file(form)
    _refuse_part_of_run(path)
    try:
        path = write(read, path)
    except InputError as refused:
        if refused.path is None:
            raise
        # By who writes the file, and knows of no options.
        raise InputError(f"{refused.problem} with --out", path=refused.path) from None
    if as_json:
        print_json({"run": shown(run), "report": str(path), "format": form})
        return
    from misslink.cli.summary import print_run

    print_run(read, str(path))


def reports_of(folder: Path) -> dict[str, Callable[[Run, Path], Path]]:
    """The reports that a run folder has, the page in any case, each with what writes it anew."""
    from misslink.registry import exporters
    from misslink.report.html import write_page
    from misslink.report.worst import how_many

    forms = {
        form: exporters.get(form)
        for form in exporters.names()
        if form == "html" or (folder / _file(form)).exists()
    }
    with (folder / "cases.jsonl").open("rb") as lines:
        cases = sum(not line.isspace() for line in lines)
    if how_many(cases) < cases:  # each file of its own, so that all are put in place at once
        table = _file("parquet")
        forms |= {"html": partial(write_page, table=table), "parquet": exporters.get("parquet")}
    return {_file(form): write for form, write in forms.items()}


def _file(form: str) -> str:
    """What a report of this form is called in a run folder."""
    return _FILES.get(form, f"report.{form}")


def _refuse_two_files(run: Run, form: str) -> None:
    """Raise where a page has a table beside it, for which stdout has no place."""
    from misslink.report.worst import how_many

    if form == "html" and how_many(len(run.cases)) < len(run.cases):
        raise InputError(
            f"the page of {len(run.cases):,} cases has a table of all cases beside it, which "
            "--out - has no place for; name a file"
        )


def _to_stdout(write: Callable[[Run, Path], Path], run: Run) -> None:
    """Print what an exporter writes, which may be bytes of any kind."""
    with TemporaryDirectory(prefix="misslink-") as folder:
        content = write(run, Path(folder) / "report").read_bytes()
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _refuse_part_of_run(path: Path) -> None:
    """Raise where the file is, or would be, one that a run folder is made of and no report."""
    name = path.name.casefold()
    if is_part_of_run(path) and not name.startswith("report.") and name != _FILES["parquet"]:
        raise InputError(
            "this is a part of a run, not a report; give another path with --out", path=path
        )
