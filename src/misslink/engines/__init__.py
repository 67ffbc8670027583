"""Engines run the work of a pipeline stage: in this process, on a Ray cluster, or through a batch API."""

from __future__ import annotations
