"""Checks of judges: red-teaming, audit, pairwise preference, ping, and dry run."""

from __future__ import annotations
