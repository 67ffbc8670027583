"""The evaluation pipeline, from gold set and app to run folder."""

from __future__ import annotations

from misslink.pipeline.evaluate import evaluate, evaluate_async, forecast_async, run_async
from misslink.pipeline.stages import Progress

__all__ = ["Progress", "evaluate", "evaluate_async", "forecast_async", "run_async"]
