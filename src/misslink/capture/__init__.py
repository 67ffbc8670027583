"""Run an app on the gold set and record its searches, prompts, and answers."""

from __future__ import annotations

from misslink.capture.app import load_app
from misslink.capture.capture_warnings import check_gold_ids, warn_capture_gaps
from misslink.capture.watcher import Watcher

__all__ = ["Watcher", "check_gold_ids", "load_app", "warn_capture_gaps"]
