"""How often the 95% intervals of cases that come in clusters hold the truth.

    python benchmarks/stats/clustered_coverage.py              # both tables
    python benchmarks/stats/clustered_coverage.py difference   # one of them; the other is called mean
    python benchmarks/stats/clustered_coverage.py --write      # what is run replaces its table in the .md

Cases are drawn by a normal latent variable that is partly their cluster's, so that the truth is
known: the share of its variance that the cluster has runs from none to most of it. Beside each
interval of a mean stands the one that takes the cases for independent.
"""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from interval_coverage import COLUMNS, Row, covered, limits
from misslink import stats
from misslink.stats.clustered import clustered_difference, clustered_mean
from misslink.types import Estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Quantile = Callable[[Floats], Floats]
Told = tuple[str, list[Row]]

PAGE = Path(__file__).with_suffix(".md")
REPEATS = 400  # a grid point of the means
PAIRED_REPEATS = 250  # of the differences, which take longer
SHARED = (0.0, 0.2, 0.6)  # share of the latent variance that is the cluster's
SIZES = {"5 cases each": (5, 5), "1 to 9 cases": (1, 9), "1 to 40 cases": (1, 40)}
FEW = (5, 10, 20, 50)  # clusters of a mean
MANY = 2_500  # more than 2,000: the bell curve
PAIRED = (10, 20, 31)  # clusters of a difference
HALF = 0.5


@dataclass(frozen=True)
class Shape:
    """What the values look like: of a uniform number the value, and the mean of it."""

    name: str
    of: Quantile
    mean: float


def yes(rate: float) -> Shape:
    """1 with that probability, else 0."""
    return Shape(f"{100 * rate:.0f}% ones", lambda u: (u < rate).astype(np.float64), rate)


def thirds(rate: float) -> Shape:
    """Of three things the share that was found, each with that probability."""
    steps = np.cumsum([(1 - rate) ** 3, 3 * rate * (1 - rate) ** 2, 3 * rate**2 * (1 - rate)])
    return Shape(
        f"thirds, {rate:g}", lambda u: np.searchsorted(steps, u).astype(np.float64) / 3, rate
    )


def reciprocal_ranks() -> Shape:
    """One over a rank from 1 to 8, each as likely."""
    return Shape(
        "reciprocal ranks", lambda u: 1 / (1 + np.floor(8 * u)), float(np.mean(1 / np.arange(1, 9)))
    )


SHAPES = (yes(0.5), yes(0.9), thirds(0.7), reciprocal_ranks())
PAIRS = (
    (yes(0.6), yes(0.6)),
    (yes(0.6), yes(0.75)),
    (yes(0.9), yes(0.95)),
    (thirds(0.7), thirds(0.8)),
    (reciprocal_ranks(), reciprocal_ranks()),
)


def main(wanted: list[str]) -> None:
    """Print the tables that are named, or both; with --write, put them into the page."""
    tables = {"mean": means, "difference": differences}
    named = [name for name in wanted if name != "--write"]
    print(f"{'what':60}{'mean':>8}{'worst':>8}{'width':>8}  worst at")
    for name in named or tables:
        lines = []
        for what, rows in tables[name]():
            coverage, _, where = min(rows)
            average, width = (float(np.mean([row[at] for row in rows])) for at in (0, 1))
            print(f"{what:60}{average:8.3f}{coverage:8.3f}{width:8.3f}  {where}", flush=True)
            lines.append(f"| {what} | {average:.3f} | {coverage:.3f} | {width:.3f} | {where} |\n")
        if "--write" in wanted:
            put(name, lines)


def put(name: str, lines: list[str]) -> None:
    """Replace this table of the page, or add it; the other stays as it was measured."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    tables = dict(re.findall(r"^## (\w+)\n\n(.*?)(?=\n## |\Z)", page, re.MULTILINE | re.DOTALL))
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    made = (
        f"Made by `python benchmarks/stats/clustered_coverage.py {name} --write` on "
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}: {machine}, NumPy {np.__version__}.\n\n"
    )
    tables[name] = made + COLUMNS + "".join(lines)
    written = "".join(f"\n## {each}\n\n{table.rstrip()}\n" for each, table in tables.items())
    PAGE.write_text(head() + written, encoding="utf-8")


def head() -> str:
    """What the page says above its tables."""
    error, paired = (100 * (0.95 * 0.05 / count) ** 0.5 for count in (REPEATS, PAIRED_REPEATS))
    shares = ", ".join(f"{100 * share:.0f}%" for share in SHARED)
    return f"""# How often the intervals of clustered cases hold the truth

