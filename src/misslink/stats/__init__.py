"""Intervals and tests: every printed rate or mean is an Estimate computed here."""

from __future__ import annotations

from misslink.stats.agreement import (
    cohen_kappa,
    cross_table,
    gwet_ac1,
    kendall_tau,
    krippendorff_alpha,
    percent_agreement,
    spearman,
)
from misslink.stats.association import (
    CorrectedTable,
    TrendTest,
    attributable_fraction,
    correct_association,
    risk_difference,
    risk_ratio,
    trend_test,
)
from misslink.stats.classification import (
    ConfusionMatrix,
    ErrorRates,
    NestedThreshold,
    auroc,
    average_precision,
    best_threshold,
    confusion_matrix,
    nested_threshold,
)
from misslink.stats.intervals import mean, proportion
from misslink.stats.paired_tests import PairedComparison, holm, paired_difference
from misslink.stats.prevalence import (
    PredictionPoweredEstimate,
    corrected_difference,
    prediction_powered,
    rogan_gladen,
)
from misslink.stats.probability_calibration import (
    CalibrationBin,
    IsotonicCurve,
    PlattCurve,
    brier_score,
    calibration_error,
    cross_fitted_probabilities,
    fit_isotonic,
    fit_platt,
    reliability_bins,
)
from misslink.stats.sample_size import labels_for_kappa, labels_for_share, share_width, width_curve
from misslink.stats.stratified_association import (
    PooledAssociation,
    heterogeneity_test,
    mantel_haenszel,
)

__all__ = [
    "CalibrationBin",
    "ConfusionMatrix",
    "CorrectedTable",
    "ErrorRates",
    "IsotonicCurve",
    "NestedThreshold",
    "PairedComparison",
    "PlattCurve",
    "PooledAssociation",
    "PredictionPoweredEstimate",
    "TrendTest",
    "attributable_fraction",
    "auroc",
    "average_precision",
    "best_threshold",
    "brier_score",
    "calibration_error",
    "cohen_kappa",
    "confusion_matrix",
    "correct_association",
    "corrected_difference",
    "cross_fitted_probabilities",
    "cross_table",
    "fit_isotonic",
    "fit_platt",
    "gwet_ac1",
    "heterogeneity_test",
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
    "trend_test",
    "width_curve",
]
