"""A second set of kinds: other situations than those of `kinds.py`, by someone who had no part in it.

Owners and stages were written down before any run, and follow from how the case is made.
"""

from __future__ import annotations

from . import second_answered, second_lost
from .cases import SECOND

__all__ = ["SECOND", "second_answered", "second_lost"]
