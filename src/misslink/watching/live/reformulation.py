"""A question asked again in other words soon after: the answer before did not do."""

from __future__ import annotations

import threading
from collections import OrderedDict

from misslink.errors import InputError
from misslink.text import content_words, fold

__all__ = ["Reformulations"]

_LONGEST = 1000  # characters compared
_NEAR = 60.0  # of 100


class Reformulations:
    """The last question of each unit, for some minutes, in this process's memory only.

    Two questions are near-duplicates when their content words, sorted, are alike by 60 of 100
    (`rapidfuzz.fuzz.token_sort_ratio`); the very same question is none, since clients repeat a
    request that was slow. What one process answered another does not see: where requests of a
    unit go to several, some are missed, in every variant alike.

    Parameters
    ----------
    within_min : float
        How many minutes after its last question a unit's next one can be a reformulation.
    most_units : int
        How many units are remembered.
    """

    def __init__(self, within_min: float, most_units: int = 10_000) -> None:
        if not within_min > 0:
            raise InputError(f"reformulations are looked for within {within_min} min: more than 0")
        self._within_s = within_min * 60
        self._most = most_units
        self._last: OrderedDict[str, tuple[float, str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def seen(self, exposure: str, unit: str, question: str, at: float) -> str | None:
        """Remember a question; return the exposure that it is a reformulation of, or None.

        Parameters
        ----------
        exposure, unit : str
        question : str
        at : float
            Seconds since 1970.
        """
        folded = fold(question[:_LONGEST])
        with self._lock:
            before = self._last.pop(unit, None)
            self._last[unit] = (at, folded, exposure)
            if len(self._last) > self._most:
                self._last.popitem(last=False)
        if before is None or not 0 <= at - before[0] <= self._within_s or before[1] == folded:
            return None
        return before[2] if _alike(before[1], folded) else None


def _alike(one: str, other: str) -> bool:
    from rapidfuzz import fuzz

    words, others = content_words(one), content_words(other)
    if not words or not others:
        return False
    return fuzz.token_sort_ratio(" ".join(words), " ".join(others)) >= _NEAR
