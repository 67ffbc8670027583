"""Agreement of raters and rank correlations."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from misslink.stats.agreement import (
    _kendall,
    _spearman,
    cohen_kappa,
    cross_table,
    gwet_ac1,
    kendall_tau,
    krippendorff_alpha,
    percent_agreement,
    spearman,
)

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
    assert percent_agreement([[1]]).reason_code.code == "no_double_rating"


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
@pytest.mark.parametrize("seed", range(3))
def test_kappa_is_that_of_scikit_learn(weights, seed):
    from sklearn.metrics import cohen_kappa_score

    generator = np.random.default_rng(seed)
    first = generator.integers(0, 4, 70)
    second = (first + generator.integers(0, 2, 70)) % 4
    categories, table = cross_table(first.tolist(), second.tolist())
    expected = cohen_kappa_score(first, second, weights=None if weights == "none" else weights)
    assert categories == [0, 1, 2, 3]
    assert cohen_kappa(table, weights=weights).value == pytest.approx(expected)


def test_with_many_cases_the_interval_is_the_large_sample_one_of_statsmodels():
    from statsmodels.stats.inter_rater import cohens_kappa

    table = [[4000, 500], [300, 1200]]
    oracle = cohens_kappa(table)
    found = cohen_kappa(table)
    assert found.low == pytest.approx(oracle.kappa_low, abs=0.002)
    assert found.high == pytest.approx(oracle.kappa_upp, abs=0.002)


def test_ac1_is_that_of_irr_cac():
    # irrCAC 0.4.4, CAC(frame).gwet() on the same ratings
    assert gwet_ac1([[10, 2, 1], [3, 20, 4], [0, 5, 15]]).value == pytest.approx(0.6325, abs=5e-5)
    found = gwet_ac1([[118, 5], [2, 0]])
    assert found.value == pytest.approx(0.94078, abs=5e-6)
    assert found.low == pytest.approx(0.89514, abs=0.02)
    assert found.high == pytest.approx(0.98641, abs=0.02)


def test_perfect_agreement_still_leaves_doubt():
    for found in (cohen_kappa([[10, 0], [0, 10]]), gwet_ac1([[10, 0], [0, 10]])):
        assert (found.value, found.high) == (1.0, 1.0)
        assert 0.6 < found.low < 0.95


def test_one_category_has_no_kappa_and_ac1_is_full():
    found = cohen_kappa([[20, 0], [0, 0]])
    assert (found.value, found.n) == (None, 20)
    assert "always use the same category" in found.reason
    assert gwet_ac1([[20, 0], [0, 0]]).value == 1.0


@pytest.mark.parametrize("function", [cohen_kappa, gwet_ac1])
def test_no_cases_are_missing(function):
    found = function([[0, 0], [0, 0]])
    assert (found.value, found.n) == (None, 0)
    assert found.reason


@pytest.mark.parametrize("function", [cohen_kappa, gwet_ac1])
def test_a_table_that_is_none_is_refused(function):
    with pytest.raises(ValueError, match="as many columns as rows"):
        function([[1, 2]])
    with pytest.raises(ValueError, match="negative"):
        function([[1, 2], [-1, 0]])


def test_unrated_cases_are_left_out_and_unlike_categories_keep_their_order():
    assert cross_table(["b", "a", None], ["b", "b", "a"]) == (["a", "b"], [[0, 1], [0, 1]])
    assert cross_table(["x", 1], [1, 1]) == (["x", 1], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="not of the same cases"):
        cross_table([1], [])


def test_the_seed_decides_the_interval():
    table = [[20, 5], [3, 12]]
    assert cohen_kappa(table, seed=4) == cohen_kappa(table, seed=4)
    assert cohen_kappa(table, seed=4).low != cohen_kappa(table, seed=5).low


BOTH = [
    (spearman, _spearman, scipy_stats.spearmanr),
    (kendall_tau, _kendall, scipy_stats.kendalltau),
]


def graded(seed, n=40):
    generator = np.random.default_rng(seed)
    grades = generator.integers(0, 4, n).astype(float)
    return grades, np.round(grades + generator.normal(size=n), 1)


@pytest.mark.parametrize(("function", "_", "oracle"), BOTH)
@pytest.mark.parametrize("seed", range(4))
def test_value_is_that_of_scipy_with_ties(function, _, oracle, seed):
    a, b = graded(seed)
    found = function(a.tolist(), b.tolist())
    assert found.value == pytest.approx(oracle(a, b).statistic)
    assert -1 < found.low < found.value < found.high < 1


@pytest.mark.parametrize(("_", "influence", "oracle"), BOTH)
def test_influence_is_what_a_little_more_weight_does(_, influence, oracle):
    a, b = graded(7, 14)
    _, found = influence(a, b)
    copies, more = 400, 4  # each case 400 times, one of them 404 times
    before = oracle(a, b).statistic
    for case in range(14):
        times = np.full(14, copies)
        times[case] += more
        after = oracle(np.repeat(a, times), np.repeat(b, times)).statistic
        assert (after - before) / (more / copies) * 14 == pytest.approx(found[case], abs=0.02)


@pytest.mark.parametrize(("function", "influence", "_"), BOTH)
def test_interval_is_fishers_z_with_the_jackknifes_error(function, influence, _):
    a, b = graded(3)
    value, each = influence(a, b)
    error = math.sqrt(sum(each**2) / 40 / 37) / (1 - value**2)
    half = scipy_stats.t.ppf(0.975, 38) * error
    found = function(a.tolist(), b.tolist())
    assert found.low == pytest.approx(math.tanh(math.atanh(value) - half))
    assert found.high == pytest.approx(math.tanh(math.atanh(value) + half))


@pytest.mark.parametrize("function", [spearman, kendall_tau])
def test_turning_one_side_turns_the_interval(function):
    a, b = graded(5)
    found, turned = function(a.tolist(), b.tolist()), function(a.tolist(), (-b).tolist())
    assert turned.value == pytest.approx(-found.value)
    assert (turned.low, turned.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


@pytest.mark.parametrize("function", [spearman, kendall_tau])
def test_what_cannot_be_told_says_why(function):
    assert function([], []).reason_code.code == "correlation_of_one"
    assert function([1, 1, 1], [1, 2, 3]).reason_code.code == "constant_side"
    perfect = function([1, 2, 3, 4, 5], [1, 2, 3, 4, 6])
    assert (perfect.value, perfect.low, perfect.high) == (1.0, None, None)
    assert perfect.reason_code.code == "perfect_correlation"
    few = function([1, 2, 3], [1, 3, 2])
    assert few.value is not None
    assert few.low is None


@pytest.mark.parametrize("function", [spearman, kendall_tau])
def test_numbers_that_are_none_are_refused(function):
    with pytest.raises(ValueError, match="not of the same cases"):
        function([1, 2], [1])
    with pytest.raises(ValueError, match="finite"):
        function([1, math.nan], [1, 2])
