"""How often the 95% intervals of misslink.stats hold the truth, and which method was chosen.

    python benchmarks/stats/interval_coverage.py            # all tables
    python benchmarks/stats/interval_coverage.py fraction   # one table; the names stand in main()
    python benchmarks/stats/interval_coverage.py --write    # what is run replaces its table in the .md

For each method: the mean and the worst coverage over a grid of true values, where the worst lies,
and the mean width. Shares, risks and the fraction up to 60 cases are exact (every table that
can occur, weighted by its probability); the rest is simulated with a fixed seed.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import linking_coverage
from misslink.stats import association, intervals
from misslink.stats.association import attributable_fraction_limits, pooled_risk_ratio
from misslink.types import Estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ends = tuple[Floats, Floats]
Row = tuple[float, float, str]  # coverage, width, where

Z = 1.959963984540054
RISKS = (0.1, 0.3, 0.5, 0.7, 0.9)
MISSES = (0.1, 0.2, 0.3, 0.4, 0.5)


PAGE = Path(__file__).with_suffix(".md")
HEAD = """# How often the 95% intervals hold the truth

Made by `python benchmarks/stats/interval_coverage.py --write`. Over a grid of true values: the mean and
the worst coverage, where the worst lies, and the mean width. The tables share, risks and fraction
(up to 60 cases) are exact; the others are simulated, those of adjusted numbers 500
times a grid point (paired 250), so that a coverage of 95% has a standard error of 1% and the
worst of a dozen points lies some 2% below the mean by chance alone. In the table heterogeneity
the coverage is how often the test rightly keeps quiet at 5%.
"""
COLUMNS = "| what | mean | worst | width | worst at |\n| --- | --: | --: | --: | --- |\n"


def main(wanted: list[str]) -> None:
    """Print the tables that are named, or all; with --write, put them into the page."""
    own: dict[str, Callable[[], None]] = {
        "share": share,
        "risks": risks,
        "fraction": fraction,
        "mean": mean,
    }
    of_links = {
        "adjusted_fraction": linking_coverage.adjusted_fraction,
        "adjusted_risks": linking_coverage.adjusted_risks,
        "heterogeneity": linking_coverage.heterogeneity,
        "paired": linking_coverage.paired,
    }
    write = "--write" in wanted
    named = [name for name in wanted if name != "--write"]
    print(f"{'what':48}{'mean':>8}{'worst':>8}{'width':>8}  worst at")
    for name in named or [*own, *of_links]:
        SHOWN.clear()
        if name in own:
            own[name]()
        else:
            for what, rows in of_links[name]():
                show(what, rows)
        if write:
            put(name, SHOWN)


SHOWN: list[str] = []  # rows of the table that is being made


def put(name: str, rows: list[str]) -> None:
    """Replace this table of the page, or add it; the others stay as they were measured."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else HEAD
    tables = dict(re.findall(r"^## (\w+)\n\n(.*?)(?=\n## |\Z)", page, re.MULTILINE | re.DOTALL))
    tables[name] = COLUMNS + "".join(rows)
    written = "".join(f"\n## {each}\n\n{table.rstrip()}\n" for each, table in tables.items())
    PAGE.write_text(HEAD + written, encoding="utf-8")


def show(name: str, rows: Iterable[Row]) -> None:
    """One line: coverage on average, at its worst and where, and width on average."""
    listed = list(rows)
    coverage, _, where = min(listed)
    average = np.mean([row[0] for row in listed])
    width = np.mean([row[1] for row in listed])
    print(f"{name:48}{average:8.3f}{coverage:8.3f}{width:8.3f}  {where}", flush=True)
    SHOWN.append(f"| {name} | {average:.3f} | {coverage:.3f} | {width:.3f} | {where} |\n")


def covered(weights: Floats, ends: Ends, truth: float) -> tuple[float, float]:
    """Coverage and mean width under the weights of the outcomes."""
    low, high = ends
    inside = (low <= truth + 1e-12) & (high >= truth - 1e-12)
    return float(weights[inside].sum() / weights.sum()), float(
        (weights * (high - low)).sum() / weights.sum()
    )


def binomial(n: int, risk: float) -> Floats:
    """Probability of each count 0..n."""
    counts = range(n + 1)
    return np.array([math.comb(n, k) * risk**k * (1 - risk) ** (n - k) for k in counts])


def share() -> None:
    """Wilson."""
    grid = np.arange(0.05, 0.96, 0.05)
    for n in (10, 30, 100, 500):
        estimates = [intervals.proportion(k, n) for k in range(n + 1)]
        ends = limits(estimates)
        rows = [
            (*covered(binomial(n, risk), ends, risk), f"share {risk:.2f}")
            for risk in map(float, grid)
        ]
        show(f"proportion, wilson, n {n}", rows)


