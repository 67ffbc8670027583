"""The kinds by name: how each app failed, or what was odd and did no harm.

One function makes one case. Whose failure it is follows from how the case is made.
"""

from __future__ import annotations

from . import answered, lost
from .cases import KINDS

__all__ = ["KINDS", "answered", "lost"]
