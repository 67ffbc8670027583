"""The share of good cases from few labels: how often its intervals hold the truth, how wide.

Nine cells: 50, 100 and 300 labels, and 5, 20 and 50% of the cases good, 1,000 further verdicts.
A 95% interval is to cover 93 to 97% of 500 draws. What is drawn has a standard error of its
own, 1.1% at 93 and 0.8% at 97, and one of it is granted. ``benchmarks/stats/calibration_coverage.md``
shows the same cells, and more judges, in figures.
"""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from calibration_coverage_shares import labels_by_plan
from misslink.stats import prevalence
from misslink.stats.classification import confusion_matrix
from misslink.stats.intervals import proportion
from misslink.stats.paired_tests import paired_difference
from misslink.stats.prevalence import corrected_difference, prediction_powered, rogan_gladen

DRAWS = 500
OTHERS = 1_000
LEAST, MOST = 0.93, 0.97
CELLS = list(itertools.product([50, 100, 300], [0.05, 0.2, 0.5]))
cells = pytest.mark.parametrize(("n", "share"), CELLS)


def error(coverage, draws):
    return math.sqrt(coverage * (1 - coverage) / draws)


def covers(held):
    """Whether a list of hits and misses is that of a 95% interval."""
    draws = len(held)
    least, most = LEAST - error(LEAST, draws), MOST + error(MOST, draws)
    return least <= np.mean(held) <= most


def holds(estimate, truth):
    return bool(estimate.low <= truth <= estimate.high)


def width(estimate):
    return estimate.high - estimate.low


def drawn(rng, n, share, right):
    """Labels and calls of n + 1,000 cases by a judge that is right so often."""
    y = rng.random(n + OTHERS) < share
    return y, np.where(y, rng.random(len(y)) < right, rng.random(len(y)) >= right)


def powered(n, share, right, draws):
    """What prediction-powered inference says of so many samples of a cell."""
    rng = np.random.default_rng([n, round(100 * share)])
    for _ in range(draws):
        y, f = (each.astype(float) for each in drawn(rng, n, share, right))
        yield prediction_powered(y[:n].tolist(), f[:n].tolist(), f[n:].tolist())


@cells
def test_the_labels_alone_cover_93_to_97_percent(n, share):
    """Exactly, by the chance of each count."""
    counts = np.arange(n + 1)
    held = [holds(proportion(int(good), n), share) for good in counts]
    assert LEAST <= binom.pmf(counts, n, share) @ held <= MOST


@pytest.mark.slow
@cells
def test_prediction_powered_inference_covers_93_to_97_percent_and_is_narrower(n, share):
    found = list(powered(n, share, 0.9, DRAWS))
    assert covers([holds(each.estimate, share) for each in found])
    narrower = np.mean([width(each.estimate) for each in found])
    narrower /= np.mean([width(each.labelled_only) for each in found])
    # what the label and a call of it share, at its best: 1 - correlation^2, of n of n + 1,000
    called = share * 0.9 + (1 - share) * 0.1
    square = (share * 0.9 - share * called) ** 2 / (share * (1 - share) * called * (1 - called))
    best = math.sqrt(1 - square * OTHERS / (n + OTHERS))
    assert 0.95 * best < narrower < min(1.2 * best, 0.95)


@pytest.mark.parametrize(("n", "share"), [CELLS[0], CELLS[-1]])
def test_a_judge_that_says_nothing_costs_no_width(n, share):
    found = list(powered(n, share, 0.5, 100))
    ratio = np.mean([width(each.estimate) for each in found])
    ratio /= np.mean([width(each.labelled_only) for each in found])
    assert 0.95 <= ratio <= 1.05


@pytest.mark.slow
@cells
@pytest.mark.parametrize("interval", ["delta", "posterior"])
def test_rogan_and_gladen_cover_93_to_97_percent(n, share, interval, monkeypatch):
    monkeypatch.setattr(prevalence, "_DRAWS", 5_000)  # four times as many cover as often
    rng = np.random.default_rng([n, round(100 * share)])
    held = []
    for _ in range(DRAWS):
        y, f = drawn(rng, n, share, 0.9)
        judge = confusion_matrix(y[:n].tolist(), f[:n].tolist())
        found = rogan_gladen(int(f.sum()), len(f), judge, among=True, interval=interval)
        if found.value is not None:
            held.append(holds(found, share))
    # with two or three good cases the labels may not show that the judge is better than chance
    assert len(held) > (0.8 if n * share < 5 else 0.95) * DRAWS
    assert covers(held)


