"""A judge held against people: how often it is right, and what the true rate is."""

from misslink.calibration.advice import Criteria
from misslink.calibration.calibrate import calibrate
from misslink.calibration.judged import Judged, Verdicts, of_run
from misslink.calibration.verdict_file import read_verdicts

__all__ = ["Criteria", "Judged", "Verdicts", "calibrate", "of_run", "read_verdicts"]
