"""The numbers of the checks against other people's: scipy, statsmodels, judged@k."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from checked_sets import a_case, gold_of
from misslink.goldset.checks import check_goldset
from misslink.goldset.checks.coverage import permutation_p_value, total_variation
from misslink.goldset.checks.power import cases_for_drop, cases_for_threshold, gate_power
from misslink.goldset.checks.protocol import CheckInputs, GateRequirement, QuestionVectors
from misslink.io.trace_formats import LogRequest, RequestLog
from misslink.retrieval import collect_hits, parse_metric
from misslink.types import Passage


def test_the_permutation_test_agrees_with_the_asymptotic_one_where_counts_are_large():
    one, other = {"a": 200, "b": 300, "c": 100}, {"a": 430, "b": 560, "c": 250}
    asymptotic = chi2_contingency([list(one.values()), list(other.values())], correction=False)
    assert permutation_p_value(one, other) == pytest.approx(asymptotic.pvalue, abs=0.015)


def test_the_distance_is_the_share_that_would_have_to_move():
    assert total_variation({"a": 3, "b": 1}, {"a": 1, "b": 1, "c": 2}) == 0.5
    assert total_variation({"a": 2}, {"a": 9}) == 0
    assert total_variation({}, {"a": 9}) is None
    assert permutation_p_value({"a": 2}, {"a": 9}) is None


@given(st.floats(0.3, 0.99), st.floats(0.01, 0.29))
def test_cases_for_a_threshold_are_those_of_statsmodels(threshold, effect):
    from statsmodels.stats.power import normal_sample_size_one_tail

    share = threshold - effect
    null, other = (np.sqrt(p * (1 - p)) for p in (threshold, share))
    wanted = normal_sample_size_one_tail(effect, 0.8, 0.025, null, other)
    assert cases_for_threshold(threshold, effect) == max(2, int(np.ceil(wanted - 1e-6)))


@pytest.mark.parametrize(("drop", "variance"), [(0.03, 0.5), (0.1, 0.09), (0.2, 0.5)])
def test_cases_for_a_drop_are_those_of_the_paired_t_test(drop, variance):
    from statsmodels.stats.power import TTestPower

    wanted = TTestPower().solve_power(drop / np.sqrt(variance), power=0.8, alpha=0.05)
    assert cases_for_drop(drop, variance) == pytest.approx(np.ceil(wanted), abs=1)


def test_what_a_set_shows_is_what_it_has_the_cases_for():
    demand = GateRequirement("g", "recall@5", 100, threshold=0.85, regression_max=0.05)
    for one in gate_power(demand, 0.05):
        assert one.detectable > one.effect  # there are too few
        if one.limit == "threshold":
            assert cases_for_threshold(0.85, one.detectable) == 100
        else:
            assert cases_for_drop(one.detectable, 0.5) == 100


def test_a_ceiling_is_the_floor_of_the_contrary():
    (low,) = gate_power(GateRequirement("g", "m", 50, threshold=0.9), 0.05)
    (high,) = gate_power(GateRequirement("g", "m", 50, at_most=0.1), 0.05)
    assert (low.needed, low.detectable) == (high.needed, high.detectable)


def test_values_without_a_limit_have_no_number_and_a_reason():
    demand = GateRequirement("g", "latency", 9, at_most=3, regression_max=1, share=False)
    assert [(one.needed, bool(one.reason)) for one in gate_power(demand, 0.05)] == [
        (None, True)
    ] * 2


@pytest.mark.parametrize(
    ("demand", "wanted"),
    [
        (GateRequirement("g", "m", 9, min_cases=10), ["error"]),
        (GateRequirement("g", "m", 10, min_cases=10), []),
        (GateRequirement("g", "m", 429, threshold=0.85), ["warning"]),
        (GateRequirement("g", "m", 430, threshold=0.85), []),
        (GateRequirement("g", "m", 100, regression_max=0.03), ["warning"]),
        (GateRequirement("g", "m", 1000, regression_max=0.03), ["note"]),
        (GateRequirement("g", "m", 5000, regression_max=0.03), []),
        (GateRequirement("g", "m", 0, threshold=0.85, regression_max=0.03), ["warning", "warning"]),
        (GateRequirement("g", "m", 1, regression_max=0.0), []),
    ],
)
def test_too_few_cases_for_a_gate_are_told(demand, wanted):
    found = check_goldset(gold_of([a_case(1)]), CheckInputs(demands=(demand,)))
    assert [one.severity for one in found] == wanted
    assert all(one.check == "power" for one in found)


def test_the_judged_share_is_judged_at_k():
    cases = [a_case(at, relevant={f"doc#{at}": 1, "doc#9": 0}) for at in range(4)]
    names = {
        "case-0": ["doc#0", "x", "y"],
        "case-1": ["doc#9", "doc#1"],
        "case-2": ["x", "y", "z", "doc#2"],
        "case-3": ["doc#3"],
    }
    run = {
        own: tuple(Passage(id=name, rank=at) for at, name in enumerate(given_, 1))
        for own, given_ in names.items()
    }
    (found,) = check_goldset(gold_of(cases), CheckInputs(run=run, k=3))
    hits = collect_hits(cases, [run[case.id] for case in cases])
    theirs = parse_metric("judged@3").score(hits)
    assert found.numbers["judged@3"]["value"] == pytest.approx(theirs.mean())
    assert found.cases == ("case-0", "case-2")
    assert found.numbers["judged@3"]["n"] == 4


def requests(**counts):
    return tuple(
        LogRequest(question=f"number {at}", category=name)
        for name, count in counts.items()
        for at in range(count)
    )


def test_categories_are_held_against_the_logs_column():
    cases = [a_case(at, category="Money" if at < 2 else "times") for at in range(10)]
    log = RequestLog(requests(money=160, times=40), {"category": "intent"})
    (found,) = check_goldset(gold_of(cases), CheckInputs(log=log))
    assert found.numbers["total_variation"] == pytest.approx(0.6)
    assert found.numbers["by"] == "its column 'intent'"
    assert found.numbers["values"][0]["value"] in {"Money", "times"}
    assert "'Money'" in found.fix


def test_without_categories_of_its_own_a_log_has_those_of_the_nearest_question():
    cases = [a_case(at, category="one" if at < 5 else "two") for at in range(10)]
    asked = [cases[0].question.lower()] * 90 + [cases[9].question] * 10 + ["zzz"] * 7
    log = RequestLog(tuple(LogRequest(question=text, category="intent 7") for text in asked))
    (found,) = check_goldset(gold_of(cases), CheckInputs(log=log))
    assert found.numbers["by"] == "the nearest gold question (by words)"
    assert found.numbers["n"] == {"gold": 10, "log": 100}
    assert found.numbers["unassigned"] == 7
    assert "zzz" not in repr(found)


def test_tags_are_held_against_the_log_too():
    cases = [a_case(at, tags={"kind": "one" if at < 5 else "two"}) for at in range(10)]
    log = RequestLog(tuple(LogRequest(question=cases[0].question) for _ in range(60)))
    (found,) = check_goldset(gold_of(cases), CheckInputs(log=log))
    assert found.numbers["axis"] == "tag kind"


def test_a_small_difference_is_no_imbalance_however_sure():
    cases = [a_case(at, category="one" if at < 5 else "two") for at in range(10)]
    log = RequestLog(requests(one=5_800, two=4_200))
    assert check_goldset(gold_of(cases), CheckInputs(log=log)) == ()


def test_vectors_find_what_words_do_not():
    cases = [a_case(1), a_case(2)]
    near = np.array([[1.0, 0.0], [0.98, 0.199]], dtype=np.float32)
    vectors = QuestionVectors(
        "m", {case.question: row for case, row in zip(cases, near, strict=True)}
    )
    (found,) = check_goldset(gold_of(cases), CheckInputs(vectors=vectors))
    assert (found.check, found.severity) == ("duplicates", "warning")
    assert found.numbers["by"] == "by their meaning"
