"""Import of published label sets, for `misslink goldset import`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.cli.output import print_line, print_result
from misslink.io.label_sets import ImportOptions, write_label_set
from misslink.registry import importers


def import_label_set(
    name: str,
    files: Sequence[Path],
    out: Path,
    options: ImportOptions,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Convert a published label set to a gold set, traces and labels, and print what was written."""
    import_files = importers.get(name)
    document = write_label_set(import_files(files, options), name, out, overwrite=overwrite)
    print_result(document, _print, as_json=as_json)


def _print(document: Mapping[str, Any]) -> None:
    title = f"{document['title']}: {document['cases']:,} cases in {document['out']}"
    print_line(title, "bold")
    for metric, entry in document["labels"].items():
        by = "" if entry["annotators"] == 1 else f", by {entry['annotators']} annotators"
        print_line(f"  {metric}: {entry['n']:,} labels{by}, {entry['good']:,} of them good")
    for reason, count in document["left_out"].items():
        print_line(f"  Left out: {count:,} ({reason}).")
    lines = [*document["notes"], "Next:", *document["next"]]
    for line in lines:
        print_line(line if line == "Next:" else f"  {line}")
