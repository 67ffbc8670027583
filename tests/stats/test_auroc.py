"""The area against scikit-learn, its interval against DeLong's formula and by coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from misslink.stats.classification import auroc


def marked(numbers, prefix):
    return [(f"{prefix}{at}", float(number)) for at, number in enumerate(numbers)]


@pytest.mark.parametrize("seed", range(5))
def test_value_is_that_of_scikit_learn_with_ties(seed):
    generator = np.random.default_rng(seed)
    over, under = generator.integers(2, 9, 40), generator.integers(0, 7, 60)
    expected = roc_auc_score([1] * 40 + [0] * 60, [*over, *under])
    assert auroc(marked(over, "a"), marked(under, "b")).value == pytest.approx(expected)


def test_with_one_number_a_case_the_interval_is_delongs_on_the_logit_scale():
    generator = np.random.default_rng(1)
    over, under = generator.normal(1, 1, 30), generator.normal(0, 1, 50)
    wins = (over[:, None] > under).astype(float)
    variance = wins.mean(axis=1).var(ddof=1) / 30 + wins.mean(axis=0).var(ddof=1) / 50
    area = wins.mean()
    half = 1.959964 * math.sqrt(variance) / (area * (1 - area))
    centre = math.log(area / (1 - area))
    found = auroc(marked(over, "a"), marked(under, "b"))
    assert found.low == pytest.approx(1 / (1 + math.exp(half - centre)), abs=1e-6)
    assert found.high == pytest.approx(1 / (1 + math.exp(-half - centre)), abs=1e-6)


def test_groups_that_do_not_overlap_still_have_an_interval():
    found = auroc(marked([3, 4, 5], "a"), marked([0, 1, 2], "b"))
    assert (found.value, found.high, found.method) == (1.0, 1.0, "newcombe")
    assert 0.3 < found.low < 0.9
    turned = auroc(marked([0, 1, 2], "b"), marked([3, 4, 5], "a"))
    assert (turned.value, turned.low) == (0.0, 0.0)
    assert turned.high == pytest.approx(1 - found.low)


def test_newcombe_end_is_where_the_score_statistic_is_critical():
    found = auroc(marked(range(10, 20), "a"), marked(range(8), "b"))
    star = 18 / 2 - 1
    area = found.low
    bend = 1 + star * ((1 - area) / (2 - area) + area / (1 + area))
    assert (1 - area) ** 2 == pytest.approx(1.959964**2 * area * (1 - area) * bend / 80, rel=1e-5)


def test_an_empty_group_has_no_area():
    found = auroc([], marked([1], "b"))
    assert (found.value, found.n) == (None, 1)
    assert "empty" in found.reason


def test_the_order_of_the_numbers_changes_nothing():
    over, under = marked([1, 3, 5], "a"), marked([0, 3, 4], "a")
    found = {auroc(list(one), under) for one in itertools.permutations(over)}
    assert len({round(one.low, 12) for one in found}) == 1


def clustered(generator, cases, within):
    """Each case lifts all its numbers alike; the true area is that of a shift of one."""
    over, under = [], []
    for case in range(cases):
        lift = generator.normal(0, within)
        over += [(str(case), lift + 1 + generator.normal()) for _ in range(2)]
        under += [(str(case), lift + generator.normal()) for _ in range(4)]
    return over, under


@pytest.mark.parametrize("within", [0.0, 2.0])
def test_the_interval_covers_the_truth_also_where_cases_differ(within):
    generator = np.random.default_rng(7)
    # Two normal numbers of different cases, one apart, differ with variance 2 (1 + within^2).
    spread = math.sqrt(2 * (1 + within**2))
    truth = (1 + math.erf(1 / spread / math.sqrt(2))) / 2
    covered = 0
    for _ in range(400):
        found = auroc(*clustered(generator, 40, within))
        covered += found.low <= truth <= found.high
    assert 0.92 <= covered / 400 <= 0.985
