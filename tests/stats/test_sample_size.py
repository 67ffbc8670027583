"""Labels for a width: checked against the intervals that those labels then have."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from misslink.stats.prevalence import prediction_powered
from misslink.stats.sample_size import labels_for_share, share_width, width_curve


@pytest.mark.parametrize(("share", "width"), [(0.5, 0.1), (0.9, 0.05), (0.02, 0.2), (1.0, 0.1)])
def test_one_label_fewer_is_too_wide(share, width):
    n = labels_for_share(share, width)
    wide = [np.diff(proportion_confint(share * m, m, method="wilson"))[0] for m in (n, n - 1)]
    assert wide[0] <= width < wide[1]


def test_verdicts_save_the_labels_that_prediction_powered_inference_says():
    generator = np.random.default_rng(1)
    y = (generator.random(2_000) < 0.4).astype(float)
    f = np.where(generator.random(2_000) < 0.9, y, 1 - y)
    found = prediction_powered(y[:150].tolist(), f[:150].tolist(), f[150:].tolist()).estimate
    correlation = float(np.corrcoef(y[:150], f[:150])[0, 1])
    planned = share_width(150, found.value, correlation=correlation, judged=2_000)
    assert found.high - found.low == pytest.approx(planned, rel=0.05)


def test_labels_on_every_case_may_not_be_enough():
    assert labels_for_share(0.5, 0.05, correlation=0.9, judged=500) is None
    assert labels_for_share(0.5, 0.05, judged=500) is None
    assert labels_for_share(0.5, 0.1, correlation=0.9, judged=500) < 381


def test_the_curve_falls_and_ends_with_the_judged_cases():
    curve = width_curve([25, 100, 400, 1600], 0.3, correlation=0.5, judged=500)
    assert [n for n, _ in curve] == [25, 100, 400]
    widths = [width for _, width in curve]
    assert widths == sorted(widths, reverse=True)
    assert widths[1] == share_width(100, 0.3, correlation=0.5, judged=500)


def test_numbers_that_are_none_are_refused():
    for wrong in ({"share": 1.2}, {"share": 0.5, "correlation": 2}):
        with pytest.raises(ValueError, match="out of range"):
            share_width(10, **wrong)
    with pytest.raises(ValueError, match="fewer than"):
        share_width(10, 0.5, correlation=0.5)
    with pytest.raises(ValueError, match="width is between"):
        labels_for_share(0.5, 0)
