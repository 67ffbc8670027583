"""misslink goldset from-logs: questions from a live app's logs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from misslink.cli.options import JSON_OPTION, OVERWRITE_OPTION, option
from misslink.cli.output import check_output_paths, print_json
from misslink.goldset.cli.options import (
    COLUMN_OPTION,
    OUT_OPTION,
    print_lines,
    refuse_existing,
)

_REASON_NAMES = {"head": "most frequent", "failure": "failed", "tail": "one of each cluster"}


def from_logs_command(
    logs: list[Path] = typer.Argument(
        ..., help="CSV, JSON Lines, parquet, or OpenTelemetry traces; also .gz."
    ),
    out: Path = OUT_OPTION,
    n: int = option(100, "-n", "Number of questions.", min=1),
    head: float = option(0.4, "--head", "Share of the most frequent questions."),
    tail: float = option(0.4, "--tail", "Share of rare questions, one a cluster."),
    failures: float = option(
        0.2, "--failures", "Share of failed: bad feedback, errors, refusals, repeats."
    ),
    embedding: str | None = option(
        None,
        "--embedding",
        "Cluster by meaning, such as minilm; it gets masked text.",
        show_default="by words",
    ),
    seed: int = option(0, "--seed", "Random seed for samples and intervals.", min=0),
    column: list[str] = COLUMN_OPTION,
    traces: Path | None = option(
        None, "--traces-out", "Also write traces for evaluate, if present."
    ),
    mask_pattern: list[str] = option(
        [], "--mask-pattern", "NAME=REGEX for another kind of personal data."
    ),
    mask_names: Path | None = option(
        None, "--mask-names", "File of people's names to mask, one a line."
    ),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Sample questions from logs: frequent, failed, and rare ones by cluster.

    Personal data are masked before anything is stored or embedded: e-mail addresses, phone numbers,
    IBANs, card numbers, IP addresses, credentials, keys and national ids. Names are masked only by
    --mask-names. Clustering by words needs  pip install 'misslink[goldset]'.
    """
    from misslink.embedding import open_embedder
    from misslink.goldset.logs import (
        Masker,
        SampleShares,
        parse_mask_patterns,
        read_names,
        sample_log,
    )
    from misslink.goldset.writer import to_jsonl
    from misslink.io.atomic import atomic_write
    from misslink.io.trace_formats import parse_columns, read_logs

    shares = SampleShares(head, tail, failures)
    columns = parse_columns(column)
    names = [] if mask_names is None else read_names(mask_names)
    masker = Masker(parse_mask_patterns(mask_pattern), names)
    outputs = {"--out": out, "--traces-out": traces}
    check_output_paths(outputs, [*logs, mask_names])
    for flag, path in outputs.items():
        if path is not None:
            refuse_existing(path, flag, overwrite=overwrite)
    log = read_logs(logs, columns)
    embedder = None if embedding is None else open_embedder(embedding)
    try:
        sample = asyncio.run(
            sample_log(log, n, shares=shares, masker=masker, embedder=embedder, seed=seed)
        )
    finally:
        if embedder is not None:
            embedder.close()
    if traces is not None:
        atomic_write(to_jsonl(sample.traces), traces)
    atomic_write(to_jsonl(sample.cases), out)
    document = {"goldset": str(out), "traces": None if traces is None else str(traces)}
    document |= sample.document
    if as_json:
        print_json(document)
    else:
        _print_sample(document)


def _print_sample(document: Mapping[str, Any]) -> None:
    def counts(name: str) -> str:
        return ", ".join(f"{kind} {count:,}" for kind, count in document[name].items() if count)

    lines = [
        f"  {count:,} {why} ({_REASON_NAMES[why]})" for why, count in document["chosen"].items()
    ]
    lines.append(f"  They represent {document['requests_covered']:,} of the requests.")
    lines.append(f"Failed requests: {counts('failing') or 'none'}.")
    lines.append(f"Masked: {counts('masked') or 'nothing'}.")
    lines += (f"Left out: {count:,} {why}." for why, count in document["left_out"].items())
    lines += document["notes"]
    if document["traces"] and document["with_trace"]:
        lines.append(f"{document['with_trace']:,} traces in {document['traces']}. Next:")
        lines.append(
            f"  misslink evaluate --traces {document['traces']} --goldset {document['goldset']} "
            "--judge heuristic --out reports/logs"
        )
    title = (
        f"{document['written']:,} questions in {document['goldset']}, of "
        f"{document['different']:,} different ones in {document['requests']:,} requests"
    )
    print_lines(title, lines)
