"""The best threshold against every threshold there is, and what nesting is for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from misslink.stats.classification import (
    best_threshold,
    confusion_matrix,
    nested_threshold,
    stratified_folds,
)


def scored(seed, n=40):
    generator = np.random.default_rng(seed)
    labels = (generator.random(n) < 0.7).astype(int)
    return labels.tolist(), np.round(labels + generator.normal(size=n), 1).tolist()


def at(labels, scores, cut, find):
    table = confusion_matrix(labels, [score >= cut for score in scores])
    return table if find else table.turned


@pytest.mark.parametrize("find", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_has_a_larger_f1(seed, find):
    labels, scores = scored(seed)
    best = best_threshold(labels, scores, find=find)
    largest = max(at(labels, scores, cut, find).f1.value for cut in [*scores, 99])
    assert at(labels, scores, best, find).f1.value == pytest.approx(largest)


@pytest.mark.parametrize("find", [True, False])
@pytest.mark.parametrize(
    ("aim", "other"), [("precision", "sensitivity"), ("sensitivity", "precision")]
)
@pytest.mark.parametrize("seed", range(3))
def test_of_those_that_reach_what_is_wanted_none_does_better(seed, aim, other, find):
    labels, scores = scored(seed)
    wanted = 0.6
    found = best_threshold(labels, scores, aim=aim, target=wanted, find=find)
    if found is None:
        shares = [getattr(at(labels, scores, cut, find), aim).value for cut in [*scores, 99]]
        assert max(share or 0 for share in shares) < wanted
        return
    best = at(labels, scores, found, find)
    assert getattr(best, aim).value >= wanted
    for cut in scores:
        table = at(labels, scores, cut, find)
        if getattr(table, aim).value is not None and getattr(table, aim).value >= wanted:
            assert (getattr(table, other).value or 0) <= getattr(best, other).value


def test_what_no_threshold_reaches_is_none():
    assert best_threshold([0, 1], [0.9, 0.1], aim="precision", target=0.9) is None
    assert best_threshold([0, 0], [0.9, 0.1]) is None
    assert best_threshold([1, 1], [0.9, 0.1], find=False) is None


def test_calling_all_cases_bad_is_a_threshold_too():
    cut = best_threshold([0, 0, 0, 1], [0.4, 0.4, 0.4, 0.4], find=False)
    assert 0.4 < cut < 0.4001


def test_nested_f1_of_scores_that_tell_nothing_is_not_flattered():
    generator = np.random.default_rng(3)
    flattered, honest = [], []
    for _ in range(40):
        labels = (generator.random(60) < 0.2).astype(int).tolist()
        noise = generator.random(60).tolist()
        found = nested_threshold(labels, noise)
        honest.append(found.measured.f1.value)
        flattered.append(at(labels, noise, found.threshold, find=True).f1.value)
    # with 20 % good cases, F1 of calling by chance is at most 2 * 0.2 / 1.2 = 1/3
    assert np.mean(flattered) > 0.38
    assert np.mean(honest) < 1 / 3


def test_nested_measures_each_case_once_and_fits_on_all():
    labels, scores = scored(1)
    found = nested_threshold(labels, scores, folds=4, seed=2)
    assert found.measured.n == 40
    assert found.threshold == best_threshold(labels, scores)
    assert len(found.of_folds) == 4
    assert found == nested_threshold(labels, scores, folds=4, seed=2)


def test_folds_without_a_threshold_are_left_out_of_what_is_measured():
    labels, scores = [1, 1, 0, 0], [0.1, 0.2, 0.8, 0.9]
    found = nested_threshold(labels, scores, aim="precision", target=0.9, folds=2)
    assert (found.threshold, found.of_folds, found.measured.n) == (None, (None, None), 0)


def test_wishes_that_make_no_sense_are_refused():
    for aim, wanted in (("f1", 0.5), ("precision", None), ("sensitivity", 1.5)):
        with pytest.raises(ValueError, match="is not valid"):
            best_threshold([0, 1], [0.1, 0.2], aim=aim, target=wanted)
    with pytest.raises(ValueError, match="pair up"):
        best_threshold([0, 1], [0.1])


@pytest.mark.parametrize(("good", "bad", "folds"), [*itertools.product((2, 13), (3, 40), (2, 5))])
def test_folds_share_out_each_label_evenly(good, bad, folds):
    labels = [1] * good + [0] * bad
    found = stratified_folds(labels, folds, seed=1)
    made = min(folds, good, bad)
    assert set(found.tolist()) == set(range(made))
    for label in (0, 1):
        sizes = np.bincount([f for f, each in zip(found, labels, strict=True) if each == label],
                            minlength=made)  # fmt: skip
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(found)
    assert sizes.max() - sizes.min() <= 1


def test_one_fold_or_one_case_of_a_label_is_refused():
    with pytest.raises(ValueError, match="1 folds leave nothing"):
        stratified_folds([0, 0, 1, 1], 1)
    with pytest.raises(ValueError, match="rarer label has 0 cases"):
        stratified_folds([1, 1, 1])
