import random

import numpy as np
import pytest
from scipy import stats as scipy_stats

from misslink.stats.paired_tests import sign_flips


def scipys(differences):
    found = scipy_stats.permutation_test(
        (np.array(differences),), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    return float(found.pvalue)


def test_the_p_of_a_dozen_is_scipys_to_the_last_digit():
    chance = random.Random(2)
    differences = [chance.uniform(-0.4, 0.6) for _ in range(12)]
    assert sign_flips(differences) == pytest.approx(scipys(differences), abs=1e-12)


@pytest.mark.parametrize(("n", "shift"), [(199, 0.05), (300, 0.04), (3001, 0.012)])
def test_of_many_sizes_it_is_near_the_normal_limit_however_signs_are_drawn(n, shift):
    """199 sizes are drawn by counts, more of them eight at a time."""
    chance = random.Random(n)
    differences = [chance.gauss(shift, 0.4) for _ in range(n)]
    z = abs(sum(differences)) / np.sqrt(np.square(differences).sum())
    limit = 2 * scipy_stats.norm.sf(z)
    assert 0.01 < limit < 0.6
    assert sign_flips(differences) == pytest.approx(limit, abs=4 * np.sqrt(limit / 10_000) + 0.002)


def test_both_ways_of_drawing_agree_where_sizes_repeat(monkeypatch):
    chance = random.Random(9)
    differences = [chance.choice([-1, -1, 1, 1, 1]) * chance.randint(1, 60) / 64 for _ in range(99)]
    by_count = sign_flips(differences)
    monkeypatch.setattr("misslink.stats.paired_tests._MAX_DISTINCT_SIZES", 1)
    assert sign_flips(differences) == pytest.approx(by_count, abs=0.02)
    assert sign_flips(differences) != sign_flips(differences, seed=1)


def test_a_drawn_p_is_never_0_and_the_order_does_not_matter():
    chance = random.Random(5)
    differences = [0.5 + chance.random() / 4 for _ in range(500)]
    backwards = differences[::-1]
    assert sign_flips(differences) == sign_flips(backwards) == 1 / 10_001


def test_without_any_difference_p_is_1():
    assert sign_flips([]) == sign_flips([0.0, 0.0]) == 1.0


def test_ties_in_the_sum_count_as_extreme_also_eight_at_a_time():
    """600 equal differences of 0.1 are off 0 by 60: only all plus or all minus is as far."""
    sizes = [0.1 + number * 1e-6 for number in range(600)]
    assert sign_flips([*sizes, *(-size for size in sizes)]) == 1.0
