"""Test a judge on faults that are planted into a run's good cases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from misslink.api.saved_run import SavedRun, config_as_in_run
from misslink.engines.protocol import Engine
from misslink.event_loops import run_async
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.protocol import Judge
from misslink.pipeline.config import Progress
from misslink.selftests import runner
from misslink.selftests.document import Selftest
from misslink.types import Passage, Run


def selftest(
    run: Run | SavedRun | str | Path,
    *,
    judge: str | Judge = "heuristic",
    n: int = runner.DEFAULT_MUTANTS,
    corpus: str | Path | Sequence[Passage] | None = None,
    judge_config: JudgeConfig | None = None,
    concurrency: int = 8,
    cache: str | Path | None = DEFAULT_CACHE,
    engine: str | Engine = "local",
    seed: int = 0,
    progress: Progress | None = None,
) -> Selftest:
    """Plant known faults into a run's good cases, and report what judge and rules find.

    The app does not run. No human label is needed.

    Parameters
    ----------
    run : Run or path
        A run, or its folder, to which the result is added: ``selftest.json`` and the report. Its
        good cases are those that passed; where a case did not, its reference stands for the answer
        if the labelled passages are known.
    judge : str or Judge
        As of `misslink.evaluate`.
    n : int
        Mutants of a kind of fault, at most. Of a kind of harmless changes there are a third as many.
    corpus : path, sequence of Passage, or None
        The passages of the app's index. None: what the run knows of it.
    judge_config : JudgeConfig or None
        Address, key, retries, rate and budget of the judge. None: those of the run.
    concurrency, cache, engine
        As of `misslink.evaluate`.
    seed : int
        Random seed of the mutants and intervals.
    progress : callable or None
        Called with the stage, how many mutants are done, and how many there are.

    Returns
    -------
    Selftest
        ``found``, ``owner_right`` (of the found ones) and ``false_alarm``, shares in [0, 1] with
        intervals clustered by case; the same by ``kinds``; and ``left_out``: kinds for which no
        case has a place, with the number of cases tried.

    Raises
    ------
    InputError
        The run has too few good cases, or an argument is wrong. No judge call was made.
    JudgeUnreachableError
        Replies are in the cache; the same call resumes.

    Examples
    --------
    >>> import misslink
    >>> tested = misslink.selftest("reports/today", judge="openai:MODEL")  # doctest: +SKIP
    >>> tested.found.value, tested.kinds["number_changed"].found.value  # doctest: +SKIP
    (0.93, 0.97)
    """
    saved = SavedRun.open(run)
    work = partial(
        runner.selftest_async,
        saved.run,
        judge=judge,
        n=n,
        corpus=corpus,
        judge_config=judge_config or config_as_in_run(saved.run, judge),
        concurrency=concurrency,
        cache=cache,
        engine=engine,
        seed=seed,
        progress=progress,
    )
    result = run_async(work)
    saved.save("selftest", result.document())
    return result
