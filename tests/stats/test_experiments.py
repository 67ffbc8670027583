"""Unit means, CUPED, sequential tests and sample ratios."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from misslink.stats.experiments import (
    MIN_SEQUENTIAL_UNITS,
    TUNED_FOR,
    AllocationStratum,
    balanced_units,
    cuped,
    sample_ratio_test,
    sequential_boundary,
    sequential_log_ratio,
    sequential_test,
    unit_mean,
    unit_values,
    units_needed,
    welch_test,
)


def test_the_mean_of_the_values_is_the_ratio_of_the_sums():
    rng = np.random.default_rng(0)
    below = rng.integers(0, 9, 200)
    above = rng.binomial(below, 0.3)
    values = unit_values(above, below)
    assert values.mean() == pytest.approx(above.sum() / below.sum(), abs=1e-12)


def test_the_variance_is_that_of_the_ratio_over_many_samples():
    """Requests of a user go together, so the naive variance over requests is too small."""
    rng = np.random.default_rng(1)
    ratios, said, naive = [], [], []
    for _ in range(1500):
        below = rng.geometric(0.3, 150)
        above = rng.binomial(below, rng.beta(1, 1, 150))
        values = unit_values(above, below)
        ratios.append(above.sum() / below.sum())
        said.append(values.var(ddof=1) / 150)
        naive.append(ratios[-1] * (1 - ratios[-1]) / below.sum())
    assert np.mean(said) == pytest.approx(np.var(ratios), rel=0.1)
    assert np.mean(naive) < 0.5 * np.var(ratios)


def test_without_denominators_it_is_welchs_t_test():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0, 1, 30), rng.normal(0.4, 3, 50)
    difference, p = welch_test(unit_values(a), unit_values(b))
    oracle = stats.ttest_ind(b, a, equal_var=False)
    interval = oracle.confidence_interval(0.95)
    assert p == pytest.approx(oracle.pvalue, rel=1e-9)
    assert (difference.low, difference.high) == pytest.approx((interval.low, interval.high))
    assert (difference.n, difference.method) == (80, "welch")


def test_what_cannot_be_compared_says_why():
    one, several, none = np.array([1.0]), np.array([1.0, 0.0]), np.empty(0)
    assert welch_test(none, several)[0].value is None
    assert welch_test(one, several)[0].low is None
    assert welch_test(one, several)[1] is None
    assert welch_test(np.ones(3), np.ones(4))[0].reason_code.code == "equal_units"
    assert unit_mean(none).value is None
    assert unit_values([0, 0], [0, 0]).size == 0


def test_a_share_that_never_fails_still_has_an_interval():
    from statsmodels.stats.proportion import proportion_confint

    found = unit_mean(np.zeros(40), bounds=(0.0, 1.0))
    low, high = proportion_confint(0, 40, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(
    ("above", "below"), [([1], [1, 2]), ([math.nan], [1]), ([1], [-1]), ([1], [math.inf])]
)
def test_what_is_no_count_is_refused(above, below):
    with pytest.raises(ValueError, match=r"unit|numerator"):
        unit_values(above, below)


def test_one_unit_with_most_of_the_requests_is_no_consensus():
    below = np.r_[np.ones(99), 500]
    above = np.r_[np.arange(99) % 2, 500]
    values = unit_values(above, below)
    left_out = [(above.sum() - a) / (below.sum() - b) for a, b in zip(above, below, strict=True)]
    jackknife = 99 / 100 * np.sum((np.array(left_out) - np.mean(left_out)) ** 2)
    assert values.var(ddof=1) / 100 == pytest.approx(jackknife, rel=0.05)
    assert unit_mean(values).low < 0.5


def drawn(seed=0, a=400, b=300, effect=0.2):
    rng = np.random.default_rng(seed)
    past = rng.normal(5, 2, a + b)
    values = 0.7 * past + rng.normal(0, 1, a + b) + effect * (np.arange(a + b) >= a)
    return past[:a], past[a:], values[:a], values[a:]


@pytest.mark.slow
def test_the_adjusted_difference_is_the_coefficient_of_the_regression():
    import statsmodels.api as sm

    before_a, before_b, a, b = drawn()
    found = cuped(a, b, before_a.tolist(), before_b.tolist())
    treated = np.r_[np.zeros(len(a)), np.ones(len(b))]
    design = sm.add_constant(np.column_stack([treated, np.r_[before_a, before_b]]))
    oracle = sm.OLS(np.r_[a, b], design).fit(cov_type="HC2")
    difference, _ = welch_test(found.control, found.variant)
    assert difference.value == pytest.approx(oracle.params[1], abs=1e-10)
    assert found.theta == pytest.approx(oracle.params[2], abs=1e-10)
    half = (difference.high - difference.low) / 2
    assert half / 1.963 == pytest.approx(oracle.bse[1], rel=0.01)


def test_the_reduction_is_the_squared_correlation():
    before_a, before_b, a, b = drawn(a=4000, b=4000)
    found = cuped(a, b, before_a.tolist(), before_b.tolist())
    within = np.corrcoef(np.r_[before_a, before_b], np.r_[a - a.mean(), b - b.mean()])[0, 1]
    assert found.reduction == pytest.approx(within**2, abs=0.02)


def test_units_without_a_past_keep_a_level_of_their_own():
    import statsmodels.api as sm

    before_a, before_b, a, b = drawn()
    some_a = [None if i % 4 == 0 else x for i, x in enumerate(before_a.tolist())]
    some_b = [None if i % 3 == 0 else x for i, x in enumerate(before_b.tolist())]
    found = cuped(a, b, some_a, some_b)
    past = np.array([np.nan if x is None else x for x in some_a + some_b])
    missing = np.isnan(past)
    treated = np.r_[np.zeros(len(a)), np.ones(len(b))]
    filled = np.where(missing, np.nanmean(past), past)
    oracle = sm.OLS(np.r_[a, b], sm.add_constant(np.column_stack([treated, filled, missing]))).fit()
    difference, _ = welch_test(found.control, found.variant)
    assert difference.value == pytest.approx(oracle.params[1], abs=1e-10)
    assert (found.known, found.missing) == (500, 200)


def test_a_past_that_explains_nothing_changes_next_to_nothing():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=500), rng.normal(size=500)
    found = cuped(a, b, rng.normal(size=500).tolist(), rng.normal(size=500).tolist())
    assert abs(found.reduction) < 0.02


def test_a_past_of_nobody_or_the_same_for_all_is_none():
    assert cuped(np.ones(2), np.ones(2), [None, None], [None, None]) is None
    assert cuped(np.ones(2), np.ones(2), [3.0, 3.0], [3.0, None]) is None


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="same units"):
        cuped(np.ones(2), np.ones(2), [1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        cuped(np.ones(2), np.ones(2), [1.0, float("inf")], [1.0, 2.0])


LOOKS = range(MIN_SEQUENTIAL_UNITS, 1501, 50)


def found_by_some_look(control, variant, **more):
    return any(sequential_test(control[:size], variant[:size], **more)[1] <= 0.05 for size in LOOKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "is_share"),
    [
        (lambda rng: (rng.random(1500) < 0.1) * 1.0, True),
        (lambda rng: rng.lognormal(0, 1, 1500), False),
    ],
    ids=["binary", "skewed"],
)
def test_looking_all_the_time_errs_seldom_where_the_usual_test_errs_often(draw, is_share):
    rng = np.random.default_rng(3)
    pairs = [(draw(rng), draw(rng)) for _ in range(200)]
    errs = sum(found_by_some_look(a, b, is_share=is_share) for a, b in pairs)
    usual = sum(any(welch_test(a[:n], b[:n])[1] <= 0.05 for n in LOOKS) for a, b in pairs)
    # At a true 5% more than 19 of 200 has a chance under 1%.
    assert errs <= stats.binom.ppf(0.99, 200, 0.05)
    assert usual > 2 * stats.binom.ppf(0.5, 200, 0.05)


def test_a_real_difference_is_found():
    rng = np.random.default_rng(4)
    hits = sum(
        found_by_some_look(rng.normal(size=1500), rng.normal(0.2, 1, 1500)) for _ in range(60)
    )
    assert hits >= 54


def test_p_is_the_inverse_of_the_normal_mixtures_likelihood_ratio():
    """Against the integral over the mixture, done numerically."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, 400), rng.normal(0.5, 2, 300)
    found, p = sequential_test(a, b)
    error = math.sqrt(a.var(ddof=1) / 400 + b.var(ddof=1) / 300)
    units = balanced_units(400, 300)
    # The boundary is where the ratio is 1 / alpha; it gives the mixture's variance.
    wide = -2 * math.log(0.05)
    eta = units * (wide + math.log(wide + 1)) / TUNED_FOR
    spread = error * math.sqrt(eta)

    def ratio(effect):
        here = stats.norm.pdf(found.value, effect, error)
        return here / stats.norm.pdf(found.value, 0, error) * stats.norm.pdf(effect, 0, spread)

    mixed = integrate.quad(ratio, -3, 3, points=[found.value])[0]
    assert p == pytest.approx(1 / mixed, rel=1e-6)


