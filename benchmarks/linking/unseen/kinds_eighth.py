"""An eighth set of kinds: other situations again, each among pages that share words with the question.

Owners, failure modes and stages were written down before any run, and follow from how the case is made.
"""

from __future__ import annotations

from . import eighth_answered, eighth_lost
from .cases import EIGHTH

__all__ = ["EIGHTH", "eighth_answered", "eighth_lost"]
