"""Worlds for calibration_coverage.py: probabilities, corrected rates, fitted thresholds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from misslink import stats
from misslink.types import Estimate

Floats = NDArray[np.float64]
Ends = tuple[float, float] | None
Methods = dict[str, Ends]

Z = 1.959963984540054
SHARES = (0.05, 0.2, 0.5)
JUDGES = ((0.7, 0.7), (0.9, 0.9), (0.95, 0.8), (0.98, 0.98))  # sensitivity, specificity
OTHERS = 1_000  # cases without a label


@dataclass(frozen=True)
class World:
    """One truth, and what each method says of a sample of n labels from it."""

    name: str
    truth: float
    intervals: Callable[[np.random.Generator, int], Methods]


def ends(estimate: Estimate) -> Ends:
    """Both ends, or None without an interval."""
    if estimate.low is None or estimate.high is None:
        return None
    return estimate.low, estimate.high


def percentile(values: Floats) -> Ends:
    """The middle 95 %."""
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


BENDS: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: expit(0.5 * logit(p)),
    "0.15 too high": lambda p: np.clip(p - 0.15, 0, 1),
    "hardly related": lambda p: 0.5 + 0.2 * (p - 0.5),
}
SPREADS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "even": lambda rng, n: stepped(rng.uniform(0, 1, n)),
    "at the ends": lambda rng, n: stepped(rng.beta(0.6, 0.3, n)),
}


def stepped(chance: Floats) -> Floats:
    """Probabilities as judges say them, in steps of 0.05."""
    steps: Floats = np.clip(np.round(chance * 20), 0.2, 19.8) / 20
    return steps


def probabilities(what: str) -> Iterator[World]:
    """Brier score or calibration error, beside the percentile bootstrap."""
    of = {"brier": stats.brier, "ece": stats.calibration_error}[what]
    quick = {"brier": lambda y, p: float(np.mean((y - p) ** 2)), "ece": binned}[what]
    for (bend, function), (spread, draw) in itertools.product(BENDS.items(), SPREADS.items()):

        def intervals(
            rng: np.random.Generator,
            n: int,
            function=function,  # noqa: ANN001
            draw=draw,  # noqa: ANN001
        ) -> Methods:
            chance = draw(rng, n)
            labels = (rng.random(n) < function(chance)).astype(float)
            again = [quick(labels[at], chance[at]) for at in rng.integers(0, n, (200, n))]
            found = of(labels.tolist(), chance.tolist())
            return {"chosen": ends(found), "bootstrap": percentile(np.array(again))}

        many = draw(np.random.default_rng(1), 300_000)
        good = function(many)
        squared = float(np.mean((good - many) ** 2 + good * (1 - good)))
        truth = squared if what == "brier" else binned(good, many)
        yield World(f"{bend}, {spread}", truth, intervals)


def binned(good: Floats, chance: Floats) -> float:
    """Calibration error in ten bins of equal width."""
    place = np.searchsorted(np.arange(1, 10) / 10, chance, side="right")
    return float(np.abs(np.bincount(place, good - chance)).sum() / len(chance))


def brier() -> Iterator[World]:
    """The mean squared error."""
    return probabilities("brier")


def calibration_error() -> Iterator[World]:
    """ECE."""
    return probabilities("ece")


def judged(
    rng: np.random.Generator, n: int, share: float, judge: tuple[float, float], *, soft: bool
) -> tuple[Floats, Floats]:
    """Labels, and a judge's calls, or its probabilities from which those would follow."""
    labels = (rng.random(n) < share).astype(float)
    if not soft:
        called = rng.random(n) < np.where(labels > 0, judge[0], 1 - judge[1])
        return labels, called.astype(float)
    middle = np.where(labels > 0, norm.ppf(judge[0]), -norm.ppf(judge[1]))
    return labels, stepped(norm.cdf(middle + rng.normal(size=n)))


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
            found = stats.prediction_powered(y[:n].tolist(), f[:n].tolist(), f[n:].tolist())
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
            found = stats.prediction_powered(
                y[here].tolist(), f[here].tolist(), f[~here].tolist(), weights=weights
            )
            plain = stats.prediction_powered(y[here].tolist(), f[here].tolist(), f[~here].tolist())
            return {
                "chosen": ends(found.estimate),
                "labelled only": ends(found.labelled_only),
                "labelled only, weights ignored": ends(plain.labelled_only),
            }

        yield World(f"share {share}, judge {judge[0]} {judge[1]}", share, intervals)


def rogan_gladen() -> Iterator[World]:
    """Both intervals, and the delta method without the adjustment."""
    for share, judge in itertools.product(SHARES, JUDGES):

        def intervals(
            rng: np.random.Generator,
            n: int,
            share: float = share,
            judge: tuple[float, float] = judge,
        ) -> Methods:
            y, f = judged(rng, n + OTHERS, share, judge, soft=False)
            table = stats.confusion(y[:n].tolist(), f[:n].tolist())
            called, size = int(f.sum()), len(f)
            delta = stats.rogan_gladen(called, size, table)
            drawn = stats.rogan_gladen(called, size, table, interval="posterior")
            if delta.value is None:
                return {"delta": None, "posterior": None, "unadjusted": None}
            s, t = table.true_positive / table.positives, table.true_negative / table.negatives
            p = called / size
            x = (p + t - 1) / (s + t - 1)
            v = p * (1 - p) / size + x * x * s * (1 - s) / table.positives
            v += (1 - x) ** 2 * t * (1 - t) / table.negatives
            half = Z * math.sqrt(v) / (s + t - 1)
            return {
                "delta": ends(delta),
                "posterior": ends(drawn),
                "unadjusted": (x - half, x + half),
            }

        yield World(f"share {share}, judge {judge[0]} {judge[1]}", share, intervals)


def nested_threshold() -> Iterator[World]:
    """F1 that a threshold fitted on all labels has on new cases, less what was measured: 0."""
    for share, apart in itertools.product((0.2, 0.5, 0.8), (0.5, 1.5, 2.5)):

        def intervals(
            rng: np.random.Generator, n: int, share: float = share, apart: float = apart
        ) -> Methods:
            labels = (rng.random(n) < share).astype(float)
            score = rng.normal(size=n) + apart * labels
            if min(labels.sum(), n - labels.sum()) < 2:
                return {"chosen": None, "on what it was fitted on": None}
            found = stats.nested_threshold(labels.tolist(), score.tolist())
            cut = found.threshold or 0.0
            hits = share * norm.sf(cut - apart)
            truth = 2 * hits / (hits + (1 - share) * norm.sf(cut) + share)
            naive = stats.confusion(labels.tolist(), (score >= cut).tolist()).f1
            return {
                "chosen": shifted(found.measured.f1, truth),
                "on what it was fitted on": shifted(naive, truth),
            }

        yield World(f"share {share}, {apart} apart", 0.0, intervals)


def shifted(estimate: Estimate, truth: float) -> Ends:
    """An interval as it lies around a truth that differs from sample to sample."""
    both = ends(estimate)
    return both and (both[0] - truth, both[1] - truth)
