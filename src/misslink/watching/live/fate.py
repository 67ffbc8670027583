"""A call that may be done or left alone, whichever is first."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Fate"]


class Fate:
    """Whether a call was done before it was left alone; one of the two comes first.

    Parameters
    ----------
    count : callable
        Told 1 when the call is left alone, and -1 when it comes to an end after that.
    """

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._is_done = self._is_left = False

    def done(self) -> None:
        """The call is over."""
        with self._lock:
            self._is_done = True
            if self._is_left:
                self._count(-1)

    def leave(self) -> bool:
        """Leave it alone; False where it was done."""
        with self._lock:
            if not self._is_done:
                self._is_left = True
                self._count(1)
            return self._is_left
