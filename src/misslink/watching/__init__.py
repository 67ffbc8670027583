"""A live app watched: canary questions, alarms on change, traffic between two variants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.watching.assignment import Experiment, Ramp
    from misslink.watching.interleaving import Interleaved
    from misslink.watching.live_log import read_live
    from misslink.watching.live_writer import LiveLog
    from misslink.watching.router import Router

__all__ = ["Experiment", "Interleaved", "LiveLog", "Ramp", "Router", "read_live"]

_HOME = {
    "Experiment": "assignment",
    "Interleaved": "interleaving",
    "LiveLog": "live_writer",
    "Ramp": "assignment",
    "Router": "router",
    "read_live": "live_log",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: canaries need no router, and no LangChain."""
    if name not in _HOME:
        raise AttributeError(f"module 'misslink.watching' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"misslink.watching.{_HOME[name]}"), name)
