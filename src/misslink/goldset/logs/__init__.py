"""Build gold sets from the logs of a live app."""

from __future__ import annotations

from misslink.goldset.logs.masking import Masker, parse_mask_patterns, read_names
from misslink.goldset.logs.sampling import LogSample, SampleShares, sample_log

__all__ = [
    "LogSample",
    "Masker",
    "SampleShares",
    "parse_mask_patterns",
    "read_names",
    "sample_log",
]
