"""The report of a run as a page, as text and as data."""

from __future__ import annotations
