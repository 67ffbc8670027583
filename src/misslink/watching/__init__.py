"""A live app watched: canary questions, alarms on change, traffic between two variants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.watching.live.assignment import Experiment, Ramp
    from misslink.watching.live.interleaving import Interleaved
    from misslink.watching.live.log import read_live
    from misslink.watching.live.router import Router
    from misslink.watching.live.writer import LiveLog

__all__ = ["Experiment", "Interleaved", "LiveLog", "Ramp", "Router", "read_live"]

_HOME = {
    "Experiment": "live.assignment",
    "Interleaved": "live.interleaving",
    "LiveLog": "live.writer",
    "Ramp": "live.assignment",
    "Router": "live.router",
    "read_live": "live.log",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: canaries need no router, and no LangChain."""
    if name not in _HOME:
        raise AttributeError(f"module 'misslink.watching' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"misslink.watching.{_HOME[name]}"), name)
