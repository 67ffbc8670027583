"""How often the 95% intervals of a calibration hold the truth, and which method was chosen.

    python benchmarks/stats/calibration_coverage.py            # all tables
    python benchmarks/stats/calibration_coverage.py kappa ece  # some; the names stand in TABLES
    python benchmarks/stats/calibration_coverage.py --write    # what is run replaces its table in the .md

A world is a judge and a share of good cases; from each, samples of 30, 100 and 300 labels are
drawn with a fixed seed. For each method: the mean and the worst coverage over the worlds, where
the worst lies, the mean width, and how often there was no interval.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy import stats as scipy_stats
from scipy.special import expit, logit

import calibration_coverage_rates as rates
import calibration_coverage_shares as shares
from calibration_coverage_rates import (
    JUDGES,
    SHARES,
    Floats,
    Methods,
    World,
    Z,
    ends,
    percentile,
)
from misslink.stats import agreement, classification
from misslink.stats.classification import _average_precision_influence
from misslink.stats.roc import auroc

SIZES = (30, 100, 300)
TIMES = 200
MORE = (30, 50, 100, 300)
OF_MORE = ("ece", "weighted", "rogan-gladen", "corrected difference")
CELLS, CELL_TIMES = "cell by cell", 1_000
PLAN, PLAN_TIMES = "labels by plan", 2_000
PAGE = Path(__file__).with_suffix(".md")
HEAD = f"""# How often the 95% intervals of a calibration hold the truth

Made by `python benchmarks/stats/calibration_coverage.py --write`. n is the number of labels; over several
judges and shares of good cases: the mean and the worst coverage, the mean width, how often there
was no interval, and where the worst lies. {TIMES} samples a world: a coverage of 95% has a
standard error of {100 * math.sqrt(0.95 * 0.05 / TIMES):.1f}%, and the worst of a dozen worlds lies
some 2.5% below the mean by chance alone.
"""
CELL_HEAD = f"""
n labels of n + 1,000 verdicts, {CELL_TIMES:,} samples a cell (a coverage of 95% has a standard
error of 0.7%; that of the labels alone is exact), the width as a part of that of the labels alone,
and how often there was no interval, which is where the labels do not show that the judge is better
than chance. A method that mostly has none is left out.

| judge | n | share | method | coverage | width | none |
| --- | --: | --: | --- | --: | --: | --: |
"""
PLAN_HEAD = f"""
Labels in the order of `misslink annotate` among 1,000 verdicts of an overconfident judge, two
annotators: coverage of the corrected share, and its width as a part of that of as many random
labels alone, the annotators' error taken out of both. {PLAN_TIMES:,} runs a cell (standard error
of a coverage of 95%: 0.5%); failures that go together in documents of five, or not; 0, 5 and 10%
label error. "Too few": fewer than 5 failures are expected among the labels.

| failures | AUROC | labels | alone, 0% | 5% | 10% | in documents, 0% | 5% | 10% |
| --: | --: | --- | --: | --: | --: | --: | --: | --: |
"""

COLUMNS = (
    "| what | mean | worst | width | none | worst at |\n| --- | --: | --: | --: | --: | --- |\n"
)


def tables() -> Iterator[tuple[float, float, Floats, str]]:
    """Share, sensitivity, the four cells' probabilities (TP, FN, FP, TN), and the name."""
    for share, (sens, spec) in itertools.product(SHARES, JUDGES):
        cells = [share * sens, share * (1 - sens), (1 - share) * (1 - spec), (1 - share) * spec]
        yield share, sens, np.array(cells), f"share {share}, judge {sens} {spec}"


RATES: dict[str, Callable[[Floats], Floats]] = {
    "kappa": lambda p: 1 - (p[..., 1] + p[..., 2]) / expected(p),
    "gwet_ac1": lambda p: 1 - (p[..., 1] + p[..., 2]) / (1 - 2 * middle(p) * (1 - middle(p))),
    "f1": lambda p: 2 * p[..., 0] / (2 * p[..., 0] + p[..., 1] + p[..., 2]),
    "balanced_accuracy": lambda p: (
        (p[..., 0] / (p[..., 0] + p[..., 1]) + p[..., 3] / (p[..., 2] + p[..., 3])) / 2
    ),
}


def middle(p: Floats) -> Floats:
    """Mean share of good by both."""
    return p[..., 0] + (p[..., 1] + p[..., 2]) / 2


