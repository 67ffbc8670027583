"""Average precision against scikit-learn, its error against weights moved by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from misslink.stats.classification import _average_precision_influence, average_precision
from misslink.stats.intervals import proportion


def tied(seed, n=50):
    generator = np.random.default_rng(seed)
    labels = (generator.random(n) < 0.3).astype(float)
    return labels, np.round(labels + generator.normal(size=n), 0)


@pytest.mark.parametrize("seed", range(5))
def test_value_is_that_of_scikit_learn_with_ties(seed):
    labels, scores = tied(seed)
    found = average_precision(labels.tolist(), scores.tolist())
    assert found.value == pytest.approx(average_precision_score(labels, scores))
    assert 0 < found.low < found.value < found.high < 1


def test_influence_is_what_a_little_more_weight_does():
    labels, scores = tied(3, 16)
    value, found = _average_precision_influence(labels, scores)
    moved = []
    for case in range(16):
        times = np.full(16, 400)
        times[case] += 4
        after = average_precision_score(np.repeat(labels, times), np.repeat(scores, times))
        moved.append((after - value) / 0.01 * 16)
    order = np.argsort(-scores, kind="stable")
    assert np.array(moved)[order] == pytest.approx(found, abs=0.05)


def test_a_perfect_ranking_has_wilsons_interval_of_the_positive_cases():
    found = average_precision([1, 1, 1, 0, 0], [5, 4, 3, 2, 1])
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(proportion(3, 3).low)


@pytest.mark.parametrize(
    ("labels", "side"), [([1, 1], "negative"), ([0, 0], "positive"), ([], "p")]
)
def test_one_label_alone_has_no_average_precision(labels, side):
    found = average_precision(labels, [0.5] * len(labels))
    assert found.value is None
    assert f"no case has the {side}" in found.reason


def test_labels_and_scores_that_are_none_are_refused():
    with pytest.raises(ValueError, match="pair up"):
        average_precision([1], [])
    with pytest.raises(ValueError, match="0 or 1"):
        average_precision([2, 1], [0.1, 0.2])
    with pytest.raises(ValueError, match="finite"):
        average_precision([0, 1], [0.1, float("nan")])
