"""The order of labelling: any beginning of it is a random sample of known chances."""

from collections import Counter

import numpy as np
import pytest

from labelled_runs import run_of
from misslink.annotation.tasks import draw_plan, planned_metrics
from misslink.io.label_folder import LabelPlan, PlanCase, PlanStratum

METRICS = ("faithfulness",)


def informative(cases=400, seed=1):
    """Scores of a judge that is mostly sure and mostly right, and what is true."""
    draw = np.random.default_rng(seed)
    scores = np.clip(draw.beta(1.6, 0.7, cases), 0.01, 0.99).round(3)
    return scores, draw.random(cases) < scores**1.5  # too kind


def labelled(plan, n):
    return [case.case_id for case in plan.cases[:n]]


def test_all_cases_with_an_answer_are_planned_once():
    run = run_of([0.1, 0.9, None, "none"] * 10, answers=[" ", None, *["A."] * 38])
    plan = draw_plan(run, METRICS)
    assert sorted(case.case_id for case in plan.cases) == sorted(f"c{n}" for n in range(2, 40))
    assert sum(stratum.size for stratum in plan.strata) == 38
    assert Counter(case.stratum for case in plan.cases) == {
        place: stratum.size for place, stratum in enumerate(plan.strata)
    }


def test_the_same_seed_draws_the_same_order_and_another_another():
    run = run_of(informative(60)[0])
    assert draw_plan(run, METRICS, seed=3) == draw_plan(run, METRICS, seed=3)
    assert labelled(draw_plan(run, METRICS, seed=3), 60) != labelled(
        draw_plan(run, METRICS, seed=4), 60
    )


def test_the_order_of_the_gold_set_does_not_matter():
    scores = informative(80)[0]
    run = run_of(scores)
    turned = run.model_copy(update={"cases": run.cases[::-1]})
    assert draw_plan(run, METRICS) == draw_plan(turned, METRICS)


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_every_beginning_is_close_to_what_the_rates_allot(share):
    plan = draw_plan(run_of(informative()[0], categories="ab"), METRICS, random_share=share)
    earned = np.array([stratum.size * stratum.rate for stratum in plan.strata])
    reached = np.zeros(len(plan.strata))
    for n, case in enumerate(plan.cases[:200], start=1):
        reached[case.stratum] += 1
        full = reached == [stratum.size for stratum in plan.strata]
        if n >= 2 * len(plan.strata) and not full.any():
            assert np.abs(reached - n * earned / earned.sum()).max() < 2


def test_every_stratum_has_a_label_before_any_has_two():
    plan = draw_plan(run_of(informative()[0], categories="abc"), METRICS)
    assert len(plan.strata) > 4
    first = [case.stratum for case in plan.cases[: len(plan.strata)]]
    assert sorted(first) == list(range(len(plan.strata)))


def test_cases_near_the_threshold_are_drawn_more_often_and_none_less_than_the_random_share():
    plan = draw_plan(run_of(np.linspace(0, 1, 201)), METRICS, random_share=0.3)
    by_level = {stratum.level: stratum.rate for stratum in plan.strata}
    assert plan.threshold == 0.5
    assert min(by_level[1], by_level[2]) > 1 > max(by_level[0], by_level[3])
    assert min(by_level.values()) >= 0.3
    even = draw_plan(run_of(np.linspace(0, 1, 201)), METRICS, random_share=1.0)
    assert {stratum.rate for stratum in even.strata} == {1.0}


def test_without_a_judge_the_order_is_by_chance_within_categories():
    plan = draw_plan(run_of(["none"] * 40, categories="ab"), METRICS)
    assert (plan.by, plan.threshold) == (None, None)
    assert [(one.name, one.size, one.rate) for one in plan.strata] == [
        ("a", 20, 1.0), ("b", 20, 1.0),
    ]  # fmt: skip
    alone = draw_plan(run_of(["none"] * 3), METRICS)
    assert [one.name for one in alone.strata] == ["all cases"]


def test_cases_that_the_judge_failed_on_are_drawn_too_but_seldom():
    plan = draw_plan(run_of([0.4, 0.6, None] * 20), METRICS)
    (failed,) = [one for one in plan.strata if one.level == 4]
    assert failed.size == 20
    assert 0.2 <= failed.rate < min(one.rate for one in plan.strata if one.level != 4)


def test_small_strata_are_merged_with_their_own_level_first():
    plan = draw_plan(run_of([0.1] * 30 + [0.9] * 30, categories=["a"] * 29 + ["b"]), METRICS)
    assert [(one.level, one.size) for one in plan.strata] == [(0, 30), (3, 30)]
    assert all(one.name.endswith("; a, b") for one in plan.strata)


