"""Evaluate a RAG app: gold set and app -> traces -> rank scores -> verdicts -> links -> run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from misslink.calibration.stored_calibration import corrected_shares, own_calibrations
from misslink.engines.local import reduced_gc
from misslink.engines.protocol import Engine
from misslink.errors import InputError
from misslink.io.manifest import build_manifest, display_path
from misslink.io.storage import as_url, redact_url
from misslink.judge.backends.custom import is_custom_judge
from misslink.judge.backends.heuristic import HeuristicJudge, open_heuristic
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import judge_case
from misslink.judge.middleware.cache import DEFAULT_CACHE
from misslink.judge.protocol import Ask, Judge, Reply, judge_info, unwrap_judge
from misslink.linking.association import association_warnings, summarize_association
from misslink.linking.attribution_rules import link_case
from misslink.linking.findings import count_errors
from misslink.linking.miss_measurement import word_questions
from misslink.pipeline import stages
from misslink.pipeline.artifact_reuse import reuse_calibrations, reuse_results
from misslink.pipeline.calibration import (
    calibrate_run,
    measure_error_by_exposure,
    score_drift,
)
from misslink.pipeline.diagnosis import CorpusContext, diagnosis_document, open_corpus_context
from misslink.pipeline.stages import EvaluationContext, Progress
from misslink.pipeline.summary import (
    conversation_estimate,
    judge_repeatability,
    level_estimates,
    lower_is_better,
    slice_estimates,
    verdict_coverage,
)
from misslink.registry import judged_metrics
from misslink.render.reasons import describe_reason
from misslink.retrieval import mean_scores, score_cases, unmatched_reason
from misslink.timeouts import MAIN_TASK, DaemonPool
from misslink.types import Case, Passage, Reason, Run, Trace

if TYPE_CHECKING:
    from misslink.judge.checks.dry_run import JudgingForecast


Result = TypeVar("Result")

_NO_USAGE = {
    **dict.fromkeys(("calls", "from_cache", "not_asked", "prompt_tokens", "completion_tokens"), 0),
    "cost": None,
}


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The options of an evaluation; `misslink.evaluate` documents each.

    Raises
    ------
    InputError
        The options contradict each other, or a number is out of range.
    """

    app: Any
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None
    judge: str | Judge | None
    corpus: str | Path | Sequence[Passage | Mapping[str, Any]] | None
    out: str | Path | None
    k: int | None
    depth: int
    concurrency: int
    cache: str | Path | None
    id_key: str | None
    input_key: str | None
    app_config: str | Path | Mapping[str, Any] | None
    app_timeout: float | None
    embedding: Any
    calibration: str | Path | None
    labels: Any
    known_only: bool
    terms: JudgeConfig | None
    seed: int
    overwrite: bool
    only: Sequence[str]
    engine: str | Engine
    ray_address: str | None
    workers: int | None
    progress: Progress | None
    command: str | None

    def __post_init__(self) -> None:
        if (self.app is None) == (self.traces is None):
            raise InputError("give an app, such as app.py:chain, or --traces FILE, and not both")
        if self.goldset is None and self.traces is None:
            raise InputError("give a gold set: a file with one JSON object a line")
        if self.labels is not None and self.calibration is not None:
            raise InputError(
                "give --calibration, made before, or --labels, to calibrate this run's judge on; "
                "not both"
            )
        if self.labels is not None and (self.judge is None or self.judge == "none"):
            raise InputError("labels calibrate a judge, and there is none. Name one with --judge")
        counts = (1 if self.k is None else self.k, self.depth, self.concurrency)
        if any(not isinstance(count, int) or count < 1 for count in counts):
            raise InputError("k, depth and concurrency must be whole numbers of 1 or more")
        if not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"--seed is {self.seed}; give a whole number of 0 or more")
        if self.app_timeout is not None and not self.app_timeout > 0:
            raise InputError(f"--app-timeout is {self.app_timeout}; give seconds, more than 0")
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise InputError(f"--workers is {self.workers}; it must be 1 or more")

    @property
    def judge_config(self) -> JudgeConfig:
        """`terms`, or the defaults."""
        return self.terms or JudgeConfig()

    @property
    def spec(self) -> str | None:
        """Where the app is imported from; None for an object and for traces."""
        return self.app if isinstance(self.app, str) else None

    @property
    def app_name(self) -> str | None:
        """The spec or the qualified name of the app; None for traces."""
        return self.app if self.app is None or self.spec else _qualified_name(self.app)

    @property
    def embedding_name(self) -> str:
        """The spec or the qualified name of the embedding that measures misses."""
        if isinstance(self.embedding, str):
            return self.embedding
        return _qualified_name(type(self.embedding))


