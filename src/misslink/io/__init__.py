"""Read and write gold sets, traces, run folders and labels."""

from __future__ import annotations

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
