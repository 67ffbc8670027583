"""Confusion matrix, AUROC, average precision and thresholds."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t

from misslink.stats.classification import (
    ConfusionMatrix,
    ErrorRates,
    _average_precision_influence,
    average_precision,
    best_threshold,
    confusion_matrix,
    nested_threshold,
    stratified_folds,
)
from misslink.stats.intervals import proportion
from misslink.stats.roc import auroc, auroc_difference
from misslink.types import Estimate, Reason


def test_every_rate_is_that_of_scikit_learn():
    from sklearn import metrics

    generator = np.random.default_rng(2)
    labels = generator.random(90) < 0.7
    calls = np.where(generator.random(90) < 0.8, labels, ~labels)
    found = confusion_matrix(labels.tolist(), calls.tolist()).estimates()
    expected = {
        "kappa": metrics.cohen_kappa_score(labels, calls),
        "accuracy": metrics.accuracy_score(labels, calls),
        "sensitivity": metrics.recall_score(labels, calls),
        "recall": metrics.recall_score(labels, calls),
        "specificity": metrics.recall_score(~labels, ~calls),
        "precision": metrics.precision_score(labels, calls),
        "f1": metrics.f1_score(labels, calls),
        "balanced_accuracy": metrics.balanced_accuracy_score(labels, calls),
    }
    assert {*found} == {*expected, "gwet_ac1"}
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value), name


def test_f1_about_the_bad_label_is_that_of_the_turned_table():
    from sklearn import metrics

    labels, calls = [1, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 1]
    found = confusion_matrix(labels, calls).turned
    assert found.f1.value == pytest.approx(metrics.f1_score(labels, calls, pos_label=0))
    assert found.turned == confusion_matrix(labels, calls)


def test_f1_interval_is_wilsons_of_the_share_found_by_both():
    # J = 40 / 60, F1 = 2 J / (1 + J) = 0.8; statsmodels gives the Wilson ends of J
    from statsmodels.stats.proportion import proportion_confint

    found = ConfusionMatrix(40, 8, 12, 100).f1
    low, high = proportion_confint(40, 60, method="wilson")
    assert found.value == pytest.approx(0.8)
    assert found.low == pytest.approx(2 * low / (1 + low))
    assert found.high == pytest.approx(2 * high / (1 + high))


def test_balanced_accuracy_adds_both_wilson_intervals_in_squares():
    from statsmodels.stats.proportion import proportion_confint

    found = ConfusionMatrix(45, 5, 30, 70).balanced_accuracy
    ends = [proportion_confint(k, n, method="wilson") for k, n in ((45, 50), (70, 100))]
    assert found.value == pytest.approx(0.8)
    assert found.low == pytest.approx(0.8 - math.hypot(0.9 - ends[0][0], 0.7 - ends[1][0]) / 2)
    assert found.high == pytest.approx(0.8 + math.hypot(ends[0][1] - 0.9, ends[1][1] - 0.7) / 2)


def test_without_a_positive_case_only_what_needs_none_is_left():
    found = confusion_matrix([0, 0, 0], [0, 1, 0]).estimates()
    missing = {name for name, estimate in found.items() if estimate.value is None}
    assert missing == {"sensitivity", "recall", "f1", "balanced_accuracy"}
    assert found["f1"].reason_code.code == "no_positive_label"
    assert found["specificity"].value == pytest.approx(2 / 3)


def test_without_a_negative_case_specificity_says_why():
    found = confusion_matrix([1, 1], [0, 0])
    assert found.specificity.reason_code.code == "no_negative_label"
    assert found.precision.reason_code.code == "no_positive_call"
    assert found.f1.value == 0.0
    assert found.balanced_accuracy.reason_code.code == "no_negative_label"


def test_no_cases_are_missing_throughout():
    assert {e.value for e in confusion_matrix([], []).estimates().values()} == {None}


@given(st.tuples(*[st.integers(0, 60)] * 4))
def test_every_interval_holds_its_value_within_the_bounds(cells):
    for name, estimate in ConfusionMatrix(*cells).estimates().items():
        if estimate.value is not None:
            assert -1 <= estimate.low <= estimate.value <= estimate.high <= 1, name
            assert estimate.high > estimate.low, name


@pytest.mark.parametrize("wrong", [([1], []), ([2], [1]), ([1], [0.4]), (["yes"], [1])])
def test_labels_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match=r"pair up|0 or 1"):
        confusion_matrix(*wrong)


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="negative"):
        ConfusionMatrix(1, -1, 0, 0)


def test_rates_without_their_table_rest_on_the_labels_of_both():
    rates = ErrorRates(proportion(8, 10), Estimate.missing(Reason(code="no_negative_label")))
    assert rates.n == 10
    assert rates.balanced_accuracy.value is None
    assert rates.balanced_accuracy.reason_code.code == "no_negative_label"
    table = ConfusionMatrix(true_positive=8, false_negative=2, false_positive=3, true_negative=9)
    known = ErrorRates(table.sensitivity, table.specificity, labels=30)
    assert (known.n, known.balanced_accuracy.n) == (30, 30)
    assert known.balanced_accuracy.value == pytest.approx((0.8 + 0.75) / 2)


def marked(numbers, prefix):
    return [(f"{prefix}{at}", float(number)) for at, number in enumerate(numbers)]


@pytest.mark.parametrize("seed", range(5))
def test_value_is_that_of_scikit_learn_with_ties(seed):
    from sklearn.metrics import roc_auc_score

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
    parts = wins.mean(axis=1).var(ddof=1) / 30, wins.mean(axis=0).var(ddof=1) / 50
    freedom = variance**2 / (parts[0] ** 2 / 29 + parts[1] ** 2 / 49)  # Satterthwaite's
    half = student_t.ppf(0.975, freedom) * math.sqrt(variance) / (area * (1 - area))
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


@pytest.mark.slow
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


def tied(seed, n=50):
    generator = np.random.default_rng(seed)
    labels = (generator.random(n) < 0.3).astype(float)
    return labels, np.round(labels + generator.normal(size=n), 0)


@pytest.mark.parametrize("seed", range(5))
def test_value_is_that_of_scikit_learn_with_ties_of_average_precision(seed):
    from sklearn.metrics import average_precision_score

    labels, scores = tied(seed)
    found = average_precision(labels.tolist(), scores.tolist())
    assert found.value == pytest.approx(average_precision_score(labels, scores))
    assert 0 < found.low < found.value < found.high < 1


def test_influence_is_what_a_little_more_weight_does():
    from sklearn.metrics import average_precision_score

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
    # with 20% good cases, F1 of calling by chance is at most 2 * 0.2 / 1.2 = 1/3
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


def test_a_weight_of_three_is_the_area_of_a_case_that_is_there_three_times():
    generator = np.random.default_rng(4)
    over, under = generator.normal(1, 1, 20), generator.normal(0, 1, 30)
    weights = {f"a{at}": 3.0 for at in range(0, 20, 2)} | {f"b{at}": 3.0 for at in range(0, 30, 3)}
    found = auroc(marked(over, "a"), marked(under, "b"), weights)
    repeated = [
        np.repeat(side, [round(weights.get(f"{name}{at}", 1)) for at in range(len(side))])
        for name, side in (("a", over), ("b", under))
    ]
    assert found.value == pytest.approx((repeated[0][:, None] > repeated[1]).mean())
    assert found.low < auroc(marked(repeated[0], "a"), marked(repeated[1], "b")).low, (
        "no more cases"
    )


def test_the_difference_of_two_areas_is_delongs_of_paired_cases():
    generator = np.random.default_rng(2)
    over, under = generator.normal(1, 1, (40, 2)), generator.normal(0, 1, (60, 2))
    groups = [
        [(f"{name}{at}", *map(float, row)) for at, row in enumerate(side)]
        for name, side in (("a", over), ("b", under))
    ]
    found = auroc_difference(*groups)
    wins = [(over[:, None, at] > under[:, at]).astype(float) for at in (0, 1)]
    moved = [wins[0].mean(axis) - wins[1].mean(axis) for axis in (1, 0)]
    parts = moved[0].var(ddof=1) / 40, moved[1].var(ddof=1) / 60
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 39 + parts[1] ** 2 / 59)
    half = student_t.ppf(0.975, freedom) * math.sqrt(sum(parts))
    assert found.value == pytest.approx(wins[0].mean() - wins[1].mean())
    assert found.high - found.low == pytest.approx(2 * half, rel=1e-6)
    assert auroc_difference(groups[0][:1], groups[1]).value is None
