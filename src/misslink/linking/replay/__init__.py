"""Replay: re-run cases with other passages and judge the answers again."""

from __future__ import annotations

from misslink.linking.replay.rerun import (
    REPLAY_METRICS,
    Rerunner,
    RerunSettings,
    open_rerunner,
)
from misslink.linking.replay.runner import ReplayResult, forecast_subjects, replay_run

__all__ = [
    "REPLAY_METRICS",
    "ReplayResult",
    "RerunSettings",
    "Rerunner",
    "forecast_subjects",
    "open_rerunner",
    "replay_run",
]
