"""The straight line: gold set + app -> traces -> rank scores -> verdicts -> links -> estimates."""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import hashlib
import importlib.metadata
import json
import logging
import platform
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import misslink
from misslink.capture import Watcher, load_app, source_of
from misslink.errors import AppUnreachableError, InputError
from misslink.files import GoldSet, Staging, read_goldset, read_traces
from misslink.judging.asking import judge_case
from misslink.judging.metric import JudgedMetric, Subject
from misslink.judging.opening import OpenJudge, open_judge
from misslink.judging.protocol import Judge
from misslink.linking import link_case, summarise
from misslink.registry import judged_metrics
from misslink.retrieval import is_needed, missing_needs, score
from misslink.summary import coverage, levels, slices
from misslink.types import Case, Run, Trace, Verdict

__all__ = ["Progress", "evaluate", "evaluate_async"]

Progress = Callable[[str, int, int], None]  # stage, done, total
Item = TypeVar("Item")
Result = TypeVar("Result")

_log = logging.getLogger("misslink")
_LEDGER = Path(".misslink/ledger.sqlite")


def evaluate(app: Any = None, goldset: Any = None, **options: Any) -> Run:
    """Evaluate a RAG app, or traces of one, and return the run.

    The synchronous face of `evaluate_async`, with the same parameters; it also works in a notebook
    cell, where an event loop is already running.
    """
    line = evaluate_async(app, goldset, **options)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(line)
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(context.run, asyncio.run, line).result()


