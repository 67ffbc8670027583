"""What is gathered of a case: what is known, what is missing, and what is too uncertain."""

from __future__ import annotations

import pytest

import misslink
from misslink.linking.attribution_rules import attribute_failure
from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.judge_calibration import Calibration
from misslink.types import Case, Claim, Estimate, Evidence, Passage, Trace, Verdict

SHARE = Estimate(value=0.9, low=0.8, high=0.95, n=100, method="wilson")
PASSAGES = tuple(
    Passage(id=name, text=f"The {name} pier opened in 1904.", rank=rank)
    for rank, name in enumerate(("gold", "noise"), start=1)
)


def band(metric="faithfulness", ends=(0.4, 0.6)):
    return Calibration(
        metric=metric, threshold=0.5, sensitivity=SHARE, specificity=SHARE, uncertain_band=ends
    )


def verdict(metric, label=None, **more):
    scored = {"status": "scored", "value": float(label)} if label is not None else {}
    return Verdict(case_id="1", metric=metric, judge="openai:m", label=label, **scored | more)


def facts(*verdicts, calibration=None, answer="It opened in 1904.", **case):
    gold = {"relevant": ["gold"], "references": ["In 1904."]} | case
    trace = Trace(case_id="1", retrieved=PASSAGES, answer=answer)
    of = {each.metric: each for each in verdicts}
    return CaseEvidence.from_verdicts(
        Case(id="1", question="When?", **gold), trace, of, 5, calibration
    )


UNFAITHFUL = (Claim(text="It opened in 1904.", support="unsupported", probability=0.45),)


@pytest.mark.parametrize(
    ("calibration", "answer", "failure"),
    [
        (None, "unfaithful", "ignored_context"),
        (band(), "unknown", "inconclusive"),
        (band(ends=(0.45, 0.45)), "unknown", "inconclusive"),
        (band(ends=(0.46, 0.6)), "unfaithful", "ignored_context"),
        (band(ends=None), "unfaithful", "ignored_context"),
        (band(metric="correctness"), "unfaithful", "ignored_context"),
    ],
)
def test_a_probability_in_the_uncertain_band_of_its_own_metric_decides_nothing(
    calibration, answer, failure
):
    said = verdict("faithfulness", label=False, probability=0.45, claims=UNFAITHFUL)
    known = facts(said, calibration=calibration)
    assert known.answer == answer
    attribution = attribute_failure(known, {})
    assert attribution.failure == failure
    if failure == "inconclusive":
        assert "0.45" in attribution.reason


def test_a_verdict_without_a_probability_is_never_uncertain():
    assert facts(verdict("faithfulness", label=False), calibration=band()).answer == "unfaithful"


def test_an_uncertain_verdict_keeps_its_claims_for_the_links_and_lends_them_to_no_cause():
    said = verdict("faithfulness", label=False, probability=0.5, claims=UNFAITHFUL)
    known = facts(said, calibration=band())
    assert known.claims == ()
    assert [claim.text for _, claim in known.unfaithful] == ["It opened in 1904."]


def test_what_is_certain_names_its_cause_beside_an_uncertain_verdict():
    said = verdict("faithfulness", label=True, probability=0.5)
    wrong = verdict("correctness", label=False)
    known = facts(said, wrong, calibration=band(), relevant=["elsewhere"])
    assert attribute_failure(known, {}).failure == "retrieval_miss"


def test_an_uncertain_correctness_verdict_is_neither_right_nor_wrong():
    said = verdict("faithfulness", label=True), verdict("correctness", label=False, probability=0.5)
    known = facts(*said, calibration=band("correctness"))
    assert known.correct is None
    assert attribute_failure(known, {}).failure == "inconclusive"


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_answer_declines_whatever_a_judge_says(blank):
    assert facts(answer=blank).answer == "declined"
    known = facts(verdict("faithfulness", label=True), answer=blank)
    assert attribute_failure(known, {}).failure == "over_refused"


def test_claims_show_that_an_answer_did_not_decline_where_no_verdict_says_so():
    assert facts(verdict("faithfulness", label=False, claims=UNFAITHFUL)).declined is False
    assert facts(verdict("faithfulness", label=False)).declined is None


def test_whether_the_unanswerable_was_answered_stays_open_where_no_verdict_tells():
    known = facts(verdict("faithfulness", label=False), relevant=[], answerable=False)
    attribution = attribute_failure(known, {})
    assert attribution.failure == "inconclusive"
    assert "declined" in attribution.reason


def test_a_heuristic_relevance_verdict_makes_no_gold_hole():
    rests = Evidence(passage_id="noise", quote="opened in 1904", start=15, end=29)
    claim = Claim(text="It opened in 1904.", support="supported", evidence=(rests,))
    said = verdict("faithfulness", label=True, claims=(claim,)), verdict("correctness", label=True)
    relevance = verdict("context_relevance", label=True, passages={"noise": 1.0})
    by_llm = facts(*said, relevance, relevant=["elsewhere"])
    assert attribute_failure(by_llm, {}).notes == ("missing_label",)
    heuristic = relevance.model_copy(update={"judge": "heuristic"})
    by_heuristic = facts(*said, heuristic, relevant=["elsewhere"])
    assert attribute_failure(by_heuristic, {}).notes == ()


ANSWERS = {
    "right": "It opened in 1904.",
    "wrong": "Gulls nest under its roof.",
    "declined": "I don't know.",
    "blank": "",
}
GOLD = {
    "listed": {"relevant": ["gold"], "references": ["It opened in 1904."]},
    "not listed": {"references": ["It opened in 1904."]},
    "without reference": {"relevant": ["gold"]},
    "unanswerable": {"answerable": False, "references": ["It opened in 1904."]},
}


def test_a_case_is_wrong_in_the_links_exactly_where_its_correctness_verdict_says_so():
    cases, traces = [], []
    for gold_name, gold in GOLD.items():
        for answer_name, answer in ANSWERS.items():
            name = f"{gold_name}, {answer_name}"
            cases.append({"id": name, "question": "When did the pier open?", **gold})
            traces.append(Trace(case_id=name, retrieved=PASSAGES, answer=answer))
    run = misslink.evaluate(goldset=cases, traces=traces, judge="heuristic", cache=None)
    labels = {v.case_id: v.label for v in run.verdicts if v.metric == "correctness"}
    assert {link.case_id: link.correct for link in run.links} == labels
    # Those that count in the table of wrong answers are those that count in the share of correct
    # ones, but for the cases of which nobody knows what they need.
    wrong = run.summary["link_correctness"]
    known = [n for n, label in labels.items() if label is not None and n.startswith("listed")]
    assert len(known) == len(ANSWERS)
    assert wrong["exposure"] is None  # one case has all, by labels
    failures = {link.case_id: link.failure for link in run.links}
    assert failures["listed, blank"] == failures["listed, declined"] == "over_refused"
    assert failures["without reference, blank"] == "over_refused"
    assert failures["unanswerable, blank"] == failures["unanswerable, declined"] == "passed"
    assert failures["unanswerable, wrong"] == "should_have_abstained"
    assert failures["not listed, blank"] == "over_refused"
