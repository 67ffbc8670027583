"""Run an app on the gold set and record its searches, prompts, and answers."""

from __future__ import annotations

from misslink.capture.app import load_app
from misslink.capture.empty_prompts import settle_prompts
from misslink.capture.label_matching import check_gold_ids, labelled_ids, match_labels
from misslink.capture.watcher import Watcher, record_retrieval

__all__ = [
    "Watcher",
    "check_gold_ids",
    "labelled_ids",
    "load_app",
    "match_labels",
    "record_retrieval",
    "settle_prompts",
]
