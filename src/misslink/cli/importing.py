"""misslink import: a label set that people published, as gold set, traces and labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import print_json, say

__all__ = ["import_labels"]


def import_labels(
    name: str = typer.Argument(
        ..., help="ragtruth, begin, clapnq, ragchecker, trec-rag, or one of another package."
    ),
    files: list[Path] = typer.Argument(
        ..., help="The files of the set as they are published, in any order."
    ),
    out: Path = typer.Option(..., "--out", help="Folder to write."),
    split: str | None = typer.Option(
        None, "--split", help="Such as train, dev or test.", show_default="all"
    ),
    task: str | None = typer.Option(
        None, "--task", help="Of RAGTruth: QA, Summary or Data2txt.", show_default="all"
    ),
    implicit_true: Literal["unfaithful", "faithful"] = typer.Option(
        "unfaithful",
        "--implicit-true",
        help="Of RAGTruth: what answers count as whose marked spans are all true, though no "
        "passage says so.",
    ),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="Write into a folder that holds something."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Make gold set, traces and labels of a set that people labelled and published.

    The folder's README.md says what is in it, and which commands come next.
    """
    from misslink.files.public import Wanted, write_imported
    from misslink.registry import importers

    read = importers.get(name)
    found = read(files, Wanted(split=split, task=task, implicit_true=implicit_true))
    document = write_imported(found, name, out, overwrite=overwrite)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    say(console, f"{document['title']}: {document['cases']:,} cases in {document['out']}", "bold")
    for metric, one in document["labels"].items():
        people = "" if one["annotators"] == 1 else f", by {one['annotators']} people"
        say(console, f"  {metric}: {one['n']:,} labels{people}, {one['good']:,} of them good")
    for why, count in document["left_out"].items():
        say(console, f"  Left out: {count:,} ({why}).")
    for note in document["notes"]:
        say(console, f"  {note}")
    say(console, "Next:")
    for command in document["next"]:
        say(console, f"  {command}")
