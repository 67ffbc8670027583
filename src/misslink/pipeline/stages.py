"""The stages of the pipeline: open, capture, score, judge, link."""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from misslink.capture import Watcher, check_gold_ids, labelled_ids, load_app, match_labels
from misslink.capture.app import read_app_config
from misslink.capture.passages import passage_from
from misslink.case_fields import tag_turns
from misslink.documents import DEFAULT_K
from misslink.embedding import Embedder
from misslink.engines.protocol import AppSpec, Engine, capture_case
from misslink.errors import AppUnreachableError, InputError, JudgeUnreachableError
from misslink.io import GoldSet, RunStaging, read_goldset
from misslink.io.corpus import read_corpus
from misslink.io.labels import Labels
from misslink.io.manifest import display_path, flatten_inputs, hash_app_code, hash_content
from misslink.io.trace_formats import read_recording
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.prompts import Prompts
from misslink.judge.session import JudgeSession, open_judge
from misslink.linking.attribution_rules import link_case, search_queries
from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.judge_calibration import Calibration, check_judge, read_calibration_document
from misslink.linking.miss_measurement import MissMeasurements
from misslink.pipeline.calibration import labels_hash, load_run_labels
from misslink.pipeline.diagnosis import MAX_LISTED, CorpusContext, open_named_embedder
from misslink.registry import engines, judged_metrics
from misslink.render.reasons import describe_reason
from misslink.timeouts import map_concurrently
from misslink.types import Case, Link, Passage, Reason, Trace, Verdict

if TYPE_CHECKING:
    from misslink.pipeline.evaluate import EvaluationConfig

_log = logging.getLogger(__name__)
_HASH_DIGITS = 16


Progress = Callable[[str, int, int], None]  # stage, done, total


@dataclass(frozen=True)
class EvaluationContext:
    """Everything that an evaluation reads, loads and opens before its first judge call."""

    config: EvaluationConfig
    gold: GoldSet
    app: Any
    app_config: Mapping[str, Any]
    engine: Engine
    recorded: Mapping[str, Trace] | None
    corpus: tuple[Passage, ...] | None
    judge: JudgeSession | None
    calibration: Calibration | None
    calibration_document: Mapping[str, Any] | None
    labels: Labels | None
    embedder: Embedder | None
    metrics: tuple[JudgedMetric, ...]
    prompts: Prompts
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    work: str
    staging: RunStaging | None
    k: int  # the given one; else, once the traces are there, as many as the app puts in its prompt

    def subjects(self, traces: Mapping[str, Trace]) -> Iterator[Subject]:
        """Each case with its trace, in the gold set's order."""
        for case in self.gold.cases:
            yield Subject(case, traces[case.id], self.k, self.prompts)

    def tick(self, stage: str, done: int, total: int) -> None:
        """Report progress."""
        if self.config.progress:
            self.config.progress(stage, done, total)


class CaptureResult(NamedTuple):
    """The traces of all cases, the passages of the index, and what could not be captured."""

    traces: dict[str, Trace]
    corpus: tuple[Passage, ...] | None
    watcher: Watcher | None  # None: the traces were recorded
    warnings: list[Reason]


def _read_config_corpus(config: EvaluationConfig) -> tuple[Passage, ...] | None:
    if config.corpus is None or isinstance(config.corpus, str | Path):
        return None if config.corpus is None else read_corpus(config.corpus)
    by_id: dict[str, Passage] = {}
    for one in config.corpus:
        passage = one
        if not isinstance(passage, Passage):
            passage = passage_from(one, rank=len(by_id) + 1, id_key=config.id_key)
        if by_id.setdefault(passage.id, passage).text != passage.text:
            problem = f"two passages have the id '{passage.id}'; ids name one passage each"
            raise InputError(problem, path="the corpus")
    return tuple(by_id.values())


