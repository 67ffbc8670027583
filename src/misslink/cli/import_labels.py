"""Command `misslink import`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import typer

from misslink.cli.options import JSON_OPTION, option
from misslink.cli.output import print_json, print_line


def import_labels(
    name: str = typer.Argument(
        ..., help="ragtruth, begin, clapnq, ragchecker, trec-rag, or that of a plugin."
    ),
    files: list[Path] = typer.Argument(..., help="Files of the set, as published, in any order."),
    out: Path = option(..., "--out", "Folder to write."),
    split: str | None = option(None, "--split", "train, dev or test.", show_default="all"),
    task: str | None = option(
        None, "--task", "RAGTruth task: QA, Summary or Data2txt.", show_default="all"
    ),
    implicit_true: Literal["unfaithful", "faithful"] = option(
        "unfaithful",
        "--implicit-true",
        "RAGTruth: label of answers whose marked spans are true but in no passage.",
    ),
    overwrite: bool = option(False, "--overwrite", "Write into a folder that is not empty."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Convert a published label set to a gold set, traces and labels.

    The folder's README.md describes the files and the next commands.
    """
    from misslink.io.label_sets import ImportOptions, write_label_set
    from misslink.registry import importers

    import_files = importers.get(name)
    options = ImportOptions(split=split, task=task, implicit_true=implicit_true)
    document = write_label_set(import_files(files, options), name, out, overwrite=overwrite)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    title = f"{document['title']}: {document['cases']:,} cases in {document['out']}"
    print_line(console, title, "bold")
    for metric, entry in document["labels"].items():
        by = "" if entry["annotators"] == 1 else f", by {entry['annotators']} annotators"
        print_line(
            console, f"  {metric}: {entry['n']:,} labels{by}, {entry['good']:,} of them good"
        )
    for reason, count in document["left_out"].items():
        print_line(console, f"  Left out: {count:,} ({reason}).")
    lines = [*document["notes"], "Next:", *document["next"]]
    for line in lines:
        print_line(console, line if line == "Next:" else f"  {line}")
