"""Whether an estimate is on the good side of a threshold, as far as its interval tells."""

from __future__ import annotations

from misslink.types import Estimate

__all__ = ["above", "below"]


def above(estimate: Estimate, least: float) -> bool | None:
    """Whether an estimate is at least `least`: None where its interval holds both answers.

    Examples
    --------
    >>> above(Estimate(value=0.9, low=0.8, high=0.95, n=50, method="wilson"), 0.7)
    True
    """
    if estimate.value is None:
        return None
    if estimate.low is not None and estimate.low >= least:
        return True
    return False if estimate.high is not None and estimate.high < least else None


def below(estimate: Estimate, most: float) -> bool | None:
    """Whether an estimate is under `most`: None where its interval holds both answers."""
    held = above(estimate, most)
    return None if held is None else not held
