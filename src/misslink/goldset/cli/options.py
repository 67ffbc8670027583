"""Options and path checks that the goldset commands share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from misslink.cli.options import field_option, option
from misslink.cli.output import matching_paths, print_line
from misslink.errors import InputError

GOLDSET_ARGUMENT: Any = typer.Argument(..., help="A gold set: a file, folder, pattern or URL.")
OUT_OPTION: Any = option(..., "--out", "Gold set to write, as JSON Lines.")
MARKDOWN_OPTION: Any = option(None, "--markdown", "Also write a markdown report.")
CORPUS_OPTION: Any = field_option("corpus", show_default=False)
TRACES_OUT_OPTION: Any = option(None, "--traces-out", "Also write traces for evaluate, if present.")
COLUMN_OPTION: Any = option(
    [], "--column", "FIELD=NAME for a log column with another name: question=query."
)


def print_lines(title: str, lines: Iterable[str]) -> None:
    """Print a title in bold, and lines below it."""
    print_line(title, "bold")
    for line in lines:
        print_line(line)


def refuse_existing(path: Path, flag: str, *, overwrite: bool) -> None:
    """Raise InputError for a file that exists and must not be replaced."""
    if path.exists() and not overwrite:
        message = f"The file exists. Name another one with {flag}, or add --overwrite."
        raise InputError(message, path=path)


def refuse_shard(path: Path, goldset: Path) -> None:
    """Raise InputError for a file that is, or would become, a part of the input gold set."""
    target, read = path.resolve(), {file.resolve() for file in matching_paths(goldset)}
    if target in read or target.parent in read:
        raise InputError("This is an input. Name another folder with --out.", path=goldset)
