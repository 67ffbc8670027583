"""What is gathered of a case: what is known, what is missing, and what is too uncertain."""

import json
from pathlib import Path

import pytest

import misslink
from misslink.linking.attribution_rules import attribute_failure
from misslink.linking.case_evidence import CaseEvidence, reference_support, states_claim
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


SUMMER = (
    "In summer the ferry leaves Sandvik at 07:00 and at 16:45. The crossing takes forty minutes."
)
OFFICE = "The ticket office in Sandvik opens at 06:30."
DOGS = "Dogs travel free of charge on the lower deck."
NORD = "In winter the ferry to Nord leaves the pier at 08:10."
CROSSING = "How long does the crossing take?"
CLAPNQ = Path(__file__).parents[3] / "shared" / "data" / "faithfulness" / "clapnq_dev.jsonl"


@pytest.mark.parametrize(
    ("references", "passages", "value", "lacking"),
    [
        (["It takes forty minutes."], [OFFICE, SUMMER], "yes", ()),
        (["It takes forty minutes."], [OFFICE, DOGS], "no", ("It takes forty minutes.",)),
        (
            ["It takes forty minutes. Bicycles cost twelve crowns."],
            [SUMMER],
            "partly",
            ("Bicycles cost twelve crowns.",),
        ),
        (["It takes two hours.", "It takes forty minutes."], [SUMMER], "yes", ()),
        (["The crossing takes 55 minutes."], ["The crossing takes 40 minutes."], "unknown", ()),
        (["I do not know."], [SUMMER], "unknown", ()),
        ([], [SUMMER], "unknown", ()),
        (["It takes forty minutes."], [], "no", ("It takes forty minutes.",)),
    ],
)
def test_the_reference_says_whether_the_passages_suffice(references, passages, value, lacking):
    assert reference_support(CROSSING, references, passages) == (value, lacking)


@pytest.mark.parametrize(
    ("judge", "missed", "prompt", "value"),
    [
        ("heuristic", "Tickets cost four euros.", "The ferry leaves at nine.", "partly"),
        ("heuristic", "The crossing is calm.", "The ferry leaves at nine.", "unknown"),
        (
            "heuristic",
            "Tickets cost 4.",
            "The ferry leaves at nine. Tickets cost four euros.",
            "yes",
        ),
        ("openai:m", "Tickets cost four euros.", "The ferry leaves at nine.", "unknown"),
    ],
)
def test_at_a_partial_hit_the_reference_stands_in_for_the_heuristic_judge(
    judge, missed, prompt, value
):
    case = Case(
        id="1",
        question="When does the ferry leave, and what do tickets cost?",
        relevant=["hour", "price"],
        references=["The ferry leaves at nine. Tickets cost four euros."],
    )
    hour, price = Passage(id="hour", text=prompt, rank=1), Passage(id="price", text=missed, rank=2)
    trace = Trace(case_id="1", retrieved=[hour], prompted=["hour"], deeper=[price], answer="Nine.")
    verdict = Verdict(case_id="1", metric="faithfulness", status="skipped", reason="r", judge=judge)
    evidence = CaseEvidence.from_verdicts(case, trace, {"faithfulness": verdict}, 5)
    assert (evidence.retrieval, evidence.sufficient_value) == ("partial", value)


@pytest.mark.parametrize(
    ("reference", "value"), [("No, dogs are not allowed.", "yes"), ("No.", "unknown")]
)
def test_passages_need_not_say_the_yes_or_no_of_a_reference(reference, value):
    passages = ["Dogs are not allowed on deck."]
    assert reference_support("Are dogs allowed?", [reference], passages) == (value, ())


def test_a_passage_about_a_like_subject_states_no_claim():
    question, claim = "What does pump Kor hold?", "Pump Kor holds 43 bar."
    assert states_claim("Pump Kor holds 43 bar at most.", claim, question)
    assert not states_claim("Pump Lum holds 43 bar at most.", claim, question)


RAGAS = [
    {
        "user_input": "How long does the crossing take?",
        "retrieved_contexts": [OFFICE],
        "response": "The crossing takes two hours.",
        "reference": "It takes forty minutes.",
    },
    {
        "user_input": "When does the ferry leave in summer?",
        "retrieved_contexts": [SUMMER],
        "response": "I don't know.",
        "reference": "At 07:00 and at 16:45.",
    },
    {
        "user_input": "When does the ferry to Nord leave in winter?",
        "retrieved_contexts": [OFFICE],
        "response": "I don't know.",
        "reference": "It leaves the pier at 08:10.",
    },
    {
        "user_input": "May dogs travel?",
        "retrieved_contexts": [DOGS],
        "response": "Dogs travel free of charge.",
        "reference": "Yes, free of charge.",
    },
]


def test_a_file_of_ragas_alone_names_owners():
    run = misslink.evaluate(traces=RAGAS, judge="heuristic", cache=None)
    elsewhere, refused, nowhere, right = run.links
    assert [link.owner for link in run.links] == ["retriever", "generator", "retriever", "none"]
    assert (elsewhere.failure, elsewhere.basis) == ("retrieval_miss", "inferred")
    assert [miss.text for miss in elsewhere.missed] == [SUMMER]
    assert (refused.failure, refused.sufficient, refused.basis) == (
        "over_refused",
        "yes",
        "inferred",
    )
    assert (nowhere.failure, nowhere.missed) == ("retrieval_miss", ())
    assert (right.failure, right.basis) == ("passed", "observed")
    assert run.summary["link"]["exposure"] is None  # never mixed with labels or a judge


def test_a_search_by_words_that_finds_nothing_does_not_blame_the_index():
    texts = dict.fromkeys(text for row in RAGAS for text in row["retrieved_contexts"])
    corpus = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    run = misslink.evaluate(traces=RAGAS, corpus=corpus, judge="heuristic", cache=None)
    assert [link.owner for link in run.links] == ["retriever", "generator", "unknown", "none"]
    with_nord = [*corpus, {"id": "nord", "text": NORD}]
    run = misslink.evaluate(traces=RAGAS, corpus=with_nord, judge="heuristic", cache=None)
    assert [miss.passage_id for miss in run.links[2].missed] == ["nord"]


@pytest.mark.skipif(not CLAPNQ.exists(), reason=f"{CLAPNQ} is not there")
def test_references_that_people_wrote_are_found_in_their_passage_and_in_no_other():
    rows = [json.loads(line) for line in CLAPNQ.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["answerable"]]
    values = {True: [], False: []}
    for number, row in enumerate(rows):
        others = [rows[(number + step) % len(rows)] for step in (1, 2, 3, 4)]
        noise = [" ".join(o["contexts"]) for o in others if o["title"] != row["title"]]
        for there in (True, False):
            passages = [" ".join(row["contexts"])] * there + noise
            found, _ = reference_support(row["question"], row["gold_answers"], passages)
            values[there].append(found)
    assert len(rows) == 143
    assert values[True].count("yes") >= 0.92 * len(rows)
    assert values[False].count("no") + values[False].count("partly") >= 0.95 * len(rows)


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
    evidence = facts(relevant=[], references=references)
    assert evidence.has_no_answer == has_no_answer
