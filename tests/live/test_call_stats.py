"""What a request asked, retrieved and used, overheard."""

from __future__ import annotations

from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from misslink.live.requests import CallStats, question_of
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
