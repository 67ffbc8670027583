"""The evaluation pipeline, from gold set and app to run folder."""

from __future__ import annotations
