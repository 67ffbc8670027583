"""The straight line: gold set + app -> traces -> rank scores -> verdicts -> links -> estimates."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from misslink.calibration.kept import corrected
from misslink.engines.collecting import seldom_collecting
from misslink.engines.protocol import Engine
from misslink.files.addresses import shown, url_of
from misslink.judging.protocol import Judge
from misslink.judging.terms import Terms
from misslink.linking import summarise
from misslink.manifest import manifest, shown_path
from misslink.pipeline import stages
from misslink.pipeline.calibrating import hold, judged_run, keeping, moved_scores, source_of
from misslink.pipeline.carrying import carried, carried_links
from misslink.pipeline.measuring import diagnosis, surroundings
from misslink.pipeline.options import CONCURRENCY, LEDGER, Options, Progress
from misslink.repetition import repetition
from misslink.summary import coverage, levels, lower_is_better, mean_scores, slices
from misslink.types import Case, Run, Trace

__all__ = ["evaluate", "evaluate_async", "in_a_loop"]

Result = TypeVar("Result")

_NOTHING = {
    "calls": 0,
    "from_ledger": 0,
    "not_asked": 0,
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "cost": None,
}


def evaluate(app: Any = None, goldset: Any = None, **options: Any) -> Run:
    """Evaluate a RAG app, or traces of one, and return the run.

    The synchronous face of `evaluate_async`, with the same parameters; it also works in a notebook
    cell, where an event loop is already running.
    """
    return in_a_loop(
        lambda: evaluate_async(app, goldset, **options), options.get("concurrency", CONCURRENCY)
    )


async def evaluate_async(
    app: Any = None,
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None,
    *,
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = None,
    judge: str | Judge | None = "embedded",
    out: str | Path | None = None,
    k: int = 5,
    depth: int = 100,
    concurrency: int = CONCURRENCY,
    ledger: str | Path | None = LEDGER,
    id_key: str | None = None,
    input_key: str | None = None,
    embedding: Any = "app",
    calibration: str | Path | None = None,
    labels: Any = None,
    known_only: bool = False,
    terms: Terms | None = None,
    seed: int = 0,
    overwrite: bool = False,
    only: Sequence[str] = (),
    engine: str | Engine = "local",
    ray_address: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    command: str | None = None,
) -> Run:
    """Evaluate a RAG app, or traces of one.

    Parameters
    ----------
    app : Runnable, retriever, callable, or str
        The app under test, or where to import it from: ``package.module:name``, ``file.py:name``.
    goldset : path, or iterable of Case or mapping
    traces : path, or iterable of Trace or mapping
        What an app did, in place of `app`.
    judge : str, Judge or None
        ``openai:MODEL``, ``langchain:PROVIDER:MODEL``, ``llamacpp:FILE.gguf``, ``embedded``,
        ``cascade:embedded,openai:MODEL``, ``file.py:name``, a judge of your own, or ``none`` for
        level 1 alone.
    out : path or None
        Run folder to write, with ``report.html`` in it. None: only the ledger is written.
    k : int
        Cut-off of the rank metrics, and of the context where the prompt was not seen.
    depth : int
        How deep the retriever is asked for passages that it missed.
    concurrency : int
        Cases, and judge calls, under way at once.
    ledger : path or None
        Where replies are kept so that none is paid twice. None: nowhere.
    id_key : str or None
        Metadata key that holds a passage's id; ``Document.id`` by default.
    input_key : str or None
        Key under which the app takes its question; found by itself in most apps.
    embedding : str or Embeddings
        By which misses are measured: 'app' (that of the app's own vector store, where it has one),
        'minilm', 'PROVIDER:MODEL', 'file.py:name', a LangChain embedding, or 'none'.
    calibration : path or None
        JSON of how this judge agrees with human labels (`Calibration.read` says which keys): the
        risks are then corrected for its errors, and verdicts within its uncertain band decide
        nothing.
    labels : path, sequence of path, pandas frame, iterable of mapping, or None
        Human labels of this run's cases, as `misslink.files.labels.read_labels` takes them: the
        judge is held against them once it has judged, and that is its calibration.
    known_only : bool
        Leave out labels of cases that the gold set does not have, instead of refusing them.
    terms : Terms or None
        On what terms the judge is asked: its address and key, how often, how fast, for how much.
    seed : int
        Of the intervals that are drawn.
    overwrite : bool
        Replace a run of other inputs in `out`.
    only : sequence of str
        Ids of the cases to evaluate, in the gold set's order. Empty: all of them.
    engine : str or Engine
        Who carries the work: ``local`` (this process), ``ray`` (a cluster: the app and the judge's
        calls on its workers) or ``batch`` (the judge's questions through its provider's batch
        service, at a lower price and later). The results are the same.
    ray_address : str or None
        Of the engine 'ray': ``auto`` or ``HOST:PORT``. None: a cluster of this machine alone.
    workers : int or None
        Of the engine 'ray': how many. None: one for each of the cluster's processors.
    progress : callable or None
        Called with the stage, how many cases are done, and how many there are.
    command : str or None
        The command line, for the report.

    Returns
    -------
    Run

    Raises
    ------
    InputError
        Something given is wrong; nothing has been spent.
    JudgeUnreachableError, AppUnreachableError
        Replies paid for are in the ledger, traces beside `out`; the same call goes on.
    """
    options = Options(
        app=app,
        goldset=goldset,
        traces=traces,
        judge=judge,
        out=out,
        k=k,
        depth=depth,
        concurrency=concurrency,
        ledger=ledger,
        id_key=id_key,
        input_key=input_key,
        embedding=embedding,
        calibration=calibration,
        labels=labels,
        known_only=known_only,
        terms=terms or Terms(),
        seed=seed,
        overwrite=overwrite,
        only=only,
        engine=engine,
        ray_address=ray_address,
        workers=workers,
    )
    tick = progress or (lambda *_: None)
    with seldom_collecting():
        return await _walk(options, tick, command)


async def _walk(options: Options, tick: Progress, command: str | None) -> Run:
    k, seed, out, traces = options.k, options.seed, options.out, options.traces
    async with stages.given(options) as line:
        before = line.staging.out if line.staging and url_of(str(out)) else out
        if line.judge:
            await line.judge.reachable()
        caught = await stages.capture(line, tick)
        seen = caught.traces
        cutoffs = [f"{metric}@{k}" for metric in ("hit", "recall", "precision", "ndcg")]
        known = f"judged@{k}"  # about the judgements, not the app: not to be compared or gated
        scores = await stages.rank_scores(line, seen, ["mrr", *cutoffs, known], tick)
        shares_judged = scores.pop(known)
        async with surroundings(options, line.embedder, caught.watcher) as around:
            # Before anything is paid for, so that an embedding that fails costs nothing.
            measured = await around.measured(line.gold.cases, seen, options)
            verdicts = await stages.judge(line, seen, tick)
            judged = judged_run(line, seen, verdicts)
            held = hold(line, judged)
            judged = carried(keeping(judged, held), before)
            linked = replace(line, calibration=held.calibration)
            links = await stages.link(linked, seen, verdicts, measured, tick)
            drawn = await around.map(line.gold.cases, seen, links, seed)
        level_of = {metric.name: metric.level for metric in line.metrics}
        about = {
            "goldset": shown_path(line.gold.name),
            "traces": shown_path(shown(traces)) if isinstance(traces, str | Path) else None,
            **line.settings,
            "judge_note": line.judge.note if line.judge else None,
            "judging": line.judge.about() if line.judge else None,
            "calibration": held.calibration and held.calibration.document(),
            "engine": line.engine.name,
            "calibrated_by": source_of(held),
            "labels": line.labels and shown_path(line.labels.name),
            "work": line.work,
            "unfinished": sum(verdict.status == "failed" for verdict in verdicts)
            + (line.judge.not_asked if line.judge else 0),
        }
        run = Run(
            manifest=manifest(about, line.inputs, verdicts, command),
            cases=line.gold.cases,
            traces=tuple(seen.values()),
            verdicts=tuple(verdicts),
            links=tuple(links),
            summary={
                "run": shown(out) if out else None,
                "cases": len(line.gold.cases),
                "judge": line.settings["judge"],
                "judge_note": about["judge_note"],
                "k": k,
                **levels(scores, verdicts, level_of, seed=seed),
                "judged": {known: mean_scores(shares_judged.values(), seed=seed).model_dump()},
                "corrected": {name: one.document() for name, one in corrected(judged).items()},
                "drift": moved_scores(judged),
                "labels_notes": list(held.notes),
                "link": summarise(
                    links,
                    cases=line.gold.cases,
                    verdicts=verdicts,
                    seed=seed,
                    calibration=held.calibration,
                ),
                "diagnosis": diagnosis(
                    line.gold.cases, seen, verdicts, links, measured, around, scores, options
                ),
                "lower_is_better": lower_is_better(line.metrics),
                "coverage": coverage(verdicts, level_of),
                "repeats": repetition(verdicts, level_of, seed=seed),
                "cascade": line.judge.cascade() if line.judge else {},
                "usage": line.judge.usage() if line.judge else _NOTHING,
                "slices": slices(line.gold.cases, scores, verdicts, k=k, seed=seed),
            },
            map=drawn,
            calibration=judged.calibration,
            audit=judged.audit,
        )
        run = carried_links(run, before)
        if line.staging:
            line.staging.publish(run, run.html)
    return run


setattr(evaluate, "__signature__", inspect.signature(evaluate_async))  # noqa: B010 (mypy)
evaluate.__doc__ = (evaluate.__doc__ or "") + (evaluate_async.__doc__ or "").partition("\n")[2]


def in_a_loop(line: Callable[[], Coroutine[Any, Any, Result]], threads: Any) -> Result:
    """Run what `line` returns to its end, also where an event loop is already running.

    Parameters
    ----------
    line : callable
    threads : int
        How many synchronous apps are run at once.
    """
    # Not the task's own result: when a loop ends, Python's signal module writes out the repr of
    # its main task, result and all, which of a run of 10,000 cases takes seconds.
    found: list[Result] = []

    async def within() -> None:
        # Synchronous apps run in threads: as many as there are cases under way.
        wanted = threads if isinstance(threads, int) and threads > 0 else 1  # refused further on
        pool = ThreadPoolExecutor(max_workers=wanted)
        asyncio.get_running_loop().set_default_executor(pool)
        found.append(await line())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(within())
    else:
        context = contextvars.copy_context()
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(context.run, asyncio.run, within()).result()
    return found[0]