def _qualified_name(value: Any) -> str:
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


def evaluate(
    app: Any = None,
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None,
    *,
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = None,
    judge: str | Judge | None = "heuristic",
    corpus: str | Path | Sequence[Passage | Mapping[str, Any]] | None = None,
    out: str | Path | None = None,
    k: int | None = None,
    depth: int = 100,
    concurrency: int = 8,
    cache: str | Path | None = DEFAULT_CACHE,
    id_key: str | None = None,
    input_key: str | None = None,
    app_config: str | Path | Mapping[str, Any] | None = None,
    app_timeout: float | None = None,
    embedding: Any = "app",
    calibration: str | Path | None = None,
    labels: Any = None,
    known_only: bool = False,
    terms: JudgeConfig | None = None,
    seed: int = 0,
    overwrite: bool = False,
    only: Sequence[str] = (),
    engine: str | Engine = "local",
    ray_address: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    command: str | None = None,
) -> Run:
    """Evaluate a RAG app, or recorded traces of one, and return the run.

    Works in scripts and in notebook cells. Inside async code use `evaluate_async`, which takes the
    same parameters.

    Parameters
    ----------
    app : Runnable, retriever, callable, or str
        The app under test, or where to import it from: ``package.module:name``, ``file.py:name``.
    goldset : path, data frame, or iterable of Case or mapping
        Questions with labelled passages and reference answers.
        With `traces` it is optional: cases are made from what the traces say.
    traces : path, data frame, or iterable of Trace or mapping
        Recorded traces, instead of `app`: misslink's own, OpenTelemetry spans, exports of Phoenix,
        Langfuse and LangSmith, samples of ragas and deepeval, TREC runs or a table
        (`misslink.io.trace_formats.read_recording` says more).
    judge : str, Judge or None
        ``heuristic``, ``openai:MODEL``, ``langchain:PROVIDER:MODEL``, ``llamacpp:FILE.gguf``,
        ``cascade:heuristic,openai:MODEL``, ``file.py:name``, a judge object, or ``none`` for
        rank metrics alone.
    corpus : path, sequence of Passage or dict, or None
        The passages of the app's index: JSON Lines, a folder, CSV or a Chroma store. None: those that
        the app's vector store lists. With them it is known what is not indexed.
    out : path or None
        Run folder to write, with ``report.html`` in it. None writes no run folder.
    k : int or None
        Cutoff of the rank metrics, and of the context where the prompt was not seen. None: the number
        of passages that the app puts in its prompt, the most frequent one; 5 if no prompt was seen.
    depth : int
        Number of passages to request from the retriever, to find the rank of missed passages.
    concurrency : int
        Cases and judge calls in progress at once.
    cache : path or None
        Response cache of the judge. None: no cache.
    id_key : str or None
        Metadata key that holds a passage's id; ``Document.id`` by default.
    input_key : str or None
        Key of the app's input for the question; most apps need none.
    app_config : path, mapping or None
        Settings for every call, such as a tenant or user (YAML, JSON or TOML). A LangChain app takes
        them as its config, ``{"configurable": {"tenant": "acme"}}``, and under ``inputs`` further
        fields of its input; a function as keyword arguments.
    app_timeout : float or None
        Seconds that the app may take for a case, which is then an error of the app.
    embedding : str or Embeddings
        Embedding for measuring misses: 'app' (that of the app's vector store), 'minilm',
        'PROVIDER:MODEL', 'file.py:name', a LangChain embedding, or 'none'.
    calibration : path or None
        A calibration of this judge (`Calibration.read` lists its keys). Corrects the risks for the
        judge's errors and makes verdicts within its uncertain band inconclusive.
    labels : path, sequence of path, pandas frame, iterable of mapping, or None
        Human labels of this run's cases, to calibrate the judge after judging.
    known_only : bool
        Leave out labels of cases that the gold set does not have, instead of refusing them.
    terms : JudgeConfig or None
        Address, key, retries, rate and budget of the judge.
    seed : int
        Random seed for bootstrap intervals.
    overwrite : bool
        Replace a run of other inputs in `out`.
    only : sequence of str
        Ids of the cases to evaluate. Empty: all of them.
    engine : str or Engine
        ``local`` (this process), ``ray`` (a cluster) or ``batch`` (the provider's batch service).
        The results are the same.
    ray_address : str or None
        Ray cluster, ``auto`` or ``HOST:PORT``. None starts one on this machine.
    workers : int or None
        Number of Ray workers. None: one for each processor.
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
        An argument is wrong. No judge call was made.
    JudgeUnreachableError, AppUnreachableError
        Replies are in the cache and traces beside `out`; the same call resumes.
    """
    config = EvaluationConfig(**locals())
    return run_async(lambda: run_pipeline(config))


