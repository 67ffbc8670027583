"""How long is waited for what, where a batch may take a day."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

__all__ = ["Timing"]

_GROWTH = 1.5


@dataclass(frozen=True)
class Timing:
    """Seconds to wait.

    Parameters
    ----------
    linger : float
        For further questions, since the last one came, before they go out together.
    first, longest : float
        Before a batch is looked at again: at the beginning, and in the end.
    sleep : async callable
        Waits so many seconds.
    """

    linger: float = 1.5
    first: float = 5.0
    longest: float = 60.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def pause(self, times: int) -> float:
        """Seconds to wait after looking so many times, from 1; 1.5 times as long each time."""
        return min(self.longest, self.first * _GROWTH ** min(times - 1, 20))