def risks() -> None:
    """Differences and ratios, where the estimate has a value; Katz is what the ratio was chosen over."""
    for n1, n2 in ((5, 25), (15, 15), (10, 90), (50, 50), (100, 150)):
        pairs = list(itertools.product(range(n1 + 1), range(n2 + 1)))
        compared: dict[str, tuple[Callable[..., Estimate], Callable[[float, float], float]]] = {
            "risk difference, newcombe": (association.risk_difference, lambda p, q: p - q),
            "risk ratio, wilson": (association.risk_ratio, lambda p, q: p / q),
            "risk ratio, katz": (katz_ratio, lambda p, q: p / q),
        }
        for name, (estimate, truth) in compared.items():
            estimates = [estimate(a, n1, b, n2) for a, b in pairs]
            has_value = np.array([found.value is not None for found in estimates])
            ends = limits([found for found in estimates if found.value is not None])
            rows = []
            for p, q in itertools.product(RISKS, RISKS):
                weights = np.outer(binomial(n1, p), binomial(n2, q)).ravel()[has_value]
                rows.append((*covered(weights, ends, truth(p, q)), f"risks {p} {q}"))
            show(f"{name}, n {n1} + {n2}", rows)


def katz_ratio(a: int, n1: int, b: int, n2: int) -> Estimate:
    """Katz's log interval, with half a case added where a cell is empty."""
    if not b:
        return Estimate.missing("no ratio", n=n1 + n2, method="katz")
    return pooled_risk_ratio(np.array([[a, n1 - a, b, n2 - b]], dtype=float))


def limits(estimates: list[Estimate]) -> Ends:
    """Ends of estimates that have them."""
    return (
        np.array([found.low for found in estimates], dtype=float),
        np.array([found.high for found in estimates], dtype=float),
    )