async def evaluate_async(*args: Any, **options: Any) -> Run:
    """Evaluate a RAG app as `evaluate` does, with the same parameters, inside async code."""
    return await run_pipeline(_config(*args, **options))


def _config(*args: Any, **options: Any) -> EvaluationConfig:
    call = _SIGNATURE.bind(*args, **options)
    call.apply_defaults()
    return EvaluationConfig(**call.arguments)


_SIGNATURE = inspect.signature(evaluate)
# Documentation tools and editors show the parameters of `evaluate`.
setattr(evaluate_async, "__signature__", _SIGNATURE)  # noqa: B010 (mypy)


async def run_pipeline(config: EvaluationConfig) -> Run:
    """Run all stages of an evaluation and write its run folder."""
    seed = config.seed
    with reduced_gc():
        async with stages.open_context(config) as opened:
            staging, judge, cases = opened.staging, opened.judge, opened.gold.cases
            folder = staging.out if staging and as_url(str(config.out)) else config.out
            if judge:
                await judge.check_reachable()
            captured = await stages.capture_traces(opened)
            traces = captured.traces
            k = stages.context_size(config, traces.values())
            context = replace(opened, k=k)
            unmatched = unmatched_reason(traces.values())
            judged_at_k = f"judged@{k}"  # about the labels, not the app: never compared or gated
            cutoffs = [f"{metric}@{k}" for metric in ("hit", "recall", "precision", "ndcg")]
            scores = score_cases(cases, list(traces.values()), ["mrr", *cutoffs, judged_at_k])
            context.tick("level 1", len(cases), len(cases))
            judged_shares = scores.pop(judged_at_k)
            async with open_corpus_context(context, captured) as corpus:
                # Before the judge is paid, so that an embedding that fails costs nothing.
                measured = await corpus.measure(cases, traces, k, seed)
                verdicts = await stages.judge_cases(context, traces)
                worded = word_questions(cases, verdicts)
                if worded != cases:
                    measured = await corpus.measure(worded, traces, k, seed)
                calibrated = calibrate_run(context, traces, verdicts)
                calibration = calibrated.calibration
                unlinked = reuse_calibrations(calibrated.run, folder)
                linked_context = replace(context, calibration=calibration)
                links, search_notes = await stages.link_cases(
                    linked_context, traces, verdicts, measured, corpus
                )
                embedding_map = await corpus.map(worded, traces, links, seed)
            unlinked = measure_error_by_exposure(unlinked, links, seed)
            association = summarize_association(
                unlinked,
                links,
                own=own_calibrations(unlinked),
                seed=seed,
                corpus=measured.corpus is not None,
            )
            level_of = {metric.name: metric.level for metric in context.metrics}
            about = {
                "goldset": display_path(context.gold.name),
                "traces": display_path(redact_url(config.traces))
                if isinstance(config.traces, str | Path)
                else None,
                **context.settings,
                "k": k,
                "app_config": display_path(config.app_config)
                if isinstance(config.app_config, str | Path)
                else None,
                "id_key": captured.watcher.id_key if captured.watcher else config.id_key,
                "judge_note": judge_info(judge).note if judge else None,
                "judging": {**judge.about(), "spec": _file_judge(config.judge)} if judge else None,
                "calibration": calibration and calibration.model_dump(mode="json"),
                "engine": context.engine.name,
                "calibrated_by": calibrated.source,
                "labels": context.labels and display_path(context.labels.name),
                "work": context.work,
                "unfinished": sum(verdict.status == "failed" for verdict in verdicts)
                + (judge.not_asked if judge else 0),
            }
            levels = level_estimates(scores, verdicts, level_of, unmatched, seed=seed)
            levels["answer"] |= conversation_estimate(cases, links)
            run = Run(
                cases=cases,
                traces=unlinked.traces,
                verdicts=unlinked.verdicts,
                calibration=unlinked.calibration,
                manifest=build_manifest(about, context.inputs, verdicts, config.command),
                links=tuple(links),
                map=embedding_map,
                summary={
                    "run": redact_url(config.out) if config.out else None,
                    "cases": len(cases),
                    "judge": context.settings["judge"],
                    "k": k,
                    **levels,
                    "errors": count_errors(unlinked.traces, verdicts),
                    "judged": {
                        judged_at_k: mean_scores(
                            judged_shares.values(), unmatched, seed=seed
                        ).model_dump()
                    },
                    "corrected": {
                        name: share.document() for name, share in corrected_shares(unlinked).items()
                    },
                    "drift": score_drift(unlinked),
                    "warnings": [
                        *_warnings(
                            [*captured.warnings, *search_notes],
                            about["judge_note"],
                            calibrated.notes,
                        ),
                        *association_warnings(association),
                    ],
                    **association,
                    "diagnosis": diagnosis_document(
                        unlinked, links, measured, corpus.passages, scores, k, seed
                    ),
                    "lower_is_better": lower_is_better(context.metrics),
                    "coverage": verdict_coverage(verdicts, level_of),
                    "repeats": judge_repeatability(verdicts, level_of, seed=seed),
                    "cascade": judge.cascade() if judge else {},
                    "usage": judge.usage() if judge else _NO_USAGE,
                    "slices": slice_estimates(cases, scores, verdicts, k=k, seed=seed),
                },
            )
            run = reuse_results(run, folder)
            summary = {**run.summary, "headline": run.headline}
            run = run.model_copy(update={"summary": summary})
            if staging:
                staging.publish(run, run.html)
    return run


