"""The association within categories, by recall, and without the judge's error."""

from __future__ import annotations

import json

import pytest

from misslink.linking import summarise
from misslink.linking.calibration import Calibration
from misslink.stats import corrected, mantel_haenszel, proportion, trend
from misslink.types import Case, Link


class Made:
    """Cases and links, counted out."""

    def __init__(self):
        self.cases, self.links = [], []

    def add(self, count, retrieval, answer, category=None, *, correct=None):
        for _ in range(count):
            name = f"c{len(self.cases)}"
            self.cases.append(Case(id=name, question="what?", category=category))
            self.links.append(
                Link(
                    case_id=name,
                    retrieval=retrieval,
                    answer=answer,
                    correct=correct,
                    cause="fine",
                    reason="made",
                )
            )
        return self

    def table(self, category, miss_bad, miss_good, hit_bad, hit_good):
        self.add(miss_bad, "miss", "unfaithful", category)
        self.add(miss_good, "miss", "faithful", category)
        self.add(hit_bad, "hit", "unfaithful", category)
        return self.add(hit_good, "hit", "faithful", category)

    def summary(self, **how):
        return summarise(self.links, cases=self.cases, **how)


def test_the_adjusted_numbers_are_those_of_mantel_and_haenszel():
    made = Made().table("how", 12, 9, 7, 30).table("what", 3, 5, 6, 40).table(None, 4, 3, 2, 9)
    found = made.summary(seed=3)["adjusted"]
    tables = [(12, 9, 7, 30), (3, 5, 6, 40), (4, 3, 2, 9)]
    pooled = mantel_haenszel(tables, seed=3)
    for name in ("risk_difference", "risk_ratio", "attributable_fraction"):
        assert found[name] == getattr(pooled, name).model_dump()
    assert [each["name"] for each in found["strata"]] == ["how", "what", "no category"]
    assert found["strata"][0]["table"] == {
        "miss_unfaithful": 12,
        "miss_faithful": 9,
        "hit_unfaithful": 7,
        "hit_faithful": 30,
    }
    assert found["strata"][1]["risk_given_miss"] == proportion(3, 8).model_dump()
    assert found["by"] == "category"
    assert 0 < found["heterogeneity"]["p"] <= 1
    assert found["warning"] is None


def test_a_sign_that_turns_within_categories_is_warned_of():
    made = Made().table("easy", 1, 29, 20, 180).table("hard", 90, 60, 16, 4)
    found = made.summary()
    assert found["risk_difference"]["value"] > 0 > found["adjusted"]["risk_difference"]["value"]
    assert "the sign turns (Simpson's paradox)" in found["adjusted"]["warning"]


def test_a_pooled_number_outside_of_the_adjusted_interval_is_warned_of():
    made = Made().table("easy", 11, 89, 80, 720).table("hard", 340, 260, 110, 90)
    found = made.summary()["adjusted"]
    assert "differ in their risk anyway" in found["warning"]


def test_categories_that_disagree_are_warned_of():
    made = Made().table("how", 28, 2, 15, 85).table("what", 8, 22, 20, 80)
    found = made.summary()["adjusted"]
    assert found["heterogeneity"]["p"] < 0.05
    assert "The categories disagree on the risk difference" in found["warning"]


def test_a_category_without_a_miss_says_nothing_and_is_counted():
    made = Made().table("how", 12, 9, 7, 30).table("what", 0, 0, 6, 40)
    found = made.summary()["adjusted"]
    assert found["left_out"] == {"strata": 1, "cases": 46}
    assert found["strata"][1]["risk_given_miss"]["value"] is None
    assert found["risk_ratio"]["n"] == 58
    assert found["heterogeneity"]["p"] is None
    assert "fewer than two categories" in found["heterogeneity"]["reason"]


def test_without_categories_nothing_is_adjusted_and_it_says_why():
    for found in (Made().table(None, 5, 5, 5, 9).summary(), summarise([])):
        adjusted = found["adjusted"]
        assert adjusted["risk_ratio"]["value"] is None
        assert "has a category" in adjusted["risk_ratio"]["reason"]
        assert (adjusted["strata"], adjusted["warning"]) == ([], None)
        assert adjusted["heterogeneity"]["p"] is None


def test_the_dose_response_keeps_partial_hits_apart():
    made = Made().table("how", 12, 8, 7, 70).add(4, "partial", "unfaithful")
    made.add(6, "partial", "faithful").add(3, "partial", "abstained").add(2, "miss", "unknown")
    made.add(5, "none_needed", "unfaithful").add(5, "unknown", "unfaithful")
    found = made.summary()["dose_response"]
    risks = {each["recall"]: each["risk"] for each in found["groups"]}
    assert list(risks) == ["none", "some", "all"]
    assert risks["none"] == proportion(12, 20).model_dump()
    assert risks["some"] == proportion(4, 10).model_dump()
    assert risks["all"] == proportion(7, 77).model_dump()
    expected = trend([(12, 20), (4, 10), (7, 77)])
    assert found["trend"] == {"p": expected.p, "method": expected.method, "reason": None}


def test_no_bad_answer_has_no_trend_and_says_why():
    found = Made().table("how", 0, 8, 0, 70).summary()["dose_response"]["trend"]
    assert found["p"] is None
    assert "none of the 78 cases are bad" in found["reason"]


@pytest.fixture
def calibration():
    return Calibration("faithfulness", 0.5, proportion(108, 120), proportion(64, 80))


def test_a_calibrated_judge_has_its_error_taken_out(calibration):
    made = Made().table("how", 12, 9, 12, 65)
    found = made.summary(seed=2, calibration=calibration)["corrected"]
    expected = corrected(
        *(12, 9, 12, 65), sensitivity=proportion(108, 120), specificity=proportion(64, 80), seed=2
    )
    for name, estimate in expected.estimates.items():
        assert found[name] == estimate.model_dump()
    assert found["sensitivity"]["n"] == 120
    assert found["warning"] is None
    assert found["risk_given_miss"]["value"] > 12 / 21


def test_no_calibration_or_that_of_another_metric_corrects_nothing(calibration):
    made = Made().table("how", 12, 9, 12, 65)
    assert made.summary()["corrected"] is None
    other = Calibration("correctness", 0.5, calibration.sensitivity, calibration.specificity)
    assert made.summary(calibration=other)["corrected"] is None


def test_wrong_answers_are_adjusted_too_and_never_corrected(calibration):
    made = Made().add(9, "miss", "abstained", "how", correct=False)
    made.add(3, "miss", "faithful", "how", correct=True).add(4, "hit", "faithful", "how")
    made.add(20, "hit", "faithful", "how", correct=True).add(5, "hit", "faithful", correct=False)
    wrong = made.summary(calibration=calibration)["wrong"]
    assert wrong["adjusted"]["strata"][0]["table"] == {
        "miss_wrong": 9,
        "miss_right": 3,
        "hit_wrong": 0,
        "hit_right": 20,
    }
    assert wrong["dose_response"]["groups"][0]["risk"] == proportion(9, 12).model_dump()
    assert "corrected" not in wrong


def test_the_whole_summary_is_json_without_nan_and_knows_no_order(calibration):
    made = Made().table("how", 12, 9, 7, 30).table("what", 0, 5, 6, 0).add(2, "miss", "unfaithful")
    found = made.summary(calibration=calibration)
    written = json.dumps(found, allow_nan=False)
    again = summarise(made.links[::-1], cases=made.cases[::-1], calibration=calibration)
    assert json.dumps(again) == written
