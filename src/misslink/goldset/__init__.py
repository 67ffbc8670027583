"""Make, check, pool and change gold sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.goldset.generation.pipeline import GeneratedGoldSet, generate, generate_async

__all__ = ["GeneratedGoldSet", "generate", "generate_async"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that a subpackage loads alone."""
    if name not in __all__:
        raise AttributeError(f"module 'misslink.goldset' has no attribute '{name}'")
    from misslink.goldset.generation import pipeline

    return getattr(pipeline, name)
