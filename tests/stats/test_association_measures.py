"""Risks, ratios, attributable fractions and trends, pooled over strata and corrected for the judge."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize
from scipy import stats as scipy_stats

from misslink.stats import proportion
from misslink.stats.association import (
    _common_difference_risks,
    attributable_fraction,
    clustered_heterogeneity_test,
    clustered_mantel_haenszel,
    cochran_q,
    heterogeneity_test,
    mantel_haenszel,
    mantel_haenszel_difference,
    miettinen_fraction,
    pooled_risk_difference,
    pooled_risk_ratio,
    risk_difference,
    risk_ratio,
    trend_test,
)
from misslink.stats.clustered import ONE_CLUSTER
from misslink.stats.exposure import (
    EXPOSURES,
    ExposedCases,
    exposure_risks,
    exposure_trend,
    permutation_test,
    powered_exposure_risks,
    rated_exposure_risks,
)
from misslink.stats.prevalence import prediction_powered

group = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_newcombes_own_example():
    # Newcombe (1998), table II, method 10, contrasts (a), (d) and (h).
    estimate = risk_difference(56, 70, 48, 80)
    assert (round(estimate.low, 4), round(estimate.high, 4)) == (0.0524, 0.3339)
    estimate = risk_difference(5, 56, 0, 29)
    assert (round(estimate.low, 4), round(estimate.high, 4)) == (-0.0381, 0.1926)
    estimate = risk_difference(10, 10, 0, 10)
    assert (estimate.value, round(estimate.low, 4), estimate.high) == (1.0, 0.6075, 1.0)


@given(group, group)
def test_difference_holds_its_value_and_mirrors_when_the_groups_are_swapped(first, second):
    estimate, swapped = risk_difference(*first, *second), risk_difference(*second, *first)
    assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high
    assert estimate.low == pytest.approx(-swapped.high, abs=1e-12)


def test_ratio_worked_by_hand():
    # 0.6 [0.38658, 0.78119] by Wilson over 0.1 [0.04348, 0.21360]
    estimate = risk_ratio(12, 20, 5, 50)
    assert (estimate.value, estimate.n, estimate.method) == (6.0, 70, "wilson ratio")
    assert estimate.low == pytest.approx(2.4724, abs=1e-3)
    assert estimate.high == pytest.approx(14.263, abs=1e-2)


@given(group, group.filter(lambda counts: counts[0] > 0))
def test_at_the_ends_of_a_ratio_the_difference_of_the_scaled_shares_just_reaches_0(first, second):
    """|p - r q| is as far as the recovered distances of p and r q reach, squared and added."""
    estimate = risk_ratio(*first, *second)
    (p, low1, high1), (q, low2, high2) = (
        (share.value, share.low, share.high) for share in (proportion(*first), proportion(*second))
    )
    for r, own, other in ((estimate.low, low1, high2), (estimate.high, high1, low2)):
        reach = (p - own) ** 2 + r**2 * (q - other) ** 2
        assert (p - r * q) ** 2 == pytest.approx(reach, abs=1e-9 * (1 + r**2))


@given(group, group.filter(lambda counts: counts[0] > 0))
def test_ratio_holds_its_value_and_never_pretends_certainty(first, second):
    estimate = risk_ratio(*first, *second)
    assert 0 <= estimate.low <= estimate.value <= estimate.high
    assert estimate.low < estimate.high


def test_ratio_of_two_certainties_still_has_a_width():
    estimate = risk_ratio(5, 5, 4, 4)
    assert estimate.value == 1
    assert estimate.low < 0.8
    assert estimate.high > 1.25


def test_ratio_of_nothing_to_something_starts_at_0():
    estimate = risk_ratio(0, 10, 5, 10)
    assert (estimate.value, estimate.low) == (0, 0)
    assert 0.1 < estimate.high < 2


def test_ratio_to_nothing_is_missing_and_says_why():
    assert "none of the 30 cases" in risk_ratio(4, 10, 0, 30).reason
    assert risk_ratio(0, 10, 0, 30).value is None


@pytest.mark.parametrize("compare", [risk_difference, risk_ratio])
def test_an_empty_group_is_missing_and_named(compare):
    assert compare(0, 0, 1, 5).reason_code.group == "first"
    assert compare(1, 5, 0, 0).reason_code.group == "second"
    assert compare(0, 0, 0, 0).reason_code.code == "no_cases"
    assert compare(1, 5, 0, 0).n == 5


@pytest.mark.parametrize("compare", [risk_difference, risk_ratio])
def test_counts_that_cannot_be_are_refused_even_where_the_other_group_is_fine(compare):
    with pytest.raises(ValueError, match="7 of 5 cases is not a share"):
        compare(1, 5, 7, 5)


count = st.integers(0, 80)


def test_value_worked_by_hand():
    # P(bad) = 19 / 98, P(bad | hit) = 7 / 77: 1 - 7 * 98 / (77 * 19)
    estimate = attributable_fraction(12, 9, 7, 70)
    assert estimate.value == pytest.approx(1 - 686 / 1463)
    assert (estimate.n, estimate.method) == (98, "dirichlet")
    assert 0.2 < estimate.low < estimate.value < estimate.high < 0.8


def test_agrees_with_the_large_sample_interval_on_a_large_table():
    # Delta method: the log of P(bad | hit) / P(bad) is
    # log(hit_bad) - log(hits) - log(bad) + log(n), with these slopes in the cells.
    cells = (1800, 700, 1200, 6300)
    n, hits, bad = 10_000, 7_500, 3_000
    slope = {"miss_bad": -1 / bad, "hit_bad": 1 / 1200 - 1 / hits - 1 / bad, "hit_good": -1 / hits}
    counts = {"miss_bad": 1800, "hit_bad": 1200, "hit_good": 6300}
    # The slopes times the cells add up to -1, whatever the table.
    variance = sum(slope[name] ** 2 * counts[name] for name in slope) - 1 / n
    ratio = (1200 / hits) / (bad / n)
    error = ratio * variance**0.5
    estimate = attributable_fraction(*cells)
    assert estimate.value == pytest.approx(1 - ratio)
    assert estimate.low == pytest.approx(1 - ratio - 1.96 * error, abs=0.002)
    assert estimate.high == pytest.approx(1 - ratio + 1.96 * error, abs=0.002)


def test_negative_where_hits_go_worse_than_misses():
    estimate = attributable_fraction(1, 30, 20, 20)
    assert estimate.value < 0
    assert estimate.low < estimate.value < estimate.high


def test_all_bad_answers_after_misses_is_1_with_a_width():
    estimate = attributable_fraction(8, 2, 0, 40)
    assert (estimate.value, estimate.high) == (1.0, 1.0)
    assert estimate.low < 0.95


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ((0, 0, 0, 0), "no cases"),
        ((0, 5, 0, 9), "no bad answer"),
        ((3, 5, 0, 0), "no case with a hit"),
        ((0, 0, 5, 20), "no bad answer can be attributed"),
    ],
)
def test_missing_says_why(cells, reason):
    estimate = attributable_fraction(*cells)
    assert (estimate.value, estimate.n) == (None, sum(cells))
    assert reason in estimate.reason


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="negative"):
        attributable_fraction(-1, 2, 3, 4)


@given(count, count, count.filter(bool), count)
def test_interval_holds_the_value_and_repeats_with_its_seed(a, b, c, d):
    assume(a + b)  # without a miss there is no fraction
    estimate = attributable_fraction(a, b, c, d, seed=5)
    assert estimate == attributable_fraction(a, b, c, d, seed=5)
    assert estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.low < estimate.high


def permuted(groups):
    """P by going through every way to hand the bad answers to the cases."""
    places = [place for place, (_, n) in enumerate(groups) for _ in range(n)]
    bad = sum(count for count, _ in groups)
    middle = sum(places) / len(places) * bad
    observed = abs(sum(place * count for place, (count, _) in enumerate(groups)) - middle)
    ways = [
        abs(sum(chosen) - middle) >= observed - 1e-9
        for chosen in itertools.combinations(places, bad)
    ]
    return sum(ways) / len(ways)


@pytest.mark.parametrize(
    "groups",
    [
        [(3, 4), (2, 5), (1, 7)],
        [(0, 3), (2, 4), (2, 3)],
        [(1, 5), (0, 0), (4, 6)],
        [(2, 5), (1, 9)],
    ],
)
def test_small_groups_have_the_p_of_every_permutation(groups):
    found = trend_test(groups)
    assert found.method == "cochran-armitage, exact"
    assert found.p == pytest.approx(permuted(groups), abs=1e-12)


def test_two_groups_are_fishers_exact_test_where_the_tails_match():
    # Equal groups: the law is symmetric, and both tests add up the same tables.
    theirs = scipy_stats.fisher_exact([[12, 8], [5, 15]]).pvalue
    assert trend_test([(12, 20), (5, 20)]).p == pytest.approx(theirs)


def test_many_cases_have_the_p_of_statsmodels():
    from statsmodels.stats.contingency_tables import Table

    groups = [(900, 2000), (1400, 3000), (2400, 5000)]
    counts = np.array([[bad, n - bad] for bad, n in groups])
    test = Table(counts, shift_zeros=False).test_ordinal_association(
        np.array([0, 1, 2]), np.array([1, 0])
    )
    found = trend_test(groups)
    assert found.method == "cochran-armitage"
    # Theirs has the multinomial variance, short of the permutation's by (n - 1) / n.
    assert found.p == pytest.approx(test.pvalue, rel=2e-3)
    assert 0.001 < found.p < 0.1


def test_the_slope_is_that_of_the_weighted_line_and_not_of_the_outer_groups():
    groups = [(0, 1), (40, 60), (10, 60)]
    found = trend_test(groups)
    places = np.repeat([0, 1, 2], [n for _, n in groups])
    bad = np.concatenate([[1] * count + [0] * (n - count) for count, n in groups])
    assert found.slope == pytest.approx(np.polyfit(places, bad, 1)[0])
    assert found.slope < 0 < 10 / 60 - 0 / 1
    assert trend_test([(3, 5)]).slope is None


def test_exact_and_normal_agree_where_they_meet():
    from statsmodels.stats.contingency_tables import Table

    few, many = (
        trend_test([(100, 220), (180, 440), (230, 640)]),
        trend_test([(900, 2000), (2380, 5000)] * 2),
    )
    assert few.method != many.method
    counts = np.array([[100, 120], [180, 260], [230, 410]])
    theirs = Table(counts, shift_zeros=False).test_ordinal_association(
        np.array([0, 1, 2]), np.array([1, 0])
    )
    assert few.p == pytest.approx(theirs.pvalue, abs=0.003)


def test_the_direction_does_not_matter_and_an_even_risk_is_no_trend():
    groups = [(9, 12), (5, 11), (2, 14)]
    assert trend_test(groups).p == pytest.approx(trend_test(groups[::-1]).p)
    assert trend_test([(2, 10), (4, 20), (1, 5)]).p == pytest.approx(1)


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([], "fewer than two groups have cases"),
        ([(3, 5), (0, 0)], "fewer than two groups have cases"),
        ([(0, 5), (0, 4)], "none of the 9 cases are bad"),
        ([(5, 5), (4, 4)], "all of the 9 cases are bad"),
    ],
)
def test_nothing_to_test_says_why(groups, reason):
    found = trend_test(groups)
    assert (found.p, found.reason) == (None, reason)


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="7 of 5 cases is not a share"):
        trend_test([(1, 5), (7, 5)])


def exposed(*tables, clusters=None):
    """Cases of none, some and all, from (bad, good) of each."""
    rows = [
        (level, bad)
        for level, counts in enumerate(tables)
        for bad, count in zip((1.0, 0.0), counts, strict=True)
        for _ in range(count)
    ]
    exposure, bad = zip(*rows, strict=True) if rows else ((), ())
    return ExposedCases(exposure, bad, clusters or range(len(rows)))


def rates(sensitivity, specificity):
    both = {"sensitivity": proportion(*sensitivity), "specificity": proportion(*specificity)}
    return dict.fromkeys(EXPOSURES, both)


def test_the_judges_error_is_undone_exactly():
    # Truly bad: 60 % of 1,000 with none and 10 % of 2,000 with all. The judge calls 80 % of the bad
    # ones bad and 5 % of the good ones: 480 + 20 and 160 + 90.
    cases = exposed((500, 500), (0, 0), (250, 1750))
    found = rated_exposure_risks(cases, rates((950, 1000), (800, 1000)))
    assert found["risk_given_none"].value == pytest.approx(0.6)
    assert found["risk_given_all"].value == pytest.approx(0.1)
    assert found["risk_difference"].value == pytest.approx(0.5)
    assert found["risk_ratio"].value == pytest.approx(6)
    assert found["attributable_fraction"].value == pytest.approx(1 - 0.1 / (800 / 3000))
    for name in found.keys() - {"risk_given_some"}:
        assert found[name].low < found[name].value < found[name].high


def test_a_perfect_judge_measured_often_leaves_the_table_as_it_is():
    cases = exposed((60, 50), (60, 40), (70, 700))
    found = rated_exposure_risks(cases, rates((100_000, 100_000), (100_000, 100_000)))
    for name, crude in exposure_risks(cases).items():
        ours = found[name]
        assert ours.value == pytest.approx(crude.value, abs=1e-3)
        if name != "risk_ratio":
            assert (ours.low, ours.high) == pytest.approx((crude.low, crude.high), abs=0.02)


def test_labels_of_every_case_are_the_cases_themselves_whatever_the_judge_says():
    cases = exposed((60, 50), (60, 40), (70, 300))
    nonsense = ExposedCases(cases.exposure, [0.3] * len(cases.bad), cases.clusters)
    found = powered_exposure_risks(nonsense, cases.bad)
    for name, crude in exposure_risks(cases).items():
        assert found[name].value == pytest.approx(crude.value)
        if name != "risk_ratio":
            assert (found[name].low, found[name].high) == pytest.approx(
                (crude.low, crude.high), abs=0.02
            )


def test_at_each_exposure_the_powered_risk_is_that_of_prediction_powered_inference():
    generator = np.random.default_rng(5)
    exposure = [place % 3 for place in range(600)]
    truth = (generator.random(600) < 0.4) * 1.0
    judge = np.clip(truth * 0.6 + generator.random(600) * 0.4, 0, 1)
    labels = [truth[i] if i % 5 < 2 else None for i in range(600)]
    found = powered_exposure_risks(ExposedCases(exposure, judge.tolist(), range(600)), labels)
    for level, name in enumerate(EXPOSURES):
        places = [i for i in range(600) if exposure[i] == level]
        known = [i for i in places if labels[i] is not None]
        expected = prediction_powered(
            [labels[i] for i in known],
            [float(judge[i]) for i in known],
            [float(judge[i]) for i in places if labels[i] is None],
        ).estimate
        ours = found[f"risk_given_{name}"]
        assert ours.value == pytest.approx(expected.value)
        assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=0.015)


def test_the_fewer_labels_the_wider_the_interval():
    def width(labels):
        measured = rates((int(0.9 * labels), labels), (int(0.8 * labels), labels))
        found = rated_exposure_risks(exposed((120, 90), (0, 0), (170, 600)), measured)
        return found["risk_given_none"].high - found["risk_given_none"].low

    assert width(20) > 1.5 * width(100) > 1.5 * width(10_000)


def test_a_risk_below_0_is_clipped_with_an_interval():
    # 1 of 60 is called bad, where 10 % of good ones should be.
    found = rated_exposure_risks(exposed((30, 20), (0, 0), (1, 59)), rates((45, 50), (45, 50)))
    risk = found["risk_given_all"]
    assert (risk.value, risk.low) == (0, 0)
    assert risk.high > 0.01
    assert found["risk_ratio"].reason_code.code == "no_bad_with_all"
    assert found["attributable_fraction"].value == 1
    assert found["attributable_fraction"].low < 0.98


@pytest.mark.parametrize("specificity", [(30, 100), (10, 100), (0, 0)])
def test_a_judge_no_better_than_chance_or_hardly_measured_corrects_nothing(specificity):
    cases = exposed((30, 20), (5, 5), (10, 90))
    for estimate in rated_exposure_risks(cases, rates((70, 100), specificity)).values():
        assert estimate.value is None
        assert estimate.reason_code.code == "judge_unmeasured"


def test_an_exposure_without_cases_leaves_the_others_their_own():
    measured = rates((90, 100), (80, 100))
    found = rated_exposure_risks(exposed((0, 0), (0, 0), (20, 60)), measured)
    assert found["risk_given_none"].reason_code.code == "no_case_at_exposure"
    assert found["risk_difference"].value is None
    assert found["risk_given_all"].value == pytest.approx((0.25 - 0.1) / 0.7)
    found = rated_exposure_risks(exposed((20, 60), (0, 0), (0, 0)), measured)
    assert found["attributable_fraction"].reason_code.parameters["exposure"] == "all"


@pytest.mark.parametrize("clusters", [None, [0, 1] * 25])
@pytest.mark.parametrize("bad", [0, 1])
def test_all_good_and_all_bad_have_intervals_and_no_nan(bad, clusters):
    table = (25, 0) if bad else (0, 25)
    found = exposure_risks(exposed(table, (0, 0), table, clusters=clusters))
    for name in ("risk_given_none", "risk_difference"):
        assert found[name].low < found[name].high
    assert (found["attributable_fraction"].value is None) is not bad


def test_one_cluster_has_no_interval():
    cases = exposed((20, 10), (0, 0), (5, 25), clusters=[0] * 60)
    for found in (exposure_risks(cases), powered_exposure_risks(cases, cases.bad)):
        assert found["risk_difference"].value == pytest.approx(0.5)
        assert found["risk_difference"].why == found["risk_ratio"].why == ONE_CLUSTER
        assert found["risk_given_none"].low is None
    places = [0] * 20 + [1] * 10 + [2] * 5 + [3] * 25
    pooled = clustered_mantel_haenszel([(20, 10, 5, 25)], places, [0] * 60)
    assert pooled.risk_difference.low is None


@pytest.mark.slow
def test_the_permutation_test_keeps_its_level_and_sees_a_difference():
    generator = np.random.default_rng(1)
    groups, strata = [i % 3 for i in range(120)], [i % 2 for i in range(120)]
    ps = [
        permutation_test(groups[:48], (generator.random(48) < 0.7).tolist(), strata[:48], seed=seed)
        for seed in range(60)
    ]
    assert sum(p < 0.05 for p in ps) <= 7
    outcome = [(generator.random() < (0.95, 0.8, 0.5)[group]) for group in groups]
    assert permutation_test(groups, outcome, strata) < 0.01


@pytest.mark.slow
def test_tests_of_clustered_cases_keep_their_level_where_those_of_cases_do_not():
    def ps(seed):
        generator = np.random.default_rng(seed)
        cluster = np.repeat(np.arange(40), 5)
        shared = generator.random(200) < 0.7
        exposure = np.where(shared, generator.choice(3, 40)[cluster], generator.choice(3, 200))
        bad = np.where(shared, (generator.random(40) < 0.4)[cluster], generator.random(200) < 0.4)
        stratum = np.where(shared, generator.choice(3, 40)[cluster], generator.choice(3, 200))
        cell = 4 * stratum + 2 * (exposure == 2) + ~bad
        return (
            exposure_trend(ExposedCases(exposure.tolist(), bad * 1.0, cluster.tolist())).p,
            clustered_heterogeneity_test(cell.tolist(), cluster.tolist()),
            permutation_test(exposure.tolist(), bad.tolist(), stratum.tolist(), cluster.tolist()),
            exposure_trend(ExposedCases(exposure.tolist(), bad * 1.0, range(200))).p,
        )

    rejected = (np.array([ps(seed) for seed in range(60)]) < 0.05).sum(axis=0)
    assert max(rejected[:3]) <= 7  # 3 expected
    assert rejected[3] > 7


def test_tests_of_clustered_cases_see_a_difference():
    cluster = np.repeat(np.arange(60), 3).tolist()
    exposure = [place % 3 for place in range(180)]
    generator = np.random.default_rng(2)
    bad = [float(generator.random() < (0.8, 0.5, 0.2)[level]) for level in exposure]
    trend = exposure_trend(ExposedCases(exposure, bad, cluster))
    assert trend.p < 0.01
    assert trend.slope < 0
    assert permutation_test(exposure, bad, [0] * 180, cluster) < 0.01
    # None against all: bad after a miss in one stratum, and after a hit in the other.
    cell = [4 * (place % 2) + 2 * (place // 2 % 2) for place in range(180)]
    cell = [c + (c in (2, 4)) * (generator.random() < 0.8) for c in cell]
    assert clustered_heterogeneity_test(cell, cluster) < 0.01
    assert clustered_heterogeneity_test([0, 1, 2, 3], [0, 0, 1, 1]) is None


def test_few_labels_of_a_kind_make_a_wide_interval_not_none():
    cases = exposed((110, 10), (0, 0), (30, 150))
    few = rated_exposure_risks(cases, rates((2, 2), (90, 100)))["risk_given_none"]
    many = rated_exposure_risks(cases, rates((90, 90), (90, 100)))["risk_given_none"]
    assert few.high - few.low > 1.3 * (many.high - many.low)


table = st.tuples(*[st.integers(0, 25)] * 4)
UGDP = [(8, 98, 5, 115), (22, 76, 16, 69)]  # deaths by age, University Group Diabetes Program


def test_the_textbook_example_of_two_age_strata():
    # Rothman and Greenland, Modern epidemiology: 0.035 and 1.33.
    found = mantel_haenszel(UGDP)
    weights = 106 * 120 / 226 + 98 * 85 / 183
    difference = ((8 * 120 - 5 * 106) / 226 + (22 * 85 - 16 * 98) / 183) / weights
    ratio = (8 * 120 / 226 + 22 * 85 / 183) / (5 * 106 / 226 + 16 * 98 / 183)
    assert found.risk_difference.value == pytest.approx(difference)
    assert found.risk_ratio.value == pytest.approx(ratio)
    assert (round(difference, 3), round(ratio, 2)) == (0.035, 1.33)
    assert found.attributable_fraction.value == pytest.approx(30 / 51 * (1 - 1 / ratio))
    assert (found.risk_ratio.n, found.used, found.left_out) == (409, 2, 0)


def test_the_pooled_ratio_is_that_of_statsmodels():
    from statsmodels.stats.contingency_tables import StratifiedTable

    tables = [np.array(each).reshape(2, 2) for each in UGDP]
    theirs = StratifiedTable(tables).riskratio_pooled
    assert mantel_haenszel(UGDP).risk_ratio.value == pytest.approx(theirs)


def test_the_variances_are_those_of_repetition():
    # Many large tables: the spread of the pooled values is what the intervals claim.
    generator = np.random.default_rng(2)
    misses, hits = np.array([60, 150, 40]), np.array([200, 100, 90])
    after_hit = np.array([0.1, 0.2, 0.4])
    differences, logs, widths, log_widths = [], [], [], []
    for _ in range(400):
        a, b = generator.binomial(misses, after_hit * 1.6), generator.binomial(hits, after_hit)
        strata = np.stack([a, misses - a, b, hits - b], axis=1)
        difference = pooled_risk_difference(strata.astype(float))
        ratio = pooled_risk_ratio(strata.astype(float))
        differences.append(difference.value)
        logs.append(np.log(ratio.value))
        widths.append(difference.high - difference.low)
        log_widths.append(np.log(ratio.high / ratio.low))
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(differences), rel=0.12)
    assert np.mean(log_widths) == pytest.approx(2 * 1.96 * np.std(logs), rel=0.12)


@pytest.mark.parametrize("cells", [(12, 9, 7, 70), (0, 9, 7, 70), (9, 0, 7, 3), (5, 0, 4, 0)])
def test_one_stratum_is_the_crude_table(cells):
    a, b, c, d = cells
    found = mantel_haenszel([cells])
    assert found.risk_ratio.value == pytest.approx(risk_ratio(a, a + b, c, c + d).value)
    newcombe = risk_difference(a, a + b, c, c + d)
    assert found.risk_difference.value == pytest.approx(newcombe.value)
    crude = attributable_fraction(*cells)
    ours = found.attributable_fraction
    assert ours.value == pytest.approx(crude.value, abs=1e-12)
    assert (ours.low, ours.high) == pytest.approx((crude.low, crude.high), abs=0.03)


def test_adjusting_removes_what_only_the_categories_bring_about():
    # Within each category misses go as hits do; all together they seem twice as bad.
    strata = [(2, 18, 8, 72), (40, 40, 10, 10)]
    crude = attributable_fraction(42, 58, 18, 82)
    found = mantel_haenszel(strata)
    assert crude.low > 0.1
    assert found.risk_difference.value == pytest.approx(0)
    assert found.risk_ratio.value == pytest.approx(1)
    assert found.attributable_fraction.value == pytest.approx(0)
    assert found.attributable_fraction.low < 0 < found.attributable_fraction.high


def test_a_stratum_with_an_empty_row_adds_nothing_and_is_counted():
    without = mantel_haenszel(UGDP)
    found = mantel_haenszel([*UGDP, (9, 9, 0, 0), (0, 0, 4, 1), (0, 0, 0, 0)])
    assert found.left_out == 3
    assert found.risk_ratio == without.risk_ratio
    assert found.risk_difference == without.risk_difference
    assert found.attributable_fraction == without.attributable_fraction


def test_no_bad_answer_still_has_a_width():
    found = mantel_haenszel([(0, 8, 0, 8), (0, 5, 0, 5)])
    assert found.risk_difference.value == 0
    assert found.risk_difference.low < -0.05 < 0.05 < found.risk_difference.high
    assert found.risk_ratio.value is None
    assert "no hit is bad" in found.risk_ratio.reason
    assert found.attributable_fraction.reason_code.code == "no_bad_answer_to_attribute"


def test_no_bad_miss_is_the_limit_of_few():
    few = np.array([(1e-9, 20, 5, 30), (3e-9, 40, 6, 20)])
    none = np.array([(0, 20, 5, 30), (0, 40, 6, 20)], dtype=float)
    assert miettinen_fraction(none) < 0
    # The limit is along tables with one ratio; scale the misses to have it.
    few[:, 0] = 1e-9 * few[:, 1] * few[:, 2] / (few[:, 2] + few[:, 3])
    assert miettinen_fraction(none) == pytest.approx(miettinen_fraction(few), rel=1e-6)


def test_nothing_to_compare_says_why():
    found = mantel_haenszel([(3, 4, 0, 0)])
    assert found.risk_difference.reason_code.code == "no_mixed_stratum"
    assert (found.used, found.left_out) == (0, 1)
    assert mantel_haenszel([]).risk_ratio.reason_code.code == "no_strata"
    with pytest.raises(ValueError, match="negative"):
        mantel_haenszel([(1, 2, -1, 4)])


@pytest.mark.slow
@given(st.lists(table, min_size=1, max_size=5), st.randoms())
def test_every_interval_holds_its_value_has_a_width_and_knows_no_order(strata, chance):
    found = mantel_haenszel(strata, seed=4)
    assume(found.used)
    for estimate, low, high in (
        (found.risk_difference, -1, 1),
        (found.risk_ratio, 0, np.inf),
        (found.attributable_fraction, -np.inf, 1),
    ):
        if estimate.value is not None:
            assert low <= estimate.low <= estimate.value <= estimate.high <= high
            assert estimate.low < estimate.high
    shuffled = list(strata)
    chance.shuffle(shuffled)
    again = mantel_haenszel(shuffled, seed=4)
    assert again.risk_difference.value == pytest.approx(found.risk_difference.value)
    assert again.risk_difference.high == pytest.approx(found.risk_difference.high)


LARGE = [(300, 700, 200, 800), (260, 740, 120, 880), (500, 500, 330, 670)]


def test_large_strata_have_the_p_of_cochrans_q():
    q = float(cochran_q(np.array(LARGE, dtype=float)))
    theirs = scipy_stats.chi2.sf(q, 2)
    assert 0.02 < theirs < 0.5
    assert heterogeneity_test(LARGE) == pytest.approx(theirs, abs=0.03)


def test_opposite_strata_disagree_and_like_ones_do_not():
    assert heterogeneity_test([(18, 2, 2, 18), (2, 18, 18, 2)]) < 0.001
    assert heterogeneity_test([(18, 2, 2, 18), (17, 3, 3, 17)]) > 0.5
    assert heterogeneity_test([(0, 9, 0, 9), (0, 5, 0, 5)]) == 1
    assert heterogeneity_test([(9, 0, 0, 9), (5, 0, 0, 5)]) == 1


def test_it_errs_no_more_often_than_it_says_in_small_strata():
    generator = np.random.default_rng(1)
    quiet = 0
    for _ in range(200):
        after_hit = np.array([0.1, 0.3, 0.5, 0.6])
        a, b = generator.binomial(6, after_hit + 0.3), generator.binomial(9, after_hit)
        strata = [tuple(map(int, each)) for each in np.stack([a, 6 - a, b, 9 - b], axis=1)]
        quiet += heterogeneity_test(strata, draws=400) >= 0.05
    assert quiet >= 181  # 190 expected; fewer come about once in 300 times


def test_the_risks_it_draws_from_are_the_likeliest_with_one_difference():
    cells = np.array([(8, 12, 2, 18), (3, 7, 4, 26)], dtype=float)
    apart = float(mantel_haenszel_difference(cells))
    hit, miss = _common_difference_risks(cells)
    for row, risk, other in zip(cells, hit, miss, strict=True):

        def loss(q, row=row):
            p = q + apart
            chances = np.array([p, 1 - p, q, 1 - q])
            return -float(row @ np.log(chances))

        best = optimize.minimize_scalar(loss, bounds=(1e-9, 1 - apart - 1e-9), method="bounded")
        assert risk == pytest.approx(best.x, abs=1e-4)
        assert other == pytest.approx(risk + apart)


def test_one_stratum_agrees_with_itself_so_nothing_is_tested():
    assert heterogeneity_test([(3, 4, 5, 6), (1, 1, 0, 0)]) is None
    assert heterogeneity_test([]) is None


def test_the_same_seed_gives_the_same_p():
    strata = [(5, 5, 2, 8), (3, 9, 4, 5)]
    assert heterogeneity_test(strata, seed=3) == heterogeneity_test(strata, seed=3)
    assert heterogeneity_test(strata, seed=3) != heterogeneity_test(strata, seed=4)


@pytest.mark.parametrize("clusters", [range(30), [place // 3 for place in range(30)]])
def test_where_no_case_is_exposed_there_is_no_fraction(clusters):
    found = exposure_risks(ExposedCases([2] * 30, [1] * 6 + [0] * 24, clusters))
    fraction = found["attributable_fraction"]
    assert (fraction.value, fraction.low, fraction.high) == (None, None, None)
    assert fraction.reason_code.code == "nothing_missed"
    assert found["risk_given_all"].value == 0.2
