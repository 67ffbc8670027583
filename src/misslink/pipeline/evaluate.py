"""Evaluate a RAG app: gold set and app -> traces -> rank scores -> verdicts -> links -> run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

from misslink.calibration.labelled_failures import apply_labels
from misslink.engines.protocol import Engine
from misslink.event_loops import run_async
from misslink.garbage_collection import reduced_gc
from misslink.judge.backends.heuristic import HeuristicJudge, open_heuristic
from misslink.judge.checks.dry_run import JudgingForecast, forecast_judging
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.judge_case import judge_case
from misslink.judge.protocol import Ask, Judge, Reply, unwrap_judge
from misslink.linking.owners import link_case
from misslink.metrics.rubric import Rubric
from misslink.pipeline.assembly import assemble_run
from misslink.pipeline.config import EvaluationConfig, EvaluationOptions, Progress
from misslink.pipeline.context import EvaluationContext, open_context
from misslink.pipeline.links import CorpusContext, link_cases, open_corpus_context
from misslink.pipeline.traces import (
    Against,
    CaptureResult,
    capture_traces,
    reuse_traces,
    score_ranks,
)
from misslink.pipeline.verdicts import calibrate_run, judge_cases
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Run, Trace


async def run_pipeline(
    config: EvaluationConfig, saved: Run | None = None, against: Against | None = None
) -> Run:
    """Run all stages of an evaluation and write its run folder.

    With `saved`, a run of the same cases, its traces and missed passages are judged again.
    """
    with reduced_gc():
        async with open_context(config) as opened:
            if opened.judge:
                await opened.judge.check_reachable()
            captured = (
                reuse_traces(opened, saved, against) if saved else await capture_traces(opened)
            )
            context, traces = replace(opened, k=captured.k), captured.traces
            scores = score_ranks(context, captured)
            async with open_corpus_context(context, captured) as corpus:
                # Before the judge is paid, so that an embedding that fails costs nothing.
                measured = await corpus.measure(context.gold.cases, traces, context.k, config.seed)
                verdicts = await judge_cases(context, traces)
                judged = calibrate_run(context, traces, verdicts)
                linked = await link_cases(context, judged, measured, corpus)
            run = assemble_run(context, captured, scores, judged, linked)
            if context.staging:
                context.staging.publish(run, run.html)
    return run


def evaluate(
    app: Any = None,
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None,
    *,
    traces: str | Path | Iterable[Trace | Mapping[str, Any]] | None = None,
    judge: str | Judge | None = "heuristic",
    corpus: str | Path | Sequence[Passage | Mapping[str, Any]] | None = None,
    out: str | Path | None = None,
    k: int | None = None,
    ks: str | Sequence[int] = "1,5,10",
    depth: int = 100,
    concurrency: int = 8,
    cache: str | Path | None = DEFAULT_CACHE,
    id_key: str | None = None,
    input_key: str | None = None,
    app_config: str | Path | Mapping[str, Any] | None = None,
    app_timeout: float | None = None,
    embedding: Any = "app",
    map_method: str = "umap",
    calibration: str | Path | None = None,
    labels: Any = None,
    known_only: bool = False,
    judge_config: JudgeConfig | None = None,
    seed: int = 0,
    overwrite: bool = False,
    only: Sequence[str] = (),
    sample: int | None = None,
    engine: str | Engine = "local",
    ray_address: str | None = None,
    workers: int | None = None,
    metrics: Sequence[str | Rubric] = (),
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
    ks : str or sequence of int
        Cutoffs of recall beside `k`, so that runs of other cutoffs and dashboards have the same ones.
        What the app did not retrieve counts as not found, also beyond its last passage.
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
    map_method : str
        How the report's map of questions and passages is laid out: 'umap' (where it is installed, and
        `out` is given: it takes some 12 s), 'pca', or 'none' for no map.
    calibration : path or None
        A calibration of this judge (`Calibration.read` lists its keys). Corrects the risks for the
        judge's errors and makes verdicts within its uncertain band inconclusive.
    labels : path, sequence of path, pandas frame, iterable of mapping, or None
        Human labels of this run's cases, to calibrate the judge after judging.
    known_only : bool
        Leave out labels of cases that the gold set does not have, instead of refusing them.
    judge_config : JudgeConfig or None
        Address, key, retries, rate and budget of the judge.
    seed : int
        Random seed for bootstrap intervals and for `sample`.
    overwrite : bool
        Replace a run of other inputs in `out`.
    only : sequence of str
        Ids of the cases to evaluate. Empty: all of them.
    sample : int or None
        Evaluate a random sample of this many of these cases; one `seed` draws the same ones. None,
        or more than there are: all of them.
    engine : str or Engine
        ``local`` (this process), ``ray`` (a cluster) or ``batch`` (the provider's batch service).
        The results are the same.
    ray_address : str or None
        Ray cluster, ``auto`` or ``HOST:PORT``. None starts one on this machine.
    workers : int or None
        Number of Ray workers. None: one for each processor.
    metrics : sequence of Rubric or str
        Criteria of your own, judged in the same call; ``rubric:FILE`` reads one from a file.
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

    Examples
    --------
    >>> import misslink
    >>> run = misslink.evaluate(chain, "gold.jsonl", judge="openai:MODEL")  # doctest: +SKIP
    >>> run.metrics["recall@5"].value  # doctest: +SKIP
    0.71
    """
    config = EvaluationConfig(**locals())
    return apply_labels(run_async(lambda: run_pipeline(config)))


async def evaluate_async(
    app: Any = None,
    goldset: str | Path | Iterable[Case | Mapping[str, Any]] | None = None,
    **options: Unpack[EvaluationOptions],
) -> Run:
    """Evaluate a RAG app on the running event loop.

    Parameters
    ----------
    app, goldset, options
        As of `evaluate`.

    Returns
    -------
    Run

    Raises
    ------
    InputError, JudgeUnreachableError, AppUnreachableError
        As of `evaluate`.

    Examples
    --------
    >>> import misslink
    >>> run = await misslink.evaluate_async(chain, "gold.jsonl")  # doctest: +SKIP
    """
    return apply_labels(await run_pipeline(EvaluationConfig(app=app, goldset=goldset, **options)))


async def forecast_async(**options: Any) -> JudgingForecast:
    """Forecast the judge's calls of `evaluate` with these parameters, and their cost; make none.

    The app runs, because the judge's questions depend on its answers. Its traces are saved beside
    ``out``, so that the evaluation itself does not run it again. No key is needed.
    """
    async with open_context(EvaluationConfig(**options)) as opened:
        captured = await capture_traces(opened)
        context = replace(opened, k=captured.k)
        asks = await _claim_need_asks(context, captured)
        subjects = context.subjects(captured.traces)
        return await forecast_judging(subjects, context.metrics, context.judge, asks)


class _AskRecorder:
    """A judge that records its questions and answers nothing."""

    name = "forecast"
    identity: Mapping[str, Any] = MappingProxyType({})

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    async def ask(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        return Reply.nothing("a forecast makes no calls")

    async def close(self) -> None: ...


async def _claim_need_asks(context: EvaluationContext, captured: CaptureResult) -> list[Ask]:
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
