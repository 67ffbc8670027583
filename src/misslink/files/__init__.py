"""Files in and out: gold sets, traces, run folders."""

from misslink.files.goldset import GoldSet, read_goldset
from misslink.files.runfolder import Staging, read_run
from misslink.files.traces import match_traces, read_traces

__all__ = ["GoldSet", "Staging", "match_traces", "read_goldset", "read_run", "read_traces"]
