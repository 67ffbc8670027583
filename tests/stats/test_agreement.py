"""Alpha against the krippendorff package, and against kappa's neighbourhood by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from misslink.stats.agreement import krippendorff_alpha, percent_agreement

NONE = None
# Krippendorff's own example as in the krippendorff package's readme: three coders, 15 units.
UNITS = list(
    zip(
        [NONE, NONE, NONE, NONE, NONE, 3, 4, 1, 2, 1, 1, 3, 3, NONE, 3],
        [1, NONE, 2, 1, 3, 3, 4, 3, NONE, NONE, NONE, NONE, NONE, NONE, NONE],
        [NONE, NONE, 2, 1, 3, 4, 4, NONE, 2, 1, 1, 3, 3, NONE, 4],
        strict=True,
    )
)


@pytest.mark.parametrize(
    ("metric", "expected"), [("nominal", 0.691358024691358), ("ordinal", 0.8067214199413153)]
)
def test_alpha_is_that_of_krippendorff_0_9(metric, expected):
    found = krippendorff_alpha(UNITS, metric=metric)
    assert found.value == pytest.approx(expected)
    assert found.n == 12  # three units have fewer than two ratings
    assert -1 <= found.low < found.value < found.high <= 1


def ordinal_by_definition(items):
    """Krippendorff (2011), section D: coincidences and the sum of ranks between two categories."""
    items = [[r for r in item if r is not None] for item in items]
    items = [item for item in items if len(item) > 1]
    size = max(r for item in items for r in item) + 1
    coincidences = np.zeros((size, size))
    for item in items:
        for a, first in enumerate(item):
            for b, second in enumerate(item):
                if a != b:
                    coincidences[first, second] += 1 / (len(item) - 1)
    n = coincidences.sum(axis=0)
    apart = np.zeros((size, size))
    for c in range(size):
        for k in range(size):
            low, high = min(c, k), max(c, k)
            apart[c, k] = (n[low : high + 1].sum() - (n[c] + n[k]) / 2) ** 2
    by_chance = (np.outer(n, n) - np.diag(n)) / (n.sum() - 1)
    return 1 - (coincidences * apart).sum() / (by_chance * apart).sum()


@pytest.mark.parametrize("seed", range(4))
def test_ordinal_alpha_by_midranks_is_the_definition(seed):
    generator = np.random.default_rng(seed)
    true = generator.integers(0, 5, 30)
    given = [
        [int(np.clip(t + generator.integers(-1, 2), 0, 4)) if generator.random() < 0.8 else None
         for _ in range(4)]
        for t in true
    ]  # fmt: skip
    found = krippendorff_alpha(given, metric="ordinal")
    assert found.value == pytest.approx(ordinal_by_definition(given))


def test_two_raters_of_two_grades_worked_by_hand():
    # 8 ratings, 3 and 5 of a kind: observed 2/8 differ, by chance 2*3*5/(8*7) = 30/56
    found = krippendorff_alpha([["y", "y"], ["n", "n"], ["y", "n"], ["n", "n"]])
    assert found.value == pytest.approx(1 - (2 / 8) / (30 / 56))


def test_full_agreement_still_leaves_doubt():
    found = krippendorff_alpha([[1, 1]] * 6 + [[0, 0]] * 6)
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.4 < found.low < 0.95


def test_the_interval_narrows_with_more_items():
    few, many = (krippendorff_alpha(([[1, 1]] * 4 + [[0, 0]] * 4 + [[0, 1]]) * t) for t in (3, 48))
    assert few.high - few.low > 3 * (many.high - many.low)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([], "no item has two"),
        ([[1, None], [0]], "no item has two"),
        ([[1, 1], [1, 1]], "the same"),
    ],
)
def test_what_has_no_alpha_says_why(ratings, reason):
    found = krippendorff_alpha(ratings)
    assert found.value is None
    assert reason in found.reason


def test_words_have_no_order_and_no_scale_has_hundreds_of_grades():
    with pytest.raises(ValueError, match="ordinal ratings must be numbers"):
        krippendorff_alpha([["a", "b"]], metric="ordinal")
    with pytest.raises(ValueError, match="not a scale"):
        krippendorff_alpha([[at, at + 0.5] for at in range(60)])


def test_neither_raters_nor_items_have_an_order():
    turned = [tuple(reversed(unit)) for unit in reversed(UNITS)]
    assert krippendorff_alpha(turned, metric="ordinal") == krippendorff_alpha(
        UNITS, metric="ordinal"
    )


def test_percent_agreement_counts_pairs_within_items():
    found = percent_agreement([[1, 1], [1, 0], [0, 0], [1, 1], [None, 1]])
    assert (found.value, found.n, found.method) == (0.75, 4, "wilson")
    assert math.isclose(percent_agreement([[1, 1, 0], [2, 2, 2]]).value, (1 / 3 + 1) / 2)
    assert percent_agreement([[1]]).reason == "no item has two ratings"
