"""A tenth set of kinds: other situations again, each such that a reader of the run can tell whose failure it is.

Owners, failure modes and stages were written down before any run, and follow from how the case is made.
"""

from __future__ import annotations

from . import tenth_answered, tenth_lost
from .cases import TENTH

__all__ = ["TENTH", "tenth_answered", "tenth_lost"]
