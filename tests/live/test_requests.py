"""What is known of a request: question, passages, feedback, and questions asked again."""

from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from misslink.errors import InputError
from misslink.live.requests import (
    CallStats,
    ReformulationDetector,
    check_feedback,
    question_of,
)
from misslink.text.normalization import content_id


@pytest.mark.parametrize(
    "asked",
    [
        "why?",
        HumanMessage("why?"),
        {"question": "why?", "chat_history": ["other"]},
        {"query": HumanMessage("why?")},
        {"messages": [SystemMessage("be kind"), HumanMessage("why?"), AIMessage("because")]},
        {"messages": [{"role": "user", "content": "why?"}]},
        {"messages": [("system", "x"), ("user", "why?")]},
        [HumanMessage("before"), AIMessage("so"), HumanMessage("why?")],
        {"messages": [HumanMessage([{"type": "text", "text": "why?"}])]},
    ],
)
def test_the_question_is_found_in_every_shape_of_input(asked):
    assert question_of(asked) == "why?"


@pytest.mark.parametrize(
    "asked", [None, "", 7, {}, {"other": "x"}, [], [1, None], {"messages": []}]
)
def test_where_there_is_no_question_there_is_none(asked):
    assert question_of(asked) is None


def test_a_retriever_asked_by_another_is_not_counted_beside_it():
    tally = CallStats("key")
    outer, inner = uuid4(), uuid4()
    assert tally.retrieved is None
    tally.on_retriever_start(None, "q", run_id=outer)
    tally.on_retriever_start(None, "q", run_id=inner, parent_run_id=outer)
    tally.on_retriever_end([Document("inner", id="x")], run_id=inner)
    tally.on_retriever_end(
        [Document("one", id="1", metadata={"key": "k1"}), Document("two"), Document("two")],
        run_id=outer,
    )
    assert tally.retrieved == ("k1", content_id("two"))


def test_an_empty_retrieval_is_not_the_same_as_none():
    tally = CallStats()
    tally.on_retriever_end([], run_id=uuid4())
    assert tally.retrieved == ()


@pytest.mark.parametrize(
    ("kind", "value"), [("thumbs", True), ("task_done", 0), ("cost", 0.1), ("my own", -3)]
)
def test_what_fits_is_a_number(kind, value):
    assert check_feedback(kind, value) == float(value)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("thumbs", 0.5, r"1 \(good\)"),
        ("click", -1, "at least 0"),
        ("cost", float("inf"), "number"),
        ("my own", float("nan"), "number"),
        ("my own", "1", "number"),
        ("my own", 10**400, "too large"),
        (" ", 1, "kind"),
        ("k" * 201, 1, "kind"),
    ],
)
def test_what_does_not_fit_is_refused(kind, value, said):
    with pytest.raises(InputError, match=said):
        check_feedback(kind, value)


QUESTION = "How do I reset my password?"


@pytest.mark.parametrize(
    ("again", "is_one"),
    [
        ("how can I reset the password", True),
        ("password reset?", True),
        ("How do I resset my pasword?", True),
        (QUESTION, False),
        ("  how do I RESET my password? ", False),
        ("How do I delete my account?", False),
        ("and then?", False),
        ("", False),
    ],
)
def test_near_duplicates_count_and_the_very_same_does_not(again, is_one):
    known = ReformulationDetector(5)
    assert known.match_reformulation("e1", "u", QUESTION, 0.0) is None
    assert known.match_reformulation("e2", "u", again, 10.0) == ("e1" if is_one else None)


def test_it_takes_the_same_unit_the_next_question_and_the_time():
    known = ReformulationDetector(5)
    known.match_reformulation("e1", "u", QUESTION, 0.0)
    assert known.match_reformulation("e2", "other", "password reset", 1.0) is None
    assert known.match_reformulation("e3", "u", "password reset", 301.0) is None
    assert known.match_reformulation("e4", "u", QUESTION, 302.0) == "e3"
    assert known.match_reformulation("e5", "u", "something else entirely", 303.0) is None
    assert known.match_reformulation("e6", "u", QUESTION, 304.0) is None
    assert (
        known.match_reformulation("e7", "u", "password reset", 200.0) is None
    )  # the clock was set back


def test_only_so_many_units_are_remembered():
    known = ReformulationDetector(5, most_units=2)
    for unit in "abc":
        known.match_reformulation(f"e-{unit}", unit, QUESTION, 0.0)
    assert known.match_reformulation("again", "a", "password reset", 1.0) is None
    assert known.match_reformulation("again", "c", "password reset", 1.0) == "e-c"


def test_a_window_of_nothing_is_refused():
    with pytest.raises(InputError):
        ReformulationDetector(0)
