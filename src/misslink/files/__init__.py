"""Files in and out: gold sets, traces, run folders."""

from misslink.files.documents import add_to_run
from misslink.files.goldset import GoldSet, read_goldset
from misslink.files.reading import read_run, read_whole
from misslink.files.runfolder import Staging, holds_run
from misslink.files.traces import match_traces, read_traces

__all__ = [
    "GoldSet",
    "Staging",
    "add_to_run",
    "holds_run",
    "match_traces",
    "read_goldset",
    "read_run",
    "read_traces",
    "read_whole",
]
