"""Fisher's exact test of a group and Benjamini and Hochberg's correction, against scipy."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control, hypergeom

from misslink.stats.association import fisher_greater
from misslink.stats.paired_tests import benjamini_hochberg


@pytest.mark.parametrize("seed", range(200))
def test_both_are_those_of_scipy(seed):
    draw = np.random.default_rng(seed)
    cases = int(draw.integers(2, 3000))
    bad, group = (int(draw.integers(0, cases + 1)) for _ in range(2))
    both = int(draw.integers(max(0, group + bad - cases), min(group, bad) + 1))
    exact = hypergeom.sf(both - 1, cases, bad, group)
    assert fisher_greater(both, group, bad, cases) == pytest.approx(exact, rel=1e-6, abs=1e-12)
    ps = list(draw.random(int(draw.integers(1, 30))) ** 3)
    assert benjamini_hochberg(ps) == pytest.approx(list(false_discovery_control(ps)))
