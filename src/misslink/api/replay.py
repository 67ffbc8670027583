"""Re-run cases of a run with one fault after the other taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from misslink.api.saved_run import RunJudging, SavedRun, config_as_in_run
from misslink.calibration.labelled_failures import find_labelled_failures
from misslink.documents import Replay, manifest_of
from misslink.errors import InputError
from misslink.event_loops import run_async
from misslink.judge.checks.dry_run import JudgingForecast, forecast_judging
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.protocol import Judge
from misslink.linking.replay import forecast_subjects, replay_run
from misslink.linking.replay.rerun import check_replaceable
from misslink.linking.replay.runner import DEFAULT_SAMPLE
from misslink.metrics.rubric import Rubric, read_rubrics
from misslink.pipeline.config import Progress
from misslink.types import Run


def replay(
    run: Run | SavedRun | str | Path,
    app: Any = None,
    *,
    sample: int = DEFAULT_SAMPLE,
    judge: str | Judge | None = None,
    judge_config: JudgeConfig | None = None,
    metrics: Sequence[str | Rubric] = (),
    concurrency: int = 8,
    cache: str | Path = DEFAULT_CACHE,
    seed: int = 0,
    id_key: str | None = None,
    input_key: str | None = None,
    app_config: str | Path | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Re-run failed cases with one fault after the other taken away, to test what caused them.

    Parameters
    ----------
    run : Run or path
        A run, or its folder, to which the result is added: ``replay.json``, links and the report.
    app : Runnable, callable, str or None
        The app, or a function that builds it from a retriever. None: the app of the run, where it
        was named by its import path.
    sample : int
        Maximum cases per failure mode.
    judge : str, Judge or None
        As of `misslink.evaluate`. None: the run's own. Another one shows which verdicts are wrong,
        and gives no causal fraction.
    judge_config : JudgeConfig or None
        Address, key, retries, rate and budget of the judge. None: those of the run.
    metrics : sequence of Rubric or str
        The criteria with which the run was evaluated, so that the judge gets the same prompt;
        ``rubric:FILE`` reads one from a file.
    concurrency : int
        Cases in progress at once.
    cache : path
        Response cache of the judge.
    seed : int
        Random seed for the sample and the intervals.
    id_key, input_key, app_config
        As of `misslink.evaluate`. None: those of the run.
    progress : callable or None
        Called with the stage, how many cases are done, and how many there are.

    Returns
    -------
    Replay
        ``owners`` that are confirmed, ``arms``, ``failures`` by failure mode, ``causal_fraction``.

    Raises
    ------
    InputError
        No case can be replayed, or an argument is wrong.
    AppUnreachableError, JudgeUnreachableError
        Generations and replies are saved; the same call resumes.

    Examples
    --------
    >>> import misslink
    >>> replayed = misslink.replay("reports/today", "app.py:chain")  # doctest: +SKIP
    >>> replayed.owners  # doctest: +SKIP
    {'retriever': 21, 'generator': 6}
    """
    saved = SavedRun.open(run)
    config = judge_config or config_as_in_run(saved.run, judge)
    rubrics = read_rubrics(metrics)
    judging = RunJudging(saved.run, judge, config, Path(cache), concurrency, rubrics)
    settings = judging.rerun_settings(
        id_key=id_key,
        input_key=input_key,
        app_config=app_config,
        labelled_good=frozenset(
            case_id for case_id, failed in find_labelled_failures(saved.run).items() if not failed
        ),
    )
    source = _app_path(saved.run) if app is None else app

    async def work() -> Replay:
        async with judging.open() as session:
            replayed = await replay_run(
                saved.run,
                source,
                judge=session,
                settings=settings,
                sample=sample,
                seed=seed,
                folder=saved.folder,
                tick=partial(progress or _no_progress, "replaying"),
            )
        result = replayed.replay.replace(run=saved.name)
        saved.save("replay", result.document(), replayed.links)
        return result

    return run_async(work)


def forecast_replay(
    judging: RunJudging, app: str | None, *, sample: int, seed: int
) -> tuple[int, JudgingForecast]:
    """Return the most answers that a replay asks of the app, and its judge calls; make none."""
    check_replaceable(judging.run, _app_path(judging.run) if app is None else app)
    settings = judging.rerun_settings()
    generations, subjects = forecast_subjects(judging.run, settings, sample, seed)

    async def work() -> JudgingForecast:
        async with judging.open(dry_run=True) as session:
            return await forecast_judging(subjects, settings.metrics, session)

    return generations, run_async(work)


def _no_progress(_stage: str, _done: int, _total: int) -> None: ...


def _app_path(run: Run) -> str:
    """Import path of the run's app."""
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
