"""Units against the planned split: exact where it can be, and valid at any time beside it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from misslink.stats.experiments import AllocationStratum, sample_ratio_test, sequential_log_ratio

HALF = {"A": 0.5, "B": 0.5}


def test_two_variants_have_the_exact_binomial_p():
    for a, b in [(3, 9), (50, 50), (821, 1000), (0, 4)]:
        n = a + b
        chances = [math.comb(n, k) / 2**n for k in range(n + 1)]
        by_hand = sum(each for each in chances if each <= chances[a] * (1 + 1e-9))
        assert sample_ratio_test([AllocationStratum(HALF, {"A": a, "B": b})]).p == pytest.approx(
            by_hand
        )


def test_three_variants_have_pearsons_chi_square():
    counts, plan = {"A": 520, "B": 240, "C": 240}, {"A": 0.5, "B": 0.3, "C": 0.2}
    found = sample_ratio_test([AllocationStratum(plan, counts)])
    oracle = stats.chisquare(list(counts.values()), [500, 300, 200])
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.method == "chi-square"
    assert found.expected == pytest.approx({"A": 500, "B": 300, "C": 200})


def test_a_split_that_was_changed_is_judged_plan_by_plan():
    """900 of 1,000 in A is right under the first plan; the sum would look broken under either."""
    strata = [
        AllocationStratum({"A": 0.9, "B": 0.1}, {"A": 905, "B": 95}),
        AllocationStratum(HALF, {"A": 495, "B": 505}),
    ]
    found = sample_ratio_test(strata)
    assert found.p > 0.5
    assert not found.is_broken
    off = [AllocationStratum({"A": 0.9, "B": 0.1}, {"A": 820, "B": 180}), strata[1]]
    assert sample_ratio_test(off).is_broken


def test_with_one_plan_the_chi_square_of_strata_is_that_of_their_sum():
    plan = {"A": 0.5, "B": 0.3, "C": 0.2}
    parts = [
        AllocationStratum(plan, {"A": 60, "B": 20, "C": 20}),
        AllocationStratum(plan, {"A": 45, "B": 35, "C": 20}),
    ]
    whole = [AllocationStratum(plan, {"A": 105, "B": 55, "C": 40})]
    assert sample_ratio_test(parts).p == pytest.approx(sample_ratio_test(whole).p)


def test_looked_at_after_every_unit_it_errs_seldom():
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(150):
        ones = np.cumsum(rng.random(1000) < 0.5)
        ratios = (
            sequential_log_ratio([AllocationStratum(HALF, {"A": int(k), "B": n - int(k)})])
            for n, k in enumerate(ones, start=1)
            if n % 10 == 0
        )
        broken += max(ratios) > math.log(20)
    assert broken <= stats.binom.ppf(0.99, 150, 0.05)


def test_the_mixture_over_all_counts_has_a_mean_of_1():
    """An e-value: otherwise its inverse would be no p-value."""
    n, share = 30, 0.3
    plan = {"A": share, "B": 1 - share}
    mean = sum(
        stats.binom.pmf(k, n, share)
        * math.exp(sequential_log_ratio([AllocationStratum(plan, {"A": k, "B": n - k})]))
        for k in range(n + 1)
    )
    assert mean == pytest.approx(1)


def test_a_variant_that_nobody_was_to_get_is_impossible():
    found = sample_ratio_test([AllocationStratum({"A": 1.0, "B": 0.0}, {"A": 90, "B": 1})])
    assert (found.p, found.method, found.is_broken) == (0.0, "impossible", True)


def test_without_units_or_a_second_variant_there_is_no_test():
    for strata in ([], [AllocationStratum(HALF, {})], [AllocationStratum({"A": 1.0}, {"A": 10})]):
        found = sample_ratio_test(strata)
        assert (found.p, found.p_sequential, found.is_broken) == (None, None, False)


def test_shares_and_counts_that_are_none_are_refused():
    with pytest.raises(ValueError, match="add up"):
        sample_ratio_test([AllocationStratum({"A": 0.5, "B": 0.4}, {"A": 1})])
    with pytest.raises(ValueError, match="at least 0"):
        sample_ratio_test([AllocationStratum(HALF, {"A": -1})])


def test_a_ramp_that_grows_with_every_unit_does_not_hide_a_broken_split():
    rng = np.random.default_rng(1)
    shares = np.linspace(0.05, 0.5, 4000)

    def strata(kept):
        return [
            AllocationStratum(
                {"A": 1 - share, "B": share}, {"B" if rng.random() < share * kept else "A": 1}
            )
            for share in shares.tolist()
        ]

    assert sample_ratio_test(strata(0.8)).p_sequential < 1e-4
    assert sample_ratio_test(strata(1.0)).p_sequential > 0.05


def test_a_third_variant_that_too_few_reach_is_seen_at_any_time():
    plan = {"A": 0.4, "B": 0.3, "C": 0.3}
    found = sample_ratio_test([AllocationStratum(plan, {"A": 4400, "B": 3300, "C": 2300})])
    assert found.p_sequential < 1e-6
