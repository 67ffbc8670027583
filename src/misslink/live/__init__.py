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

_MODULES = ("assignment", "log", "log_store", "requests", "router", "interleaving")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: canaries need no router, and no LangChain."""
    if name not in __all__:
        raise AttributeError(f"module 'misslink.live' has no attribute '{name}'")
    import importlib

    modules = (importlib.import_module(f"misslink.live.{module}") for module in _MODULES)
    return next(getattr(module, name) for module in modules if hasattr(module, name))
