"""A fourth set of kinds: situations that none of the others has, by someone who had no part in them.

Owners, failure modes and stages were written down before any run, and follow from how the case is made.
"""

from __future__ import annotations

from . import fourth_answered, fourth_lost
from .cases import FOURTH

__all__ = ["FOURTH", "fourth_answered", "fourth_lost"]
