"""The report of a run: HTML page, markdown, JSON, CSV and parquet."""

from __future__ import annotations
