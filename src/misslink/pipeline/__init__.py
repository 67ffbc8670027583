"""The evaluation pipeline, from gold set and app to run folder."""

from __future__ import annotations

from misslink.pipeline.config import EvaluationConfig, Progress
from misslink.pipeline.evaluate import evaluate, evaluate_async, forecast_async, run_async

__all__ = [
    "EvaluationConfig",
    "Progress",
    "evaluate",
    "evaluate_async",
    "forecast_async",
    "run_async",
]
