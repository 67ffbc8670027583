"""Worlds for calibration_coverage.py: corrected shares, and differences of two."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.stats import binom

from calibration_coverage_rates import (
    JUDGES,
    OTHERS,
    SHARES,
    Floats,
    Methods,
    World,
    Z,
    ends,
    judged,
)
from misslink.stats import classification, intervals, paired_tests, prevalence
from misslink.stats.intervals import wilson_interval

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


def by_plan() -> Iterator[World]:
    """Labels from strata of score and category, so many from each, most near the threshold.

    The variance within strata is what an interval could use that knows of them.
    """
    for share, judge in itertools.product(SHARES, JUDGES):

        def intervals(
            rng: np.random.Generator,
            n: int,
            share: float = share,
            judge: tuple[float, float] = judge,
        ) -> Methods:
            y, f = judged(rng, OTHERS, share, judge, soft=True)
            stratum = 3 * np.searchsorted([0.2, 0.4, 0.6, 0.8], f, side="right")
            stratum += rng.integers(0, 3, OTHERS)  # a category
            here, weights = drawn_by_plan(rng, stratum, n)
            found = prevalence.prediction_powered(
                y[here].tolist(),
                f[here].tolist(),
                f[~here].tolist(),
                weights=weights[here].tolist(),
            )
            return {
                "chosen": ends(found.estimate),
                "spread within strata": within_strata(y, f, stratum, here, weights),
                "labelled only": ends(found.labelled_only),
                "labelled only, weights ignored": ends(
                    intervals.proportion(int(y[here].sum()), int(here.sum()))
                ),
            }

        yield World(f"share {share}, judge {judge[0]} {judge[1]}", share, intervals)


def drawn_by_plan(
    rng: np.random.Generator, stratum: Floats, n: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], Floats]:
    """Which cases are labelled, three times as often in the middle stratum, and their weights."""
    sizes = np.bincount(stratum)
    rate = np.minimum(1 + np.arange(len(sizes)) // 3, 5 - np.arange(len(sizes)) // 3)
    wanted = n * sizes * rate / (sizes @ rate)
    here, weights = np.zeros(len(stratum), dtype=bool), np.zeros(len(stratum))
    for at in np.flatnonzero(sizes):
        size = int(sizes[at])
        taken = min(size, max(1, math.floor(wanted[at] + rng.random())))
        picked = rng.choice(np.flatnonzero(stratum == at), taken, replace=False)
        here[picked], weights[picked] = True, size / taken
    return here, weights


def within_strata(
    y: Floats, f: Floats, stratum: Floats, here: Floats, weights: Floats
) -> tuple[float, float]:
    """The same estimate, its variance from the spread within strata, a case of the whole added."""
    w = weights[here] / weights[here].sum()
    labels, verdicts = y[here], f[here]
    mean_y, mean_f = float(w @ labels), float(w @ verdicts)
    slope = float(w @ ((labels - mean_y) * (verdicts - mean_f))) / float(f.var())
    left = labels - slope * verdicts
    pooled = float(w @ (left - w @ left) ** 2)
    variance = mean_y * (1 - mean_y) / len(y)
    for at in np.unique(stratum):
        inside, size = left[stratum[here] == at], int((stratum == at).sum())
        spread = (float(((inside - inside.mean()) ** 2).sum()) + pooled) / len(inside)
        variance += (size / len(y)) ** 2 * spread / len(inside) * (1 - len(inside) / size)
    value = min(max(mean_y + slope * (float(f.mean()) - mean_f), 0.5 / len(y)), 1 - 0.5 / len(y))
    return wilson_interval(value, value * (1 - value) / max(variance, 1e-9), Z)


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
