import math
import random

import numpy as np
import pytest

from misslink.stats import mean
from misslink.stats.intervals import mean_band


def test_each_row_has_about_the_interval_of_its_mean():
    chance = random.Random(1)
    rows = [[chance.random() ** power for _ in range(200)] for power in (0.2, 1, 6)]
    found = mean_band(np.array(rows))
    for at, row in enumerate(rows):
        alone = mean(row)
        assert found.value[at] == pytest.approx(alone.value)
        assert found.low[at] == pytest.approx(alone.low, abs=6e-3)
        assert found.high[at] == pytest.approx(alone.high, abs=6e-3)
    assert found.n == 200


def test_rows_that_are_all_alike_have_a_width_and_stay_within_bounds():
    found = mean_band(np.array([[0.0] * 9, [1.0] * 9]))
    assert (found.low[0], found.high[1]) == (0.0, 1.0)
    assert 0.05 < found.high[0] < 0.4
    assert found.low[1] == pytest.approx(1 - found.high[0])


def test_without_cases_there_is_no_band():
    assert mean_band(np.zeros((3, 0))).value == ()


@pytest.mark.parametrize("bad", [1.5, -0.5, math.nan])
def test_values_that_cannot_be_are_refused(bad):
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        mean_band(np.array([[0.5, bad]]))
