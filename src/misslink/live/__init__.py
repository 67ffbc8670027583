"""Live traffic between variants of an app: routing, shadowing, interleaving, and reports of experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.live.assignment import Experiment, Ramp
    from misslink.live.interleaving import Interleaved
    from misslink.live.log import read_live
    from misslink.live.log_store import LiveLog
    from misslink.live.requests import RequestOptions
    from misslink.live.router import Router, ShadowOptions

__all__ = [
    "Experiment",
    "Interleaved",
    "LiveLog",
    "Ramp",
    "RequestOptions",
    "Router",
    "ShadowOptions",
    "read_live",
]


_HOME = {
    "Experiment": "assignment",
    "Interleaved": "interleaving",
    "LiveLog": "log_store",
    "Ramp": "assignment",
    "RequestOptions": "requests",
    "Router": "router",
    "ShadowOptions": "router",
    "read_live": "log",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: canaries need no router, and no LangChain."""
    if name not in _HOME:
        raise AttributeError(f"module 'misslink.live' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"misslink.live.{_HOME[name]}"), name)
