"""Forecast the judge's calls of an evaluation, and their cost, without making any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from misslink.judge.backends.heuristic import HeuristicJudge, open_heuristic
from misslink.judge.checks.dry_run import JudgingForecast, forecast_judging
from misslink.judge.judge_case import judge_case
from misslink.judge.protocol import Ask, Reply, unwrap_judge
from misslink.linking.attribution_rules import link_case
from misslink.pipeline.context import EvaluationContext, open_context
from misslink.pipeline.evaluate import config_from
from misslink.pipeline.links import CorpusContext
from misslink.pipeline.traces import CaptureResult, capture_traces
from misslink.registry import judged_metrics


async def forecast_async(*args: Any, **options: Any) -> JudgingForecast:
    """Forecast the judge's calls of `evaluate` with these parameters, and their cost; make none.

    The app runs, because the judge's questions depend on its answers. Its traces are saved beside
    ``out``, so that the evaluation itself does not run it again.
    """
    async with open_context(config_from(*args, **options)) as opened:
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
