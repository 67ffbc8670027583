"""Judge a saved run again, without its app: what changed, the answers or the judge?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.documents import cutoff_of, summary_of
from misslink.engines.protocol import Engine
from misslink.errors import InputError
from misslink.event_loops import run_async
from misslink.io import read_complete_run
from misslink.judge.checks.dry_run import JudgingForecast
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.protocol import Judge
from misslink.parts import case_ids, select_items
from misslink.pipeline.config import EvaluationConfig, Progress
from misslink.pipeline.evaluate import forecast_async, run_pipeline
from misslink.types import Passage, Run


def rejudge(
    run: Run | str | Path,
    *,
    judge: str | Judge,
    out: str | Path | None = None,
    sample: int | None = None,
    corpus: str | Path | Sequence[Passage | Mapping[str, Any]] | None = None,
    concurrency: int = 8,
    cache: str | Path | None = DEFAULT_CACHE,
    judge_config: JudgeConfig | None = None,
    seed: int = 0,
    overwrite: bool = False,
    engine: str | Engine = "local",
    progress: Progress | None = None,
    command: str | None = None,
) -> Run:
    """Judge a saved run again from its passages, prompts and answers, and return the new run.

    The app does not run. Compare the two runs to see what the judge changed, or two runs that the
    same judge judged to see what the app changed.

    Parameters
    ----------
    run : Run or path
        A run, or its folder.
    judge : str or Judge
        As of `misslink.evaluate`.
    out : path or None
        Run folder to write. None writes no run folder.
    sample : int or None
        Judge this many cases. They are drawn by `seed` and their ids, so that a sample of another
        run of the same questions has the same cases, and a larger one has those of a smaller one.
    corpus : path, sequence of Passage or dict, or None
        The passages of the app's index. None: what the run measured of missed passages stays.
    concurrency, cache, judge_config, overwrite, engine, progress, command
        As of `misslink.evaluate`.
    seed : int
        Random seed of the sample and of the intervals.

    Returns
    -------
    Run
        Its summary has ``rejudged``: the run, its judge, how many cases ``of`` it were judged, and
        ``difference`` by metric, the new judge minus the old one over the same answers.

    Raises
    ------
    InputError
        The run cannot be read, or an argument is wrong. No judge call was made.
    JudgeUnreachableError
        Replies are in the cache; the same call resumes.

    Examples
    --------
    >>> import misslink
    >>> again = misslink.rejudge("reports/main", judge="openai:MODEL")  # doctest: +SKIP
    >>> again.summary["rejudged"]["difference"]["fully_faithful"]  # doctest: +SKIP
    """
    saved, options = _select_saved(locals())
    return run_async(lambda: run_pipeline(EvaluationConfig(**options), saved))


async def forecast_rejudging(**options: Any) -> JudgingForecast:
    """Forecast the judge's calls of `rejudge` with these parameters, and their cost; make none."""
    _, options = _select_saved(options)
    return await forecast_async(**options | {"out": None})


def _select_saved(given: Mapping[str, Any]) -> tuple[Run, dict[str, Any]]:
    """The part of a run that is judged again, and the options of its evaluation."""
    options = dict(given)
    run = options.pop("run")
    out, sample = options.get("out"), options.get("sample")
    if options.get("judge") in (None, "none"):
        raise InputError("no judge is named; give the one that judges the run again with --judge")
    if sample is not None and sample < 1:
        raise InputError(f"--sample is {sample}; give a whole number of 1 or more")
    if not isinstance(run, Run):
        if out is not None and Path(out).resolve() == Path(run).resolve():
            raise InputError("this is the run itself. Name another folder with --out.", path=run)
        run = read_complete_run(run, anywhere=True)
    drawn = draw_cases(case_ids(run.cases), sample, options.get("seed", 0))
    saved = run.model_copy(
        update={
            part: select_items(getattr(run, part), drawn)
            for part in ("cases", "traces", "verdicts", "links")
        }
    )
    recalls = [name for name in summary_of(run).retrieval if name.startswith("recall@")]
    of_run = {
        "goldset": saved.cases,
        "traces": saved.traces,
        "k": cutoff_of(run),
        "ks": [int(name.removeprefix("recall@")) for name in recalls],
    }
    return saved, {**options, **of_run, "sample": None}


def draw_cases(ids: Sequence[str], sample: int | None, seed: int) -> frozenset[str]:
    """Draw ids at random, each by its own number, so that samples of several runs are paired."""

    def number(name: str) -> str:
        return hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).hexdigest()

    return frozenset(sorted(ids, key=number)[:sample])
