"""How an app is watched: who it asked, what came back, what reached the model, what it said."""

from __future__ import annotations

from misslink.capture.corpus import check_ids
from misslink.capture.gaps import warn_of_gaps
from misslink.capture.loading import load_app
from misslink.capture.watcher import Watcher

__all__ = ["Watcher", "check_ids", "load_app", "warn_of_gaps"]
