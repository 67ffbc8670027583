"""The straight line, and what it would cost."""

from misslink.pipeline.line import evaluate, evaluate_async, in_a_loop
from misslink.pipeline.options import LEDGER, Options, Progress
from misslink.pipeline.preview import forecast_async

__all__ = [
    "LEDGER",
    "Options",
    "Progress",
    "evaluate",
    "evaluate_async",
    "forecast_async",
    "in_a_loop",
]
