"""Build gold sets from the logs of a live app."""

from __future__ import annotations

from misslink.goldset.logs.masking import Masker, parse_mask_patterns, read_names
from misslink.goldset.logs.reader import parse_columns, read_logs
from misslink.goldset.logs.requests import LogRequest, RequestLog
from misslink.goldset.logs.sampling import LogSample, SampleShares, sample_log

__all__ = [
    "LogRequest",
    "LogSample",
    "Masker",
    "RequestLog",
    "SampleShares",
    "parse_columns",
    "parse_mask_patterns",
    "read_logs",
    "read_names",
    "sample_log",
]
