"""Fisher's exact test of a group and Benjamini and Hochberg's correction, against scipy."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control, hypergeom

from misslink.stats.association import fisher_greater
from misslink.stats.paired_tests import benjamini_hochberg


def test_fisher_is_that_of_scipy():
    draw = np.random.default_rng(0)
    tables = []
    for _ in range(200):
        cases = int(draw.integers(2, 3000))
        bad, group = (int(draw.integers(0, cases + 1)) for _ in range(2))
        both = int(draw.integers(max(0, group + bad - cases), min(group, bad) + 1))
        tables.append((both, group, bad, cases))
    both, group, bad, cases = np.transpose(tables)
    exact = hypergeom.sf(both - 1, cases, bad, group)
    found = [fisher_greater(*table) for table in tables]
    assert found == pytest.approx(list(exact), rel=1e-6, abs=1e-12)


def test_benjamini_and_hochberg_is_that_of_scipy():
    draw = np.random.default_rng(0)
    for _ in range(50):
        ps = list(draw.random(int(draw.integers(1, 30))) ** 3)
        assert benjamini_hochberg(ps) == pytest.approx(list(false_discovery_control(ps)))