def fraction() -> None:
    """The attributable fraction: the chosen method and those it was chosen over."""
    generator = np.random.default_rng(0)

    def posterior(prior: float, draws: int = 4_000) -> Callable[[Ints], Ends]:
        def ends(tables: Ints) -> Ends:
            parts = np.array_split(tables, max(1, len(tables) // 100))
            found = [
                attributable_fraction_limits(part, generator, draws=draws, prior=prior)
                for part in parts
            ]
            low, high = np.concatenate(found).T
            value = fraction_of(tables)
            return np.minimum(low, value), np.maximum(high, value)

        return ends

    methods = {
        "dirichlet 0.75 (chosen)": posterior(0.75),
        "dirichlet 0.5 (Jeffreys)": posterior(0.5),
        "delta log +0.5": delta_log,
    }
    for n in (30, 60, 100, 200, 500):
        # The bootstrap is too slow for every table, and one size shows what is wrong with it.
        more = {"bootstrap": lambda tables: bootstrap(tables, generator)} if n == 30 else {}
        for name, method in {**methods, **more}.items():
            show(f"fraction, {name}, n {n}", list(fraction_rows(n, method, generator)))


def fraction_rows(
    n: int, method: Callable[[Ints], Ends], generator: np.random.Generator
) -> Iterable[Row]:
    """Coverage over the grid; exact up to 60 cases, else 2,000 tables a point."""
    exact = n <= 60
    misses, risks_ = (MISSES, RISKS) if exact else ((0.1, 0.3, 0.5), (0.1, 0.5, 0.9))
    every, ends = np.empty((0, 4), dtype=np.int64), (np.empty(0), np.empty(0))
    if exact:
        every = every_table(n)
        ends = method(every)
    for share_missed, miss, hit in itertools.product(misses, risks_, risks_):
        kept = 1 - share_missed
        cells = np.array(
            [share_missed * miss, share_missed * (1 - miss), kept * hit, kept * (1 - hit)]
        )
        truth = 1 - hit / (share_missed * miss + kept * hit)
        if exact:
            weights = np.exp(log_ways(every) + every @ np.log(cells))
        else:
            drawn = generator.multinomial(n, cells, 2_000)
            unique, counts = np.unique(drawn[with_value(drawn)], axis=0, return_counts=True)
            weights, ends = counts.astype(float), method(unique)
        yield (*covered(weights, ends, truth), f"misses {share_missed}, risks {miss} {hit}")


def every_table(n: int) -> Ints:
    """All 2 x 2 tables of n cases that have a fraction."""
    tables = np.array([t for t in itertools.product(range(n + 1), repeat=3) if sum(t) <= n])
    full = np.column_stack([tables, n - tables.sum(axis=1)])
    return full[with_value(full)]


def with_value(tables: Ints) -> NDArray[np.bool_]:
    """Tables with a bad answer and a hit."""
    miss_bad, _, hit_bad, hit_good = tables.T
    valued: NDArray[np.bool_] = (miss_bad + hit_bad > 0) & (hit_bad + hit_good > 0)
    return valued


def log_ways(tables: Ints) -> Floats:
    """Logarithm of the number of ways in which each table can come about."""
    logs = np.array([math.lgamma(k + 1) for k in range(int(tables.sum(axis=1)[0]) + 1)])
    ways: Floats = logs[-1] - logs[tables].sum(axis=1)
    return ways


def fraction_of(tables: NDArray[np.generic]) -> Floats:
    """The attributable fraction of each table, minus infinity or NaN where it has none."""
    miss_bad, _, hit_bad, hit_good = tables.astype(float).T
    with np.errstate(all="ignore"):
        value: Floats = 1 - (hit_bad / (hit_bad + hit_good)) / (
            (miss_bad + hit_bad) / tables.astype(float).sum(axis=1)
        )
    return value


def delta_log(tables: Ints) -> Ends:
    """Log of P(bad | hit) / P(bad), its variance by the delta method, 0.5 added to each cell."""
    cells = tables + 0.5
    miss_bad, _, hit_bad, hit_good = cells.T
    n, hits, bad = cells.sum(axis=1), hit_bad + hit_good, miss_bad + hit_bad
    slopes = np.stack([-1 / bad, 0 * bad, 1 / hit_bad - 1 / hits - 1 / bad, -1 / hits])
    variance = (slopes**2 * cells.T).sum(axis=0) - (slopes * cells.T).sum(axis=0) ** 2 / n
    ratio = 1 - fraction_of(cells)
    factor = np.exp(Z * np.sqrt(np.maximum(variance, 0)))
    return 1 - ratio * factor, 1 - ratio / factor


def bootstrap(tables: Ints, generator: np.random.Generator) -> Ends:
    """Percentiles over resampled tables; those without a value are left out."""
    ends = []
    for table in tables:
        n = int(table.sum())
        values = fraction_of(generator.multinomial(n, table / n, 1_000))
        ends.append(np.quantile(values[np.isfinite(values)], [0.025, 0.975]))
    low, high = np.array(ends).T
    return low, high


def mean() -> None:
    """intervals.mean beside the percentile bootstrap, over metrics' typical distributions."""
    generator = np.random.default_rng(0)
    shapes: dict[str, tuple[Callable[[int], Floats], float]] = {
        "uniform": (generator.random, 0.5),
        "skewed, beta(8, 1)": (lambda n: generator.beta(8, 1, n), 8 / 9),
        "all or nothing, beta(.3, .3)": (lambda n: generator.beta(0.3, 0.3, n), 0.5),
        "reciprocal ranks": (
            lambda n: 1 / generator.integers(1, 9, n),
            float(np.mean(1 / np.arange(1, 9))),
        ),
        "thirds": (lambda n: generator.binomial(3, 0.85, n) / 3, 0.85),
        "80% ones": (lambda n: mixture(generator, n, 0.8), 0.9),
        "95% ones": (lambda n: mixture(generator, n, 0.95), 0.975),
    }
    for n in (5, 10, 30, 100):
        chosen, percentile = [], []
        for name, (draw, truth) in shapes.items():
            samples = [draw(n) for _ in range(400)]
            alike = np.ones(len(samples))
            estimates = [intervals.mean(sample.tolist()) for sample in samples]
            chosen.append((*covered(alike, limits(estimates), truth), name))
            resampled = [percentile_ends(sample, generator) for sample in samples]
            low, high = np.array(resampled).T
            percentile.append((*covered(alike, (low, high), truth), name))
        show(f"mean, chosen, n {n}", chosen)
        show(f"mean, percentile bootstrap, n {n}", percentile)


def mixture(generator: np.random.Generator, n: int, ones: float) -> Floats:
    """Ones with that probability, else anything from 0 to 1."""
    return np.where(generator.random(n) < ones, 1.0, generator.random(n))


def percentile_ends(sample: Floats, generator: np.random.Generator) -> Floats:
    """Percentile bootstrap."""
    n = len(sample)
    means = sample[generator.integers(0, n, (1_000, n))].mean(axis=1)
    ends: Floats = np.quantile(means, [0.025, 0.975])
    return ends


if __name__ == "__main__":
    main(sys.argv[1:])
