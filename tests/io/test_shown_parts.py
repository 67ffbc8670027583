"""Recorded prompts of every kind: the part of each passage in them is found, and survives the run folder."""

import json

import pytest

import misslink
from misslink.errors import InputError
from misslink.io import read_complete_run
from misslink.io.trace_formats import read_recording
from misslink.linking.replay.rerun import add_evidence
from misslink.types import Passage

TIMES = (
    "The ferry to Holm leaves at seven in the morning, \u201cweather permitting\u201d.\n"
    "It carries bicycles, and turns round at the old pier where a band plays on Sundays."
)
PETS = "Dogs travel free of charge on all of our ferries.\nCats need a basket and a ticket of their own."
CUT = TIMES[:74]
RETRIEVED = [{"id": "times", "text": TIMES}, {"id": "pets", "text": PETS}]
QUESTION = "When does the ferry to Holm leave in the morning?"
ROW = {"case_id": "c", "question": QUESTION, "answer": "At seven.", "retrieved": RETRIEVED}

CHAT = [
    {"role": "system", "content": f"Answer from the context.\n\nContext:\n- {CUT}\n- {PETS}"},
    {"role": "user", "content": QUESTION},
]
TOOL = [
    {"role": "user", "content": QUESTION},
    {"role": "tool", "content": json.dumps({"results": [{"text": CUT}, {"text": PETS}]})},
]
SCRATCHPAD = f"""Question: {QUESTION}
Thought: I should search for the ferry to Holm.
Action: search
Action Input: {{"query": "{QUESTION}"}}
Observation: {[{"id": 1, "content": CUT}, {"id": 2, "content": PETS}]!r}
Thought: I know when the ferry to Holm leaves."""
LLAMA_INDEX = f"""Context information is below.
---------------------
file_path: holm.md

{CUT}

file_path: pets.md

{PETS}
---------------------
Given the context information and not prior knowledge, answer the query.
Query: {QUESTION}
Answer: """
HAYSTACK = f"Documents:\nDocument[1]: {CUT}\nDocument[2]: {PETS}\nQuestion: {QUESTION}"
XML = f"<documents><document index='1'>{CUT}</document><document index='2'>{PETS}</document></documents>"


def read(*rows):
    return list(read_recording(rows).traces.values())


@pytest.mark.parametrize(
    "prompt",
    [
        "\n".join(message["content"] for message in CHAT),
        json.dumps(CHAT),
        json.dumps(TOOL),
        str(TOOL),
        SCRATCHPAD,
        LLAMA_INDEX,
        HAYSTACK,
        XML,
        f"{QUESTION}\n{CUT}\n\n{QUESTION}\n{PETS}\n\n{QUESTION}",
    ],
    ids=["chat", "chat as JSON", "tool", "tool's repr", "scratchpad", "LlamaIndex", "Haystack", "XML",
         "question repeated"],
)  # fmt: skip
def test_the_shown_parts_are_found_in_the_prompt(prompt):
    (trace,) = read({**ROW, "prompt": prompt})
    assert (trace.prompted, trace.shown) == (("times", "pets"), {"times": CUT})
    assert [passage.text for passage in trace.context(1)] == [CUT, PETS]


@pytest.mark.parametrize("prompt", ["", QUESTION, f"Answer the question.\n{QUESTION}\n" * 3])
def test_a_prompt_without_any_passage_shows_none(prompt):
    (trace,) = read({**ROW, "prompt": prompt})
    assert (trace.prompted, trace.shown, trace.context(5)) == ((), {}, ())


def test_what_the_row_says_is_believed():
    shown, prompted, both, ids = read(
        {**ROW, "case_id": "a", "shown": {"times": CUT}},
        {**ROW, "case_id": "b", "prompted": ["times"], "prompt": HAYSTACK},
        {**ROW, "case_id": "c", "prompted": ["pets"], "shown": {"times": CUT}, "prompt": "hidden"},
        {**ROW, "case_id": "d", "retrieved": ["times", "pets"], "prompt": HAYSTACK},
    )
    assert (shown.prompted, shown.shown) == (("times",), {"times": CUT})
    assert (prompted.prompted, prompted.shown) == (("times",), {"times": CUT})
    assert (both.prompted, both.shown) == (("pets", "times"), {"times": CUT})
    assert (ids.prompted, ids.shown) == (None, {})


def test_a_replay_adds_the_rest_of_a_passage_that_was_cut():
    (trace,) = read({**ROW, "shown": {"times": CUT}})
    seen = add_evidence(trace, [Passage(id="times", text=TIMES, rank=1)], 2)
    assert [passage.text for passage in seen.context(2)] == [TIMES]
    other = [Passage(id="pets", text=PETS, rank=2)]
    assert [passage.text for passage in add_evidence(trace, other, 2).context(2)] == [CUT, PETS]


def test_ids_of_shown_parts_follow_those_of_the_gold_set():
    row = {**ROW, "retrieved": [{"text": TIMES}, {"text": PETS}], "prompt": HAYSTACK}
    gold = [{"id": "c", "question": QUESTION, "relevant": ["times"]}]
    run = misslink.evaluate(traces=[row], goldset=gold, corpus=RETRIEVED, judge="none", cache=None)
    assert (run.traces[0].prompted, run.traces[0].shown) == (("times", "pets"), {"times": CUT})


def test_a_part_of_a_passage_that_was_not_retrieved_is_an_error():
    with pytest.raises(InputError, match="'tides' reached the prompt but is not among"):
        read({**ROW, "shown": {"tides": "Low at nine."}})


def test_the_judge_sees_the_shown_part_and_the_run_folder_keeps_it(tmp_path):
    late = {"reference": "A band plays on Sundays.", "relevant": ["times"]}
    rows = [
        {**ROW, "case_id": "early", "prompt": HAYSTACK, "answer": "The ferry to Holm leaves at seven in the morning."},
        {**ROW, **late, "case_id": "late", "prompt": HAYSTACK, "question": "When does a band play?",
         "answer": "A band plays at the old pier on Sundays."},
    ]  # fmt: skip
    run = misslink.evaluate(traces=rows, judge="heuristic", cache=None, out=tmp_path / "run")
    assert read_complete_run(tmp_path / "run").traces == run.traces
    early, late = run.links
    assert (early.failure, early.answer) == ("passed", "faithful")
    assert (late.retrieval, late.answer) == ("partial", "unfaithful")
    assert (late.failure, late.owner) == ("dropped_from_prompt", "prompt")
    assert late.evidence[0].reason_code == "passage_cut_for_claim"
    (again,) = read_recording([run.traces[0]]).traces.values()
    assert again == run.traces[0]
    from_folder = read_recording(tmp_path / "run" / "traces.jsonl").traces
    assert [trace.shown for trace in from_folder.values()] == [{"times": CUT}] * 2
