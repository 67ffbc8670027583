"""Coverage of the numbers of a run's link: stratified and paired.

Run by ``interval_coverage.py``. Each function yields a method's name and, for every scenario, how
often its 95% interval holds the planted value, the mean width, and which scenario it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from misslink.stats import association, intervals, paired_tests
from misslink.stats.association import (
    TwoByTwo,
    cochran_q,
    comparable_strata,
    miettinen_fraction,
    pooled_fraction_limits,
    pooled_risk_difference,
    pooled_risk_ratio,
)
from misslink.types import Estimate

Floats = NDArray[np.float64]
Row = tuple[float, float, str]  # coverage, width, where
Rows = Iterable[tuple[str, list[Row]]]

SIMULATIONS = 500  # of each scenario; a coverage of 95% then has a standard error of 1%
DRAWS = 2_000  # of the posterior, in each

# Shares of the cases, chances of a miss and risks after a hit: misses are frequent where answers
# are bad anyway, so that the crude fraction is wrong.
STRATA: dict[str, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {
    "2 strata": ((0.5, 0.5), (0.15, 0.5), (0.08, 0.3)),
    "3 strata": ((0.5, 0.3, 0.2), (0.1, 0.3, 0.5), (0.05, 0.15, 0.3)),
    "6 strata": (
        (0.3, 0.2, 0.2, 0.1, 0.1, 0.1),
        (0.1, 0.2, 0.3, 0.3, 0.4, 0.5),
        (0.05,) * 3 + (0.3,) * 3,
    ),
}
SIZES = (60, 100, 200, 500)


def planted(name: str, ratio: float | None, difference: float | None = None) -> Floats:
    """Probability of each cell, shape (strata, 4), with one ratio or one difference in all."""
    shares, missed, hit = map(np.array, STRATA[name])
    miss = hit * ratio if ratio is not None else hit + difference
    rows = [missed * miss, missed * (1 - miss), (1 - missed) * hit, (1 - missed) * (1 - hit)]
    cells: Floats = shares[:, np.newaxis] * np.stack(rows, axis=1)
    return cells


def simulated(
    cells: Floats, n: int, generator: np.random.Generator, simulations: int = SIMULATIONS
) -> list[list[TwoByTwo]]:
    """Sets of strata of n cases together; those that can be compared."""
    drawn = generator.multinomial(n, cells.ravel(), simulations).reshape(simulations, -1, 4)
    return [comparable_strata([tuple(map(int, table)) for table in strata]) for strata in drawn]


def rate(estimates: Sequence[Estimate], truth: float, where: str) -> Row:
    """How many of the estimates that have both ends hold the truth."""
    both = [(found.low, found.high) for found in estimates]
    ends = np.array([pair for pair in both if None not in pair], dtype=float)
    inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    return float(inside.mean()), float((ends[:, 1] - ends[:, 0]).mean()), where


def adjusted_fraction() -> Rows:
    """The stratified attributable fraction, by how its prior is given to the strata."""
    for n in SIZES:
        yield f"adjusted fraction, chosen, n {n}", list(_fractions(n, per_stratum=False))
        yield (
            f"adjusted fraction, prior in each stratum, n {n}",
            list(_fractions(n, per_stratum=True)),
        )


def _fractions(n: int, *, per_stratum: bool) -> Iterable[Row]:
    generator = np.random.default_rng(n)
    for name, ratio in itertools.product(STRATA, (0.7, 1.0, 2.0, 3.0)):
        cells = planted(name, ratio)
        truth = float(miettinen_fraction(cells))
        ends = []
        for strata in simulated(cells, n, generator):
            tables = np.array(strata, dtype=float).reshape(-1, 4)
            if not tables[:, [0, 2]].any():
                continue
            low, high = pooled_fraction_limits(
                tables[np.newaxis],
                generator,
                draws=DRAWS,
                prior=0.75 * (len(tables) if per_stratum else 1),
            )[0]
            value = float(miettinen_fraction(tables))
            ends.append((min(low, value), max(high, value)))
        low, high = np.array(ends).T
        covers = float(((low <= truth) & (truth <= high)).mean())
        yield covers, float((high - low).mean()), f"{name}, ratio {ratio}"


def adjusted_risks() -> Rows:
    """The pooled difference and ratio."""
    for n in SIZES:
        generator = np.random.default_rng(n)
        differences, ratios = [], []
        for name, step in itertools.product(STRATA, (0.0, 0.2, 0.5)):
            sets = simulated(planted(name, None, step), n, generator)
            found = [pooled_risk_difference(np.array(each, dtype=float)) for each in sets]
            differences.append(rate(found, step, f"{name}, difference {step}"))
        for name, ratio in itertools.product(STRATA, (0.7, 1.0, 3.0)):
            sets = simulated(planted(name, ratio), n, generator)
            found = [pooled_risk_ratio(np.array(each, dtype=float)) for each in sets]
            ratios.append(rate(found, ratio, f"{name}, ratio {ratio}"))
        yield f"adjusted difference, klingenberg, n {n}", differences
        yield f"adjusted ratio, greenland-robins, n {n}", ratios


def heterogeneity() -> Rows:
    """How often the test keeps quiet at 5% where all strata have one difference."""
    for n in (60, 100, 500):
        generator = np.random.default_rng(n)
        ours, chi_squared = [], []
        for name, step in itertools.product(STRATA, (0.0, 0.2, 0.5)):
            sets = [s for s in simulated(planted(name, None, step), n, generator) if len(s) > 1]
            where = f"{name}, difference {step}"
            ps = [association.heterogeneity_test(each, draws=1_000) for each in sets]
            ours.append((float(np.mean([p is None or p >= 0.05 for p in ps])), 0.0, where))
            tails = [
                float(chi2.sf(cochran_q(np.array(each, dtype=float)), len(each) - 1))
                for each in sets
            ]
            chi_squared.append((float(np.mean([p >= 0.05 for p in tails])), 0.0, where))
        yield f"heterogeneity silent, bootstrap (chosen), n {n}", ours
        yield f"heterogeneity silent, chi squared, n {n}", chi_squared


def paired() -> Rows:
    """The difference of two systems on the same cases, beside the plain bootstrap."""
    generator = np.random.default_rng(0)
    shapes: dict[str, tuple[Callable[[int], Floats], float]] = {
        "2% gain 1": (lambda n: (generator.random(n) < 0.02) * 1.0, 0.02),
        "5% gain 0.5": (lambda n: (generator.random(n) < 0.05) * 0.5, 0.025),
        "20% differ, 3 of 4 for the better": (
            lambda n: (generator.random(n) < 0.2) * np.where(generator.random(n) < 0.75, 1, -1.0),
            0.1,
        ),
        "all differ, normal": (lambda n: generator.normal(0.03, 0.05, n).clip(-1, 1), 0.03),
        "all gain 0.1 to 0.3": (lambda n: generator.uniform(0.1, 0.3, n), 0.2),
        "10% gain 0 to 1": (
            lambda n: (generator.random(n) < 0.1) * generator.random(n),
            0.05,
        ),
    }
    for n in (10, 30, 100):
        chosen, plain = [], []
        for name, (draw, truth) in shapes.items():
            samples = [draw(n).tolist() for _ in range(SIMULATIONS // 2)]
            nothing = [0.0] * n
            found = [
                paired_tests.paired_difference(nothing, each, bounds=(-1, 1)).difference
                for each in samples
            ]
            chosen.append(rate(found, truth, name))
            without = [intervals.mean(each, bounds=None) for each in samples]
            points = [
                each.model_copy(update={"low": each.value, "high": each.value})
                if each.low is None
                else each
                for each in without
            ]
            plain.append(rate(points, truth, name))
        yield f"paired difference, chosen, n {n}", chosen
        yield f"paired difference, plain bootstrap, n {n}", plain
