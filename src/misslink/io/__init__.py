"""Read and write gold sets, traces, run folders and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.io.goldset import GoldSet, read_goldset
    from misslink.io.run_folder import (
        RunStaging,
        add_to_run,
        is_run_folder,
        read_complete_run,
        read_run,
    )

__all__ = [
    "GoldSet",
    "RunStaging",
    "add_to_run",
    "is_run_folder",
    "read_complete_run",
    "read_goldset",
    "read_run",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the command line starts without the data models."""
    if name not in __all__:
        raise AttributeError(f"module 'misslink.io' has no attribute '{name}'")
    import importlib

    home = "goldset" if name in ("GoldSet", "read_goldset") else "run_folder"
    return getattr(importlib.import_module(f"misslink.io.{home}"), name)
