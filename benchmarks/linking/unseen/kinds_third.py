"""A third set of kinds: situations that neither of the others has, by someone who had no part in them.

Owners, failure modes and stages were written down before any run, and follow from how the case is made.
"""

from __future__ import annotations

from . import third_answered, third_lost
from .cases import THIRD

__all__ = ["THIRD", "third_answered", "third_lost"]
