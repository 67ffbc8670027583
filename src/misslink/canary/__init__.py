"""Canary questions for a live app: runs, their history, and alarms on change."""

from __future__ import annotations
