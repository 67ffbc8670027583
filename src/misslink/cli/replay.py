"""Command `misslink replay`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli import options as shared
from misslink.cli.options import JudgeOptions, option
from misslink.cli.output import (
    format_estimate,
    interruptible,
    print_json,
    print_line,
    print_table,
    progress_bars,
    redirect_app_stdout,
)
from misslink.cli.rerun_context import config_as_in_run, open_run_judge, save_to_run
from misslink.errors import InputError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.pipeline import Progress
    from misslink.types import Run


_SHOWN_REASONS = 5
_ARM_NAMES = {
    "first": "the passage first",
    "last": "the passage last",
    "alone": "the relevant passages alone",
    "without_noise": "without irrelevant passages",
}


@shared.with_judge_options(
    *shared.RERUN_OPTIONS, repeats=shared.REPEATS_OF_RUN, audit=shared.AUDIT_OF_RUN
)
def replay(
    run: Path = shared.RUN_ARGUMENT,
    app: str | None = option(
        None,
        "--app",
        "App, or a function that builds it from a retriever: package.module:name or "
        "path/to/file.py:name.",
        show_default="the run's",
    ),
    sample: int = option(40, "--sample", "Maximum cases per failure mode.", min=1),
    judge: str | None = shared.JUDGE_OF_RUN,
    concurrency: int = shared.CONCURRENCY_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    seed: int = shared.SEED_OPTION,
    id_key: str | None = shared.ID_KEY_OF_RUN,
    input_key: str | None = shared.INPUT_KEY_OF_RUN,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Re-run failed cases with the missed passages injected, to test whether the miss is the cause.

    Each case is first rerun with its own passages, and what may confirm the cause is generated
    twice: an answer that changes by itself is flaky and confirms nothing. A case costs 4 answers
    of the app for retrieval_miss, 5 for ignored_context, 3 for distracted and 2 for a miss that
    was answered well, each judged. Answers of an earlier replay are reused.
    """
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path
    from misslink.judge.prompts import Prompts
    from misslink.linking.replay import RerunSettings, replay_run
    from misslink.pipeline import run_async

    before = read_complete_run(run)
    config = config_as_in_run(before, judge, **given)

    async def work(progress: Progress) -> dict[str, Any]:
        source = app or _app_path(before)
        async with open_run_judge(
            before, judge, config, cache=cache, concurrency=concurrency
        ) as session:
            replayed = await replay_run(
                before,
                source,
                judge=session,
                settings=RerunSettings(
                    id_key=id_key,
                    input_key=input_key,
                    prompts=Prompts.from_spec(config.prompts),
                    repeats=config.repeats,
                    concurrency=concurrency,
                ),
                sample=sample,
                seed=seed,
                folder=run,
                tick=lambda done, total: progress("replaying", done, total),
            )
        document = {**replayed.document, "run": display_path(run)}
        save_to_run(run, before, "replay", document, replayed.links)
        return document

    with interruptible(), redirect_app_stdout(), progress_bars() as progress:
        document = run_async(lambda: work(progress), concurrency)
    if as_json:
        print_json(document)
    else:
        _print_replay(document)


def _app_path(run: Run) -> str:
    """Import path of the run's app."""
    app = run.manifest.get("app")
    if run.manifest.get("traces") is not None or not app:
        raise InputError(
            "this run has traces and no app; name the app that wrote them with --app, such as "
            "--app app.py:chain"
        )
    if ":" not in str(app):
        raise InputError(
            f"this run was made in Python with an object ({app}); give its import path with "
            "--app, such as --app app.py:chain"
        )
    return str(app)


def _print_replay(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    counts = ("cases", "replayed", "flaky", "same_answer")
    rows = []
    for mode, entry in document["failures"].items():
        if entry["cases"] or entry["replayed"]:
            numbers = [str(entry[name]) for name in counts]
            if entry["also"]:
                numbers[1] += f" ({entry['also']} contributing)"
            fixed = "; ".join(
                f"{_ARM_NAMES[name]}: {format_estimate(estimate)}"
                for name, estimate in entry["interventions"].items()
            )
            rows.append((mode, *numbers, format_estimate(entry["confirmed"]), fixed))
    labels = [name.replace("_", " ") for name in counts]
    columns = ("failure", *labels, "confirmed [95%]", "fixed with")
    title = f"Replay of {document['run']}, judge {document['judge']}"
    if not print_table(console, TextTable(columns, rows, labels, title)):
        print_line(console, "No case of this run has a failure mode that can be replayed.")
    usage = document["usage"]
    reused = f"{usage['generations_kept']} reused"
    if document["cases_kept"]:
        reused += f" (also {document['cases_kept']} cases beyond this sample)"
    print_line(console, f"Answers of the app: {usage['generations']} new, {reused}.")
    print_line(console, _summary_sentence(document))
    reasons = Counter(entry["reason"] for entry in document["skipped"])
    for reason, count in reasons.most_common(_SHOWN_REASONS):
        print_line(console, f"Not replayed: {count} x {reason}.")
    if len(reasons) > _SHOWN_REASONS:
        more = len(reasons) - _SHOWN_REASONS
        print_line(console, f"And {more} other reasons; --json lists them all.")


def _summary_sentence(document: Mapping[str, Any]) -> str:
    from misslink.report.replay import BAD_ANSWERS

    causal, flaky = document["causal_attributable_fraction"], document["flaky"]
    observed = document["observed_attributable_fraction"]
    share = f" Flaky: {format_estimate(flaky)}."
    if causal["value"] is None:
        reason = format_estimate(causal)
        sentence = f"Share of the {BAD_ANSWERS} that a hit would have avoided: {reason}."
        return sentence + share if flaky["value"] is not None else sentence
    more = causal["value"] < 0
    size = causal
    if more:
        low, high = (None if causal[end] is None else -causal[end] for end in ("high", "low"))
        size = {**causal, "value": -causal["value"], "low": low, "high": high}
    if observed["value"] is not None and observed["value"] <= 0:
        association = f"they are not more frequent after a miss ({format_estimate(observed)})"
    else:
        association = f"it is {format_estimate(observed)}{_doubt(observed)}"
    return (
        f"With every miss turned into a hit there would be {format_estimate(size)} "
        f"{'more' if more else 'fewer'} {BAD_ANSWERS}{_doubt(causal)} (replayed, "
        f"n = {causal['n']}); by association alone {association}.{share}"
    )


def _doubt(estimate: Mapping[str, Any]) -> str:
    from misslink.report.replay import NOT_ESTABLISHED

    low, high = estimate["low"], estimate["high"]
    contains_zero = low is not None and high is not None and low <= 0 <= high
    return f"; {NOT_ESTABLISHED}" if contains_zero else ""