def test_the_interval_leaves_out_0_exactly_where_p_is_below_alpha():
    rng = np.random.default_rng(6)
    for effect in np.linspace(0, 0.5, 40):
        found, p = sequential_test(rng.normal(size=200), rng.normal(effect, 1, 200), alpha=0.1)
        outside = not found.low <= 0 <= found.high
        assert outside == (p < 0.1)


def test_it_is_narrowest_against_a_fixed_size_near_what_it_is_tuned_for():
    widths = {
        units: sequential_boundary(units, tuned_for=1000)
        for units in (10, 100, 1000, 10_000, 100_000)
    }
    assert min(widths, key=widths.get) in (1000, 10_000)
    own = sequential_boundary(1000, tuned_for=1000)
    assert own <= min(
        sequential_boundary(1000, tuned_for=other) for other in (250, 500, 2000, 4000)
    )
    assert own > stats.norm.ppf(0.975)


def test_nothing_is_decided_before_there_are_enough_units():
    few, p = sequential_test(np.zeros(MIN_SEQUENTIAL_UNITS - 1), np.ones(500))
    assert (p, few.low) == (None, None)
    assert str(MIN_SEQUENTIAL_UNITS) in few.reason
    assert sequential_test(np.empty(0), np.ones(500))[0].value is None
    assert sequential_test(np.ones(60), np.ones(60))[0].reason_code.code == "equal_units"


