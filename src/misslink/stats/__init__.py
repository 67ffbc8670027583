"""Intervals and tests: every printed rate or mean is an Estimate computed here."""

from __future__ import annotations

from misslink.stats.intervals import mean, proportion
from misslink.stats.paired_tests import holm, paired_difference

__all__ = ["holm", "mean", "paired_difference", "proportion"]
