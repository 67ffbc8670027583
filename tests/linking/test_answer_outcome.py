"""What the verdicts say about an answer: what is known, what is missing, and what is too uncertain."""

import asyncio

import pytest

import misslink
from misslink.judge.calibration import Calibration
from misslink.linking.answer_outcome import AnswerOutcome
from misslink.linking.owners import link_case
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


def given(*verdicts, calibration=None, answer="It opened in 1904.", **case):
    gold = {"relevant": ["gold"], "references": ["In 1904."]} | case
    trace = Trace(case_id="1", retrieved=PASSAGES, answer=answer)
    of = {each.metric: each for each in verdicts}
    case = Case(id="1", question="When did the gold pier open?", **gold)
    return case, trace, of, calibration


def facts(*verdicts, **options):
    case, trace, of, calibration = given(*verdicts, **options)
    return AnswerOutcome.from_verdicts(case, trace, of, 5, calibration)


def linked(*verdicts, **options):
    case, trace, of, calibration = given(*verdicts, **options)
    return asyncio.run(link_case(case, trace, of, 5, calibration=calibration))


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
    assert facts(said, calibration=calibration).answer == answer
    attribution = linked(said, calibration=calibration)
    assert attribution.failure == failure
    if failure == "inconclusive":
        assert "0.45" in attribution.reason


def test_a_verdict_without_a_probability_is_never_uncertain():
    assert facts(verdict("faithfulness", label=False), calibration=band()).answer == "unfaithful"


def test_an_uncertain_verdict_keeps_its_claims_for_the_links_and_lends_them_to_no_cause():
    said = verdict("faithfulness", label=False, probability=0.5, claims=UNFAITHFUL)
    known = facts(said, calibration=band())
    assert known.claims == ()
    assert [claim.text for claim in known.all_claims] == ["It opened in 1904."]


def test_what_is_certain_names_its_cause_beside_an_uncertain_verdict():
    said = verdict("faithfulness", label=True, probability=0.5)
    wrong = verdict("correctness", label=False)
    lacking = verdict("context_sufficiency", label=False)
    link = linked(said, wrong, lacking, calibration=band(), relevant=["elsewhere"])
    assert link.failure == "retrieval_miss"


def test_an_uncertain_correctness_verdict_is_neither_right_nor_wrong():
    said = verdict("faithfulness", label=True), verdict("correctness", label=False, probability=0.5)
    assert facts(*said, calibration=band("correctness")).correct is None
    assert linked(*said, calibration=band("correctness")).failure == "inconclusive"


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_answer_declines_whatever_a_judge_says(blank):
    assert facts(answer=blank).answer == "declined"
    link = linked(verdict("faithfulness", label=True), answer=blank)
    assert link.failure == "over_refused"


def test_claims_show_that_an_answer_did_not_decline_where_no_verdict_says_so():
    assert facts(verdict("faithfulness", label=False, claims=UNFAITHFUL)).declined is False
    assert facts(verdict("faithfulness", label=False)).declined is None


def test_whether_the_unanswerable_was_answered_stays_open_where_no_verdict_tells():
    attribution = linked(verdict("faithfulness", label=False), relevant=[], answerable=False)
    assert attribution.failure == "inconclusive"
    assert "declined" in attribution.reason


def test_a_heuristic_relevance_verdict_makes_no_gold_hole():
    rests = Evidence(passage_id="noise", quote="opened in 1904", start=15, end=29)
    claim = Claim(text="It opened in 1904.", support="supported", evidence=(rests,))
    said = verdict("faithfulness", label=True, claims=(claim,)), verdict("correctness", label=True)
    relevance = verdict("context_relevance", label=True, passages={"noise": 1.0})
    assert linked(*said, relevance, relevant=["elsewhere"]).notes == ("missing_label",)
    heuristic = relevance.model_copy(update={"judge": "heuristic"})
    assert linked(*said, heuristic, relevant=["elsewhere"]).notes == ()


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


@pytest.mark.parametrize(
    ("references", "has_no_answer"),
    [
        ([], False),
        (["I do not know."], True),
        (["I do not know.", "In 1904."], False),
        (["None."], False),  # a function returns None, say
        (["It fails when the text is missing."], False),
    ],
)
def test_references_of_an_unlabelled_case_say_that_there_is_no_answer(references, has_no_answer):
    known = facts(relevant=[], references=references)
    assert known.has_no_answer == has_no_answer


def response(value):
    return verdict("answer_relevance", status="scored", value=value)


@pytest.mark.parametrize("reference", ["In 1904.", None])
def test_an_answer_that_does_not_address_the_question_fails_with_or_without_a_reference(reference):
    rests = Evidence(passage_id="gold", quote="pier opened")
    claim = Claim(text="The pier is gold.", support="supported", evidence=(rests,))
    said = verdict("faithfulness", label=True, claims=(claim,)), response(0.0)
    link = linked(*said, answer="The pier is gold.", references=[reference] if reference else [])
    assert (link.failure, link.owner) == ("off_the_point", "generator")
    assert [need.lost_at for need in link.needs] == ["answer"]
    assert linked(*said[:1], response(0.5), references=[]).failure == "passed"
    by_heuristic = [each.model_copy(update={"judge": "heuristic"}) for each in said]
    assert linked(*by_heuristic, references=[]).failure == "passed"  # it cannot say so


def test_an_answer_that_evades_the_question_without_a_claim_is_no_unknown():
    silent = verdict("faithfulness", status="skipped", reason="the answer makes no claim")
    link = linked(silent, response(0.0), answer="What do you want to know?", references=[])
    assert (link.failure, link.owner) == ("ignored_context", "generator")


@pytest.mark.parametrize(
    ("stated", "partly", "answer", "complete"),
    [
        (1.0, False, "It opened in 1904.", True),
        (0.75, False, "It opened in 1904.", True),
        (0.75, True, "It opened in 1904.", False),
        (0.7, False, "It opened in 1904.", False),
        (0.8, True, "It opened in 1904. I do not know who built it.", False),
        (None, True, "It opened in 1904. I do not know who built it.", False),
    ],
)
def test_what_leaves_out_a_fourth_or_declines_a_part_is_not_complete(
    stated, partly, answer, complete
):
    said = [response(0.5 if partly else 1.0)]
    if stated is not None:
        said.append(verdict("completeness", status="scored", value=stated))
    assert facts(*said, answer=answer).complete is complete
