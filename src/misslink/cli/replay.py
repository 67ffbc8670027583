"""Command `misslink replay`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, option
from misslink.cli.rerun_context import config_as_in_run, open_run_judge, save_to_run
from misslink.errors import InputError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.pipeline.config import Progress
    from misslink.types import Run


_SHOWN_REASONS = 5


@shared.with_judge_options(
    *shared.RERUN_OPTIONS, repeats=shared.REPEATS_OF_RUN, cascade_check=shared.CASCADE_CHECK_OF_RUN
)
def replay(
    run: Path = shared.RUN_ARGUMENT,
    app: str | None = option(
        None,
        "--app",
        "App, or a function that builds it from a retriever: app.py:chain.",
        show_default=shared.OF_RUN,
    ),
    sample: int = option(40, "--sample", "Maximum cases per failure mode.", min=1),
    judge: str | None = shared.JUDGE_OF_RUN,
    concurrency: int = shared.CONCURRENCY_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    seed: int = shared.SEED_OPTION,
    id_key: str | None = shared.ID_KEY_OF_RUN,
    input_key: str | None = shared.INPUT_KEY_OF_RUN,
    app_config: Path | None = shared.APP_CONFIG_OF_RUN,
    dry_run: bool = shared.DRY_RUN_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Re-run cases with the missed passages injected, to test whether the miss is the cause.

    The app answers a case up to 4 times, and each answer is judged: unchanged, with the missed
    passages first, with irrelevant passages in their place (placebo), and with its passages in
    another order. Good answers are drawn too, because a passage can break them.

    A case is confirmed if the missed passages fix it, no other arm does, and the failure mode's
    effect beyond the placebo is above 0 with its whole interval. Answers of an earlier replay are
    reused.
    """
    from misslink.event_loops import run_async
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path
    from misslink.judge.checks.dry_run import forecast_judging
    from misslink.judge.prompts import Prompts
    from misslink.linking.replay import REPLAY_METRICS, RerunSettings, forecast_subjects, replay_run
    from misslink.registry import judged_metrics

    before = read_complete_run(run)
    config = config_as_in_run(before, judge, **given)
    settings = RerunSettings(
        id_key=id_key,
        input_key=input_key,
        app_config=app_config,
        prompts=Prompts.from_spec(config.prompts),
        repeats=config.repeats,
        concurrency=concurrency,
    )

    opened = open_run_judge(before, judge, config, cache=cache, concurrency=concurrency)

    async def forecast() -> None:
        generations, subjects = forecast_subjects(before, settings, sample, seed)
        metrics = [judged_metrics.get(name) for name in REPLAY_METRICS]
        async with opened as session:
            judging = await forecast_judging(subjects, metrics, session)
        if as_json:
            output.print_json({"generations": generations, **asdict(judging)})
        else:
            print(f"The app would answer at most {generations} questions.")
            output.print_forecast(judging)

    async def work(progress: Progress) -> dict[str, Any]:
        source = app or _app_path(before)
        async with opened as session:
            replayed = await replay_run(
                before,
                source,
                judge=session,
                settings=settings,
                sample=sample,
                seed=seed,
                folder=run,
                tick=partial(progress, "replaying"),
            )
        document = {**replayed.document, "run": display_path(run)}
        save_to_run(run, before, "replay", document, replayed.links)
        return document

    if dry_run:
        run_async(forecast)
        return
    document = output.run_with_progress(work)
    output.print_result(document, _print_replay, as_json=as_json)


def _app_path(run: Run) -> str:
    """Import path of the run's app."""
    from misslink.documents import manifest_of

    manifest = manifest_of(run)
    if manifest.traces or not manifest.app:
        raise InputError(
            "this run has traces and no app; name the app that wrote them with --app, such as "
            "--app app.py:chain"
        )
    if ":" not in manifest.app:
        raise InputError(
            f"this run was made in Python with an object ({manifest.app}); give its import path with "
            "--app, such as --app app.py:chain"
        )
    return manifest.app


def _print_replay(document: Mapping[str, Any]) -> None:
    output.print_line(_summary_sentence(document))
    rows = []
    for mode, entry in document["failures"].items():
        counts = (mode, str(entry["cases"]), str(entry["replayed"]))
        for name in ("fixed", "placebo_fixed", "net_fixed", "confirmed") if entry["cases"] else ():
            rows.append((*counts, name.replace("_", " "), output.format_estimate(entry[name])))
            counts = ("", "", "")  # once for all of its shares; so they fit 80 columns
    columns = ("failure", "cases", "replayed", "answers", "share [95%]")
    title = f"Replay of {document['run']}, judge {document['judge']}"
    if not output.print_table(TextTable(columns, rows, ["cases", "replayed"], title)):
        output.print_line("No failed answer of this run missed a passage: nothing to replay.")
    for words, name in (
        ("Good answers broken by the missed passages", "broken"),
        ("by the placebo", "placebo_broken"),
        ("Flaky answers", "flaky"),
        ("Answers that change with the order of passages", "order_sensitive"),
    ):
        if document[name]["value"] is not None:
            output.print_line(f"{words}: {output.format_estimate(document[name])}.")
    usage = document["usage"]
    reused = f"{usage['generations_kept']} reused"
    if document["cases_kept"]:
        reused += f" (also {document['cases_kept']} cases beyond this sample)"
    output.print_line(f"Answers of the app: {usage['generations']} new, {reused}.")
    reasons = Counter(entry["reason"] for entry in document["skipped"]).most_common()
    skipped = [f"Not replayed: {count} x {reason}." for reason, count in reasons]
    rest = "And {} other reasons; --json lists them all."
    output.print_lines(output.first_few(skipped, _SHOWN_REASONS, rest))


def _summary_sentence(document: Mapping[str, Any]) -> str:
    from misslink.documents import Replay
    from misslink.report.association import describe_causal_fraction

    causal, text = document["causal_fraction"], output.format_estimate(document["causal_fraction"])
    if causal["value"] is None:
        return f"Failed answers caused by missed passages: {text}."
    words = describe_causal_fraction(Replay.model_validate(document))
    return f"{text} {words} (n = {causal['n']} replayed)."
