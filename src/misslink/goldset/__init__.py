"""Gold sets: made from a corpus or from logs, pooled, labelled, checked, brought and taken out.

>>> from misslink.goldset import generate
>>> made = generate("corpus.jsonl", "openai:MODEL", 50, out="gold.jsonl")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.goldset.generating import Generated, generate, generate_async

__all__ = ["Generated", "generate", "generate_async"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that a room can be entered alone."""
    if name not in __all__:
        raise AttributeError(f"module 'misslink.goldset' has no attribute '{name}'")
    from misslink.goldset import generating

    return getattr(generating, name)