def test_what_needs_a_reference_is_asked_only_where_there_is_one():
    run = run_of([0.5, 0.6], metrics=("faithfulness", "correctness"))
    case = run.cases[0].model_copy(update={"references": ("So.",)})
    run = run.model_copy(update={"cases": (case, run.cases[1])})
    assert planned_metrics(run, ("correctness", "faithfulness")) == {
        "c0": ("correctness", "faithfulness"), "c1": ("faithfulness",)
    }  # fmt: skip


def test_a_share_that_is_none_is_refused():
    with pytest.raises(ValueError, match="not from 0 to 1"):
        draw_plan(run_of([0.5]), METRICS, random_share=1.5)


def test_weights_are_stratum_over_labelled_and_an_unlabelled_stratum_counts_with_its_neighbour():
    strata = (PlanStratum("low", 0, 4), PlanStratum("low b", 0, 6), PlanStratum("high", 3, 10))
    cases = [
        PlanCase(f"{s}-{n}", s, ("m",)) for s, one in enumerate(strata) for n in range(one.size)
    ]
    plan = LabelPlan(tuple(cases), strata, 0, 0.2)
    told = {"0-0", "0-1", "1-0", "2-0"}
    weights = plan.weights("m", told)
    assert {case: weights[case] for case in sorted(told)} == {
        "0-0": 2, "0-1": 2, "1-0": 6, "2-0": 10,
    }  # fmt: skip
    alone = plan.weights("m", {"0-0", "2-0", "2-1"})
    assert (alone["0-0"], alone["2-0"]) == (10, 5)  # low b counts with low, not with high
    assert plan.weights("m", {"unknown"}) == {}
    assert plan.weights("other", {"0-0"}) == {}


@pytest.fixture(scope="module")
def drawn():
    """Many orders of one run, and what is true by case."""
    scores, good = informative(150)
    run = run_of(scores)
    plans = [draw_plan(run, METRICS, seed=seed) for seed in range(120)]
    return plans, {f"c{n}": bool(one) for n, one in enumerate(good)}


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 40])
def test_with_its_weights_the_share_of_good_ones_is_unbiased(drawn, n):
    plans, truth = drawn
    found = []
    for plan in plans:
        said = labelled(plan, n)
        weights = plan.weights("faithfulness", said)
        assert sum(weights[case] for case in said) == pytest.approx(len(truth))
        found.append(sum(weights[case] for case in said if truth[case]) / len(truth))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - np.mean(list(truth.values()))) < 4 * error


@pytest.mark.slow
def test_without_its_weights_the_share_is_biased(drawn):
    plans, truth = drawn
    found = [np.mean([truth[case] for case in labelled(plan, 40)]) for plan in plans]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - np.mean(list(truth.values()))) > 6 * error


def test_estimates_from_planned_labels_vary_less_than_from_labels_at_random(drawn):
    plans, truth = drawn
    found, by_chance = [], []
    for seed, plan in enumerate(plans):
        said = labelled(plan, 40)
        weights = plan.weights("faithfulness", said)
        found.append(sum(weights[case] for case in said if truth[case]) / len(truth))
        any_order = np.random.default_rng(seed).permutation(list(truth.values()))
        by_chance.append(any_order[:40].mean())
    assert np.std(found) < 0.9 * np.std(by_chance)


def test_a_calibration_of_an_earlier_run_gives_the_chances_of_the_draw():
    """A judge that is sure and misses most of what is bad: bad answers are among those it calls good."""
    run = run_of([0.97] * 270 + [0.03] * 30)
    plain = {stratum.name: stratum.rate for stratum in draw_plan(run, METRICS).strata}
    rate = {"low": 0.0, "high": 1.0, "n": 100, "method": "wilson"}
    applied = {
        "threshold": 0.5,
        "sensitivity": {**rate, "value": 0.98},
        "specificity": {**rate, "value": 0.25},
    }
    known = run.model_copy(update={"manifest": {**run.manifest, "calibration": applied}})
    rates = [stratum.rate for stratum in draw_plan(known, METRICS).strata]
    assert len(set(plain.values())) == 1, "as sure of either call"
    # by Bayes 29% of those called good are bad, and 13% of the others good
    assert rates[-1] > 1 > rates[0]
    other = draw_plan(known, ("correctness", *METRICS))
    assert {stratum.rate for stratum in other.strata} == {1.0}, "it is of faithfulness"
