"""misslink goldset import and export: gold sets of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from misslink.cli.goldset.places import check_places
from misslink.cli.options import AS_JSON
from misslink.cli.output import print_json, say
from misslink.errors import InputError

__all__ = ["export_goldset", "import_goldset"]

_NAMES = "beir, trec, ragas, langsmith, langfuse, huggingface"


def import_goldset(
    source: Path = typer.Argument(..., help="File or folder of another tool; also .gz."),
    out: Path = typer.Option(..., "--out", help="Gold set to write, JSON Lines."),
    name: str = typer.Option("auto", "--format", help=f"{_NAMES}, or auto: by what it holds."),
    qrels: Path | None = typer.Option(
        None, "--qrels", help="Judgements, where they lie apart from the topics."
    ),
    split: str | None = typer.Option(None, "--split", help="Of several: test, dev, train."),
    column: list[str] = typer.Option(
        [], "--column", help="Of huggingface: FIELD=NAME where a column has another name."
    ),
    traces: Path | None = typer.Option(
        None, "--traces", help="Also write what an app retrieved and answered, where it is there."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace files that are there."),
    as_json: bool = AS_JSON,
) -> None:
    """Bring a gold set of another tool; what could not be brought is counted."""
    from misslink.goldset.formats import Options, bring
    from misslink.goldset.formats.places import refuse_other
    from misslink.goldset.writing import as_lines

    options = Options(qrels=qrels, split=split, columns=_named(column))
    check_places({"--out": out, "--traces": traces}, [source, qrels])
    for path in (out, traces):
        if path is not None:
            refuse_other(path, overwrite=overwrite)
    found, brought = bring(source, name, options)
    _put(as_lines(brought.traces) if brought.traces else "", traces)
    _put(as_lines(brought.cases), out)
    document = {
        "goldset": str(out),
        "format": found,
        "cases": len(brought.cases),
        "with_relevant": sum(
            bool(case.relevant or case.relevant_any or case.evidence) for case in brought.cases
        ),
        "with_reference": sum(bool(case.references) for case in brought.cases),
        "traces": str(traces) if traces is not None and brought.traces else None,
        "traces_found": len(brought.traces),
        "left_out": dict(brought.left_out),
        "notes": list(brought.notes),
    }
    if as_json:
        print_json(document)
    else:
        _print_brought(document)
    _warn("Not brought", brought.left_out)


def export_goldset(
    goldset: Path = typer.Argument(..., help="Gold set, JSON Lines."),
    out: Path = typer.Option(..., "--out", help="File, or folder (beir, trec), to write."),
    name: str = typer.Option(..., "--format", help=f"{_NAMES}."),
    corpus: Path | None = typer.Option(
        None, "--corpus", help="Of beir: passages to write beside the questions."
    ),
    split: str | None = typer.Option(None, "--split", help="Of beir.", show_default="test"),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace files that are there."),
    as_json: bool = AS_JSON,
) -> None:
    """Write a gold set for another tool; what its format cannot hold is counted."""
    from misslink.files import read_goldset
    from misslink.files.addresses import shown
    from misslink.goldset.formats import Options, take_out

    gold = read_goldset(goldset)
    read = tuple(path for path in (goldset, corpus) if path is not None)
    options = Options(corpus=corpus, split=split, overwrite=overwrite, read=read)
    lost = take_out(gold, name, out, options)
    document = {
        "goldset": shown(goldset),
        "format": name,
        "out": str(out),
        "cases": len(gold.cases),
        "lost": lost,
    }
    if as_json:
        print_json(document)
    else:
        from rich.console import Console

        say(Console(), f"{len(gold.cases):,} cases in {out} ({name})", "bold")
    _warn("This format does not hold, so it is not in it", lost)


def _named(column: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in column:
        field, equals, name = (part.strip() for part in each.partition("="))
        if not equals or not field or not name:
            raise InputError(f"--column {each!r} says no column; write it as question=NAME")
        found[field] = name
    return found


def _put(text: str, path: Path | None) -> None:
    from misslink.files.whole import put

    if text and path is not None:
        put(text, path)


def _print_brought(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    say(
        console,
        f"{document['cases']:,} cases in {document['goldset']} ({document['format']})",
        "bold",
    )
    say(
        console,
        f"  {document['with_relevant']:,} say what is relevant, {document['with_reference']:,} "
        "have a reference answer.",
    )
    if document["traces_found"]:
        where = document["traces"] or "not written: name a file with --traces"
        say(console, f"  {document['traces_found']:,} traces of an app ({where}).")
    for note in document["notes"]:
        say(console, f"  {note}")


def _warn(what: str, counts: Mapping[str, int]) -> None:
    """Say on stderr what is lost: stdout may be the document that a program reads."""
    from rich.console import Console

    if counts:
        told = ", ".join(f"{name} ({count:,})" for name, count in counts.items())
        say(Console(stderr=True), f"misslink: {what}: {told}.")
