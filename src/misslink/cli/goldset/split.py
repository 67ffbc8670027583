"""misslink goldset split: parts that share no source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from misslink.cli.goldset.places import refuse_shard
from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json, say

__all__ = ["split"]

_FAR = 0.05  # a share this far from the one asked for is said


def split(
    goldset: Path = typer.Argument(..., help="A gold set: a file, folder, pattern or URL."),
    out: Path = typer.Option(..., "--out", help="Folder for one file a part."),
    parts: str = typer.Option("dev=0.8,test=0.2", "--parts", help="Names and shares."),
    by: str = typer.Option(
        "source",
        "--by",
        help="What stays together: source (passages, documents, evidence), category, tag:NAME, "
        "none.",
    ),
    seed: int = typer.Option(0, "--seed", help="Of the draw."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace files that are there."),
    as_json: bool = AS_JSON,
) -> None:
    """Cut a gold set into parts, so that nothing tuned on one leaks into another.

    Cases that rest on the same document stay together; categories are spread as evenly as that
    allows.
    """
    from misslink.files.goldset import read_goldset
    from misslink.goldset import splitting
    from misslink.goldset.writing import as_lines, check_free, write_goldset

    gold = read_goldset(goldset)
    found = splitting.split(gold.cases, splitting.parse_parts(parts), by=by, seed=seed)
    paths = {part.name: out / f"{part.name}.jsonl" for part in found.parts}
    for part in found.parts:  # all of them, before the first is written
        refuse_shard(paths[part.name], goldset)
        if not overwrite:
            check_free(as_lines(part.cases), paths[part.name])
    for part in found.parts:
        write_goldset(part.cases, paths[part.name], overwrite=overwrite)
    document = _document(found, paths, len(gold.cases), {"by": by, "seed": seed})
    if as_json:
        print_json(document)
    else:
        _print(document)


def _document(
    found: Any, paths: Mapping[str, Path], cases: int, terms: Mapping[str, Any]
) -> dict[str, Any]:
    parts = {
        part.name: {
            "path": str(paths[part.name]),
            "cases": len(part.cases),
            "share": len(part.cases) / cases,
            "wanted": part.wanted,
            "groups": part.groups,
            "categories": dict(sorted(Counter(case.category or "" for case in part.cases).items())),
        }
        for part in found.parts
    }
    notes = []
    if any(abs(one["share"] - one["wanted"]) > _FAR for one in parts.values()):
        notes.append(
            f"the shares are not what was asked: groups stay whole, and the largest of "
            f"{found.groups} has {found.largest} of {cases} cases"
        )
    if found.without_source and terms["by"] == "source":
        notes.append(
            f"{found.without_source} cases name no passage, evidence or source, so nothing keeps "
            "them together"
        )
    if found.by_evidence_alone:
        notes.append(
            f"{found.by_evidence_alone} cases name evidence and no document, so only those with "
            "the same evidence text stay together; tag them with their source to keep documents "
            "whole"
        )
    return {"cases": cases, **terms, "groups": found.groups, "parts": parts, "notes": notes}


def _print(document: Mapping[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("part", "cases", "share", "wanted", "groups"):
        table.add_column(name, justify="left" if name == "part" else "right")
    table.add_column("file", overflow="fold")
    for name, part in document["parts"].items():
        table.add_row(
            cell(console, name),
            f"{part['cases']:,}",
            f"{part['share']:.1%}",
            f"{part['wanted']:.1%}",
            f"{part['groups']:,}",
            cell(console, part["path"]),
        )
    console.print(table)
    for note in document["notes"]:
        say(console, f"{note[0].upper()}{note[1:]}.")
