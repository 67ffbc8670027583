"""Judge a saved run again, without its app: what changed, the answers or the judge?"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.calibration.labelled_failures import apply_labels, judged_run
from misslink.calibration_document import NO_USAGE, JudgeUsage
from misslink.documents import cutoff_of, manifest_of, summary_of
from misslink.engines.protocol import Engine
from misslink.errors import InputError
from misslink.event_loops import run_async
from misslink.io import read_complete_run
from misslink.io.manifest import display_path
from misslink.judge.checks.dry_run import JudgingForecast
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.protocol import Judge
from misslink.metrics.rubric import Rubric
from misslink.parts import case_ids, select_items
from misslink.pipeline.config import EvaluationConfig, Progress
from misslink.pipeline.evaluate import forecast_async, run_pipeline
from misslink.pipeline.traces import Against
from misslink.types import Passage, Run

_FIRST_SAMPLE = 20
_ALPHA = 0.05  # over all looks together (Bonferroni)


def rejudge(
    run: Run | str | Path,
    *,
    judge: str | Judge,
    out: str | Path | None = None,
    sample: int | None = None,
    later: Run | str | Path | None = None,
    metrics: Sequence[str | Rubric] = (),
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
    later : Run, path or None
        A later run, which `judge` judged: did the app or the judge change the numbers? The sample,
        or 20 cases, is doubled until the app's part of the change is separated from the judge's,
        with 95% confidence over all looks, or all questions that both runs ask are judged.
    metrics : sequence of Rubric or str
        Criteria of your own, judged in the same call; ``rubric:FILE`` reads one from a file.
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
        ``difference`` by metric, the new judge minus the old one over the same answers. With
        `later` also ``separation``: of a ``metric`` the ``judge``'s and the ``app``'s part of its
        change, ``gap``, the app's part minus the judge's, and ``larger``, the part that is larger
        (``app`` or ``judge``; None where that is not certain).

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
    given = dict(locals())
    del given["later"]
    if later is not None:
        return run_async(lambda: _separate_from(later, given))
    saved, options = _select_saved(given)
    return apply_labels(run_async(lambda: run_pipeline(EvaluationConfig(**options), saved)))


async def forecast_rejudging(**options: Any) -> JudgingForecast:
    """Forecast the judge's calls of `rejudge` with these parameters, and their cost; make none."""
    if (later := options.pop("later", None)) is not None:  # the most that it can take
        before, _ = _shared_part(options["run"], later)
        options |= {"run": before, "sample": None}
    _, options = _select_saved(options)
    return await forecast_async(**options | {"out": None})


async def _separate_from(later: Run | str | Path, given: Mapping[str, Any]) -> Run:
    """Judge ever larger samples until the app's part of the change is not that of the judge."""
    if given["cache"] is None:
        raise InputError(
            "--later needs a cache, because a larger sample contains the smaller one; name a file with --cache"
        )
    before, other = _shared_part(given["run"], later)
    size = given["sample"] or _FIRST_SAMPLE
    looks = 1 + max(0, math.ceil(math.log2(len(before.cases) / size)))
    config, overwrite = given["judge_config"] or JudgeConfig(), given["overwrite"]
    for look in range(looks):
        part = {"run": before, "sample": size * 2**look, "judge_config": config}
        saved, options = _select_saved({**given, **part, "overwrite": overwrite or look > 0})
        against = Against(other, 1 - _ALPHA / looks)
        run = await run_pipeline(EvaluationConfig(**options), saved, against)
        now, then = manifest_of(run).judge_epoch, manifest_of(other).judge_epoch
        if now is None or then is None or not now.is_comparable(then):
            raise InputError(
                f"{given['judge']} did not judge the run it is set against, or its prompts or "
                f"rules differ; judge that run again first",
                path=display_path(summary_of(other).run or ""),
            )
        summary = summary_of(run)
        config, is_spent = _rest_of_limits(config, summary.usage or NO_USAGE)
        separation = summary.rejudged and summary.rejudged.separation
        if is_spent or (separation and separation.larger):
            break
    return run


def _rest_of_limits(config: JudgeConfig, usage: JudgeUsage) -> tuple[JudgeConfig, bool]:
    """What the next sample may take, and whether nothing is left."""
    rest: dict[str, Any] = {}
    if config.max_calls is not None:
        rest["max_calls"] = config.max_calls - usage.calls
    if config.max_cost is not None:
        rest["max_cost"] = config.max_cost - (usage.cost or 0.0)
    is_spent = usage.not_asked > 0 or any(left <= 0 for left in rest.values())
    return (config if is_spent else replace(config, **rest)), is_spent


def _shared_part(run: Run | str | Path, later: Run | str | Path) -> tuple[Run, Run]:
    """Both runs, the first one with the cases that ask the same question in the later one."""
    before, other = (
        judged_run(each) if isinstance(each, Run) else read_complete_run(each, anywhere=True)
        for each in (run, later)
    )
    questions = {case.id: case.question for case in other.cases}
    shared = {case.id for case in before.cases if questions.get(case.id) == case.question}
    if not shared:
        raise InputError("the two runs have no question in common; nothing can be set against it")
    return _only(before, shared), other


def _only(run: Run, ids: AbstractSet[str]) -> Run:
    """The part of a run that these cases are."""
    return run.model_copy(
        update={
            part: select_items(getattr(run, part), ids)
            for part in ("cases", "traces", "verdicts", "links")
        }
    )


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
    run = judged_run(run)
    drawn = draw_cases(case_ids(run.cases), sample, options.get("seed", 0))
    saved = _only(run, drawn)
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
