"""How many relevant passages there are that nobody labelled, from a stratified sample."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from misslink.stats.proportions import critical
from misslink.types import Estimate

__all__ = ["METHOD", "Band", "Cell", "banded", "drawn_more", "total"]

METHOD = "horvitz-thompson, mover of clopper-pearson"


@dataclass(frozen=True)
class Cell:
    """A stratum of one question, of which some passages were labelled.

    Parameters
    ----------
    size : int
        How many passages it has.
    labelled : int
        How many of them were drawn at random and labelled, from 1.
    relevant : float
        How many of those are relevant; of labels yet to come, how many are expected to be.
    """

    size: int
    labelled: int
    relevant: float


@dataclass(frozen=True)
class Band:
    """Strata of all questions at the same rank, which are much alike.

    Parameters
    ----------
    cells : sequence of Cell
    """

    cells: Sequence[Cell]

    @property
    def size(self) -> int:
        """Its passages."""
        return sum(cell.size for cell in self.cells)

    @property
    def labelled(self) -> int:
        """Those labelled."""
        return sum(cell.labelled for cell in self.cells)

    @property
    def relevant(self) -> float:
        """The relevant ones among those labelled."""
        return sum(cell.relevant for cell in self.cells)

    @property
    def expected(self) -> float:
        """The Horvitz-Thompson total: each relevant one stands for as many as its weight says."""
        return sum(cell.relevant * cell.size / cell.labelled for cell in self.cells)

    def ends(self, level: float) -> tuple[float, float]:
        """Both ends of the total.

        Clopper and Pearson's interval of the share, as if all its passages were drawn alike, from
        as many as the unequal weights leave (Kish); drawn towards the total as more of the band is
        known.
        """
        from scipy.stats import beta

        weights = sum(cell.size**2 / cell.labelled for cell in self.cells)
        alike = self.size**2 / weights  # how many draws with equal weights say as much
        share = min(self.expected / self.size, 1.0)
        hits, rest = share * alike, max((1 - share) * alike, 0.0)
        tail = (1 - level) / 2
        low = float(beta.ppf(tail, hits, rest + 1)) if hits > 0 else 0.0
        high = float(beta.isf(tail, hits + 1, rest)) if rest > 0 else 1.0
        unknown = math.sqrt(1 - self.labelled / self.size)
        return (
            self.size * (share - (share - low) * unknown),
            self.size * (share + (high - share) * unknown),
        )


def banded(cells: Iterable[tuple[int, Cell]]) -> list[Band]:
    """Put strata together by the place of their band, near ones first."""
    found: dict[int, list[Cell]] = {}
    for place, cell in cells:
        found.setdefault(place, []).append(cell)
    return [Band(found[place]) for place in sorted(found)]


def drawn_more(bands: Sequence[Band], times: int) -> list[Band]:
    """Return the bands as they would be with so many times the labels and the same shares.

    >>> (more,) = drawn_more([Band([Cell(100, 10, 1), Cell(15, 10, 0)])], 4)
    >>> more.cells[0], more.cells[1].labelled
    (Cell(size=100, labelled=40, relevant=4.0), 15)
    """
    more = []
    for band in bands:
        cells = []
        for cell in band.cells:
            labelled = min(cell.size, cell.labelled * times)
            cells.append(Cell(cell.size, labelled, cell.relevant * labelled / cell.labelled))
        more.append(Band(cells))
    return more


def total(bands: Sequence[Band], *, level: float = 0.95) -> Estimate:
    """How many relevant passages there are in bands of which some were labelled.

    Parameters
    ----------
    bands : sequence of Band
        Every passage belongs to one of them; none of them is empty. No band: the total is 0.
    level : float
        Of the interval, in (0, 1).

    Returns
    -------
    Estimate
        ``n`` is how many were labelled. The value is the Horvitz-Thompson total, which is
        unbiased. The interval is about these passages of these questions, not about others; it
        never falls below the relevant ones that were found.

    Notes
    -----
    The ends of the bands are put together by the method of variance estimates recovery: each end's
    distance from the total is the root of the sum of the squares. A sample in which nothing is
    relevant has variance 0 and still leaves doubt, which this interval has and the usual one of a
    Horvitz-Thompson total has not; ``benchmarks/pooled_recall_coverage.py`` measures both, and
    Wilson's intervals in place of Clopper and Pearson's, which hold the truth too seldom.

    References
    ----------
    Horvitz and Thompson (1952), A generalization of sampling without replacement. Korn and Graubard
    (1998), Confidence intervals for proportions with small expected number of positive counts
    estimated from survey data. Zou and Donner (2008), Construction of confidence limits about
    effect measures.

    Examples
    --------
    >>> found = total([Band([Cell(100, 10, 1)]), Band([Cell(1000, 10, 0)])])
    >>> found.value, round(found.low, 1), round(found.high)
    (10.0, 1.0, 319)
    """
    critical(level)  # refuses a level that is none
    value = sum(band.expected for band in bands)
    ends = [band.ends(level) for band in bands]
    below = sum((band.expected - low) ** 2 for band, (low, _) in zip(bands, ends, strict=True))
    above = sum((high - band.expected) ** 2 for band, (_, high) in zip(bands, ends, strict=True))
    found = sum(band.relevant for band in bands)
    return Estimate(
        value=value,
        low=min(max(value - math.sqrt(below), float(found)), value),
        high=min(
            value + math.sqrt(above), float(sum(b.size - b.labelled + b.relevant for b in bands))
        ),
        n=sum(band.labelled for band in bands),
        method=METHOD,
    )