def test_a_share_of_none_has_an_interval_of_some_width():
    found, p = sequential_test(np.zeros(500), np.zeros(500), is_share=True)
    assert found.low < 0 < found.high < 0.02
    assert p == 1


def test_a_relative_margin_compares_with_more_than_controls_mean():
    rng = np.random.default_rng(7)
    a, b = rng.normal(10, 1, 300), rng.normal(11, 1, 300)
    found, _ = sequential_test(a, b, times=1.1)
    assert found.value == pytest.approx(b.mean() - 1.1 * a.mean())
    assert found.low < 0 < found.high


def test_at_the_units_said_the_difference_is_seen_in_4_of_5():
    units = units_needed(0.2, error=math.sqrt(4 / 400), units=400)
    half = sequential_boundary(units) * math.sqrt(4 / units)
    assert stats.norm.sf((half - 0.2) / math.sqrt(4 / units)) == pytest.approx(0.8, abs=0.01)
    assert units_needed(0.0, 0.1, 100) is None


@pytest.mark.parametrize("alpha", [0, 1, -1, 2])
def test_an_alpha_that_is_no_chance_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        sequential_boundary(100, alpha=alpha)


@pytest.mark.slow
def test_users_who_come_back_between_looks_do_not_make_it_err():
    """A user's ratio changes from look to look, as no independent value would."""
    rng = np.random.default_rng(8)
    errs = 0
    for _ in range(120):
        users = 1000
        pleased, is_b = rng.beta(1, 1, users), rng.random(users) < 0.5
        who = np.repeat(np.arange(users), rng.geometric(0.3, users))
        back = rng.exponential(0.2, len(who)) * (rng.random(len(who)) < 0.7)
        when = rng.random(users)[who] + back
        ups = rng.random(len(who)) < pleased[who]
        for until in np.linspace(0.15, 1.5, 30):
            now = when <= until
            below = np.bincount(who[now], minlength=users)
            above = np.bincount(who[now], weights=ups[now], minlength=users)
            a, b = ((below > 0) & (is_b == side) for side in (False, True))
            sides = (unit_values(above[side], below[side]) for side in (a, b))
            _, p = sequential_test(*sides, is_share=True)
            if p is not None and p <= 0.05:
                errs += 1
                break
    assert errs <= stats.binom.ppf(0.99, 120, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.02])
def test_a_small_side_that_has_seen_nothing_rare_yet_is_not_called_better(share):
    rng = np.random.default_rng(4)
    erred = 0
    for _ in range(150):
        values = (rng.random(4000) < 0.02).astype(float)
        is_variant = rng.random(4000) < share
        looks = (
            sequential_test(values[:size][~is_variant[:size]], values[:size][is_variant[:size]])[1]
            for size in range(500, 4001, 250)
        )
        erred += any(p is not None and p <= 0.05 for p in looks)
    assert erred <= stats.binom.ppf(0.99, 150, 0.05)


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


@pytest.mark.slow
def test_looked_at_after_every_unit_it_errs_seldom():
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(150):
        ones = np.cumsum(rng.random(1000) < 0.5)
        ratios = (
            sequential_log_ratio(np.array([[0.5, 0.5]]), np.array([[k, n - k]]))
            for n, k in enumerate(ones, start=1)
            if n % 10 == 0
        )
        broken += max(ratios) > math.log(20)
    assert broken <= stats.binom.ppf(0.99, 150, 0.05)


def test_the_mixture_over_all_counts_has_a_mean_of_1():
    """An e-value: otherwise its inverse would be no p-value."""
    n, share = 30, 0.3
    plan = np.array([[share, 1 - share]])
    mean = sum(
        stats.binom.pmf(k, n, share) * math.exp(sequential_log_ratio(plan, np.array([[k, n - k]])))
        for k in range(n + 1)
    )
    assert mean == pytest.approx(1)


def test_two_variants_have_one_degree_of_freedom_however_often_the_split_changed():
    rng = np.random.default_rng(6)
    shares = 0.02 + 0.48 * np.arange(1000) / 1000
    came = rng.random(1000) < 1.2 * shares
    strata = [
        AllocationStratum({"A": 1 - share, "B": share}, {"B" if is_b else "A": 1})
        for share, is_b in zip(shares.tolist(), came.tolist(), strict=True)
    ]
    gap, variance = came.sum() - shares.sum(), (shares * (1 - shares)).sum()
    assert sample_ratio_test(strata).p == pytest.approx(stats.chi2.sf(gap**2 / variance, 1))


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
