"""Decide whether a run meets its criteria."""

from __future__ import annotations