@pytest.mark.slow
def test_labelled_calls_that_count_twice_make_the_interval_too_wide():
    """Why the labels among the cases are told apart."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(DRAWS):
        y, f = drawn(rng, 300, 0.2, 0.9)
        judge = confusion_matrix(y[:300].tolist(), f[:300].tolist())
        held.append(holds(rogan_gladen(int(f.sum()), len(f), judge), 0.2))
    assert np.mean(held) > MOST


def called(rng, good):
    """The calls of a judge that is right of 9 in 10 good cases, and of 8 in 10 bad ones."""
    return np.where(good, rng.random(len(good)) < 0.9, rng.random(len(good)) >= 0.8)


@cache
def raw_differences(more):
    """What the judge says of pairs of systems, the second of them so much better."""
    rng, found = np.random.default_rng([0, round(100 * more)]), []
    for _ in range(DRAWS):
        first = rng.random(500) < 0.5
        second = first | (rng.random(500) < 2 * more)
        calls = (called(rng, good).astype(float).tolist() for good in (first, second))
        found.append(paired_difference(*calls).difference)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 100, 300])
@pytest.mark.parametrize("more", [0.0, 0.1])
def test_the_corrected_difference_covers_93_to_97_percent(n, more):
    rng = np.random.default_rng([n, round(100 * more)])
    corrected, uncorrected = [], []
    for raw in raw_differences(more):
        labels = rng.random(n) < 0.5
        judge = confusion_matrix(labels.tolist(), called(rng, labels).tolist())
        corrected.append(holds(corrected_difference(raw, judge), more))
        uncorrected.append(holds(raw, more))
    assert covers(corrected)
    assert not more or np.mean(uncorrected) < 0.9  # it sees 7 of 10 points


@pytest.mark.slow
def test_weights_of_labels_drawn_by_plan_are_never_too_sure():
    """From strata of verdicts, most from the middle: the formula is for labels drawn singly."""
    rng = np.random.default_rng(8)
    held, plain = [], []
    for _ in range(DRAWS // 4):
        y = (rng.random(OTHERS) < 0.3).astype(float)
        f = np.clip(0.3 + 0.4 * y + 0.2 * rng.normal(size=OTHERS), 0, 1).round(2)
        stratum = np.searchsorted([0.25, 0.45, 0.65], f, side="right")
        here, weights = np.zeros(OTHERS, dtype=bool), np.zeros(OTHERS)
        for at, taken in enumerate((10, 20, 20, 10)):
            cases = np.flatnonzero(stratum == at)
            picked = rng.choice(cases, taken, replace=False)
            here[picked], weights[picked] = True, len(cases) / taken
        known = y[here].tolist(), f[here].tolist(), f[~here].tolist()
        by_weight = prediction_powered(*known, weights=weights[here].tolist())
        held.append(holds(by_weight.estimate, 0.3))
        plain.append(holds(prediction_powered(*known).labelled_only, 0.3))
    assert np.mean(held) >= LEAST
    assert np.mean(plain) < np.mean(held)


@pytest.mark.parametrize("runs", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_labels_by_plan_cover_93_percent_in_every_cell_and_are_never_wider_than_random_ones(runs):
    """Two annotators who err, an overconfident judge, failures that go together or not."""
    found = [cell for cell in labels_by_plan(runs) if cell.is_enough]
    assert len(found) == 198
    # three standard errors: the least of so many cells lies as far below by chance alone
    assert min(cell.held for cell in found) >= LEAST - 3 * error(LEAST, runs)
    assert 0.94 <= np.mean([cell.held for cell in found]) <= 0.975
    assert max(cell.width for cell in found) <= (1.15 if runs < 300 else 1.08)
    assert np.mean([cell.width for cell in found]) < 0.92
    assert np.mean([cell.squared for cell in found]) < 0.85