async def evaluate_async(
    app: Any = None,
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None,
    *,
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = None,
    judge: str | Judge | None = "embedded",
    out: str | Path | None = None,
    k: int = 5,
    depth: int = 100,
    concurrency: int = 8,
    ledger: str | Path | None = _LEDGER,
    id_key: str | None = None,
    input_key: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
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
        Run folder to write, with ``report.html`` in it. None: nothing is written.
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
    base_url, api_key : str or None
        Of an OpenAI-compatible judge; ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` by default.
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
    if (app is None) == (traces is None):
        raise InputError("give an app to run or a file of traces, one of the two")
    if goldset is None:
        raise InputError("give a gold set: a file with one JSON object a line")
    if min(k, depth, concurrency) < 1:
        raise InputError("k, depth and concurrency must be 1 or more")
    tick = progress or (lambda *_: None)
    gold = read_goldset(goldset)
    brought = None if traces is None else read_traces(traces)
    named = app if isinstance(app, str) else None
    app = load_app(named) if named else app
    asked = open_judge(
        judge, ledger=ledger, concurrency=concurrency, base_url=base_url, api_key=api_key
    )
    try:
        metrics = [judged_metrics.get(name) for name in judged_metrics.names()] if asked else []
        settings = {"k": k, "depth": depth, "id_key": id_key, "input_key": input_key, "seed": seed}
        about = {
            "app": named or (None if app is None else type(app).__qualname__),
            "traces": str(traces) if isinstance(traces, str | Path) else None,
            "goldset": gold.name,
            "judge": asked.name if asked else "none",
            "judge_note": asked.note if asked else None,
            **settings,
        }
        inputs = _hash([gold.cases, brought, asked and asked.identity, about])
        work = _hash([inputs, source_of(app) if named else None])
        staging = Staging(Path(out), inputs, work, overwrite=overwrite) if out else None
        if asked:
            await asked.check()
        if brought is None:
            watcher = Watcher(app, id_key=id_key, depth=depth, input_key=input_key)
            seen = await _capture(watcher, gold, k, concurrency, staging if named else None, tick)
        else:
            seen = _match(brought, gold)
        scores = score(gold.cases, seen, [f"{name}@{k}" for name in ("hit", "recall", "precision", "ndcg")] + ["mrr"])
        verdicts = await _judge(asked, metrics, gold.cases, seen, k, concurrency, tick)
    finally:
        if asked:
            await asked.close()

    by_case: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        by_case.setdefault(verdict.case_id, {})[verdict.metric] = verdict
    empty: dict[str, Verdict] = {}
    links = [
        link_case(case, _trace(seen, case), by_case.get(case.id, empty), k) for case in gold.cases
    ]
    level_of = {metric.name: metric.level for metric in metrics}
    summary = {
        "run": str(out) if out else None,
        "cases": len(gold.cases),
        "judge": about["judge"],
        "k": k,
        **levels(scores, verdicts, level_of, seed=seed),
        "link": summarise(links, seed=seed),
        "coverage": coverage(verdicts, level_of),
        "usage": asked.usage() if asked else None,
        "slices": slices(gold.cases, scores, verdicts, k=k, seed=seed),
    }
    run = Run(
        manifest=_manifest(about, inputs, verdicts, command),
        cases=gold.cases,
        traces=tuple(_trace(seen, case) for case in gold.cases),
        verdicts=tuple(verdicts),
        links=tuple(links),
        summary=summary,
    )
    if staging:
        staging.publish(run, run.html)
    return run


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

    async def watch(case: Case) -> Trace:
        if case.id in kept:
            return kept[case.id]
        trace = await watcher.watch(case)
        missing = missing_needs(case, trace, k)
        if missing:
            trace = await watcher.deepen(case, trace, lambda passage: is_needed(missing, passage))
        if staging:
            staging.keep(trace)
        return trace

    first, *rest = gold.cases
    traces = [await watch(first)]
    tick("app", 1, len(gold.cases))
    await _check_ids(watcher, gold, traces[0])
    done = _counter("app", len(gold.cases), tick, start=1)
    traces += await _each(rest, watch, concurrency, done)
    errors = [trace.error for trace in traces if trace.error]
    if len(errors) == len(traces):
        raise AppUnreachableError(
            f"the app raised on every one of {len(traces)} questions; the first time: {errors[0]}"
        )
    return {trace.case_id: trace for trace in traces}


async def _check_ids(watcher: Watcher, gold: GoldSet, trace: Trace) -> None:
    """Refuse a relevant id that the app's own store does not hold, before the app is run on."""
    listed = {
        passage: case.id
        for case in reversed(gold.cases)
        if not case.evidence
        for passage in [*case.relevant, *(one for group in case.relevant_any for one in group)]
    }
    seen = {passage.id for passage in trace.retrieved}
    known = await watcher.known_ids(sorted(seen | set(listed)))
    # Ids that the store does not know by itself (a metadata key, say) cannot be checked there.
    if known is None or not seen <= known:
        return
    unknown = sorted(set(listed) - known)
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        raise gold.error(
            listed[unknown[0]],
            "relevant",
            f"the app's own corpus holds no passage '{unknown[0]}'{more}; "
            "correct the id, name the id's metadata key with --id-key, or give evidence texts",
        )


def _match(brought: Mapping[str, Trace], gold: GoldSet) -> dict[str, Trace]:
    """Keep the traces of the gold set's cases, and say what does not fit."""
    ids = {case.id for case in gold.cases}
    strangers = [case_id for case_id in brought if case_id not in ids]
    if len(strangers) == len(brought):
        raise InputError(
            f"no trace belongs to a case of {gold.name} (the first is of '{strangers[0]}'); "
            "the case ids of both files must agree"
        )
    if strangers:
        _log.warning(
            "%d traces belong to no case of the gold set and are left out, such as '%s'",
            len(strangers),
            strangers[0],
        )
    absent = [case.id for case in gold.cases if case.id not in brought]
    if absent:
        _log.warning(
            "%d cases have no trace and score 0 at level 1, such as '%s'", len(absent), absent[0]
        )
    return {case_id: trace for case_id, trace in brought.items() if case_id in ids}


async def _judge(
    judge: OpenJudge | None,
    metrics: Sequence[JudgedMetric],
    cases: Sequence[Case],
    traces: Mapping[str, Trace],
    k: int,
    concurrency: int,
    tick: Progress,
) -> list[Verdict]:
    if judge is None:
        return []

    async def ask(case: Case) -> tuple[Verdict, ...]:
        return await judge_case(Subject(case, _trace(traces, case), k), metrics, judge)

    found = await _each(cases, ask, concurrency, _counter("judge", len(cases), tick))
    return [verdict for verdicts in found for verdict in verdicts]


async def _each(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    concurrency: int,
    done: Callable[[], None],
) -> list[Result]:
    """Work on all items, so many at once, and return the results in their order."""
    gate = asyncio.Semaphore(concurrency)

    async def one(item: Item) -> Result:
        async with gate:
            result = await work(item)
        done()
        return result

    tasks = [asyncio.create_task(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _counter(stage: str, total: int, tick: Progress, start: int = 0) -> Callable[[], None]:
    count = start

    def done() -> None:
        nonlocal count
        count += 1
        tick(stage, count, total)

    return done


def _trace(traces: Mapping[str, Trace], case: Case) -> Trace:
    return traces.get(case.id) or Trace(case_id=case.id, notes=("there is no trace of this case",))


def _hash(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(item: Any) -> Any:
    return item.model_dump(mode="json") if hasattr(item, "model_dump") else str(item)


def _manifest(
    about: Mapping[str, Any], inputs: str, verdicts: Sequence[Verdict], command: str | None
) -> dict[str, Any]:
    prompts = {verdict.prompt.name: verdict.prompt for verdict in verdicts if verdict.prompt}
    versions = {"python": platform.python_version()}
    for package in ("langchain-core", "chromadb", "openai", "pydantic", "sentence-transformers"):
        if package.replace("-", "_") in sys.modules:
            versions[package] = importlib.metadata.version(package)
    return {
        "misslink": misslink.__version__,
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        **about,
        "prompts": [prompts[name].model_dump() for name in sorted(prompts)],
        "command": command,
        "versions": versions,
        "inputs": inputs,
    }
