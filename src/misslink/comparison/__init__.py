"""Compare runs of the same cases."""

from __future__ import annotations
