"""Compare a judge with human labels, and correct rates by its errors."""

from __future__ import annotations

from misslink.calibration.advice import TrustCriteria
from misslink.calibration.calibrate import calibrate
from misslink.calibration.verdicts import (
    JudgedCase,
    MetricVerdicts,
    read_verdicts,
    verdicts_from_run,
)

__all__ = [
    "JudgedCase",
    "MetricVerdicts",
    "TrustCriteria",
    "calibrate",
    "read_verdicts",
    "verdicts_from_run",
]
