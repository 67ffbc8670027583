"""Worlds for calibration_coverage.py: alpha, probabilities, thresholds; and what all share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from misslink.stats import agreement, classification, probability_calibration
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
    """The middle 95%."""
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def alpha() -> Iterator[World]:
    """Three raters of five grades, a fifth of the ratings missing; and two of two grades."""
    for raters, grades, spread in ((3, 5, 0.4), (3, 5, 1.0), (2, 2, 0.25), (2, 2, 0.6)):

        def draw(
            rng: np.random.Generator, n: int, r: int = raters, g: int = grades, s: float = spread
        ) -> list[list[float | None]]:
            cut = np.linspace(-1, 1, g + 1)[1:-1] if g > 2 else np.array([0.6])
            seen = np.searchsorted(cut, rng.normal(size=(n, 1)) + s * rng.normal(size=(n, r)))
            lost = rng.random((n, r)) < (0.2 if r > 2 else 0)
            return [[None if b else float(a) for a, b in zip(*row, strict=True)]
                    for row in zip(seen, lost, strict=True)]  # fmt: skip

        metric = "ordinal" if grades > 2 else "nominal"
        many = agreement.krippendorff_alpha(draw(np.random.default_rng(1), 40_000), metric=metric)

        def intervals(
            rng: np.random.Generator,
            n: int,
            draw=draw,  # noqa: ANN001
            metric: str = metric,
        ) -> Methods:
            ratings = draw(rng, n)
            found = ends(agreement.krippendorff_alpha(ratings, metric=metric))
            again = []
            for _ in range(100):
                picked = [ratings[at] for at in rng.integers(0, n, n)]
                one = scored(picked, metric)
                again.append(math.nan if one is None else one)
            usual = None if np.isnan(again).all() else percentile(np.array(again))
            return {"chosen": found, "bootstrap": usual}

        yield World(f"{raters} raters, {grades} grades, noise {spread}", many.value, intervals)


def scored(ratings: list[list[float | None]], metric: str) -> float | None:
    """Alpha alone, without the draws of an interval."""
    items = agreement._rated_items(ratings)  # noqa: SLF001
    seen = sorted({rating for item in items for rating in item})
    if len(seen) < 2:
        return None
    patterns, times, _ = agreement._rating_patterns(items, seen)  # noqa: SLF001
    return float(agreement._alphas(times[np.newaxis], patterns, metric)[0])  # noqa: SLF001


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
    of = {
        "brier": probability_calibration.brier_score,
        "ece": probability_calibration.calibration_error,
    }[what]
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
            found = classification.nested_threshold(labels.tolist(), score.tolist())
            cut = found.threshold or 0.0
            hits = share * norm.sf(cut - apart)
            truth = 2 * hits / (hits + (1 - share) * norm.sf(cut) + share)
            naive = classification.confusion_matrix(labels.tolist(), (score >= cut).tolist()).f1
            return {
                "chosen": shifted(found.measured.f1, truth),
                "on what it was fitted on": shifted(naive, truth),
            }

        yield World(f"share {share}, {apart} apart", 0.0, intervals)


def shifted(estimate: Estimate, truth: float) -> Ends:
    """An interval as it lies around a truth that differs from sample to sample."""
    both = ends(estimate)
    return both and (both[0] - truth, both[1] - truth)
