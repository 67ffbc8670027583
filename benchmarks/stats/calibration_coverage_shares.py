"""Worlds for calibration_coverage.py: corrected shares, and differences of two."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom, norm

from calibration_coverage_rates import (
    JUDGES,
    OTHERS,
    SHARES,
    Methods,
    World,
    Z,
    ends,
    judged,
)
from misslink.stats import classification, intervals, paired_tests, prevalence

CELLS = tuple(itertools.product((50, 100, 300), SHARES))  # labels, share of good cases
CELL_JUDGES = {"right in 9 of 10": 0.9, "no better than a coin": 0.5}


def prediction_powered() -> Iterator[World]:
    """PPI++: chosen, the normal interval, and the labels alone."""
    for share, judge, soft in itertools.product(SHARES, JUDGES, (False, True)):

        def intervals(
            rng: np.random.Generator,
            n: int,
            share: float = share,
            judge: tuple[float, float] = judge,
            soft: bool = soft,
        ) -> Methods:
            y, f = judged(rng, n + OTHERS, share, judge, soft=soft)
            found = prevalence.prediction_powered(y[:n].tolist(), f[:n].tolist(), f[n:].tolist())
            power = found.power or 0.0
            error = (y[:n] - power * f[:n]).var() / n + power**2 * f[n:].var() / OTHERS
            centre = y[:n].mean() + power * (f[n:].mean() - f[:n].mean())
            half = Z * math.sqrt(error)
            return {
                "chosen": ends(found.estimate),
                "normal": (centre - half, centre + half),
                "labelled only": ends(found.labelled_only),
            }

        kind = "probabilities" if soft else "calls"
        yield World(f"share {share}, {kind} of {judge[0]} {judge[1]}", share, intervals)


def weighted() -> Iterator[World]:
    """Labels spent three times as often on cases the judge calls bad, weighted back."""
    for share, judge in itertools.product(SHARES, JUDGES):

        def intervals(
            rng: np.random.Generator,
            n: int,
            share: float = share,
            judge: tuple[float, float] = judge,
        ) -> Methods:
            y, f = judged(rng, n + OTHERS, share, judge, soft=False)
            lean = np.where(f > 0, 1.0, 3.0)
            chance = n * lean / lean.sum()
            here = rng.random(len(y)) < chance
            weights = (1 / chance[here]).tolist()
            found = prevalence.prediction_powered(
                y[here].tolist(), f[here].tolist(), f[~here].tolist(), weights=weights
            )
            plain = prevalence.prediction_powered(
                y[here].tolist(), f[here].tolist(), f[~here].tolist()
            )
            return {
                "chosen": ends(found.estimate),
                "labelled only": ends(found.labelled_only),
                "labelled only, weights ignored": ends(plain.labelled_only),
            }

        yield World(f"share {share}, judge {judge[0]} {judge[1]}", share, intervals)


PLAN_CASES, CLUSTER = 1_000, 5  # of a run, and those of one document
PLAN_LABELS, PLAN_ERRORS = (50, 100, 200, 300), (0.0, 0.05, 0.1)
PLAN_WORLDS = tuple(itertools.product((0.05, 0.2, 0.5), (0.76, 0.9, 0.97), (False, True)))
LEAST_FAILURES = 5  # expected among the labels; with fewer the product may say so
LEVELS, CATEGORIES = 4, 3
OVERCONFIDENT = 2.0  # the judge's log odds, as a multiple of the right ones
Arrays = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class PlanCell:
    """What 2,000 runs of a cell gave: coverage, and width by that of random labels alone."""

    failing: float
    auroc: float
    clustered: bool
    labels: int
    error: float
    held: float
    width: float
    squared: float

    @property
    def is_enough(self) -> bool:
        return self.failing * self.labels >= LEAST_FAILURES


def labels_by_plan(times: int) -> Iterator[PlanCell]:
    """Labels in the order of ``misslink annotate``, two annotators who err, against random ones.

    The judge is overconfident; failures of a document go together. Both intervals know of the
    documents, and the error of the annotators is taken out of both.
    """
    for failing, area, clustered in PLAN_WORLDS:
        rng = np.random.default_rng([round(100 * failing), round(100 * area), clustered])
        bad, good = plan_world(rng, times, failing, area, clustered=clustered)
        order, strata, sizes = drawn_by_plan(rng, good)
        chance = np.argsort(rng.random(good.shape), axis=1)
        document = np.broadcast_to(np.arange(PLAN_CASES) // CLUSTER, good.shape)
        for n, error in itertools.product(PLAN_LABELS, PLAN_ERRORS):
            ends = []
            for drawn in (order[:, :n], chance[:, :n]):
                clusters = np.take_along_axis(document, drawn, 1) if clustered else None
                passed = ~np.take_along_axis(bad, drawn, 1)
                votes = [passed ^ (rng.random(passed.shape) < error) for _ in range(2)]
                told, split = np.mean(votes, axis=0), (votes[0] != votes[1]).astype(float)
                if drawn.base is order:
                    at = np.take_along_axis(strata, drawn, 1)
                    counts = (at[..., np.newaxis] == np.arange(sizes.shape[1])).sum(1)
                    weights = np.take_along_axis(sizes / np.maximum(counts, 1), at, 1)
                    y = prevalence.remove_label_error(told, split, weights)
                    found = prevalence.poststratified_share(y, at, sizes, clusters=clusters)
                    ends.append(found[:3])
                else:
                    y = prevalence.remove_label_error(told, split, np.ones(told.shape))
                    ends.append(plain_interval(y, clusters))
            (value, low, high), (other, least, most) = ends
            truth = 1 - failing
            yield PlanCell(
                failing,
                area,
                clustered,
                n,
                error,
                float(np.mean((low <= truth) & (truth <= high))),
                float(np.mean(high - low) / np.mean(most - least)),
                float(np.mean((value - truth) ** 2) / np.mean((other - truth) ** 2)),
            )


def plan_world(
    rng: np.random.Generator, times: int, failing: float, area: float, *, clustered: bool
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]], Arrays]:
    """Which cases fail, and the judge's probability that a case is good, sample by sample."""
    hidden = rng.normal(size=(times, PLAN_CASES))
    if clustered:
        shared = np.repeat(rng.normal(size=(times, PLAN_CASES // CLUSTER)), CLUSTER, axis=1)
        hidden = (hidden + shared) / math.sqrt(2)
    bad = hidden < norm.ppf(failing)
    apart = math.sqrt(2) * norm.ppf(area)
    score = rng.normal(size=bad.shape) + np.where(bad, 0.0, apart)
    odds = apart * score - apart**2 / 2 + logit(1 - failing)
    return bad, expit(OVERCONFIDENT * odds)


def drawn_by_plan(rng: np.random.Generator, good: Arrays) -> tuple[Arrays, Arrays, Arrays]:
    """The order of the labels, the stratum of each case, and the sizes of the strata.

    As `misslink.annotation.tasks.draw_plan`: levels by both sides of the threshold and their
    medians, split by category where they are large, and its rates.
    """
    called = good >= 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a side without a case
        low, high = (
            np.nanmedian(np.where(side, good, np.nan), axis=1, keepdims=True)
            for side in (~called, called)
        )
    level = np.where(called, np.where(good >= high, 3, 2), np.where(good <= low, 0, 1))
    large = (level[..., np.newaxis] == np.arange(LEVELS)).sum(1) >= CATEGORIES * 63
    category = rng.integers(0, CATEGORIES, good.shape) * np.take_along_axis(large, level, 1)
    stratum = CATEGORIES * level + category
    inside = stratum[..., np.newaxis] == np.arange(LEVELS * CATEGORIES)
    sizes = inside.sum(1)
    chance = np.clip(good, 0.05, 0.95)
    spread = (inside * (chance * (1 - chance))[..., np.newaxis]).sum(1) / np.maximum(sizes, 1)
    spread = np.sqrt(spread)
    mean = (sizes * spread).sum(1, keepdims=True) / PLAN_CASES
    turns = sizes * (0.2 + 0.8 * spread / mean)
    shuffled = np.argsort(stratum + rng.random(good.shape), axis=1)
    place = np.take_along_axis(stratum, shuffled, 1)
    first = np.cumsum(sizes, axis=1) - sizes
    rank = np.arange(PLAN_CASES) - np.take_along_axis(first, place, 1)
    turn = (rank + 0.5) / np.take_along_axis(turns, place, 1) + PLAN_CASES * (rank > 0)
    order = np.take_along_axis(shuffled, np.argsort(turn, axis=1), 1)
    return order, stratum, sizes.astype(float)


def plain_interval(y: Arrays, clusters: Arrays | None) -> tuple[Arrays, Arrays, Arrays]:
    """Wilson's interval of random labels alone, with the labels that its variance is worth."""
    n = y.shape[1]
    value = np.clip(y.mean(axis=1), 0, 1)
    edge = np.clip(value, 0.5 / n, 1 - 0.5 / n)
    variance = (y.var(axis=1) * n + 0.25) / n**2
    if clusters is not None:
        moved = (y - y.mean(axis=1, keepdims=True)) / n
        at = clusters + (PLAN_CASES * np.arange(len(y)))[:, np.newaxis]
        together = np.bincount(at.ravel(), moved.ravel()) ** 2
        together = np.add.reduceat(together, PLAN_CASES * np.arange(len(y)))
        variance += np.maximum(together - (moved**2).sum(axis=1), 0)
    square = Z**2 * variance / (edge * (1 - edge))
    middle = (value + square / 2) / (1 + square)
    half = np.sqrt(square * value * (1 - value) + square**2 / 4) / (1 + square)
    return value, middle - half, middle + half


def plan_rows(times: int) -> Iterator[str]:
    """Lines of the table of labels by plan: coverage and width by label error and clusters."""
    cells = list(labels_by_plan(times))
    kinds = list(itertools.product((False, True), PLAN_ERRORS))
    for failing, area, n in itertools.product((0.05, 0.2, 0.5), (0.76, 0.9, 0.97), PLAN_LABELS):
        row = {(c.clustered, c.error): c for c in cells
               if (c.failing, c.auroc, c.labels) == (failing, area, n)}  # fmt: skip
        few = "" if row[kinds[0]].is_enough else ", too few"
        parts = " | ".join(f"{row[kind].held:.3f} {row[kind].width:.2f}" for kind in kinds)
        yield f"| {100 * failing:.0f}% | {area:.2f} | {n}{few} | {parts} |"
    enough = [cell for cell in cells if cell.is_enough]
    yield (
        f"\nOf {len(enough)} cells with 5 expected failures or more: least coverage "
        f"{min(cell.held for cell in enough):.3f}, mean "
        f"{np.mean([cell.held for cell in enough]):.3f}; mean width "
        f"{np.mean([cell.width for cell in enough]):.2f}, largest "
        f"{max(cell.width for cell in enough):.2f}; mean squared error "
        f"{np.mean([cell.squared for cell in enough]):.2f} of that of random labels, largest "
        f"{max(cell.squared for cell in enough):.2f}."
    )


def rogan_gladen() -> Iterator[World]:
    """Labels of these very cases, or of others; by the delta method and from the posterior."""
    for share, judge in itertools.product(SHARES, JUDGES):

        def intervals(
            rng: np.random.Generator,
            n: int,
            share: float = share,
            judge: tuple[float, float] = judge,
        ) -> Methods:
            y, f = judged(rng, n + OTHERS, share, judge, soft=False)
            table = classification.confusion_matrix(y[:n].tolist(), f[:n].tolist())
            every, rest = (int(f.sum()), len(f)), (int(f[n:].sum()), OTHERS)
            return {
                "delta": ends(prevalence.rogan_gladen(*every, table, among=True)),
                "posterior": ends(
                    prevalence.rogan_gladen(*every, table, among=True, interval="posterior")
                ),
                "delta, labels of other cases": ends(prevalence.rogan_gladen(*rest, table)),
                "delta, labelled calls counted twice": ends(prevalence.rogan_gladen(*every, table)),
            }

        yield World(f"share {share}, judge {judge[0]} {judge[1]}", share, intervals)


def difference() -> Iterator[World]:
    """Two systems on 500 cases, judged by one judge with labels of other cases."""
    for share, judge, gain in itertools.product(
        (0.2, 0.5), ((0.9, 0.9), (0.8, 0.7)), (-0.15, 0.0, 0.1)
    ):

        def intervals(
            rng: np.random.Generator,
            n: int,
            share: float = share,
            judge: tuple[float, float] = judge,
            gain: float = gain,
        ) -> Methods:
            y, f = judged(rng, n, share, judge, soft=False)
            first = rng.random(500) < share
            turned = rng.random(500) < abs(gain) / (1 - share if gain > 0 else share)
            second = first ^ (turned & (first == (gain < 0)))
            calls = []
            for good in (first, second):
                right = np.where(good, judge[0], 1 - judge[1])
                calls.append((rng.random(500) < right).astype(float))
            alike = (first == second) & (rng.random(500) < 0.7)  # the same answer again
            calls[1][alike] = calls[0][alike]
            raw = paired_tests.paired_difference(calls[0].tolist(), calls[1].tolist()).difference
            table = classification.confusion_matrix(y.tolist(), f.tolist())
            return {
                "chosen": ends(prevalence.corrected_difference(raw, table)),
                "uncorrected": ends(raw),
            }

        yield World(f"share {share}, {gain} more, judge {judge[0]} {judge[1]}", gain, intervals)


def cells(times: int) -> Iterator[str]:
    """Lines of the table of cells: coverage, and the width by that of the labels alone."""
    for judge, right in CELL_JUDGES.items():
        for n, share in CELLS:
            rng = np.random.default_rng([n, round(100 * share), round(100 * right)])
            held: dict[str, list[bool]] = {}
            widths: dict[str, list[float]] = {}
            for _ in range(times):
                for method, found in cell(rng, n, share, right).items():
                    if found is not None:
                        held.setdefault(method, []).append(found[0] <= share <= found[1])
                        widths.setdefault(method, []).append(found[1] - found[0])
            alone = float(np.mean(widths["labelled only"]))
            for method, covered in held.items():
                if len(covered) < times // 5:
                    continue
                exact = binomial_coverage(n, share) if method == "labelled only" else None
                yield (
                    f"| {judge} | {n} | {share} | {method} "
                    f"| {np.mean(covered) if exact is None else exact:.3f} "
                    f"| {np.mean(widths[method]) / alone:.2f} | {1 - len(covered) / times:.3f} |"
                )


def cell(rng: np.random.Generator, n: int, share: float, right: float) -> Methods:
    """One sample of a cell: n labels among n + 1,000 verdicts."""
    y, f = judged(rng, n + OTHERS, share, (right, right), soft=False)
    found = prevalence.prediction_powered(y[:n].tolist(), f[:n].tolist(), f[n:].tolist())
    table = classification.confusion_matrix(y[:n].tolist(), f[:n].tolist())
    counts = int(f.sum()), len(f)
    return {
        "labelled only": ends(found.labelled_only),
        "prediction-powered": ends(found.estimate),
        "Rogan-Gladen, delta": ends(prevalence.rogan_gladen(*counts, table, among=True)),
        "Rogan-Gladen, posterior": ends(
            prevalence.rogan_gladen(*counts, table, among=True, interval="posterior")
        ),
    }


def binomial_coverage(n: int, share: float) -> float:
    """Of the labels alone, exactly: the chance of every count whose interval holds the share."""
    intervals = [intervals.proportion(good, n) for good in range(n + 1)]
    inside = [good for good, x in enumerate(intervals) if x.low <= share <= x.high]
    return float(binom.pmf(inside, n, share).sum())