@asynccontextmanager
async def open_context(config: EvaluationConfig) -> AsyncIterator[EvaluationContext]:
    """Read, load and open everything that `config` names, and close it at the end.

    Raises
    ------
    InputError
        Something in `config` is wrong. No judge call was made.
    """
    recorded = None
    if config.traces is None:
        gold = read_goldset(() if config.goldset is None else config.goldset)
    else:
        recording = read_recording(config.traces)
        gold = recording.gold() if config.goldset is None else read_goldset(config.goldset)
        recorded = recording.match(gold)
        gold = gold.add_histories(recorded)
    gold = replace(gold, cases=tag_turns(gold.cases))
    corpus = _read_config_corpus(config)
    metrics = tuple(
        sorted(map(judged_metrics.get, judged_metrics.names()), key=lambda metric: metric.level)
    )
    labels = load_run_labels(config, gold, [metric.name for metric in metrics])
    gold = gold.only(config.only) if config.only else gold
    terms = config.judge_config
    prompts = Prompts.from_spec(terms.prompts)
    document, calibration = None, None
    if config.calibration:
        document = read_calibration_document(config.calibration)
        calibration = Calibration.from_document(document, config.calibration)
    app_config = read_app_config(config.app_config)
    app = load_app(config.spec) if config.spec else config.app
    async with AsyncExitStack() as stack:
        engine = config.engine
        if isinstance(engine, str):
            engine = engines.get(engine)(config.ray_address, config.workers)
        stack.push_async_callback(engine.close)
        judge = open_judge(
            config.judge,
            cache=Path(config.cache) if config.cache else None,
            concurrency=engine.at_once("judge", config.concurrency),
            terms=terms,
            reach=engine.reach,
        )
        if judge:
            stack.push_async_callback(judge.close)
        embedder = open_named_embedder(config.embedding)
        if embedder:
            stack.callback(embedder.close)
        refs = [prompts.load(name).ref for name in prompts.names()]
        if document is not None and judge:
            check_judge(
                document,
                config.calibration or "",
                judge=judge.name,
                prompts={ref.name: ref.sha256 for ref in refs},
                identity=flatten_inputs({"judge_identity": judge.identity}),
            )
        app_settings = {
            "app": display_path(config.spec) if config.spec else config.app_name,
            "k": config.k,
            "depth": config.depth,
            "id_key": config.id_key,
            "input_key": config.input_key,
            "app_config": hash_content(app_config)[:_HASH_DIGITS] if app_config else None,
        }
        settings = {
            **app_settings,
            "judge": judge.name if judge else "none",
            "embedding": config.embedding_name,
            "seed": config.seed,
        }
        # Two app objects cannot be compared: each call with one counts as another run.
        call_id = uuid.uuid4().hex if recorded is None and config.spec is None else None
        inputs = flatten_inputs(
            {
                **settings,
                "app object (new at each call)": call_id,
                "goldset": hash_content(gold.cases)[:_HASH_DIGITS],
                "cases": [case.id for case in gold.cases] if config.only else None,
                "traces": None if recorded is None else hash_content(recorded)[:_HASH_DIGITS],
                "corpus": None if corpus is None else hash_content(corpus)[:_HASH_DIGITS],
                "repeats": terms.repeats,
                "context_length": terms.context_length,
                "calibration": None if calibration is None else hash_content(calibration),
                "labels": labels_hash(labels),
                "judge_identity": judge and judge.identity,
                "prompts": {ref.name: ref.sha256[:_HASH_DIGITS] for ref in refs},
            }
        )
        code = hash_app_code(config.spec) if config.spec else call_id
        work = hash_content([gold.cases, list(app_settings.values()), code])
        staging = None
        if config.out:
            staging = stack.enter_context(
                RunStaging(
                    Path(config.out),
                    inputs,
                    work,
                    cases=len(gold.cases),
                    overwrite=config.overwrite,
                )
            )
        yield EvaluationContext(
            config=config,
            gold=gold,
            app=app,
            app_config=app_config,
            engine=engine,
            recorded=recorded,
            corpus=None if corpus is None else tuple(corpus),
            judge=judge,
            calibration=calibration,
            calibration_document=document,
            labels=labels,
            embedder=embedder,
            metrics=metrics,
            prompts=prompts,
            settings=settings,
            inputs=inputs,
            work=work,
            staging=staging,
            k=config.k or DEFAULT_K,
        )


def context_size(config: EvaluationConfig, traces: Iterable[Trace]) -> int:
    """The given k, or as many passages as the app puts in most of its prompts; 5 if none was seen."""
    sizes = Counter(len(trace.prompted) for trace in traces if trace.prompted)
    return config.k or max(sizes, key=lambda size: (sizes[size], size), default=DEFAULT_K)


_NO_TRACE = "there is no trace of this case"
_NEIGHBORS = 20  # cases before and after, whose questions an app that remembers has in its prompt
_TELLING_LENGTH = 15  # characters of a question; a shorter one may be part of any text


