"""Command `misslink evaluate`."""

from __future__ import annotations

import datetime as dt
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, option
from misslink.cli.run_summary import print_run_summary

if TYPE_CHECKING:
    from misslink.types import Run


@shared.with_judge_options(
    *shared.CASE_OPTIONS, *shared.PACE_OPTIONS, *shared.PRICE_OPTIONS, "batch_price",
    *shared.CAP_OPTIONS, "retry_refused",
)  # fmt: skip
def evaluate(
    context: typer.Context,
    app: str | None = typer.Argument(
        None, help="App: package.module:name, path/to/file.py:name or URL.", show_default=False
    ),
    http: Path | None = option(
        None, "--http", "App behind HTTP, described by a TOML file.", show_default=False
    ),
    goldset: str | None = option(
        None,
        "--goldset",
        "Gold set: file, folder, glob pattern or URL.",
        show_default="made from --traces",
    ),
    traces: str | None = option(
        None, "--traces", "Evaluate recorded traces instead of calling an app."
    ),
    corpus: str | None = option(
        None,
        *shared.CORPUS,
        show_default="the app's own index",
    ),
    only: list[str] = option(
        [], "--case", "Evaluate only the case with this id; repeatable.", show_default="all"
    ),
    judge: str = option(
        "heuristic",
        "--judge",
        "Judge: heuristic, openai:MODEL, none, or another (see above).",
        envvar="MISSLINK_JUDGE",
    ),
    out: str | None = option(
        None, "--out", "Run folder to write, or a URL.", show_default="reports/DATE-TIME"
    ),
    k: int | None = option(
        None,
        "--k",
        "Cutoff: number of first passages that count.",
        min=1,
        show_default="as many as the app's prompt holds, else 5",
    ),
    depth: int = option(100, "--depth", "Depth of the search for missed passages.", min=1),
    concurrency: int = shared.CONCURRENCY_OPTION,
    engine: str = option(
        "local", "--engine", "Engine: local (this process), ray (a cluster) or batch (batch API)."
    ),
    ray_address: str | None = option(
        None, "--ray-address", "Ray cluster: auto, or HOST:PORT.", show_default="a local cluster"
    ),
    workers: int | None = option(
        None, "--workers", "Number of Ray workers.", min=1, show_default="one per processor"
    ),
    cache: Path | None = shared.CACHE_OPTION,
    id_key: str | None = shared.ID_KEY_OPTION,
    input_key: str | None = shared.INPUT_KEY_OPTION,
    app_config: Path | None = shared.APP_CONFIG_OPTION,
    app_timeout: float | None = option(
        None, "--app-timeout", "Seconds the app may take for a case.", show_default="no limit"
    ),
    embedding: str = option(
        "app", "--embedding", "Embedding: app, minilm, PROVIDER:MODEL, FILE.py:NAME, none."
    ),
    calibration: Path | None = option(
        None,
        "--calibration",
        "Earlier calibration.json, to correct rates for the judge's errors.",
        show_default=False,
    ),
    labels: list[Path] | None = option(
        None,
        *shared.LABELS,
        show_default=False,
    ),
    known_only: bool = shared.KNOWN_ONLY_OPTION,
    seed: int = shared.SEED_OPTION,
    overwrite: bool = option(False, "--overwrite", "Replace a run of other inputs."),
    dry_run: bool = shared.DRY_RUN_OPTION,
    verbose: bool = shared.VERBOSE_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Evaluate a RAG app over a gold set and write the report.

    Judges: heuristic (overlap of words, numbers and names; needs no model), openai:MODEL,
    openai-responses:MODEL, openai-decisions:MODEL, systemone:URL#MODEL, langchain:PROVIDER:MODEL,
    langchain-decisions:PROVIDER:MODEL, llamacpp:FILE.gguf, cascade:heuristic,openai:MODEL,
    FILE.py:NAME, or none (rank metrics only).

    The corpus shows which missed passages are not indexed. A folder that holds a run of the same
    inputs is resumed or replaced.
    """
    options = dict(locals())  # the parameters of misslink.evaluate, but for a few
    from misslink.errors import InputError
    from misslink.io.storage import redact_url
    from misslink.judge.config import JudgeConfig
    from misslink.pipeline import forecast_async

    for name in ("context", "http", "given", "as_json", "dry_run", "verbose"):
        del options[name]
    if traces is not None and app == (context.default_map or {}).get("app"):
        options["app"] = app = None  # it is from misslink.toml
    if http is not None:
        if app not in (None, (context.default_map or {}).get("app")):
            raise InputError("Give an app or --http, not both.")
        options["app"] = str(http)
    stamp = dt.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    options |= {
        "out": out or str(Path("reports") / stamp),
        "labels": labels or None,
        "terms": JudgeConfig(**given),
        "command": shlex.join(["misslink", *map(redact_url, sys.argv[1:])]),
    }
    if options["cache"] is None:
        del options["cache"]  # from Python, None means none; here it means the default one
    if dry_run:
        work = partial(forecast_async, **options)
        forecast = output.run_with_progress(work, _resume_hint(options))
        output.print_json(asdict(forecast)) if as_json else output.print_forecast(forecast)
        if options["app"] is not None:  # its traces are beside the run folder
            print(
                "misslink: the app's answers are saved; a run with "
                f" --out {redact_url(options['out'])}  does not call it again",
                file=sys.stderr,
            )
        return
    run = evaluate_with_progress(options)
    if as_json:
        output.print_json(run.summary)
    else:
        print_run_summary(run, f"{run.summary['run']}/report.html", verbose=verbose)


def evaluate_with_progress(options: Mapping[str, Any]) -> Run:
    """Evaluate with progress on stderr."""
    from misslink.pipeline import evaluate_async

    work = partial(evaluate_async, **options)
    return output.run_with_progress(work, _resume_hint(options))


def _resume_hint(options: Mapping[str, Any]) -> str:
    from misslink.io.storage import redact_url

    return f"the same command with  --out {redact_url(options['out'])}  resumes"
