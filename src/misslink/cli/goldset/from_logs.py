"""misslink goldset from-logs: questions for a gold set out of a live app's logs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.goldset.places import check_places
from misslink.cli.options import AS_JSON
from misslink.cli.output import print_json, say
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.goldset.logs import Log, Masker, Picked, Shares

__all__ = ["from_logs"]

_WHY = {"head": "asked most", "failure": "failing", "tail": "one of each kind"}


def from_logs(
    logs: list[Path] = typer.Argument(
        ...,
        help="CSV, JSON Lines, parquet, or OpenTelemetry traces (OTLP JSON, Phoenix); also .gz.",
    ),
    out: Path = typer.Option(..., "--out", help="Gold set to write, JSON Lines."),
    n: int = typer.Option(100, "-n", min=1, help="How many questions."),
    head: float = typer.Option(0.4, "--head", help="Share of the most frequent questions."),
    tail: float = typer.Option(0.4, "--tail", help="Share of the rare, one of each cluster."),
    failures: float = typer.Option(
        0.2,
        "--failures",
        help="Share of those that failed: feedback, errors, refusals, asked again.",
    ),
    embedding: str | None = typer.Option(
        None,
        "--embedding",
        help="Clusters the tail by meaning, such as minilm; it is given masked questions.",
        show_default="by words",
    ),
    seed: int = typer.Option(0, "--seed", help="Of the clusters."),
    column: list[str] = typer.Option(
        [], "--column", help="FIELD=NAME where a column has another name: question=query."
    ),
    traces: Path | None = typer.Option(
        None, "--traces", help="Also write what the app retrieved and answered, for evaluate."
    ),
    mask_pattern: list[str] = typer.Option(
        [],
        "--mask-pattern",
        help="NAME=REGEX, personal data of your own kind; how long the regex takes is not limited.",
    ),
    mask_names: Path | None = typer.Option(
        None, "--mask-names", help="File of people's names to mask, one a line."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace files that are there."),
    as_json: bool = AS_JSON,
) -> None:
    """Pick questions from logs: the frequent, the failing, and the rare by clusters.

    Personal data are masked before anything is stored or embedded: e-mail addresses, telephone
    numbers, IBANs, card numbers, IP addresses, credentials, keys and checkable national ids. Names
    are masked only by --mask-names.
    """
    from misslink.goldset.logs import (
        Masker,
        Shares,
        own_columns,
        own_patterns,
        read_logs,
        read_names,
    )

    shares = Shares(head, tail, failures)
    columns = own_columns(column)
    names = [] if mask_names is None else read_names(mask_names)
    masker = Masker(own_patterns(mask_pattern), names)
    places = {"--out": out, "--traces": traces}
    check_places(places, [*logs, mask_names])
    for option, path in places.items():
        if path is not None and path.exists() and not overwrite:
            raise InputError(
                f"this file is there already; name another with {option}, or add --overwrite",
                path=path,
            )
    log = read_logs(logs, columns)
    picked = _picked(log, n, shares, masker, embedding, seed)
    document = {"goldset": str(out), "traces": None if traces is None else str(traces)}
    document |= picked.document
    _write(picked, out, traces)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _picked(
    log: Log, n: int, shares: Shares, masker: Masker, embedding: str | None, seed: int
) -> Picked:
    from misslink.goldset.logs import pick

    if embedding is None:
        return asyncio.run(pick(log, n, shares=shares, masker=masker, seed=seed))
    from misslink.embedding import open_embedder

    embedder = open_embedder(embedding)
    try:
        return asyncio.run(pick(log, n, shares=shares, masker=masker, embedder=embedder, seed=seed))
    finally:
        embedder.close()


def _write(picked: Picked, out: Path, traces: Path | None) -> None:
    from misslink.files.whole import put
    from misslink.goldset.writing import as_lines

    if traces is not None:
        put(as_lines(picked.traces), traces)
    put(as_lines(picked.cases), out)


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    say(
        console,
        f"{document['written']:,} questions in {document['goldset']}, of {document['different']:,} "
        f"different ones in {document['requests']:,} requests",
        "bold",
    )
    for why, count in document["chosen"].items():
        say(console, f"  {count:,} {why} ({_WHY[why]})")
    say(console, f"  They stand for {document['requests_covered']:,} of the requests.")
    failing = ", ".join(f"{name} {count:,}" for name, count in document["failing"].items() if count)
    say(console, f"Requests that failed: {failing or 'none seen'}.")
    masked = ", ".join(f"{kind} {count:,}" for kind, count in document["masked"].items())
    say(console, f"Masked: {masked or 'nothing was found'}.")
    for why, count in document["left_out"].items():
        say(console, f"Left out: {count:,} {why}.")
    for note in document["notes"]:
        say(console, note)
    if document["traces"] and document["with_trace"]:
        say(console, f"{document['with_trace']:,} traces in {document['traces']}. Next:")
        say(
            console,
            f"  misslink evaluate --traces {document['traces']} --goldset {document['goldset']} "
            "--judge embedded --out reports/logs",
        )
