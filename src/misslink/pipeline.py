"""The straight line: gold set + app -> traces -> rank scores -> verdicts -> links -> estimates."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from misslink.capture import Watcher, check_ids, load_app, warn_of_gaps
from misslink.engines.local import each
from misslink.errors import AppUnreachableError, InputError
from misslink.files import GoldSet, Staging, match_traces, read_goldset, read_traces
from misslink.judging.asking import judge_case
from misslink.judging.metric import JudgedMetric, Subject
from misslink.judging.opening import Opened, open_judge
from misslink.judging.protocol import Judge
from misslink.judging.terms import Terms
from misslink.linking import link_case, summarise
from misslink.manifest import code_hash, content_hash, manifest, shown_path
from misslink.registry import judged_metrics
from misslink.retrieval import score, still_wanted
from misslink.summary import coverage, levels, slices
from misslink.types import Case, Link, Run, Trace, Verdict

__all__ = ["Progress", "evaluate", "evaluate_async"]

Progress = Callable[[str, int, int], None]  # stage, done, total

_LEDGER = Path(".misslink/ledger.sqlite")
_CONCURRENCY = 8
_NOTHING = {"calls": 0, "from_ledger": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None}
_log = logging.getLogger(__name__)


def evaluate(app: Any = None, goldset: Any = None, **options: Any) -> Run:
    """Evaluate a RAG app, or traces of one, and return the run.

    The synchronous face of `evaluate_async`, with the same parameters; it also works in a notebook
    cell, where an event loop is already running.
    """

    async def line() -> Run:
        # Synchronous apps run in threads: as many as there are cases under way.
        wanted = options.get("concurrency", _CONCURRENCY)
        workers = wanted if isinstance(wanted, int) and wanted > 0 else 1  # refused further on
        threads = ThreadPoolExecutor(max_workers=workers)
        asyncio.get_running_loop().set_default_executor(threads)
        return await evaluate_async(app, goldset, **options)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(line())
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(context.run, asyncio.run, line()).result()


async def evaluate_async(
    app: Any = None,
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None,
    *,
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = None,
    judge: str | Judge | None = "embedded",
    out: str | Path | None = None,
    k: int = 5,
    depth: int = 100,
    concurrency: int = _CONCURRENCY,
    ledger: str | Path | None = _LEDGER,
    id_key: str | None = None,
    input_key: str | None = None,
    terms: Terms | None = None,
    seed: int = 0,
    overwrite: bool = False,
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
        ``openai:MODEL``, ``embedded``, ``embedded:minilm``, a judge of your own, or ``none`` for
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
    terms : Terms or None
        On what terms the judge is asked: its address and key, how often, how fast, for how much.
    seed : int
        Of the intervals that are drawn.
    overwrite : bool
        Replace a run of other inputs in `out`.
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
    _refuse_wrong_call(app, traces, goldset, (k, depth, concurrency))
    tick = progress or (lambda *_: None)
    gold = read_goldset(goldset or ())
    brought = None if traces is None else match_traces(read_traces(traces), gold)
    spec = app if isinstance(app, str) else None
    app = load_app(spec) if spec else app
    asked = open_judge(
        judge,
        ledger=Path(ledger) if ledger else None,
        concurrency=concurrency,
        terms=terms,
    )
    settings = {
        "app": shown_path(spec) if spec else _name_of(app),
        "judge": asked.name if asked else "none",
        "k": k,
        "depth": depth,
        "id_key": id_key,
        "input_key": input_key,
        "seed": seed,
    }
    # Whether two app objects are the same app nobody can tell: each call is a run of its own.
    which = uuid.uuid4().hex if brought is None and spec is None else None
    inputs = content_hash([gold.cases, brought, asked and dict(asked.identity), settings, which])
    code = code_hash(spec) if spec else which
    metrics = _judged_metrics()

    async with AsyncExitStack() as held:
        if asked:
            held.push_async_callback(asked.close)
        staging = None
        if out:
            work = content_hash([gold.cases, settings["app"], k, depth, id_key, input_key, code])
            staging = held.enter_context(Staging(Path(out), inputs, work, overwrite=overwrite))
        if asked:
            await asked.reachable()
        if brought is None:
            watcher = Watcher(app, id_key=id_key, depth=depth, input_key=input_key)
            seen = await _capture(watcher, gold, k, concurrency, staging if spec else None, tick)
        else:
            seen = brought
        cutoffs = [f"{metric}@{k}" for metric in ("hit", "recall", "precision", "ndcg")]
        scores = score(gold.cases, list(seen.values()), ["mrr", *cutoffs])
        traces_of = {case.id: seen.get(case.id) or _no_trace(case) for case in gold.cases}
        verdicts = await _judge(asked, metrics, gold.cases, traces_of, k, concurrency, tick)
        links = _link(gold.cases, traces_of, verdicts, k)
        about = {
            "goldset": shown_path(gold.name),
            "traces": shown_path(traces) if isinstance(traces, str | Path) else None,
            **settings,
            "judge_note": asked.note if asked else None,
        }
        level_of = {metric.name: metric.level for metric in metrics}
        run = Run(
            manifest=manifest(about, inputs, verdicts, command),
            cases=gold.cases,
            traces=tuple(traces_of.values()),
            verdicts=tuple(verdicts),
            links=tuple(links),
            summary={
                "run": str(out) if out else None,
                "cases": len(gold.cases),
                "judge": settings["judge"],
                "judge_note": about["judge_note"],
                "k": k,
                **levels(scores, verdicts, level_of, seed=seed),
                "link": summarise(links, seed=seed),
                "coverage": coverage(verdicts, level_of),
                "usage": asked.usage() if asked else _NOTHING,
                "slices": slices(gold.cases, scores, verdicts, k=k, seed=seed),
            },
        )
        if staging:
            staging.publish(run, run.html)
    return run


def _refuse_wrong_call(app: Any, traces: Any, goldset: Any, counts: Sequence[Any]) -> None:
    if (app is None) == (traces is None):
        raise InputError("give an app to run or a file of traces, one of the two")
    if goldset is None:
        raise InputError("give a gold set: a file with one JSON object a line")
    if any(not isinstance(count, int) or count < 1 for count in counts):
        raise InputError("k, depth and concurrency must be whole numbers of 1 or more")


setattr(evaluate, "__signature__", inspect.signature(evaluate_async))  # noqa: B010 (mypy)
evaluate.__doc__ = (evaluate.__doc__ or "") + (evaluate_async.__doc__ or "").partition("\n")[2]


async def _capture(
    watcher: Watcher,
    gold: GoldSet,
    k: int,
    concurrency: int,
    staging: Staging | None,
    tick: Progress,
) -> dict[str, Trace]:
    """Run the app for every case, and ask its retriever deeper for what it missed."""
    kept = staging.kept if staging else {}
    if kept:
        _log.warning("%d traces of the interrupted run are used again", len(kept))
    ids_checked = bool(kept)  # none is kept before

    async def watch(case: Case) -> Trace:
        nonlocal ids_checked
        if case.id in kept:
            return kept[case.id]
        trace = await watcher.watch(case)
        if not ids_checked:
            ids_checked = await check_ids(watcher, gold, trace)
        wanted = still_wanted(case, trace, k)
        if wanted:
            trace = await watcher.deepen(case, trace, wanted)
        if staging and ids_checked and trace.error is None:
            staging.keep(trace)
        return trace

    # The first case alone: it shows the app's store, and a wrong id is told before the rest runs.
    first, *rest = gold.cases
    trace = await watch(first)
    total = len(gold.cases)
    tick("app", 1, total)
    others = await each(rest, watch, concurrency, lambda done, _: tick("app", done + 1, total))
    traces = [trace, *others]
    if all(trace.error and trace.answer is None for trace in traces):
        raise AppUnreachableError(
            f"the app failed on every one of {total} questions; the first time {trace.error}"
        )
    warn_of_gaps(traces, gold)
    return {trace.case_id: trace for trace in traces}


async def _judge(
    judge: Opened | None,
    metrics: Sequence[JudgedMetric],
    cases: Sequence[Case],
    traces: Mapping[str, Trace],
    k: int,
    concurrency: int,
    tick: Progress,
) -> list[Verdict]:
    """Ask the judge everything that the metrics want to know of every case."""
    if judge is None:
        return []

    async def ask(case: Case) -> tuple[Verdict, ...]:
        return await judge_case(Subject(case, traces[case.id], k), metrics, judge)

    found = await each(cases, ask, concurrency, lambda done, total: tick("judge", done, total))
    return [verdict for verdicts in found for verdict in verdicts]


def _link(
    cases: Sequence[Case], traces: Mapping[str, Trace], verdicts: Sequence[Verdict], k: int
) -> list[Link]:
    by_case: dict[str, dict[str, Verdict]] = {case.id: {} for case in cases}
    for verdict in verdicts:
        by_case[verdict.case_id][verdict.metric] = verdict
    return [link_case(case, traces[case.id], by_case[case.id], k) for case in cases]


def _judged_metrics() -> list[JudgedMetric]:
    metrics = [judged_metrics.get(name) for name in judged_metrics.names()]
    return sorted(metrics, key=lambda metric: metric.level)


def _name_of(app: Any) -> str | None:
    if app is None:
        return None
    named = app if hasattr(app, "__qualname__") else type(app)
    return f"{named.__module__}.{named.__qualname__}"


def _no_trace(case: Case) -> Trace:
    return Trace(case_id=case.id, unmeasured="there is no trace of this case")
