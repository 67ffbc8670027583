"""Why a case failed, how often it goes with a retrieval miss, and what would mend it."""

from misslink.linking.advice import recommendation
from misslink.linking.calibration import Calibration, calibration_document
from misslink.linking.checklist import checklist
from misslink.linking.holes import gold_holes, hole_document, write_accepted
from misslink.linking.link import link_case
from misslink.linking.map import map_document
from misslink.linking.measuring import Measured, measure
from misslink.linking.risk import summarise

__all__ = [
    "Calibration",
    "Measured",
    "calibration_document",
    "checklist",
    "gold_holes",
    "hole_document",
    "link_case",
    "map_document",
    "measure",
    "recommendation",
    "summarise",
    "write_accepted",
]