def expected(p: Floats) -> Floats:
    """Disagreement by chance."""
    said, called = p[..., 0] + p[..., 1], p[..., 0] + p[..., 2]
    return said * (1 - called) + (1 - said) * called


def of_table(rate: str) -> Iterator[World]:
    """A rate of the 2 x 2 table: chosen, delta method and percentile bootstrap."""
    function = RATES[rate]
    for _, _, cells, name in tables():

        def intervals(rng: np.random.Generator, n: int, cells: Floats = cells) -> Methods:
            drawn = rng.multinomial(n, cells)
            found = getattr(classification.ConfusionMatrix(*drawn.tolist()), rate)
            shares = drawn / n
            with np.errstate(all="ignore"):
                value = float(function(shares))
                again = function(rng.multinomial(n, shares, 500) / n)
                moved = shares + 1e-6 * (np.eye(4) - shares)
                steps = (function(moved) - value) / 1e-6
            wald = Z * math.sqrt(float(shares @ np.square(steps)) / n)
            if found.value is None or math.isnan(value):
                return {"chosen": None, "delta method": None, "bootstrap": None}
            usual = {"delta method": (value - wald, value + wald), "bootstrap": percentile(again)}
            return {"chosen": ends(found), **usual}

        yield World(name, float(function(cells)), intervals)


def scores(rng: np.random.Generator, n: int, share: float, apart: float) -> tuple[Floats, Floats]:
    """Labels, and scores that differ by `apart` standard deviations."""
    labels = (rng.random(n) < share).astype(float)
    return labels, rng.normal(size=n) + apart * labels


def area() -> Iterator[World]:
    """AUROC: chosen, and DeLong without the logit."""
    for share, apart in itertools.product(SHARES, (0.5, 1.5, 2.5)):

        def intervals(
            rng: np.random.Generator, n: int, share: float = share, apart: float = apart
        ) -> Methods:
            labels, score = scores(rng, n, share, apart)
            over, under = score[labels > 0], score[labels == 0]
            marked = [(str(at), x) for at, x in enumerate([*over, *under])]
            found = ends(auroc(marked[: len(over)], marked[len(over) :]))
            if min(len(over), len(under)) < 2:
                return {"chosen": found, "DeLong": None}
            wins = (over[:, None] > under).astype(float)
            half = Z * math.sqrt(
                wins.mean(1).var(ddof=1) / len(over) + wins.mean(0).var(ddof=1) / len(under)
            )
            return {"chosen": found, "DeLong": (wins.mean() - half, wins.mean() + half)}

        truth = float(scipy_stats.norm.cdf(apart / math.sqrt(2)))
        yield World(f"share {share}, {apart} apart", truth, intervals)


def precision() -> Iterator[World]:
    """Average precision: chosen, and each of the two variances alone."""
    for share, apart in itertools.product(SHARES, (0.5, 1.5, 2.5)):

        def intervals(
            rng: np.random.Generator, n: int, share: float = share, apart: float = apart
        ) -> Methods:
            labels, score = scores(rng, n, share, apart)
            found = classification.average_precision(labels.tolist(), score.tolist())
            if found.value is None or found.value >= 1:
                return {"chosen": ends(found), "jackknife": None, "binomial": None}
            value, influence = _average_precision_influence(labels, score)
            both = {
                "jackknife": float(influence @ influence) / n**2,
                "binomial": value * (1 - value) / labels.sum(),
            }
            usual: Methods = {}
            for method, variance in both.items():
                half = Z * math.sqrt(variance) / (value * (1 - value))
                usual[method] = tuple(expit(logit(value) + side * half) for side in (-1, 1))
            return {"chosen": ends(found), **usual}

        truth, _ = _average_precision_influence(
            *scores(np.random.default_rng(1), 300_000, share, apart)
        )
        yield World(f"share {share}, {apart} apart", truth, intervals)


