"""Risks of bad answers after misses and hits, adjusted and corrected."""

from __future__ import annotations

import json

import numpy as np
import pytest

from misslink.linking.association import summarize_association
from misslink.linking.judge_calibration import Calibration
from misslink.stats import correct_association, mantel_haenszel, proportion, trend_test
from misslink.types import Case, Link, Verdict


def links(retrieval, answer, count, *, correct=None, failure="passed"):
    return [
        Link(
            case_id=f"{retrieval}-{answer}-{i}",
            retrieval=retrieval,
            answer=answer,
            correct=correct,
            failure=failure,
            reason="made",
        )
        for i in range(count)
    ]


@pytest.fixture
def table():
    return [
        *links("miss", "unfaithful", 12, failure="retrieval_miss", correct=False),
        *links("miss", "faithful", 8),
        *links("hit", "unfaithful", 7, failure="fabricated"),
        *links("partial", "unfaithful", 3, failure="retrieval_miss"),
        *links("hit", "faithful", 70, correct=True),
        *links("not_needed", "unfaithful", 4),
        *links("miss", "declined", 5),
        *links("hit", "unknown", 1, failure="inconclusive"),
    ]


def test_a_partial_hit_counts_as_a_hit_and_what_cannot_be_placed_is_left_out(table):
    found = summarize_association(table)
    assert found["table"] == {
        "miss_unfaithful": 12,
        "miss_faithful": 8,
        "hit_unfaithful": 10,
        "hit_faithful": 70,
        "left_out": 10,
    }
    assert sum(found["table"].values()) == len(table)


def test_the_risks_are_those_of_the_table(table):
    found = summarize_association(table)
    assert found["risk_given_miss"]["value"] == pytest.approx(12 / 20)
    assert found["risk_given_hit"]["value"] == pytest.approx(10 / 80)
    assert found["risk_difference"]["value"] == pytest.approx(12 / 20 - 10 / 80)
    assert found["risk_ratio"]["value"] == pytest.approx((12 / 20) / (10 / 80))
    overall = 22 / 100
    assert found["attributable_fraction"]["value"] == pytest.approx((overall - 10 / 80) / overall)
    for name in ("risk_given_miss", "risk_given_hit", "risk_difference", "attributable_fraction"):
        assert found[name]["low"] < found[name]["value"] < found[name]["high"]


def test_wrong_answers_have_their_own_table(table):
    wrong = summarize_association(table)["wrong"]
    assert wrong["table"] == {
        "miss_wrong": 12,
        "miss_right": 0,
        "hit_wrong": 0,
        "hit_right": 70,
        "left_out": 28,
    }


def test_causes_are_counted_and_only_those_that_occur(table):
    assert summarize_association(table)["failures"] == {
        "retrieval_miss": 15,
        "fabricated": 7,
        "inconclusive": 1,
        "passed": 87,
    }


def test_the_order_of_cases_does_not_matter(table):
    assert summarize_association(table, seed=3) == summarize_association(table[::-1], seed=3)


def test_no_case_at_all_gives_missing_estimates_that_say_why():
    found = summarize_association([])
    for name in ("risk_given_miss", "risk_ratio", "attributable_fraction"):
        assert found[name]["value"] is None
        assert found[name]["reason"]


def verdict(case_id, chance, metric="faithfulness"):
    return Verdict(
        case_id=case_id,
        metric=metric,
        status="scored",
        value=chance,
        label=chance >= 0.5,
        probability=chance,
        judge="made",
    )


class Made:
    """Cases and links, counted out."""

    def __init__(self):
        self.cases, self.links, self.verdicts = [], [], []

    def add(self, count, retrieval, answer, category=None, *, correct=None, chance=None):
        for _ in range(count):
            name = f"c{len(self.cases)}"
            self.cases.append(Case(id=name, question="what?", category=category))
            self.links.append(
                Link(
                    case_id=name,
                    retrieval=retrieval,
                    answer=answer,
                    correct=correct,
                    failure="passed",
                    reason="made",
                )
            )
            if chance is None and answer in {"faithful", "unfaithful"}:
                self.verdicts.append(verdict(name, 0.9 if answer == "faithful" else 0.1))
            elif chance is not None:
                self.verdicts.append(verdict(name, chance))
        return self

    def table(self, category, miss_bad, miss_good, hit_bad, hit_good):
        self.add(miss_bad, "miss", "unfaithful", category)
        self.add(miss_good, "miss", "faithful", category)
        self.add(hit_bad, "hit", "unfaithful", category)
        return self.add(hit_good, "hit", "faithful", category)

    def summary(self, **how):
        return summarize_association(self.links, cases=self.cases, verdicts=self.verdicts, **how)


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
    crude = round(100 * found["risk_difference"]["value"])
    warning = found["adjusted"]["warning"]
    assert warning.startswith(f"The risk difference is +{crude} points [")
    assert "the sign turns (Simpson's paradox)" in warning
    assert warning.endswith("read the adjusted numbers and not the crude ones.")