Cases are drawn by a normal latent variable, of whose variance the cluster has {shares}. Each
row sums up a grid over these and the shapes of the values, {REPEATS} seeded repetitions a point
({PAIRED_REPEATS} of differences): the mean and the worst coverage of the 95% intervals, the mean
width, and where the worst lies. A coverage of 95% has a standard error of {error:.1f}%
({paired:.1f}%), so that the worst of a dozen points lies some {2 * error:.0f} to
{2 * paired:.0f}% below the mean by chance alone. In the rows 'large clusters are harder' the rate
of ones is 90% in the smaller half of the clusters and 50% in the larger. 'Taken for independent'
is the interval that knows of no clusters.
"""


def means() -> Iterator[Told]:
    """stats.clustered.clustered_mean, and stats.mean beside it."""
    for sizes, ends in SIZES.items():
        for count in FEW:
            points = [
                (shape, share, of_grid(shape.name, share)) for shape in SHAPES for share in SHARED
            ]
            drawn = [
                (list(one_sample(shape, share, count, ends)), shape.mean, where)
                for shape, share, where in points
            ]
            yield from both(f"{count} clusters, {sizes}", drawn)
    harder = [
        (list(harder_when_large(count, SIZES["1 to 9 cases"])), rate_by_size(), f"{count} clusters")
        for count in FEW
    ]
    yield from both("large clusters are harder, 1 to 9 cases", harder)
    points = [(shape, share) for shape in SHAPES[:2] for share in SHARED]
    many = [
        (list(one_sample(shape, share, MANY, (1, 9))), shape.mean, of_grid(shape.name, share))
        for shape, share in points
    ]
    yield from both(f"{MANY:,} clusters, 1 to 9 cases", many)


def of_grid(shape: str, share: float) -> str:
    """How the page names a point of the grid."""
    return f"{shape}; {100 * share:.0f}% the cluster's"


Sample = tuple[Floats, Ints]


def both(what: str, drawn: list[tuple[list[Sample], float, str]]) -> Iterator[Told]:
    """A row of the intervals by cluster and one of those of independent cases."""
    methods: dict[str, Callable[[Floats, Ints], Estimate]] = {
        "by cluster": lambda values, cluster: clustered_mean(values.tolist(), cluster.tolist()),
        "taken for independent": lambda values, _: stats.mean(values.tolist()),
    }
    for name, method in methods.items():
        rows = [
            (*coverage([method(*sample) for sample in samples], truth), where)
            for samples, truth, where in drawn
        ]
        yield f"{what}, {name}", rows


def coverage(estimates: list[Estimate], truth: float) -> tuple[float, float]:
    """How often the truth is inside, and the mean width."""
    return covered(np.ones(len(estimates)), limits(estimates), truth)


def one_sample(shape: Shape, share: float, count: int, sizes: tuple[int, int]) -> Iterator[Sample]:
    """Values and clusters, as often as is repeated."""
    generator = np.random.default_rng([seed_of(shape), round(100 * share), count, *sizes])
    for _ in range(REPEATS):
        cluster = np.repeat(
            np.arange(count), generator.integers(sizes[0], sizes[1], count, endpoint=True)
        )
        latent = mixed(
            generator.standard_normal(count)[cluster],
            generator.standard_normal(len(cluster)),
            share,
        )
        yield shape.of(ndtr(latent)), cluster


def seed_of(shape: Shape) -> int:
    """A number of the shape's own: each point of the grid is drawn by itself."""
    return round(1_000 * shape.mean)


def mixed(shared: Floats, own: Floats, share: float) -> Floats:
    """A standard normal variable of which `share` of the variance is shared."""
    variable: Floats = np.sqrt(share) * shared + np.sqrt(1 - share) * own
    return variable


def harder_when_large(count: int, sizes: tuple[int, int]) -> Iterator[Sample]:
    """Ones and noughts; clusters of more cases than the middle size have fewer ones."""
    generator = np.random.default_rng([7, count])
    for _ in range(REPEATS):
        drawn = generator.integers(sizes[0], sizes[1], count, endpoint=True)
        cluster = np.repeat(np.arange(count), drawn)
        rate = np.where(drawn > sum(sizes) / 2, 0.5, 0.9)[cluster]
        yield (generator.random(len(cluster)) < rate).astype(np.float64), cluster


def rate_by_size() -> float:
    """The share of ones among all cases of `harder_when_large`."""
    low, high = SIZES["1 to 9 cases"]
    size = np.arange(low, high + 1)
    rate = np.where(size > (low + high) / 2, 0.5, 0.9)
    return float((size * rate).sum() / size.sum())


def differences() -> Iterator[Told]:
    """stats.clustered.clustered_difference."""
    for sizes, ends in SIZES.items():
        for count in PAIRED:
            rows: list[Row] = []
            for (a, b), share in ((pair, share) for pair in PAIRS for share in SHARED):
                found = [
                    clustered_difference(x.tolist(), y.tolist(), cluster.tolist()).difference
                    for x, y, cluster in two_samples(a, b, share, count, ends)
                ]
                where = of_grid(f"{a.name} and {b.name}", share)
                rows.append((*coverage(found, b.mean - a.mean), where))
            yield f"{count} clusters, {sizes}", rows


def two_samples(
    a: Shape, b: Shape, share: float, count: int, sizes: tuple[int, int]
) -> Iterator[tuple[Floats, Floats, Ints]]:
    """Values of two systems on the same cases: half of what moves one moves the other too."""
    key = [seed_of(a), seed_of(b), round(100 * share), count, *sizes]
    generator = np.random.default_rng(key)
    for _ in range(PAIRED_REPEATS):
        cluster = np.repeat(
            np.arange(count), generator.integers(sizes[0], sizes[1], count, endpoint=True)
        )
        of_cluster, of_case = (
            generator.standard_normal(count),
            generator.standard_normal(len(cluster)),
        )
        latent = [
            mixed(
                mixed(of_cluster, generator.standard_normal(count), HALF)[cluster],
                mixed(of_case, generator.standard_normal(len(cluster)), HALF),
                share,
            )
            for _ in range(2)
        ]
        yield a.of(ndtr(latent[0])), b.of(ndtr(latent[1])), cluster


if __name__ == "__main__":
    main(sys.argv[1:])
