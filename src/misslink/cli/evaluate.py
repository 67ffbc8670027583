"""misslink evaluate: run an app over a gold set, or read its traces, and write a run folder."""

from __future__ import annotations

import datetime as dt
import shlex
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from misslink.cli.options import AS_JSON, ID_KEY, INPUT_KEY, LEDGER
from misslink.cli.output import (
    interruptible,
    own_stdout,
    print_forecast,
    print_json,
    progress_bars,
)
from misslink.cli.summary import print_run
from misslink.cli.terms import CAPS, CASES, PACE, PRICES, Given, asks_judge

if TYPE_CHECKING:
    from misslink.pipeline import Progress

__all__ = ["evaluate", "run_and_print"]

Result = TypeVar("Result")


@asks_judge(*CASES, *PACE, *PRICES, "batch_price", *CAPS)
def evaluate(
    app: str | None = typer.Argument(
        None, help="The app: package.module:name or path/to/file.py:name.", show_default=False
    ),
    goldset: str = typer.Option(
        ...,
        "--goldset",
        help="Gold set: JSON Lines, a JSON array or parquet; a file, a folder of shards, a "
        "pattern, or a URL such as s3://BUCKET/gold.",
    ),
    traces: str | None = typer.Option(
        None, "--traces", help="What an app did, in place of APP; files as of --goldset."
    ),
    case: list[str] | None = typer.Option(
        None,
        "--case",
        help="Id of a case to evaluate, and no other but those named so; may be repeated.",
        show_default="all cases",
    ),
    judge: str = typer.Option(
        "embedded",
        "--judge",
        envvar="MISSLINK_JUDGE",
        help="openai:MODEL, langchain:PROVIDER:MODEL, llamacpp:FILE.gguf, embedded (a heuristic), "
        "cascade:embedded,openai:MODEL, FILE.py:NAME, or none (level 1 alone).",
    ),
    out: str | None = typer.Option(
        None,
        "--out",
        help="Run folder to write, or a URL, to which it is copied.",
        show_default="reports/DATE-TIME",
    ),
    k: int = typer.Option(5, "--k", min=1, help="Cut-off of the rank metrics."),
    depth: int = typer.Option(
        100, "--depth", min=1, help="How deep the retriever is asked for what it missed."
    ),
    concurrency: int = typer.Option(8, "--concurrency", min=1, help="Cases under way at once."),
    engine: str = typer.Option(
        "local",
        "--engine",
        help="Who carries the work: local (this process), ray (a cluster), or batch (the judge's "
        "provider, at a lower price and later).",
    ),
    ray_address: str | None = typer.Option(
        None,
        "--ray-address",
        help="Of --engine ray: auto, or HOST:PORT.",
        show_default="a cluster of this machine alone",
    ),
    workers: int | None = typer.Option(
        None,
        "--workers",
        min=1,
        help="Of --engine ray: how many.",
        show_default="one for each of its processors",
    ),
    ledger: Path | None = LEDGER,
    id_key: str | None = ID_KEY,
    input_key: str | None = INPUT_KEY,
    embedding: str = typer.Option(
        "app",
        "--embedding",
        help="By which misses are measured: app (the app's own), minilm, PROVIDER:MODEL, "
        "FILE.py:NAME, or none.",
    ),
    calibration: Path | None = typer.Option(
        None,
        "--calibration",
        help="calibration.json that  misslink calibrate  keeps in a run, or JSON with its metric, "
        "threshold, agreement.sensitivity and agreement.specificity: the risks are corrected for "
        "the judge's errors.",
        show_default=False,
    ),
    labels: list[Path] | None = typer.Option(
        None,
        "--labels",
        help="Human labels of these cases, CSV or JSONL: the judge is held against them, and that "
        "is its calibration; may be repeated.",
        show_default=False,
    ),
    known_only: bool = typer.Option(
        False, "--known-only", help="Leave out labels of cases that the gold set does not have."
    ),
    seed: int = typer.Option(0, "--seed", help="Of the intervals that are drawn."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a run of other inputs."),
    dry_run: bool = typer.Option(
        False,
        "--dry-run",
        help="Say what the judge would be asked and cost, and save in batches; ask it nothing.",
    ),
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Evaluate a RAG app over a gold set and write the linked report."""
    from misslink.files.addresses import shown as stored_as
    from misslink.judging.terms import Terms

    stamp = dt.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    run_and_print(
        as_json,
        dry_run=dry_run,
        app=app,
        goldset=goldset,
        traces=traces,
        judge=judge,
        out=out or str(Path("reports") / stamp),
        k=k,
        depth=depth,
        concurrency=concurrency,
        ledger=ledger,
        id_key=id_key,
        input_key=input_key,
        embedding=embedding,
        calibration=calibration,
        labels=labels or None,
        known_only=known_only,
        terms=Terms(**given),
        seed=seed,
        overwrite=overwrite,
        only=tuple(case or ()),
        engine=engine,
        ray_address=ray_address,
        workers=workers,
        command=shlex.join(["misslink", *map(stored_as, sys.argv[1:])]),
    )


def run_and_print(
    as_json: bool, *, dry_run: bool = False, command: str | None = None, **options: Any
) -> None:
    """Evaluate with progress on stderr, and print the summary, or what it would cost."""
    from misslink.files.addresses import shown as stored_as
    from misslink.pipeline import Options, evaluate_async, forecast_async

    if options["ledger"] is None:
        del options["ledger"]  # from Python, None means none; here it means the default one
    if dry_run:
        forecast = _shown(options, lambda tick: forecast_async(Options(**options), tick))
        print_json(asdict(forecast)) if as_json else print_forecast(forecast)
        if options["app"] is not None:  # its traces lie beside the run folder
            print(
                "misslink: the app's answers are kept; a run with "
                f" --out {stored_as(options['out'])}  does not ask it again",
                file=sys.stderr,
            )
        return
    run = _shown(options, lambda tick: evaluate_async(**options, command=command, progress=tick))
    if as_json:
        print_json(run.summary)
    else:
        print_run(run, f"{run.summary['run']}/report.html")


def _shown(
    options: Mapping[str, Any], line: Callable[[Progress], Coroutine[Any, Any, Result]]
) -> Result:
    """Run the line with progress on stderr; interrupted, say how to go on."""
    from misslink.files.addresses import shown as stored_as
    from misslink.pipeline import in_a_loop

    way_on = f"the same command with  --out {stored_as(options['out'])}  goes on"
    with interruptible(way_on), own_stdout(), progress_bars() as progress:
        return in_a_loop(lambda: line(progress), options["concurrency"])
