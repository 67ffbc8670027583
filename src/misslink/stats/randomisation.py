"""The randomisation test: what if each paired difference could as well have had the other sign."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DRAWS", "sign_flips"]

DRAWS = 10_000  # of sign flips, where they are too many to go through
_AT_ONCE = 2_000_000  # numbers held in memory at a time
_ROUNDING = 1e-9  # an nDCG of 1.0000000000000002 is 1
_SIZES = 200  # from here on it is quicker to draw the sign of every difference by itself
_BITS = 8  # signs that one random byte holds


def sign_flips(differences: Sequence[float], *, seed: int = 0) -> float:
    """P that the sum is as far from 0 as it is, if every difference could as well be negative.

    Parameters
    ----------
    differences : sequence of float
        Finite, in any order. Those of one size are interchangeable (what counts is how many of
        them are positive), so sizes that are meant to be alike have to be so: round them before.
    seed : int
        Of the flips, where they are drawn.

    Returns
    -------
    float
        1 without any difference. Every outcome is gone through where there are at most 10,000,
        else 10,000 random ones are drawn, and the observed one counts among them.

    References
    ----------
    Fisher (1935), The design of experiments, section 21. Phipson and Smyth (2010), Permutation
    p-values should never be zero.

    Examples
    --------
    >>> sign_flips([0.5, 0.25, 1.0])
    0.25
    """
    sizes = sorted(Counter(abs(each) for each in differences if each).items())
    if not sizes:
        return 1.0
    observed = abs(math.fsum(differences))
    close = observed - _ROUNDING * math.fsum(map(abs, differences))  # rounding is no smaller sum
    if math.prod(count + 1 for _, count in sizes) <= DRAWS:
        return _exactly(sizes, close)
    draw = _of_counts if len(sizes) < _SIZES else _of_each
    return (draw(sizes, close, seed) + 1) / (DRAWS + 1)


def _of_counts(sizes: Sequence[tuple[float, int]], close: float, seed: int) -> int:
    """How many draws are as extreme; of each size it is drawn how many are positive."""
    import numpy as np

    size = np.array([each for each, _ in sizes])
    count = np.array([number for _, number in sizes])
    generator = np.random.default_rng(seed)
    chunk = max(1, _AT_ONCE // len(sizes))
    extreme = 0
    for start in range(0, DRAWS, chunk):
        positive = generator.binomial(count, 0.5, (min(chunk, DRAWS - start), len(sizes)))
        extreme += int((np.abs((2 * positive - count) @ size) >= close).sum())
    return extreme


def _of_each(sizes: Sequence[tuple[float, int]], close: float, seed: int) -> int:
    """The same where most sizes differ: a random byte looks up the sum of eight signed sizes."""
    import numpy as np

    each = np.repeat([size for size, _ in sizes], [count for _, count in sizes])
    eights = np.pad(each, (0, -len(each) % _BITS)).reshape(-1, _BITS)
    signs = 2.0 * ((np.arange(2**_BITS) >> np.arange(_BITS)[:, np.newaxis]) & 1) - 1
    generator = np.random.default_rng(seed)
    sums: NDArray[np.float64] = np.zeros(DRAWS)
    for eight in eights:
        sums += (eight @ signs)[generator.integers(0, 2**_BITS, DRAWS, dtype=np.uint8)]
    return int((np.abs(sums) >= close).sum())


def _exactly(sizes: Sequence[tuple[float, int]], close: float) -> float:
    import numpy as np

    sums: NDArray[np.float64] = np.zeros(1)
    chances: NDArray[np.float64] = np.ones(1)
    for size, count in sizes:
        ways = [1]  # in whole numbers, so that 1/4 is 1/4
        for positive in range(count):
            ways.append(ways[-1] * (count - positive) // (positive + 1))
        sums = np.add.outer(sums, size * (2 * np.arange(count + 1) - count)).ravel()
        chances = np.outer(chances, [way / 2**count for way in ways]).ravel()
    return min(math.fsum(chances[np.abs(sums) >= close]), 1.0)
