"""Attacks on a judge: texts that order it about, and how often it obeys."""

from misslink.judging.attacks.measure import Findings, Trial, measure
from misslink.judging.attacks.suite import Attack, BaseCase, Suite, load_suite

__all__ = ["Attack", "BaseCase", "Findings", "Suite", "Trial", "load_suite", "measure"]
