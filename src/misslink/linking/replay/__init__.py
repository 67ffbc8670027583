"""Replay: re-run cases with other passages and judge the answers again."""

from __future__ import annotations

from misslink.linking.replay.rerun import (
    REPLAY_METRICS,
    Rerunner,
    RerunSettings,
    judge_identity_of_run,
    open_rerunner,
)
from misslink.linking.replay.runner import ReplayResult, replay_run

__all__ = [
    "REPLAY_METRICS",
    "ReplayResult",
    "RerunSettings",
    "Rerunner",
    "judge_identity_of_run",
    "open_rerunner",
    "replay_run",
]
