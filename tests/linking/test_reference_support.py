import json
from pathlib import Path

import pytest

import misslink
from misslink.linking.reference_support import reference_support, states_claim

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
