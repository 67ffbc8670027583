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
from misslink.cli.options import JudgeOptions, OptionValues, option
from misslink.cli.run_summary import print_run_summary

if TYPE_CHECKING:
    from misslink.types import Run


@shared.with_judge_options(*shared.CASE_OPTIONS, "retries")
@shared.with_evaluation_options
def evaluate(
    context: typer.Context,
    app: str | None = typer.Argument(
        None, help="App: package.module:name, path/to/file.py:name or URL.", show_default=False
    ),
    http: Path | None = option(
        None, "--http", "App behind HTTP, described by a TOML file.", show_default=False
    ),
    *,
    options: OptionValues,
    dry_run: bool = shared.DRY_RUN_OPTION,
    no_selftest: bool = option(
        False, "--no-selftest", "Plant no faults to test the heuristic judge."
    ),
    verbose: bool = shared.VERBOSE_OPTION,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Evaluate a RAG app over a gold set and write the report.

    Judges: heuristic (overlap of words, numbers and names; needs no model), openai:MODEL,
    azure:DEPLOYMENT, openai-responses:MODEL, openai-decisions:MODEL, systemone:URL#MODEL,
    langchain:PROVIDER:MODEL, langchain-decisions:PROVIDER:MODEL, llamacpp:FILE.gguf,
    cascade:heuristic,openai:MODEL, FILE.py:NAME, or none (rank metrics only).

    The corpus shows which missed passages are not indexed. A folder that holds a run of the same
    inputs is resumed or replaced.
    """
    from misslink.errors import InputError
    from misslink.event_loops import run_async
    from misslink.io.storage import redact_url
    from misslink.judge.config import JudgeConfig
    from misslink.pipeline.evaluate import forecast_async

    if options["traces"] is not None and app == (context.default_map or {}).get("app"):
        app = None  # it is from misslink.toml
    if http is not None:
        if app not in (None, (context.default_map or {}).get("app")):
            raise InputError("Give an app or --http, not both.")
        app = str(http)
    stamp = dt.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
    options |= {
        "app": app,
        "out": options["out"] or str(Path("reports") / stamp),
        "labels": options["labels"] or None,
        "judge_config": JudgeConfig(**given),
        "command": shlex.join(["misslink", *map(redact_url, sys.argv[1:])]),
    }
    if dry_run:
        forecast = output.run_with_progress(
            lambda progress: run_async(partial(forecast_async, **options, progress=progress)),
            _resume_hint(options),
        )
        output.print_json(asdict(forecast)) if as_json else output.print_forecast(forecast)
        if app is not None:  # its traces are beside the run folder
            output.print_line(
                "misslink: the app's answers are saved; a run with "
                f" --out {redact_url(options['out'])}  does not call it again",
                stderr=True,
            )
        return
    run = evaluate_with_progress(options)
    if as_json:
        from misslink.report.json_document import current_summary

        output.print_json(current_summary(run))
    else:
        tested = "" if no_selftest else _selftest_line(run)
        report = f"{run.summary['run']}/report.html"
        print_run_summary(run, report, verbose=verbose, selftest=tested)


def _selftest_line(run: Run) -> str:
    """Plant a few faults, so that no run of the heuristic judge is without a test of it; "" for others."""
    from misslink.event_loops import run_async
    from misslink.render.selftest_sentences import describe_few
    from misslink.selftests.runner import plant_few

    if run.summary["judge"] != "heuristic":
        return ""
    return describe_few(run_async(lambda: plant_few(run)))


def evaluate_with_progress(options: Mapping[str, Any]) -> Run:
    """Evaluate with progress on stderr."""
    import misslink

    return output.run_with_progress(partial(misslink.evaluate, **options), _resume_hint(options))


def _resume_hint(options: Mapping[str, Any]) -> str:
    from misslink.io.storage import redact_url

    return f"the same command with  --out {redact_url(options['out'])}  resumes"