async def capture_traces(context: EvaluationContext) -> CaptureResult:
    """Return a trace for every case, with the ids of the gold set, and what could not be seen.

    Raises
    ------
    InputError
        The app's store or the corpus does not hold the labelled passages.
    AppUnreachableError
        The app failed on every case.
    """
    config, gold, corpus = context.config, context.gold, context.corpus
    captured, watcher, verified = context.recorded, None, False
    if captured is None:
        watcher = Watcher(
            context.app,
            id_key=config.id_key,
            depth=config.depth,
            input_key=config.input_key,
            labels=labelled_ids(gold.cases),
            timeout=config.app_timeout,
            settings=context.app_config,
        )
        captured, verified = await _watch_app(context, watcher)
        if corpus is None:
            corpus = await watcher.corpus(MAX_LISTED)
    traces = {
        case.id: captured.get(case.id) or Trace(case_id=case.id, unmeasured=_NO_TRACE)
        for case in gold.cases
    }
    traces, corpus, warnings = match_labels(
        gold, traces, corpus, id_key=None if watcher else config.id_key, verified=verified
    )
    if watcher and watcher.id_key != config.id_key:
        warnings.insert(0, Reason(code="id_key_used", key=watcher.id_key))
    k = context_size(config, traces.values())
    warnings = [*_capture_gaps(traces, k), *_shared_memory(gold.cases, traces), *warnings]
    for warning in warnings:
        _log.warning("%s", describe_reason(warning))
    return CaptureResult(traces, corpus, watcher, warnings)


def _shared_memory(cases: Sequence[Case], traces: Mapping[str, Trace]) -> Iterator[Reason]:
    """Cases whose prompt has the question of another case: their answers depend on the others."""
    mixed: list[tuple[str, str]] = []
    for place, case in enumerate(cases):
        trace = traces[case.id]
        if not trace.prompt:
            continue
        history = (message.content for message in (*case.history, *trace.history))
        passages = (passage.text for passage in trace.retrieved)
        own = "\n".join((case.question, *history, *passages))
        for other in cases[max(0, place - _NEIGHBORS) : place + _NEIGHBORS + 1]:
            question = other.question
            if (
                len(question) >= _TELLING_LENGTH
                and question in trace.prompt
                and question not in own
            ):
                mixed.append((case.id, other.id))
                break
    if mixed:
        about = dict(zip(("first", "other"), mixed[0], strict=True))
        yield Reason(code="shared_memory", n=len(mixed), cases=len(cases), **about)


def _capture_gaps(traces: Mapping[str, Trace], k: int) -> Iterator[Reason]:
    """What could not be seen: it is missing from the numbers, and readers must know."""
    failed = [trace.error for trace in traces.values() if trace.error]
    absent = [case_id for case_id, trace in traces.items() if trace.unmeasured == _NO_TRACE]
    unseen = [
        trace.unmeasured
        for trace in traces.values()
        if trace.unmeasured and not trace.error and trace.unmeasured != _NO_TRACE
    ]
    if failed:
        yield Reason(code="app_failed", n=len(failed), cases=len(traces), first=failed[0])
    if absent:
        yield Reason(code="traces_absent", n=len(absent), cases=len(traces), first=absent[0])
    if unseen:
        yield Reason(code="retrieval_unseen", n=len(unseen), cases=len(traces), why=unseen[0])
    merged = [
        trace
        for trace in traces.values()
        if trace.prompted is None
        and len(trace.retrieved) > k
        and sum(not call.nested for call in trace.calls) > 1
    ]
    if merged:
        yield Reason(code="searches_merged", n=len(merged), cases=len(traces), k=k)


async def judge_cases(context: EvaluationContext, traces: Mapping[str, Trace]) -> list[Verdict]:
    """Return the verdicts of every judged metric on every case; none without a judge.

    Raises
    ------
    JudgeUnreachableError
        The judge failed on every case.
    """
    judge, repeats = context.judge, context.config.judge_config.repeats
    if judge is None:
        return []

    verdicts = await map_concurrently(
        context.subjects(traces),
        lambda subject: judge_case(subject, context.metrics, judge, repeats=repeats),
        context.engine.at_once("judge", context.config.concurrency),
        partial(context.tick, "judge"),
        total=len(context.gold.cases),
    )
    flat = [verdict for of_case in verdicts for verdict in of_case]
    failed = [verdict for verdict in flat if verdict.status == "failed"]
    if failed and not judge.not_asked and all(v.status != "scored" for v in flat):
        raise JudgeUnreachableError(
            f"the judge {judge.name} failed on every case; the first time {failed[0].reason}"
        )
    return flat


