import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.stats import mean, paired_difference
from misslink.stats.clustered import clustered_difference, clustered_mean


def grouped(clusters, seed, *, low=1, high=9):
    """Values in [0, 1] whose clusters differ, and the clusters' names."""
    chance = random.Random(seed)
    values, names = [], []
    for number in range(clusters):
        middle = chance.betavariate(2, 2)
        for _ in range(chance.randint(low, high)):
            values.append(min(max(chance.gauss(middle, 0.1), 0), 1))
            names.append(f"c{number}")
    return values, names


def statsmodels_error(values, names):
    from statsmodels.api import OLS

    numbers = np.unique(names, return_inverse=True)[1]
    fitted = OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": numbers, "use_correction": True}
    )
    return float(fitted.bse[0])


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [400, 2100])
def test_the_interval_is_as_wide_as_statsmodels_cluster_robust_error_says(clusters):
    """400 clusters are drawn anew, 2,100 go by the linearised variance."""
    values, names = grouped(clusters, 1)
    found = clustered_mean(values, names)
    half = 1.959964 * statsmodels_error(values, names)
    assert found.value == pytest.approx(np.mean(values))
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.04)
    assert found.method == ("cluster bootstrap" if clusters == 400 else "cluster normal")


@pytest.mark.slow
def test_it_covers_where_taking_cases_for_independent_does_not():
    """40 clusters of 1 to 9 cases, 150 times: the mean 0.5 is to lie within in 95% of them."""
    inside = {"clustered": 0, "independent": 0}
    for seed in range(150):
        values, names = grouped(40, seed)
        for way, found in (
            ("clustered", clustered_mean(values, names, seed=seed)),
            ("independent", mean(values, seed=seed)),
        ):
            inside[way] += found.low <= 0.5 <= found.high
    assert inside["clustered"] >= 135  # 90%: four standard errors below 95% is 88%
    assert inside["independent"] < 120


def test_clusters_of_one_case_give_the_interval_of_independent_cases():
    chance = random.Random(3)
    values = [chance.random() for _ in range(150)]
    alone, independent = clustered_mean(values, range(150)), mean(values)
    assert alone.low == pytest.approx(independent.low, abs=5e-3)
    assert alone.high == pytest.approx(independent.high, abs=5e-3)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=25), st.randoms()
)
def test_the_interval_holds_the_value_and_the_order_of_cases_does_not_matter(cases, chance):
    shuffled = list(cases)
    chance.shuffle(shuffled)
    found = clustered_mean([value / 4 for value, _ in cases], [name for _, name in cases])
    again = clustered_mean([value / 4 for value, _ in shuffled], [name for _, name in shuffled])
    assert found == again
    if len({name for _, name in cases}) > 1:
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.low < found.high
    else:
        assert (found.low, found.high) == (None, None)
        assert found.reason_code.code == "one_cluster"


def test_a_difference_flips_the_sign_of_whole_clusters():
    """Two clusters of two, both better in b: 2 of 4 outcomes are as extreme, not 2 of 16."""
    found = clustered_difference([0, 0, 0, 0], [1, 0.5, 1, 1], ["x", "x", "y", "y"])
    assert (found.difference.value, found.difference.n) == (0.875, 4)
    assert (found.p, found.groups) == (0.5, 2)


def test_what_is_detectable_goes_by_clusters():
    chance = random.Random(8)
    a = [chance.random() for _ in range(60)]
    b = [min(1.0, x + chance.choice([0, 0, 0.2])) for x in a]
    alone = clustered_difference(a, b, range(60))
    assert alone.detectable == pytest.approx(paired_difference(a, b).detectable)
    copies = clustered_difference(a * 3, b * 3, [*range(60)] * 3)
    assert copies.detectable == pytest.approx(alone.detectable)
    assert copies.p == pytest.approx(alone.p, abs=0.02)
    assert paired_difference(a * 3, b * 3).detectable < 0.7 * alone.detectable


def test_a_case_without_a_value_in_both_is_left_out():
    found = clustered_difference([0, None, 1], [1, 1, None], ["x", "y", "z"])
    assert (found.difference.value, found.difference.n, found.groups) == (1.0, 1, 1)
    nothing = clustered_difference([None], [1], ["x"])
    assert (nothing.difference.value, nothing.p) == (None, None)
    assert nothing.difference.reason_code.code == "no_shared_value"
    assert clustered_mean([], []).reason_code.code == "no_values"


@pytest.mark.parametrize("values", [[0.5, 1.5], [-0.5, 1], [float("nan"), 1], [0.5]])
def test_values_that_cannot_be_are_refused(values):
    with pytest.raises(ValueError, match=r"finite|length"):
        clustered_mean(values, ["x", "y"])
    with pytest.raises(ValueError, match=r"finite|length"):
        clustered_difference(values, [0.0] * len(values), ["x", "y"])


def differing(clusters, most, chance):
    """Differences of -1, 0 and 1 whose clusters differ, a truth of 0.0902, and the clusters."""
    values, names = [], []
    for number in range(clusters):
        up, down = chance.betavariate(1, 6), chance.betavariate(0.5, 9)
        for _ in range(chance.randint(1, most) if most else 5):
            drawn = chance.random()
            values.append(int(drawn < up) - int(drawn > 1 - down))
            names.append(number)
    return values, names


@pytest.mark.slow
@pytest.mark.parametrize("most", [None, 9])
@pytest.mark.parametrize("clusters", [10, 20, 31])
def test_the_interval_of_a_difference_covers_with_few_clusters(clusters, most):
    """200 times: 95% are expected, and with 1.5% for a standard error 90 to 99.5% allowed."""
    truth, inside = 1 / 7 - 0.5 / 9.5, 0
    chance = random.Random(clusters)
    for seed in range(200):
        values, names = differing(clusters, most, chance)
        a, b = [max(-v, 0) for v in values], [max(v, 0) for v in values]
        found = clustered_difference(a, b, names, seed=seed).difference
        inside += found.low <= truth <= found.high
    assert 180 <= inside <= 199


def test_the_interval_and_the_test_of_few_clusters_agree():
    """31 clusters of 7, of which most gain a little and one case gains all."""
    chance = random.Random(5)
    gains = [max(0.0, chance.gauss(0.03, 0.04)) for _ in range(31 * 7)]
    gains[0] = 1.0
    found = clustered_difference([0.0] * len(gains), gains, [at // 7 for at in range(31 * 7)])
    assert found.p < 0.001
    assert found.difference.low > 0


def test_clusters_without_any_difference_leave_the_room_that_clusters_have():
    """Three cases of a cluster that say the same are no three clusters."""
    one = clustered_difference([0.5] * 20, [0.5] * 20, range(20)).difference
    three = clustered_difference([0.5] * 60, [0.5] * 60, [*range(20)] * 3).difference
    assert (three.low, three.high) == pytest.approx((one.low, one.high), abs=1e-3)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 9)), min_size=2, max_size=40
    )
)
def test_the_interval_of_a_difference_includes_0_exactly_if_the_test_does_not_reject_it(rows):
    a, b, names = zip(*rows, strict=True)
    found = clustered_difference([x / 2 for x in a], [x / 2 for x in b], names)
    low, high = found.difference.low, found.difference.high
    if low is not None:
        assert (low <= 0 <= high) == (found.p >= 0.05)
