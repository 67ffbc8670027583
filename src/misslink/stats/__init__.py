"""Intervals: every rate and mean that is printed comes from here, as an Estimate."""

from __future__ import annotations

from misslink.stats.attributable import attributable_fraction
from misslink.stats.means import mean
from misslink.stats.proportions import proportion
from misslink.stats.risks import risk_difference, risk_ratio

__all__ = ["attributable_fraction", "mean", "proportion", "risk_difference", "risk_ratio"]