async def link_cases(
    context: EvaluationContext,
    traces: Mapping[str, Trace],
    verdicts: Sequence[Verdict],
    measured: MissMeasurements,
    corpus: CorpusContext,
) -> tuple[list[Link], list[Reason]]:
    """Return the link of every case (its failure mode, missed passages and claims), and warnings.

    What the corpus is searched for is embedded for all cases at once.
    """
    by_case: dict[str, dict[str, Verdict]] = {case.id: {} for case in context.gold.cases}
    for verdict in verdicts:
        by_case[verdict.case_id][verdict.metric] = verdict
    queries: dict[str, None] = {}
    for case in context.gold.cases:
        if measured.outcomes[case.id].retrieval == "unlabelled":
            given = case, traces[case.id], by_case[case.id], context.k, context.calibration
            evidence = CaseEvidence.from_verdicts(*given)
            queries |= dict.fromkeys(search_queries(evidence, evidence.omitted))
    measured = await corpus.prepare_search(measured, list(queries))
    warnings = []
    if queries and measured.corpus and not measured.nearest:
        warnings = [
            Reason(code="searched_by_words", queries=len(queries), passages=measured.corpus)
        ]

    links = await map_concurrently(
        context.gold.cases,
        lambda case: link_case(
            case,
            traces[case.id],
            by_case[case.id],
            context.k,
            measured=measured,
            judge=context.judge,
            prompts=context.prompts,
            calibration=context.calibration,
        ),
        context.engine.at_once("link", context.config.concurrency),
        partial(context.tick, "link"),
    )
    return links, warnings


async def _watch_app(context: EvaluationContext, watcher: Watcher) -> tuple[dict[str, Trace], bool]:
    """Run the app for every case, and ask its retriever for the ranks of missed passages.

    The second value says whether the app's store is known to hold every labelled passage.
    """
    config, gold = context.config, context.gold
    staging = context.staging if config.spec else None
    saved = staging.traces if staging else {}
    if saved and staging:
        fix = (
            f"remove {staging.folder} to start over"
            if config.overwrite
            else "--overwrite starts over"
        )
        _log.warning("%d traces of the unfinished run are used again; %s", len(saved), fix)
    verified: bool | None = None

    async def capture(case: Case, observe: Callable[[Case], Awaitable[Trace]]) -> Trace:
        nonlocal verified
        if case.id in saved:
            return saved[case.id]
        trace = await observe(case)
        if verified is None:  # before it is saved, so that the same command reports the same error
            verified = await check_gold_ids(watcher, gold, trace)
        if staging and trace.error is None:
            staging.save(trace)
        return trace

    # The first case alone and in this process: it shows the app's store, and a wrong passage id is
    # reported before the other cases run.
    if not watcher.takes_history and (later := [c for c in gold.cases if c.history]):
        raise gold.error(
            later[0].id,
            "history",
            "The app has no place for earlier messages. Give it a parameter 'history', a prompt "
            "with 'chat_history', a state with 'messages', or {history} in the body of its request.",
        )
    first, *other_cases = gold.cases
    trace = await capture(first, lambda case: capture_case(watcher, case, context.k))
    total = len(gold.cases)
    context.tick("app", 1, total)
    spec = AppSpec(
        context.app,
        config.spec,
        context.k,
        config.depth,
        watcher.id_key,
        config.input_key,
        config.app_timeout,
        context.app_config,
    )
    observe_by_engine = context.engine.observe(watcher, spec)
    other_traces = await map_concurrently(
        other_cases,
        lambda case: capture(case, observe_by_engine),
        context.engine.at_once("app", config.concurrency),
        lambda done, _: context.tick("app", done + 1, total),
    )
    traces = [trace, *other_traces]
    # A retriever has neither an answer nor an error, and level 1 alone is measured.
    if not any(t.error is None if t.answer is None else t.answer.strip() for t in traces):
        why = next((t.error for t in traces if t.error), "every answer is empty")
        raise AppUnreachableError(f"the app answered none of {total} questions: {why}")
    return {trace.case_id: trace for trace in traces}, bool(verified)
