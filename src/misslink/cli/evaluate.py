"""misslink evaluate: run an app over a gold set, or read its traces, and write a run folder."""

from __future__ import annotations

import datetime as dt
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import typer

from misslink.cli.output import own_stdout, print_json, print_summary, progress_bars

__all__ = ["LEDGER_OPTION", "evaluate", "run_and_print"]

LEDGER_OPTION = typer.Option(
    None,
    "--ledger",
    help="Where judge replies are kept.",
    show_default=".misslink/ledger.sqlite",
)

_INTERRUPTED = 130  # what shells report for Ctrl-C
_SECRET = re.compile(r"://[^/@\s]+@")  # a name and password in a URL


def evaluate(
    app: str | None = typer.Argument(
        None, help="The app: package.module:name or path/to/file.py:name.", show_default=False
    ),
    goldset: Path = typer.Option(..., "--goldset", help="Gold set: JSON Lines or a JSON array."),
    traces: Path | None = typer.Option(
        None, "--traces", help="What an app did, as JSON Lines, in place of APP."
    ),
    judge: str = typer.Option(
        "embedded",
        "--judge",
        envvar="MISSLINK_JUDGE",
        help="openai:MODEL, embedded or embedded:minilm (heuristics), or none (level 1 alone).",
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Run folder to write.", show_default="reports/DATE-TIME"
    ),
    k: int = typer.Option(5, "--k", min=1, help="Cut-off of the rank metrics."),
    depth: int = typer.Option(
        100, "--depth", min=1, help="How deep the retriever is asked for what it missed."
    ),
    concurrency: int = typer.Option(8, "--concurrency", min=1, help="Cases under way at once."),
    ledger: Path | None = LEDGER_OPTION,
    id_key: str | None = typer.Option(
        None, "--id-key", help="Metadata key that holds a passage's id."
    ),
    input_key: str | None = typer.Option(
        None, "--input-key", help="Key under which the app takes its question."
    ),
    base_url: str | None = typer.Option(
        None,
        "--base-url",
        help="Of an OpenAI-compatible judge.",
        show_default="OPENAI_BASE_URL",
    ),
    seed: int = typer.Option(0, "--seed", help="Of the intervals that are drawn."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a run of other inputs."),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
) -> None:
    """Evaluate a RAG app over a gold set and write the linked report."""
    from misslink.judging.terms import Terms

    stamp = dt.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    run_and_print(
        as_json,
        app=app,
        goldset=goldset,
        traces=traces,
        judge=judge,
        out=out or Path("reports") / stamp,
        k=k,
        depth=depth,
        concurrency=concurrency,
        ledger=ledger,
        id_key=id_key,
        input_key=input_key,
        terms=Terms(base_url=base_url),
        seed=seed,
        overwrite=overwrite,
        command=_SECRET.sub("://", shlex.join(["misslink", *sys.argv[1:]])),
    )


def run_and_print(as_json: bool, **options: Any) -> None:
    """Evaluate with progress on stderr, and print the summary."""
    from misslink.pipeline import evaluate as evaluate_line

    if options["ledger"] is None:
        del options["ledger"]  # from Python, None means none; here it means the default one
    try:
        with own_stdout(), progress_bars() as progress:
            run = evaluate_line(**options, progress=progress)
    except KeyboardInterrupt:
        print(
            "misslink: interrupted; what was done is kept, "
            f"and the same command with  --out {options['out']}  goes on",
            file=sys.stderr,
        )
        raise typer.Exit(_INTERRUPTED) from None
    if as_json:
        print_json(run.summary)
    else:
        print_summary(run.summary)