def test_two_signs_of_differences_that_may_both_be_0_are_no_paradox():
    found = Made().table("how", 3, 12, 8, 27).table("what", 5, 5, 13, 17).summary()
    crude, pooled = found["risk_difference"], found["adjusted"]["risk_difference"]
    assert crude["value"] * pooled["value"] < 0
    assert found["adjusted"]["warning"] is None


def test_a_pooled_number_outside_of_the_adjusted_interval_is_warned_of():
    made = Made().table("easy", 11, 89, 80, 720).table("hard", 340, 260, 110, 90)
    found = made.summary()["adjusted"]
    assert "differ in their risk anyway" in found["warning"]


def test_categories_that_disagree_are_warned_of():
    made = Made().table("how", 28, 2, 15, 85).table("what", 8, 22, 20, 80)
    found = made.summary()["adjusted"]
    assert found["heterogeneity"]["p"] < 0.05
    assert "The categories disagree on the risk difference (p < 0.001)" in found["warning"]


def test_a_category_without_a_miss_says_nothing_and_is_counted():
    made = Made().table("how", 12, 9, 7, 30).table("what", 0, 0, 6, 40)
    found = made.summary()["adjusted"]
    assert found["left_out"] == {"strata": 1, "cases": 46}
    assert found["strata"][1]["risk_given_miss"]["value"] is None
    assert found["risk_ratio"]["n"] == 58
    assert found["heterogeneity"]["p"] is None
    assert "fewer than two categories" in found["heterogeneity"]["reason"]


def test_without_categories_nothing_is_adjusted_and_it_says_why():
    for found in (Made().table(None, 5, 5, 5, 9).summary(), summarize_association([])):
        adjusted = found["adjusted"]
        assert adjusted["risk_ratio"]["value"] is None
        assert "has a category" in adjusted["risk_ratio"]["reason"]
        assert (adjusted["strata"], adjusted["warning"]) == ([], None)
        assert adjusted["heterogeneity"]["p"] is None


def test_the_dose_response_keeps_partial_hits_apart():
    made = Made().table("how", 12, 8, 7, 70).add(4, "partial", "unfaithful")
    made.add(6, "partial", "faithful").add(3, "partial", "declined").add(2, "miss", "unknown")
    made.add(5, "not_needed", "unfaithful").add(5, "unknown", "unfaithful")
    found = made.summary()["dose_response"]
    risks = {each["recall"]: each["risk"] for each in found["groups"]}
    assert list(risks) == ["none", "some", "all"]
    assert risks["none"] == proportion(12, 20).model_dump()
    assert risks["some"] == proportion(4, 10).model_dump()
    assert risks["all"] == proportion(7, 77).model_dump()
    expected = trend_test([(12, 20), (4, 10), (7, 77)])
    assert found["trend"] == {
        "p": expected.p,
        "method": expected.method,
        "reason": None,
        "slope": expected.slope,
    }
    assert expected.slope < 0


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
    expected = correct_association(
        *(12, 9, 12, 65), sensitivity=proportion(108, 120), specificity=proportion(64, 80), seed=2
    )
    for name, estimate in expected.estimates.items():
        assert found[name] == estimate.model_dump()
    assert found["sensitivity"]["n"] == 120
    assert found["warning"] is None
    assert found["risk_given_miss"]["value"] > 12 / 21


def banded():
    """Cases whose verdicts lie in the uncertain band, which the links leave inconclusive."""
    made = Made().table("how", 8, 6, 5, 50)
    made.add(4, "miss", "unknown", chance=0.45).add(3, "miss", "unknown", chance=0.55)
    return made.add(7, "hit", "unknown", chance=0.45).add(15, "hit", "unknown", chance=0.55)


