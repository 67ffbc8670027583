"""Intervals and tests: every rate and mean that is printed comes from here, as an Estimate."""

from __future__ import annotations

from misslink.stats.agreement import krippendorff_alpha, percent_agreement
from misslink.stats.attributable import attributable_fraction
from misslink.stats.auroc import auroc
from misslink.stats.average_precision import average_precision
from misslink.stats.confusion import Confusion, ErrorRates, confusion
from misslink.stats.corrected import Corrected, corrected
from misslink.stats.heterogeneity import heterogeneity
from misslink.stats.kappa import cohen_kappa, cross_table, gwet_ac1
from misslink.stats.mantel_haenszel import Pooled, mantel_haenszel
from misslink.stats.means import mean
from misslink.stats.paired import Paired, holm, paired_difference
from misslink.stats.prediction_powered import PredictionPowered, prediction_powered
from misslink.stats.proportions import proportion
from misslink.stats.rank_correlation import kendall_tau, spearman
from misslink.stats.recalibration import Isotonic, Platt, cross_fitted, fit_isotonic, fit_platt
from misslink.stats.reliability import Bin, brier, calibration_error, reliability_bins
from misslink.stats.risks import risk_difference, risk_ratio
from misslink.stats.rogan_gladen import corrected_difference, rogan_gladen
from misslink.stats.sample_size import labels_for_kappa, labels_for_share, share_width, width_curve
from misslink.stats.thresholds import Nested, best_threshold, nested_threshold
from misslink.stats.trend import Trend, trend

__all__ = [
    "Bin",
    "Confusion",
    "Corrected",
    "ErrorRates",
    "Isotonic",
    "Nested",
    "Paired",
    "Platt",
    "Pooled",
    "PredictionPowered",
    "Trend",
    "attributable_fraction",
    "auroc",
    "average_precision",
    "best_threshold",
    "brier",
    "calibration_error",
    "cohen_kappa",
    "confusion",
    "corrected",
    "corrected_difference",
    "cross_fitted",
    "cross_table",
    "fit_isotonic",
    "fit_platt",
    "gwet_ac1",
    "heterogeneity",
    "holm",
    "kendall_tau",
    "krippendorff_alpha",
    "labels_for_kappa",
    "labels_for_share",
    "mantel_haenszel",
    "mean",
    "nested_threshold",
    "paired_difference",
    "percent_agreement",
    "prediction_powered",
    "proportion",
    "reliability_bins",
    "risk_difference",
    "risk_ratio",
    "rogan_gladen",
    "share_width",
    "spearman",
    "trend",
    "width_curve",
]
