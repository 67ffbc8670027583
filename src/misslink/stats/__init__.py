"""Intervals and tests: every rate and mean that is printed comes from here, as an Estimate."""

from __future__ import annotations

from misslink.stats.attributable import attributable_fraction
from misslink.stats.corrected import Corrected, corrected
from misslink.stats.heterogeneity import heterogeneity
from misslink.stats.mantel_haenszel import Pooled, mantel_haenszel
from misslink.stats.means import mean
from misslink.stats.paired import Paired, holm, paired_difference
from misslink.stats.proportions import proportion
from misslink.stats.risks import risk_difference, risk_ratio
from misslink.stats.trend import Trend, trend

__all__ = [
    "Corrected",
    "Paired",
    "Pooled",
    "Trend",
    "attributable_fraction",
    "corrected",
    "heterogeneity",
    "holm",
    "mantel_haenszel",
    "mean",
    "paired_difference",
    "proportion",
    "risk_difference",
    "risk_ratio",
    "trend",
]
