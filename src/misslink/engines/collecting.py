"""Garbage, looked for less often while a run is made."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["seldom_collecting"]


@contextlib.contextmanager
def seldom_collecting() -> Iterator[None]:
    """Look for garbage less often: what a run makes stays, and looking took a third of its time."""
    usual = gc.get_threshold()
    gc.set_threshold(max(usual[0], 50_000), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
