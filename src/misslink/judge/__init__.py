"""Judges: what an outside judge needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.judge.backends.custom import EntailmentJudge
    from misslink.judge.protocol import Ask, Judge, JudgeInfo, Reply

__all__ = ["Ask", "EntailmentJudge", "Judge", "JudgeInfo", "Reply"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the command line's options need no judge."""
    if name not in __all__:
        raise AttributeError(f"module 'misslink.judge' has no attribute '{name}'")
    import importlib

    home = "backends.custom" if name == "EntailmentJudge" else "protocol"
    return getattr(importlib.import_module(f"misslink.judge.{home}"), name)
