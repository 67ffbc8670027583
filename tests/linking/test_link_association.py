"""Risks of bad answers by how much of what was needed reached the prompt."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from json_values import as_json
from misslink.calibration.verdicts import hash_verdicts
from misslink.linking.association import cluster_cases, summarize_association
from misslink.stats import proportion
from misslink.stats.association import (
    heterogeneity_test,
    mantel_haenszel,
    risk_difference,
    trend_test,
)
from misslink.stats.exposure import ExposedCases, exposure_risks
from misslink.types import Case, Link, Passage, Run, Trace, Verdict

summarize_association = as_json(summarize_association)

RISKS = ("risk_given_none", "risk_given_some", "risk_given_all")
NAMES = (*RISKS, "risk_difference", "risk_ratio", "attributable_fraction")
SCORES = {"faithful": 0.9, "unfaithful": 0.1}


class Made:
    """Cases, links and verdicts, counted out."""

    def __init__(self):
        self.cases, self.links, self.verdicts, self.traces, self.labels = [], [], [], [], {}

    def add(self, count, retrieval, answer, category=None, *, score=None, label=None, **link):
        for _ in range(count):
            name = f"c{len(self.cases)}"
            self.cases.append(Case(id=name, question="what?", category=category))
            facts = {"failure": "passed", "reason": "made"} | link
            self.links.append(Link(case_id=name, retrieval=retrieval, answer=answer, **facts))
            value = SCORES.get(answer) if score is None else score
            if value is not None:
                self.verdicts.append(verdict(name, value))
            if label is not None:
                self.labels[name] = label
        return self

    def table(self, category, none_bad, none_good, all_bad, all_good):
        self.add(none_bad, "miss", "unfaithful", category)
        self.add(none_good, "miss", "faithful", category)
        self.add(all_bad, "hit", "unfaithful", category)
        return self.add(all_good, "hit", "faithful", category)

    def run(self, **calibration):
        run = Run(
            manifest={},
            cases=self.cases,
            traces=self.traces,
            verdicts=self.verdicts,
            links=self.links,
            summary={},
        )
        if not calibration and not self.labels:
            return run
        document = {
            "metric": "faithfulness",
            "threshold": 0.5,
            "labelled": self.labels,
            "verdicts_sha256": hash_verdicts(run, "faithfulness"),
        }
        return run.model_copy(update={"calibration": document | calibration})

    def summary(self, *, own=("faithfulness",), seed=0, **calibration):
        return summarize_association(self.run(**calibration), own=own, seed=seed)["link"]


def verdict(case_id, score, metric="faithfulness"):
    return Verdict(
        case_id=case_id,
        metric=metric,
        status="scored",
        value=score,
        label=score >= 0.5,
        probability=score,
        judge="made",
    )


@pytest.fixture
def made():
    made = Made().add(12, "miss", "unfaithful", failure="retrieval_miss", correct=False)
    made.add(8, "miss", "faithful").add(7, "hit", "unfaithful", failure="fabricated")
    made.add(3, "partial", "unfaithful", failure="retrieval_miss").add(5, "partial", "faithful")
    made.add(70, "hit", "faithful", correct=True).add(4, "not_needed", "unfaithful")
    made.add(5, "miss", "declined", failure=None)
    return made.add(1, "hit", "unknown", failure="inconclusive")


def test_there_are_three_exposures_and_what_cannot_be_placed_is_left_out(made):
    found = made.summary()
    assert found["exposure"] == "labels"
    assert found["table"] == {
        "none": {"bad": 12, "good": 8},
        "some": {"bad": 3, "good": 5},
        "all": {"bad": 7, "good": 70},
        "left_out": 10,
        "not_needed": 4,
    }


def test_the_risks_compare_none_with_all_and_the_fraction_all_with_everything(made):
    found = made.summary()
    assert found["risk_given_some"] == proportion(3, 8).model_dump()
    assert found["risk_difference"] == risk_difference(12, 20, 7, 77).model_dump()
    assert found["risk_ratio"]["value"] == pytest.approx((12 / 20) / (7 / 77))
    assert found["attributable_fraction"]["value"] == pytest.approx(1 - (7 / 77) / (22 / 105))
    assert found["attributable_fraction"]["n"] == 105
    expected = trend_test([(12, 20), (3, 8), (7, 77)])
    assert (found["trend"]["p"], found["trend"]["slope"]) == (expected.p, expected.slope)


def test_failed_counts_the_cases_whose_outcome_is_known(made):
    assert made.summary()["failed"] == proportion(22, 109).model_dump()


def test_wrong_answers_have_the_same_block(made):
    found = summarize_association(made.run())
    assert found["link_correctness"].keys() == found["link"].keys()
    assert found["link_correctness"]["table"]["none"] == {"bad": 12, "good": 0}
    assert found["link_correctness"]["table"]["all"] == {"bad": 0, "good": 70}
    assert found["link_correctness"]["risk_given_some"]["value"] is None


def test_with_few_hits_by_labels_the_judges_sufficiency_is_the_exposure():
    made = Made().add(9, "hit", "faithful", sufficient_judge="no")
    made.add(3, "unlabelled", "faithful", sufficient_judge="yes")
    made.add(4, "miss", "unfaithful", sufficient_judge="partly")
    made.add(2, "not_needed", "faithful", sufficient_judge="no")
    found = made.summary()
    assert found["exposure"] == "sufficiency"
    assert [found["table"][name] for name in ("none", "some", "all")] == [
        {"bad": 0, "good": 9},
        {"bad": 4, "good": 0},
        {"bad": 0, "good": 3},
    ]
    assert "exposure_by_judge" in [note["code"] for note in found["warnings"]]
    made.add(1, "hit", "faithful", sufficient_judge="no")
    assert made.summary()["exposure"] == "labels"


def test_without_labels_and_sufficiency_there_is_no_exposure():
    found = Made().add(9, "hit", "faithful").add(9, "miss", "unfaithful").summary()
    assert found["exposure"] is None
    for name in NAMES:
        assert found[name]["value"] is None
        assert found[name]["reason_code"]["code"] == "no_exposure"


def test_a_risk_ratio_that_could_be_anything_is_missing():
    found = Made().table(None, 6, 14, 1, 60).summary()["risk_ratio"]
    assert (found["value"], found["reason_code"]["code"]) == (None, "wide_ratio")


def test_cases_cluster_by_group_else_by_the_passages_that_they_share():
    def case(id_, **facts):
        return Case(id=id_, question="what?", **facts)

    found = cluster_cases(
        [
            case("a", relevant=["p1", "p2"]),
            case("b", relevant_any=[["p2"], ["p3"]]),
            case("c", relevant={"p3": 1, "p9": 0}),
            case("d", relevant=["p9"]),
            case("e", relevant=["p1"], group="manual"),
            case("f", group="manual"),
            case("g"),
            case("h", relevant=["p9"], evidence=["a sentence"]),
            case("i", evidence=["a sentence"]),
        ]
    )
    assert found["a"] == found["b"] == found["c"]
    assert found["e"] == found["f"] != found["a"]
    assert found["h"] == found["i"]
    assert len(set(found.values())) == 5


def test_intervals_respect_clusters():
    made = Made().table(None, 25, 15, 10, 50)
    alone = made.summary()
    made.cases = [
        case.model_copy(update={"group": str(place // 5)}) for place, case in enumerate(made.cases)
    ]
    found = made.summary()
    assert found["clusters"] == 20
    for name in ("risk_given_none", "risk_given_all", "risk_difference", "attributable_fraction"):
        assert found[name]["value"] == pytest.approx(alone[name]["value"])
        width, before = (each[name]["high"] - each[name]["low"] for each in (found, alone))
        assert width > 1.3 * before
    assert alone["trend"]["p"] < found["trend"]["p"] < 0.1


def test_the_adjusted_numbers_are_those_of_mantel_and_haenszel():
    made = Made().table("how", 12, 9, 7, 30).table("what", 3, 5, 6, 40).table(None, 4, 3, 2, 9)
    made.add(5, "partial", "unfaithful", "how")
    found = made.summary(seed=3)["adjusted"]
    tables = [(12, 9, 7, 30), (3, 5, 6, 40), (4, 3, 2, 9)]
    pooled = mantel_haenszel(tables, seed=3)
    assert found["risk_difference"] == pooled.risk_difference.model_dump()
    assert found["risk_ratio"] == pooled.risk_ratio.model_dump()
    exposed = mantel_haenszel([(17, 9, 7, 30), *tables[1:]], seed=3)
    assert found["attributable_fraction"] == exposed.attributable_fraction.model_dump()
    assert [each["name"] for each in found["strata"]] == ["how", "what", "no category"]
    assert found["strata"][0]["table"]["some"] == {"bad": 5, "good": 0}
    assert found["strata"][1]["risk_given_none"] == proportion(3, 8).model_dump()
    assert found["by"] == "category"
    assert found["heterogeneity"]["p"] == heterogeneity_test(tables, seed=3)
    assert found["warning"] is None
    assert found["change"]["code"] == "adjusted_change"


@pytest.mark.parametrize(
    ("tables", "code"),
    [
        ({"easy": (1, 29, 20, 180), "hard": (90, 60, 16, 4)}, "sign_turns"),
        ({"how": (3, 12, 8, 27), "what": (5, 5, 13, 17)}, None),  # both may be 0
        ({"easy": (11, 89, 80, 720), "hard": (340, 260, 110, 90)}, "crude_misleads"),
        ({"how": (28, 2, 15, 85), "what": (8, 22, 20, 80)}, "strata_disagree"),
    ],
)
def test_where_all_cases_together_mislead_a_warning_says_so(tables, code):
    made = Made()
    for category, table in tables.items():
        made.table(category, *table)
    warning = made.summary()["adjusted"]["warning"]
    assert (warning and warning["code"]) == code


def test_a_category_without_a_miss_says_nothing_and_is_counted():
    made = Made().table("how", 12, 9, 7, 30).table("what", 0, 0, 6, 40)
    found = made.summary()["adjusted"]
    assert found["left_out"] == {"strata": 1, "cases": 46}
    assert found["strata"][1]["risk_given_none"]["value"] is None
    assert found["risk_ratio"]["n"] == 58
    assert found["heterogeneity"]["p"] is None


def confounded(count=900):
    """Questions with three relevant passages are missed more often, and answered badly anyway."""
    generator = np.random.default_rng(1)
    made = Made()
    for place in range(count):
        hard = generator.random() < 0.5
        missed = generator.random() < (0.7 if hard else 0.2)
        bad = generator.random() < (0.6 if hard else 0.1)
        made.add(1, "miss" if missed else "hit", "unfaithful" if bad else "faithful")
        needed = [f"p{place}-{i}" for i in range(3 if hard else 1)]
        question = "w" * int(generator.integers(20, 60))
        made.cases[-1] = Case(id=made.cases[-1].id, question=question, relevant=needed)
        score = float(generator.random())
        passages = [Passage(id="other", text="", rank=1, score=score)]
        made.traces.append(Trace(case_id=made.cases[-1].id, retrieved=passages))
    return made


def test_without_categories_it_is_adjusted_for_what_may_make_a_case_hard_and_says_so():
    found = confounded().summary()
    adjusted = found["adjusted"]
    assert adjusted["by"] == (
        "question length, number of relevant passages, best score of an irrelevant passage"
    )
    assert adjusted["proxies"] == ["question_length", "relevant_passages", "irrelevant_score"]
    assert found["risk_difference"]["low"] > 0.15
    assert adjusted["risk_difference"]["value"] < 0.4 * found["risk_difference"]["value"]
    assert [stratum["name"] for stratum in adjusted["strata"]] == [
        *("easiest", "easier", "middle", "harder", "hardest")
    ]
    assert adjusted["warning"]["code"] == "crude_misleads"
    assert adjusted["change"]["message"].count("points") == 2


def test_where_nothing_can_be_adjusted_for_it_says_why():
    for found in (Made().table(None, 5, 5, 5, 9).summary(), Made().summary()):
        adjusted = found["adjusted"]
        assert adjusted["by"] is None
        assert adjusted["risk_ratio"]["reason_code"]["code"] == "nothing_to_adjust_for"
        assert (adjusted["strata"], adjusted["warning"], adjusted["change"]) == ([], None, None)


def labelled(none_bad, none_good, all_bad, all_good, *, judge_right=1.0):
    """Cases of which every second one is labelled; the judge is right in a share of them."""
    made = Made()
    cells = {
        ("miss", 0): none_bad,
        ("miss", 1): none_good,
        ("hit", 0): all_bad,
        ("hit", 1): all_good,
    }
    for (retrieval, good), count in cells.items():
        for place in range(count):
            right = place % 10 < 10 * judge_right
            called = good if right else 1 - good
            answer = "faithful" if called else "unfaithful"
            made.add(1, retrieval, answer, label=float(good) if place % 2 else None)
    return made


def test_with_labels_of_the_run_the_risks_are_prediction_powered_at_each_exposure():
    found = labelled(60, 40, 40, 160, judge_right=0.8).summary()
    corrected = found["corrected"]
    assert found["risk_given_none"]["value"] == pytest.approx(0.56)
    assert corrected["risk_given_none"]["value"] == pytest.approx(0.6, abs=0.05)
    assert corrected["attributable_fraction"]["method"].startswith("ppi++")
    assert [note["code"] for note in found["warnings"]] == []


def test_a_link_as_strong_as_can_be_is_corrected_and_not_dropped():
    corrected = labelled(24, 0, 4, 60).summary()["corrected"]
    assert corrected["risk_given_none"]["value"] == 1
    assert 0.7 < corrected["risk_given_none"]["low"] < 1
    for name in ("risk_difference", "attributable_fraction"):
        assert corrected[name]["low"] > 0.4


def test_few_labels_at_an_exposure_give_no_corrected_number_and_say_so():
    made = labelled(60, 40, 40, 160)
    misses = {link.case_id for link in made.links if link.retrieval == "miss"}
    made.labels = {id_: label for id_, label in made.labels.items() if id_ not in misses}
    found = made.summary()
    assert found["corrected"]["risk_given_all"]["value"] is not None
    for name in ("risk_given_none", "risk_difference", "attributable_fraction"):
        assert found["corrected"][name]["reason_code"]["code"] == "few_labels_at_exposure"
    assert "not_corrected" in [note["code"] for note in found["warnings"]]


def test_an_uncorrected_fraction_says_that_it_is_not_corrected(made):
    found = made.summary()
    assert found["corrected"]["attributable_fraction"]["reason_code"]["code"] == "not_calibrated"
    assert [note["code"] for note in found["warnings"]] == ["not_corrected"]
    assert found["judge_error_by_exposure"]["tested"] is False


def rates(sensitivity, specificity):
    both = {"sensitivity": sensitivity, "specificity": specificity}
    return {name: proportion(round(100 * rate), 100).model_dump() for name, rate in both.items()}


def test_a_calibration_of_another_run_corrects_by_the_errors_at_each_exposure():
    by_exposure = {"none": rates(0.9, 0.8), "some": rates(0.9, 0.8), "all": rates(0.7, 0.9)}
    by_exposure |= {"tested": True, "differs": True, "p": 0.01}
    made = Made().table(None, 40, 60, 60, 140)
    found = made.summary(own=(), by_exposure=by_exposure)
    assert found["corrected"]["risk_given_none"]["value"] == pytest.approx((0.4 - 0.1) / 0.7)
    assert found["corrected"]["risk_given_all"]["value"] == pytest.approx(0)
    assert found["corrected"]["attributable_fraction"]["value"] == pytest.approx(1)
    assert found["corrected"]["attributable_fraction"]["low"] < 1
    assert found["judge_error_by_exposure"]["differs"] is True
    unmeasured = made.summary(own=(), by_exposure={"none": rates(0.9, 0.8)})["corrected"]
    assert unmeasured["risk_given_all"]["reason_code"]["code"] == "judge_unmeasured"
    assert unmeasured["attributable_fraction"]["value"] is None


def test_cases_of_the_uncertain_band_are_corrected_and_those_that_decline_are_not():
    made = labelled(60, 40, 40, 160).add(30, "miss", "unknown", score=0.45, label=1.0)
    made.add(50, "miss", "declined", score=0.1)
    found = made.summary()
    assert found["table"]["none"] == {"bad": 60, "good": 40}
    assert found["corrected"]["risk_given_none"]["n"] == 50 + 30


def test_the_summary_is_json_without_nan_and_knows_no_order():
    made = labelled(12, 9, 7, 30, judge_right=0.9)
    found = summarize_association(made.run(), own=("faithfulness",))
    written = json.dumps(found, allow_nan=False)
    again = Made()
    for name in ("cases", "links", "verdicts", "traces"):
        setattr(again, name, getattr(made, name)[::-1])
    again.labels = dict(reversed(made.labels.items()))
    found = summarize_association(again.run(), own=("faithfulness",))
    assert json.dumps(found) == written


counts = st.integers(min_value=0, max_value=12)


@pytest.mark.slow
@given(
    st.lists(counts, min_size=6, max_size=6),
    st.integers(min_value=1, max_value=5),
    st.randoms(use_true_random=False),
)
def test_risks_of_any_table_lie_within_their_bounds_in_any_order(cells, size, random):
    rows = [
        (level, float(bad))
        for (level, bad), count in zip(
            [(level, bad) for level in range(3) for bad in (1, 0)], cells, strict=True
        )
        for _ in range(count)
    ]
    cases = [(level, bad, place // size) for place, (level, bad) in enumerate(rows)]
    shuffled = random.sample(cases, len(cases))
    found = exposure_risks(
        ExposedCases(*zip(*cases, strict=True)) if cases else ExposedCases([], [], [])
    )
    again = exposure_risks(
        ExposedCases(*zip(*shuffled, strict=True)) if cases else ExposedCases([], [], [])
    )
    assert found == again
    for name, estimate in found.items():
        if estimate.value is None:
            assert estimate.reason
            continue
        if estimate.low is None:  # all cases are of one cluster
            assert len(rows) <= size
            continue
        assert estimate.low <= estimate.value <= estimate.high
        assert name == "risk_ratio" or estimate.high <= 1
        assert name not in RISKS or estimate.low >= 0


def test_failures_that_are_inferred_say_so(made):
    made.add(2, "unlabelled", "unfaithful", failure="retrieval_miss", basis="inferred")
    notes = summarize_association(made.run())["link"]["warnings"]
    (note,) = [note["message"] for note in notes if note["code"] == "inferred"]
    assert note.startswith("2 failure modes are inferred without labels")
