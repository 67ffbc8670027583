"""Command `misslink rejudge`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, field_option, option
from misslink.cli.run_summary import print_run_summary

_SHOWN = ("fully_faithful", "correct", "faithfulness", "correctness", "answer_relevance")


@shared.with_judge_options(*shared.CASE_OPTIONS, repeats=shared.REPEATS_OF_RUN)
def rejudge(
    run: Path = shared.RUN_ARGUMENT,
    judge: str = shared.JUDGE_OPTION,
    out: str = option(..., "--out", "Run folder to write, or a URL.", show_default=False),
    sample: int | None = option(
        None,
        "--sample",
        "Judge this many cases, the same ones of every run.",
        min=1,
        show_default="all",
    ),
    later: str | None = option(
        None,
        "--later",
        "Later run of that judge, to separate its changes from the app's.",
        show_default=False,
    ),
    metric: list[str] = field_option("metrics", default=[]),
    corpus: str | None = field_option("corpus", show_default="what the run knows of it"),
    engine: str = field_option("engine"),
    concurrency: int = shared.CONCURRENCY_OPTION,
    cache: Path | None = field_option("cache"),
    seed: int = shared.SEED_OPTION,
    overwrite: bool = field_option("overwrite"),
    dry_run: bool = shared.DRY_RUN_OPTION,
    verbose: bool = shared.VERBOSE_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Judge a saved run again, from its passages, prompts and answers; the app does not run.

    Use it when the judge, its prompts or its rules change: judge the baseline again, and the gate
    decides over two runs of one judge. misslink compare RUN DIR says what the judge changed.

    A sample has the same cases in every run of the same questions. A larger one has the cases of a
    smaller one, whose replies are in the cache. With --later RUN, a run that the new judge
    judged, the sample grows until it is known whether the app or the judge changed the numbers.
    """
    import misslink
    from misslink.api.saved_run import SavedRun, config_as_in_run
    from misslink.event_loops import run_async
    from misslink.io.storage import redact_url
    from misslink.metrics.rubric import metric_name
    from misslink.pipeline.rejudge import forecast_rejudging
    from misslink.render.format import format_difference, pluralize
    from misslink.types import Estimate

    before = SavedRun.open(run, anywhere=True)
    options: dict[str, Any] = {
        "judge": judge,
        "out": out,
        "sample": sample,
        "later": later,
        "metrics": metric,
        "corpus": corpus,
        "engine": engine,
        "concurrency": concurrency,
        "cache": cache,
        "judge_config": config_as_in_run(before.run, judge, **given),
        "seed": seed,
        "overwrite": overwrite,
        "command": shlex.join(["misslink", *map(redact_url, sys.argv[1:])]),
    }
    hint = f"the same command with  --out {redact_url(out)}  resumes"
    if dry_run:
        forecast = output.run_with_progress(
            lambda progress: run_async(
                partial(forecast_rejudging, run=run, **options, progress=progress)
            ),
            hint,
        )
        output.print_json(asdict(forecast)) if as_json else output.print_forecast(forecast)
        return
    judged = output.run_with_progress(partial(misslink.rejudge, run, **options), hint)
    summary: dict[str, Any] = judged.summary
    if as_json:
        output.print_json(summary)
        return
    print_run_summary(judged, f"{summary['run']}/report.html", verbose=verbose)
    about = summary["rejudged"]
    print()
    output.print_line(
        f"The same answers by {summary['judge']}, against {about['judge']} in {redact_url(run)} "
        f"({about['cases']:,} of {pluralize(about['of'], 'case')}):"
    )
    for name in (*_SHOWN, *map(metric_name, metric)):
        estimate = about["difference"].get(name)
        if estimate and estimate["value"] is not None:
            change = format_difference(name, Estimate.model_validate(estimate))
            output.print_line(f"  {name} {change.brief}, n = {estimate['n']:,}")
    if separation := about.get("separation"):
        for line in _describe_separation(separation):
            output.print_line(line)
    output.print_line(f"By case:  misslink compare {redact_url(run)} {redact_url(out)}")


def _describe_separation(separation: dict[str, Any]) -> Iterator[str]:
    """Say how much of the change the judge made, and how much the app."""
    from misslink.render.format import format_difference
    from misslink.types import Estimate

    name, larger = separation["metric"], separation["larger"]
    if name is None:
        yield "No metric was judged in all three runs, so the changes of app and judge are not separated."
        return
    for part, of in (("judge", "the judge changed it"), ("app", "the app changed it")):
        change = format_difference(name, Estimate.model_validate(separation[part]))
        yield f"  {name}: {of} by {change.brief}"
    if larger is None:
        yield "All shared questions are judged, or a limit was reached: not separated."
    else:
        yield f"The {larger}'s part of the change is the larger one."
