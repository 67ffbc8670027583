"""A seventh set of kinds: other situations again, and each domain says them in words of its own.

Owners, failure modes and stages were written down before any run, and follow from how the case is made.
"""

from __future__ import annotations

from . import seventh_answered, seventh_lost
from .cases import SEVENTH

__all__ = ["SEVENTH", "seventh_answered", "seventh_lost"]
