"""Gold sets generated from a corpus: every question is written by a judge and then verified."""

from misslink.goldset.generating.generate import (
    Generated,
    generate,
    generate_async,
    preview_async,
)
from misslink.goldset.generating.settings import Settings, read_settings

__all__ = [
    "Generated",
    "Settings",
    "generate",
    "generate_async",
    "preview_async",
    "read_settings",
]
