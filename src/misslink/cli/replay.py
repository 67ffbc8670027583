"""Command `misslink replay`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, option
from misslink.judge.config import DEFAULT_CACHE
from misslink.render.table import TextTable

_SHOWN_REASONS = 5


@shared.with_judge_options(*shared.CASE_OPTIONS, repeats=shared.REPEATS_OF_RUN)
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
    metric: list[str] = option(
        [], "--metric", "Criterion of the run: rubric:FILE; repeatable.", show_default=False
    ),
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
    """Re-run failed cases with one fault after the other taken away, to test what caused them.

    First the verdict is judged again; --judge names another judge. Then the app answers with a
    standalone query, the missed passages, a cut passage whole, without the distractor, and with
    relevant passages alone, until an arm holds: about 3 times a failure, at most 12. A placebo
    changes the prompt as much and leaves the fault. Good answers are drawn too, because a passage
    can break them.

    A cause is confirmed if its evidence stands with at most 5% of false ones expected among all
    that are confirmed. Answers of an earlier replay are reused.
    """
    import misslink
    from misslink.api.replay import forecast_replay
    from misslink.api.saved_run import RunJudging, SavedRun, config_as_in_run
    from misslink.metrics.rubric import read_rubrics

    saved, rubrics = SavedRun.open(run), read_rubrics(metric)
    config = config_as_in_run(saved.run, judge, **given)
    if dry_run:
        judging = RunJudging(saved.run, judge, config, cache or DEFAULT_CACHE, concurrency, rubrics)
        generations, forecast = forecast_replay(judging, app or None, sample=sample, seed=seed)
        if as_json:
            output.print_json({"generations": generations, **asdict(forecast)})
        else:
            print(f"The app would answer at most {generations} questions, by experience a third.")
            output.print_forecast(forecast)
        return
    work = partial(
        misslink.replay,
        saved,
        app or None,
        sample=sample,
        judge=judge,
        judge_config=config,
        metrics=rubrics,
        concurrency=concurrency,
        cache=cache or DEFAULT_CACHE,
        seed=seed,
        id_key=id_key,
        input_key=input_key,
        app_config=app_config,
    )
    result = output.run_with_progress(work)
    output.print_result(result.document(), _print_replay, as_json=as_json)


def _print_replay(document: Mapping[str, Any]) -> None:
    from misslink.documents import Replay
    from misslink.report.association import describe_owners
    from misslink.report.glossary import ARMS

    if owners := describe_owners(Replay.read(document)):
        output.print_line(owners)
    output.print_line(_summary_sentence(document))
    shares = ("held", "placebo_held")
    arms = [
        (
            *(ARMS[row["arm"]], row["owner"], str(row["tried"])),
            *(output.format_estimate(row[name]) if row[name]["n"] else "-" for name in shares),
        )
        for row in document["arms"]
        if row["tried"]
    ]
    columns = ("arm", "owner", "tried", "good with it", "with its placebo")
    output.print_table(TextTable(columns, arms, ["tried"], "Arms, share of answers [95%]"))
    rows = []
    for mode, entry in document["failures"].items():
        counts = (mode, str(entry["cases"]), str(entry["replayed"]))
        names = ("fixed", "placebo_fixed", "net_fixed") if entry["fixed"]["n"] else ()
        for name in (*names, "confirmed") if entry["cases"] else ():
            rows.append((*counts, name.replace("_", " "), output.format_estimate(entry[name])))
            counts = ("", "", "")  # once for all of its shares; so they fit 80 columns
    columns = ("failure", "cases", "replayed", "answers", "share [95%]")
    title = f"Replay of {document['run']}, judge {document['judge']}"
    if not output.print_table(TextTable(columns, rows, ["cases", "replayed"], title)):
        output.print_line("No answer of this run failed: nothing to replay.")
    for words, name in (
        ("Good answers broken by the missed passages", "broken"),
        ("by the placebo", "placebo_broken"),
        ("Answers that turn with an irrelevant change of the prompt", "flaky"),
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
    words = describe_causal_fraction(Replay.read(document))
    return f"{text} {words} (n = {causal['n']} replayed)."
