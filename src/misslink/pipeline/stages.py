"""The stages of the line: what is given, the app's traces, the judge's verdicts, the links."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from misslink.capture import Watcher, check_ids, load_app, warn_of_gaps
from misslink.engines.local import each
from misslink.engines.observing import observe
from misslink.engines.protocol import Engine, Observed
from misslink.errors import AppUnreachableError
from misslink.files import Staging, match_traces, read_goldset, read_traces
from misslink.judging.asking import judge_case
from misslink.judging.metric import JudgedMetric, Subject
from misslink.judging.opening import Opened, open_judge
from misslink.linking import Calibration, Measured, calibration_document, link_case
from misslink.linking.calibration import check_judge
from misslink.manifest import by_name, code_hash, content_hash, shown_path
from misslink.pipeline.calibrating import brought_labels, labels_hash
from misslink.pipeline.given import Given
from misslink.pipeline.measuring import named_embedder
from misslink.pipeline.options import Options, Progress
from misslink.prompting import Prompts
from misslink.registry import engines, judged_metrics
from misslink.retrieval import score
from misslink.types import Case, Link, Trace, Verdict

__all__ = ["Caught", "capture", "given", "judge", "link", "rank_scores"]

_log = logging.getLogger(__name__)
_BLOCK = 2_000  # cases that are scored together
_DIGITS = 16  # of a hash: enough to tell two apart, and to read


@dataclass(frozen=True)
class Caught:
    """A trace for every case, and who watched the app; None where the traces were brought."""

    traces: dict[str, Trace]
    watcher: Watcher | None = None


@asynccontextmanager
async def given(options: Options) -> AsyncIterator[Given]:
    """Read, load and open what `options` name; close it in the end.

    Raises
    ------
    InputError
        Something given is wrong; nothing has been spent.
    """
    gold = read_goldset(options.goldset or ())
    brought = None
    if options.traces is not None:
        brought = match_traces(read_traces(options.traces), gold)
    metrics = _judged_metrics()
    labels = brought_labels(options, gold, [metric.name for metric in metrics])
    gold = gold.only(options.only) if options.only else gold
    prompts = Prompts.of(options.terms.prompts)
    told = calibration_document(options.calibration) if options.calibration else None
    calibration = Calibration.of(told, options.calibration or "") if told is not None else None
    app = load_app(options.spec) if options.spec else options.app
    async with AsyncExitStack() as held:
        engine = _engine(options)
        held.push_async_callback(engine.close)
        judge = open_judge(
            options.judge,
            ledger=Path(options.ledger) if options.ledger else None,
            concurrency=engine.at_once("judge", options.concurrency),
            terms=options.terms,
            reach=engine.reach,
        )
        if judge:
            held.push_async_callback(judge.close)
        embedder = named_embedder(options.embedding)
        if embedder:
            held.callback(embedder.close)
        settings = _settings(options, judge)
        # Whether two app objects are the same app nobody can tell: each call is a run of its own.
        which = uuid.uuid4().hex if brought is None and options.spec is None else None
        refs = [prompts.load(name).ref for name in prompts.names()]
        if told is not None and judge:
            check_judge(
                told,
                options.calibration or "",
                judge=judge.name,
                prompts={ref.name: ref.sha256 for ref in refs},
                identity=by_name({"judge_identity": judge.identity}),
            )
        inputs = by_name(
            {
                **settings,
                "app object (new at each call)": which,
                "goldset": content_hash(gold.cases)[:_DIGITS],
                "cases": [case.id for case in gold.cases] if options.only else None,
                "traces": None if brought is None else content_hash(brought)[:_DIGITS],
                "repeats": options.terms.repeats,
                "context_length": options.terms.context_length,
                "calibration": None if calibration is None else content_hash(asdict(calibration)),
                "labels": labels_hash(labels),
                "judge_identity": judge and judge.identity,
                "prompts": {ref.name: ref.sha256[:_DIGITS] for ref in refs},
            }
        )
        code = code_hash(options.spec) if options.spec else which
        app_settings = [settings[name] for name in ("app", "k", "depth", "id_key", "input_key")]
        work = content_hash([gold.cases, app_settings, code])
        staging = None
        if options.out:
            staging = held.enter_context(
                Staging(
                    Path(options.out),
                    inputs,
                    work,
                    cases=len(gold.cases),
                    overwrite=options.overwrite,
                )
            )
        yield Given(
            options=options,
            gold=gold,
            app=app,
            engine=engine,
            brought=brought,
            judge=judge,
            calibration=calibration,
            calibration_document=told,
            labels=labels,
            embedder=embedder,
            metrics=metrics,
            prompts=prompts,
            settings=settings,
            inputs=inputs,
            work=work,
            staging=staging,
        )


async def capture(line: Given, tick: Progress) -> Caught:
    """Return a trace for every case: brought, or of the app, whose retriever is asked deeper."""
    watcher = None
    if line.brought is None:
        options = line.options
        watcher = Watcher(
            line.app, id_key=options.id_key, depth=options.depth, input_key=options.input_key
        )
    seen = await _watched(line, watcher, tick) if watcher else line.brought or {}
    traces = {case.id: seen.get(case.id) or _no_trace(case) for case in line.gold.cases}
    return Caught(traces, watcher)


async def rank_scores(
    line: Given, traces: Mapping[str, Trace], metrics: Sequence[str], tick: Progress
) -> dict[str, dict[str, float | None]]:
    """Score every case by every rank metric, in blocks; as `misslink.retrieval.score`."""
    cases = line.gold.cases
    parts = [cases[at : at + _BLOCK] for at in range(0, len(cases), _BLOCK)]
    blocks = [(part, [traces[case.id] for case in part], tuple(metrics)) for part in parts]
    found = await line.engine.blocks(
        "level 1", _score, blocks, lambda done, total: tick("level 1", done, total)
    )
    return {
        name: {case_id: value for block in found for case_id, value in block[name].items()}
        for name in found[0]
    }


async def judge(line: Given, traces: Mapping[str, Trace], tick: Progress) -> list[Verdict]:
    """Ask the judge everything that the metrics want to know of every case."""
    asked = line.judge
    if asked is None:
        return []

    async def ask(subject: Subject) -> tuple[Verdict, ...]:
        return await judge_case(subject, line.metrics, asked, repeats=line.options.terms.repeats)

    found = await each(
        line.subjects(traces),
        ask,
        line.engine.at_once("judge", line.options.concurrency),
        lambda done, total: tick("judge", done, total),
        total=len(line.gold.cases),
    )
    return [verdict for verdicts in found for verdict in verdicts]


async def link(
    line: Given,
    traces: Mapping[str, Trace],
    verdicts: Sequence[Verdict],
    measured: Measured,
    tick: Progress,
) -> list[Link]:
    """Say of every case why it failed, or that it did not."""
    by_case: dict[str, dict[str, Verdict]] = {case.id: {} for case in line.gold.cases}
    for verdict in verdicts:
        by_case[verdict.case_id][verdict.metric] = verdict

    async def link_one(case: Case) -> Link:
        return await link_case(
            case,
            traces[case.id],
            by_case[case.id],
            line.options.k,
            missed=measured.missed.get(case.id),
            found=measured.found.get(case.id),
            judge=line.judge,
            prompts=line.prompts,
            calibration=line.calibration,
        )

    return await each(
        line.gold.cases,
        link_one,
        line.engine.at_once("link", line.options.concurrency),
        lambda done, total: tick("link", done, total),
    )


async def _watched(line: Given, watcher: Watcher, tick: Progress) -> dict[str, Trace]:
    """Run the app for every case, and ask its retriever deeper for what it missed."""
    options, gold = line.options, line.gold
    staging = line.staging if options.spec else None
    kept = staging.kept if staging else {}
    if kept:
        _log.warning(
            "%d traces of the unfinished run are used again; --overwrite begins anew", len(kept)
        )
    ids_checked = bool(kept)  # none is kept before

    async def kept_or(case: Case, observed: Callable[[Case], Awaitable[Trace]]) -> Trace:
        nonlocal ids_checked
        if case.id in kept:
            return kept[case.id]
        trace = await observed(case)
        if not ids_checked:
            ids_checked = await check_ids(watcher, gold, trace)
        if staging and ids_checked and trace.error is None:
            staging.keep(trace)
        return trace

    # The first case alone and here: it shows the app's store, and a wrong id is told before the
    # rest runs, wherever that is.
    what = Observed(
        line.app, options.spec, options.k, options.depth, options.id_key, options.input_key
    )
    elsewhere = line.engine.observe(watcher, what)
    first, *rest = gold.cases
    trace = await kept_or(first, lambda case: observe(watcher, case, options.k))
    total = len(gold.cases)
    tick("app", 1, total)
    others = await each(
        rest,
        lambda case: kept_or(case, elsewhere),
        line.engine.at_once("app", options.concurrency),
        lambda done, _: tick("app", done + 1, total),
    )
    traces = [trace, *others]
    if all(trace.error and trace.answer is None for trace in traces):
        raise AppUnreachableError(
            f"the app failed on every one of {total} questions; the first time {trace.error}"
        )
    warn_of_gaps(traces, gold)
    return {trace.case_id: trace for trace in traces}


def _engine(options: Options) -> Engine:
    """The engine that was named, or the one that was given."""
    if not isinstance(options.engine, str):
        return options.engine
    opened: Engine = engines.get(options.engine)(options.ray_address, options.workers)
    return opened


def _score(
    block: tuple[Sequence[Case], Sequence[Trace], Sequence[str]],
) -> dict[str, dict[str, float | None]]:
    return score(*block)


def _settings(options: Options, judge: Opened | None) -> dict[str, Any]:
    return {
        "app": shown_path(options.spec) if options.spec else options.app_name,
        "judge": judge.name if judge else "none",
        "k": options.k,
        "depth": options.depth,
        "id_key": options.id_key,
        "input_key": options.input_key,
        "embedding": options.embedding_name,
        "seed": options.seed,
    }


def _judged_metrics() -> tuple[JudgedMetric, ...]:
    metrics = [judged_metrics.get(name) for name in judged_metrics.names()]
    return tuple(sorted(metrics, key=lambda metric: metric.level))


def _no_trace(case: Case) -> Trace:
    return Trace(case_id=case.id, unmeasured="there is no trace of this case")
