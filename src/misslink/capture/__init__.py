"""How an app is watched: who it asked, what came back, what reached the model, what it said."""

from __future__ import annotations

from misslink.capture.loading import load_app, source_of
from misslink.capture.watcher import Watcher

__all__ = ["Watcher", "load_app", "source_of"]
