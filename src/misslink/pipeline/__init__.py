"""The evaluation pipeline, from gold set and app to run folder."""

from __future__ import annotations

from misslink.pipeline.context import Progress
from misslink.pipeline.evaluate import evaluate, evaluate_async
from misslink.pipeline.forecast import forecast_async

__all__ = ["Progress", "evaluate", "evaluate_async", "forecast_async"]