def _file_judge(judge: object) -> str | None:
    """Where a judge of the user's own is imported from: its name does not say."""
    return display_path(judge) if isinstance(judge, str) and is_custom_judge(judge) else None


def _warnings(
    captured: Sequence[Reason], judge_note: str | None, label_notes: Sequence[str]
) -> list[dict[str, str]]:
    """What a reader of any output must know, each with a code."""
    sentences = [(reason.code, describe_reason(reason)) for reason in captured]
    messages = [(code, f"{text[:1].upper()}{text[1:]}.") for code, text in sentences]
    messages += [("judge", f"Judge: {judge_note}.")] if judge_note else []
    messages += [("labels", f"Labels: {note}") for note in label_notes]
    return [{"code": code, "message": message} for code, message in messages]


def run_async(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine to its end, also where an event loop is already running (notebooks)."""
    # Not the task's own result: when a loop ends, Python's signal module formats the repr of its
    # main task, result included, which takes seconds for a run of 10,000 cases.
    results: list[Result] = []

    async def main() -> None:
        if task := asyncio.current_task():
            task.set_name(MAIN_TASK)
        # Threads that no exit waits for: the app may hang in one.
        asyncio.get_running_loop().set_default_executor(DaemonPool())
        results.append(await work())

    loop = None
    with contextlib.suppress(RuntimeError):
        loop = asyncio.get_running_loop()
    if loop is None:
        asyncio.run(main())
    else:
        variables = contextvars.copy_context()
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(variables.run, asyncio.run, main()).result()
    return results[0]


async def forecast_async(*args: Any, **options: Any) -> JudgingForecast:
    """Forecast the judge's calls of `evaluate` with these parameters, and their cost; make none.

    The app runs, because the judge's questions depend on its answers. Its traces are saved beside
    ``out``, so that the evaluation itself does not run it again.
    """
    from misslink.judge.checks.dry_run import forecast_judging

    async with stages.open_context(_config(*args, **options)) as opened:
        captured = await stages.capture_traces(opened)
        k = stages.context_size(opened.config, captured.traces.values())
        context = replace(opened, k=k)
        asks = await _claim_need_asks(context, captured)
        subjects = context.subjects(captured.traces)
        return await forecast_judging(subjects, context.metrics, context.judge, asks)


class _AskRecorder:
    """A judge that remembers what it is asked and answers nothing."""

    name = "forecast"
    identity: Mapping[str, Any] = MappingProxyType({})

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    async def ask(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        return Reply.nothing("a forecast makes no calls")

    async def close(self) -> None: ...


async def _claim_need_asks(context: EvaluationContext, captured: stages.CaptureResult) -> list[Ask]:
    """What linking would ask, if the heuristic judge's verdicts were the judge's own."""
    if context.judge is None or isinstance(unwrap_judge(context.judge), HeuristicJudge):
        return []
    heuristic, recorder = open_heuristic(), _AskRecorder()
    read_by_linking = ("faithfulness", "correctness", "completeness", "abstention")
    metrics = [judged_metrics.get(name) for name in read_by_linking]
    # No embedding: it measures ranks, which change no question.
    corpus = CorpusContext(passages=captured.corpus)
    measured = await corpus.measure(
        context.gold.cases, captured.traces, context.k, context.config.seed
    )
    for subject in context.subjects(captured.traces):
        verdicts = await judge_case(subject, metrics, heuristic)
        await link_case(
            subject.case,
            subject.trace,
            {verdict.metric: verdict for verdict in verdicts},
            context.k,
            measured=measured,
            judge=recorder,
            prompts=context.prompts,
        )
    return recorder.asks
