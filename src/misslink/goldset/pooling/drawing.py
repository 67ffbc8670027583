"""The draw of a pool: what the retrievers bring, and a sample of what none of them brings.

Of a question the passages fall into strata. The *pooled* ones, the union of the retrievers' top,
are all asked about. The others are ranked by how near they are to the question and cut into bands
of rank; some are drawn from all of them at random, and then some from what is left of each band.
Given how many of the first draw fell into a band, both draws together are a simple random sample of
it, so that a passage's weight, one over the chance with which it was drawn, is exactly the size of
its band over the number drawn from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "KNOWN",
    "POOLED",
    "Drawn",
    "Nearness",
    "Stratum",
    "bands",
    "draw",
    "in_any_order",
    "seeded",
]

Thing = TypeVar("Thing")

POOLED = "pooled"  # the stratum of what a retriever brings; all of it is asked about
KNOWN = "known"  # of what the gold set has a grade for already; none of it is asked about
_FIRST = 10  # passages of the nearest band, at least
_WIDER = 10  # times as many in each further band
_MOST_BANDS = 4
_EACH = 2  # passages drawn from a band, so that one can differ from the other


class Nearness(Protocol):
    """Ranks all passages of a corpus for a question."""

    @property
    def name(self) -> str:
        """By what."""
        ...

    def order(self, question: str) -> NDArray[np.int64]:
        """Places of all passages, nearest first."""
        ...


@dataclass(frozen=True)
class Stratum:
    """Passages of one question among which those to ask about were drawn.

    Parameters
    ----------
    name : str
        'known', 'pooled', or the ranks of the band: '11 to 110' outside the pool.
    size, drawn : int
        How many there are, and how many of them are asked about.
    """

    name: str
    size: int
    drawn: int

    @property
    def weight(self) -> float | None:
        """One over the chance of being drawn; None where nothing was."""
        return self.size / self.drawn if self.drawn else None


@dataclass(frozen=True)
class Drawn:
    """What is asked about one question.

    Parameters
    ----------
    strata : tuple of Stratum
        Known and pooled first, then the bands from near to far. Their sizes add up to the corpus.
    places : tuple of (int, int)
        Places of passages in the corpus and of their strata, in any order.
    """

    strata: tuple[Stratum, ...]
    places: tuple[tuple[int, int], ...]


def bands(outside: int, stratified: int, depth: int) -> list[int]:
    """Return the sizes of the bands of rank into which passages are cut, near ones first.

    Parameters
    ----------
    outside : int
        How many passages no retriever brings.
    stratified : int
        How many are drawn from the bands; each gets two, so fewer make fewer bands.
    depth : int
        Of the pool; the nearest band has as many passages, and 10 at least.

    Examples
    --------
    >>> bands(5000, 10, 10), bands(5000, 4, 10), bands(7, 10, 10), bands(0, 10, 10)
    ([10, 100, 1000, 3890], [10, 4990], [7], [])
    """
    sizes: list[int] = []
    left, width = outside, max(depth, _FIRST)
    most = max(1, min(_MOST_BANDS, stratified // _EACH))
    while left:
        size = left if len(sizes) == most - 1 else min(width, left)
        sizes.append(size)
        left -= size
        width *= _WIDER
    return sizes


def draw(
    order: Sequence[int] | NDArray[np.int64],
    pooled: Collection[int],
    known: Collection[int],
    *,
    depth: int,
    random: int,
    stratified: int,
    generator: np.random.Generator,
) -> Drawn:
    """Draw what is asked about one question.

    Parameters
    ----------
    order : sequence or array of int
        Places of all passages of the corpus, nearest to the question first.
    pooled : collection of int
        Places of what the retrievers bring.
    known : collection of int
        Places of what has a grade already.
    depth : int
        Of the pool.
    random, stratified : int
        How many others are drawn, from all of them and from their bands.
    generator : numpy Generator

    Returns
    -------
    Drawn
        Of a corpus that the retrievers bring entirely the pooled passages alone.
    """
    asked = [place for place in dict.fromkeys(pooled) if place not in known]
    ranked = np.asarray(order, dtype=np.int64)
    outside = ranked[~np.isin(ranked, [*pooled, *known])]
    sizes = bands(len(outside), stratified, depth)
    first = np.zeros(len(outside), dtype=bool)
    first[generator.permutation(len(outside))[:random]] = True
    wanted = _shared(stratified, sizes)
    strata = [
        Stratum(KNOWN, len(set(known)), 0),
        Stratum(POOLED, len(asked), len(asked)),
    ]
    places = [(place, 1) for place in asked]
    start = 0
    for size, more in zip(sizes, wanted, strict=True):
        band, taken = outside[start : start + size], first[start : start + size]
        chosen = [*band[taken].tolist(), *generator.permutation(band[~taken])[:more].tolist()]
        places += [(place, len(strata)) for place in chosen]
        strata.append(Stratum(f"{start + 1} to {start + size}", size, len(chosen)))
        start += size
    return Drawn(tuple(strata), tuple(in_any_order(places, generator)))


def in_any_order(things: Sequence[Thing], generator: np.random.Generator) -> list[Thing]:
    """Return them shuffled."""
    return [things[int(at)] for at in generator.permutation(len(things))]


def seeded(seed: int, name: str) -> np.random.Generator:
    """A generator of one question: another question more or less does not change its draw."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "big")])


def _shared(count: int, sizes: Sequence[int]) -> list[int]:
    """So many from each band, alike as far as they go round; what a small one lacks others get."""
    given = [0] * len(sizes)
    left = min(count, sum(sizes))
    while left:
        for at, size in enumerate(sizes):
            if left and given[at] < size:
                given[at] += 1
                left -= 1
    return given
