"""Command `misslink selftest`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, field_option, option
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.pipeline.config import Progress


@shared.with_judge_options(*shared.CASE_OPTIONS, repeats=shared.REPEATS_OF_RUN)
def selftest(
    source: str = typer.Argument(..., metavar="RUN|APP", help="Run folder, or an app."),
    goldset: str | None = field_option("goldset", show_default=False),
    judge: str = shared.JUDGE_OPTION,
    n: int = option(60, "--n", "Mutants of a kind of fault, at most.", min=1),
    out: str | None = option(
        None, "--out", "Folder for selftest.json, or run folder of an APP.", show_default="RUN"
    ),
    corpus: str | None = field_option("corpus", show_default="what the run knows of it"),
    engine: str = field_option("engine"),
    concurrency: int = shared.CONCURRENCY_OPTION,
    cache: Path | None = field_option("cache"),
    seed: int = shared.SEED_OPTION,
    dry_run: bool = shared.DRY_RUN_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Plant known faults into your good cases, and report what judge and rules find of them.

    Each fault has a known owner: a passage removed, a number changed, a wrong reference. Harmless
    changes, such as citation marks or another order, show how often right answers are flagged. No
    human label is needed, and the app does not run again.

    Good cases are those that passed; where a case did not, its reference stands for the answer if
    the labelled passages are known. The result is saved as RUN/selftest.json, which the Trust view
    of the report and misslink gate read (selftest.found, selftest.owner_right,
    selftest.false_alarm). Give an APP with --goldset to evaluate it first.
    """
    from misslink.api.saved_run import SavedRun, config_as_in_run
    from misslink.cli.evaluate import evaluate_with_progress
    from misslink.errors import InputError
    from misslink.event_loops import run_async
    from misslink.io import atomic
    from misslink.io.run_folder import write_json
    from misslink.io.storage import as_url
    from misslink.judge.config import JudgeConfig
    from misslink.selftests.runner import forecast_selftest, selftest_async

    # What the source is decides, because misslink.toml may name a gold set for every command.
    if ":" in source and as_url(source) is None and not Path(source).exists():
        if goldset is None:
            raise InputError(
                f"{source} is an app; give its gold set with --goldset, or a run folder"
            )
        if dry_run:
            raise InputError(
                "--dry-run forecasts the selftest of a saved run; evaluate the app first"
            )
        stamp = dt.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
        folder = out or str(Path("reports") / stamp)
        settings = {name: value for name, value in given.items() if value is not None}
        evaluate_with_progress(
            {
                "app": source,
                "goldset": goldset,
                "judge": judge,
                "out": folder,
                "corpus": corpus,
                "cache": cache,
                "seed": seed,
                "judge_config": JudgeConfig(**settings),
            }
        )
        source, out = folder, None
    saved = SavedRun.open(source, anywhere=True)
    if out is None and not dry_run and as_url(source) is not None:
        raise InputError("this run is in remote storage, which is read-only here; add --out DIR")
    begin = partial(
        forecast_selftest if dry_run else selftest_async,
        saved.run,
        judge=judge,
        n=n,
        corpus=corpus,
        engine=engine,
        concurrency=concurrency,
        cache=cache,
        judge_config=config_as_in_run(saved.run, judge, **given),
        seed=seed,
    )

    def work(progress: Progress) -> Any:
        return run_async(partial(begin, progress=progress))

    result: Any = output.run_with_progress(work, "the same command resumes")
    if dry_run:
        output.print_json(asdict(result)) if as_json else output.print_forecast(result)
        return
    document = result.document()
    if out is None:
        saved.save("selftest", document)
    else:
        with atomic.folder_errors(Path(out)):
            Path(out).mkdir(parents=True, exist_ok=True)
            write_json(Path(out) / "selftest.json", document)
    output.print_result(document, _print_selftest, as_json=as_json)


def _print_selftest(document: Mapping[str, Any]) -> None:
    """Print the verdict, the numbers by kind, and what was left out."""
    from misslink.render.selftest_sentences import (
        LIMITS,
        describe_selftest,
        selftest_groups,
        selftest_notes,
    )
    from misslink.selftests.document import Selftest

    tested = Selftest.read(document)
    output.print_line(describe_selftest(tested).line, "bold")
    output.print_line(
        f"{tested.judge}: {tested.mutants:,} planted faults and {tested.harmless:,} harmless changes "
        f"of {tested.cases:,} good cases"
    )
    rows = []
    totals = (
        ("Faults found", document["found"]),
        ("Owner right, of the found", document["owner_right"]),
        ("Right answers flagged", document["false_alarm"]),
    )
    output.print_table(
        TextTable(
            ("", "[95%]", "n"),
            [(name, output.format_estimate(rate), str(rate["n"])) for name, rate in totals],
            ("n",),
        )
    )
    for owner, _, kinds in selftest_groups(tested):
        for label, kind in kinds:
            rate = kind.found or kind.false_alarm
            cells = [
                output.format_estimate(e.model_dump()) if e else ""
                for e in (rate, kind.owner_right)
            ]
            rows.append((label, owner or "none: harmless", str(kind.n), *cells))
    columns = ("change", "owner", "n", "found or flagged [95%]", "owner right [95%]")
    output.print_table(TextTable(columns, rows, ("n",), "By kind, the weakest of each owner first"))
    output.print_lines(selftest_notes(tested))
    output.print_line(LIMITS[0])
