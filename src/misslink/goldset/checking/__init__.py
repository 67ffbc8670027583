"""Whether a gold set is worth trusting: what is wrong with it, where, and what to do."""

from misslink.goldset.checking.checks import CHECKS, check
from misslink.goldset.checking.finding import SEVERITIES, Finding, Proposal
from misslink.goldset.checking.fixing import accepted, fixed
from misslink.goldset.checking.grounds import Demand, Grounds, Vectors
from misslink.goldset.checking.power import Power, power_of
from misslink.goldset.checking.texts import Texts

__all__ = [
    "CHECKS",
    "SEVERITIES",
    "Demand",
    "Finding",
    "Grounds",
    "Power",
    "Proposal",
    "Texts",
    "Vectors",
    "accepted",
    "check",
    "fixed",
    "power_of",
]
