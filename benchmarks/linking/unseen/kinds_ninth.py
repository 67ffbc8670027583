"""A ninth set of kinds: other situations again, in texts of more forms than those of the sets before.

Owners, failure modes and stages were written down before any run, and follow from how the case is made.
"""

from __future__ import annotations

from . import ninth_answered, ninth_lost
from .cases import NINTH

__all__ = ["NINTH", "ninth_answered", "ninth_lost"]
