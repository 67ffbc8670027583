"""Generate gold sets from a corpus: a judge writes every question, then verifies it."""

from __future__ import annotations

from misslink.goldset.generation.pipeline import (
    GeneratedGoldSet,
    generate,
    generate_async,
    preview_async,
)
from misslink.goldset.generation.settings import GenerationSettings, read_generation_settings

__all__ = [
    "GeneratedGoldSet",
    "GenerationSettings",
    "generate",
    "generate_async",
    "preview_async",
    "read_generation_settings",
]