def test_what_is_corrected_are_all_cases_by_the_judges_word_uncertain_ones_too():
    calibration = Calibration("faithfulness", 0.5, proportion(9, 10), proportion(8, 10), (0.4, 0.6))
    made = banded().add(2, "hit", "declined", chance=0.9).add(3, "miss", "unknown")
    made.add(4, "not_needed", "faithful")
    found = made.summary(calibration=calibration)
    assert found["table"] == {
        "miss_unfaithful": 8,
        "miss_faithful": 6,
        "hit_unfaithful": 5,
        "hit_faithful": 50,
        "left_out": 38,
    }
    of = found["corrected"]
    assert of["table"] == {
        "miss_unfaithful": 12,
        "miss_faithful": 9,
        "hit_unfaithful": 12,
        "hit_faithful": 65,
        "left_out": 9,
    }
    assert of["uncertain"] == 29
    assert of["judged"]["risk_given_miss"] == proportion(12, 21).model_dump()
    expected = correct_association(
        *(12, 9, 12, 65), sensitivity=proportion(9, 10), specificity=proportion(8, 10)
    )
    assert of["risk_ratio"] == expected.estimates["risk_ratio"].model_dump()


def test_without_verdicts_nothing_is_corrected_and_it_says_why(calibration):
    made = Made().table("how", 12, 9, 12, 65)
    found = summarize_association(made.links, calibration=calibration)["corrected"]
    assert found["risk_given_miss"]["value"] is None
    assert "a verdict that the judge scored" in found["risk_given_miss"]["reason"]


def test_a_case_is_called_good_from_the_threshold_at_which_the_judge_was_measured():
    calibration = Calibration("faithfulness", 0.95, proportion(9, 10), proportion(8, 10))
    made = Made().table("how", 2, 6, 2, 10).add(5, "hit", "faithful", chance=0.97)
    made.verdicts.append(verdict("c0", 0.99, metric="correctness"))
    of = made.summary(calibration=calibration)["corrected"]
    assert list(of["table"].values()) == [8, 0, 12, 5, 0]


def test_without_its_uncertain_cases_a_corrected_risk_would_be_biased():
    """A judge of many cases whose certain ones err less than its measured errors say."""
    generator = np.random.default_rng(3)
    n, risks = 6000, {"miss": 0.6, "hit": 0.2}
    made, certain = Made(), {"miss": [], "hit": []}
    for retrieval, risk in risks.items():
        bad = generator.random(n) < risk
        chances = 1 / (1 + np.exp(-generator.normal(np.where(bad, -1.0, 1.0), 1.0)))
        for chance in chances:
            known = not 0.35 <= chance <= 0.65
            answer = ("faithful" if chance >= 0.5 else "unfaithful") if known else "unknown"
            made.add(1, retrieval, answer, chance=float(chance))
        certain[retrieval] = chances[(chances < 0.35) | (chances > 0.65)] < 0.5
    right = 0.8413  # of a normal, above one standard deviation below its mean
    share = proportion(round(right * 10_000), 10_000)
    calibration = Calibration("faithfulness", 0.5, share, share, (0.35, 0.65))
    of = made.summary(calibration=calibration)["corrected"]
    for retrieval, risk in risks.items():
        assert of[f"risk_given_{retrieval}"]["value"] == pytest.approx(risk, abs=0.02)
    without = (certain["hit"].mean() - (1 - right)) / (2 * right - 1)
    assert abs(without - risks["hit"]) > 0.04


def test_no_calibration_or_that_of_another_metric_corrects_nothing(calibration):
    made = Made().table("how", 12, 9, 12, 65)
    assert made.summary()["corrected"] is None
    other = Calibration("correctness", 0.5, calibration.sensitivity, calibration.specificity)
    assert made.summary(calibration=other)["corrected"] is None


def test_wrong_answers_are_adjusted_too_and_never_corrected(calibration):
    made = Made().add(9, "miss", "declined", "how", correct=False)
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
    again = summarize_association(
        made.links[::-1],
        cases=made.cases[::-1],
        verdicts=made.verdicts[::-1],
        calibration=calibration,
    )
    assert json.dumps(again) == written