def correlation(name: str) -> Iterator[World]:
    """Spearman or Kendall over grades and scores: chosen, and Fisher's z with a fixed error."""
    function = getattr(agreement, name)
    oracle = {"spearman": scipy_stats.spearmanr, "kendall_tau": scipy_stats.kendalltau}[name]
    for grades, noise in itertools.product((2, 3, 0), (0.3, 1.0, 4.0)):

        def draw(
            rng: np.random.Generator, n: int, grades: int = grades, noise: float = noise
        ) -> tuple[Floats, Floats]:
            true = rng.normal(size=n)
            seen = true + noise * rng.normal(size=n)
            cut = [0.8] if grades == 2 else [-0.4, 0.8]
            return (np.searchsorted(cut, true).astype(float) if grades else true), seen

        def intervals(rng: np.random.Generator, n: int, draw=draw) -> Methods:  # noqa: ANN001
            found = function(*(each.tolist() for each in draw(rng, n)))
            if found.low is None:
                return {"chosen": None, "fixed": None}
            r = found.value
            error = (1 + r * r / 2) / (n - 3) if name == "spearman" else 0.437 / (n - 4)
            half = Z * math.sqrt(error)
            return {
                "chosen": ends(found),
                "fixed": (math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)),
            }

        truth = float(oracle(*draw(np.random.default_rng(1), 200_000)).statistic)
        yield World(f"{grades or 'no'} grades, noise {noise}", truth, intervals)


TABLES: dict[str, Callable[[], Iterator[World]]] = {
    "kappa": lambda: of_table("kappa"),
    "AC1": lambda: of_table("gwet_ac1"),
    "F1": lambda: of_table("f1"),
    "balanced accuracy": lambda: of_table("balanced_accuracy"),
    "alpha": rates.alpha,
    "AUROC": area,
    "average precision": precision,
    "spearman": lambda: correlation("spearman"),
    "kendall": lambda: correlation("kendall_tau"),
    "brier": rates.brier,
    "ece": rates.calibration_error,
    "prediction-powered": shares.prediction_powered,
    "weighted": shares.weighted,
    "rogan-gladen": shares.rogan_gladen,
    "corrected difference": shares.difference,
    "nested threshold": rates.nested_threshold,
}


def rows(worlds: list[World], n: int) -> Iterator[str]:
    """A line of the table for each method."""
    found: dict[str, list[tuple[float, float, float, str]]] = {}
    for at, world in enumerate(worlds):
        rng = np.random.default_rng([n, at])
        samples = [world.intervals(rng, n) for _ in range(TIMES)]
        for method in samples[0]:
            given = [ends for sample in samples if (ends := sample[method]) is not None]
            if len(given) < TIMES // 5:  # too few to say how often they cover
                continue
            held = np.mean([low - 1e-9 <= world.truth <= high + 1e-9 for low, high in given])
            width = np.mean([high - low for low, high in given])
            none = 1 - len(given) / TIMES
            found.setdefault(method, []).append((float(held), float(width), none, world.name))
    for method, each in found.items():
        held, width, none = (np.mean([row[part] for row in each]) for part in range(3))
        worst = min(each)
        yield (
            f"| {method}, n {n} | {held:.3f} | {worst[0]:.3f} | {width:.3f} | {none:.3f} "
            f"| {worst[3]} |"
        )


def main(wanted: list[str]) -> None:
    """Print the tables that are named, or all; with --write, put them into the page."""
    write = "--write" in wanted
    named = [name for name in wanted if name != "--write"] or [*TABLES, PLAN, CELLS]
    for name in named:
        if name == PLAN:
            table = PLAN_HEAD + "".join(f"{row}\n" for row in shares.plan_rows(PLAN_TIMES))
        elif name == CELLS:
            table = CELL_HEAD + "".join(f"{row}\n" for row in shares.cells(CELL_TIMES))
        else:
            worlds = list(TABLES[name]())
            sizes = MORE if name in OF_MORE else SIZES
            lines = (row for n in sizes for row in rows(worlds, n))
            table = f"\n{COLUMNS}" + "".join(f"{row}\n" for row in lines)
        print(f"## {name}\n{table}", flush=True)
        if write:
            put(name, table)


def put(name: str, table: str) -> None:
    """Write one table into the page, in the order of TABLES."""
    parts = PAGE.read_text().split("\n## ")[1:] if PAGE.exists() else []
    sections = {part.split("\n", 1)[0]: part for part in parts}
    sections[name] = f"{name}\n{table}"
    order = [each for each in (*TABLES, PLAN, CELLS) if each in sections]
    PAGE.write_text(HEAD + "".join(f"\n## {sections[each].strip()}\n" for each in order))


if __name__ == "__main__":
    main(sys.argv[1:])
