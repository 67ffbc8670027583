"""The answer in what an app returned."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from misslink.capture.app import parse_app_output


@dataclass
class Plain:
    answer: str


class Structured(BaseModel):
    response: str
    confidence: float = 0.5


BLOCKS = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "o"}, "ak"]


@pytest.mark.parametrize(
    "value",
    [
        "oak",
        AIMessage("oak"),
        AIMessage(BLOCKS),
        {"question": "which?", "answer": "oak"},
        {"query": "which?", "result": "oak"},
        {"input": "which?", "output": AIMessage("oak")},
        {"generation": "oak", "documents": []},
        {"answer": {"text": "oak"}},
        {"messages": [HumanMessage("which?"), AIMessage("oak")]},
        {"messages": [{"role": "assistant", "content": "oak"}]},
        Plain("oak"),
        Structured(response="oak"),
        {"structured": 1, "output": Structured(response="oak")},
    ],
)
def test_the_answer_is_found(value):
    returned = parse_app_output(value)
    assert (returned.answer, returned.problem) == ("oak", None)


def test_an_empty_answer_is_an_answer():
    assert parse_app_output("").answer == ""
    assert parse_app_output("").problem is None


def test_documents_alone_are_no_answer_and_no_problem():
    found = [Document("a"), Document("b")]
    assert (
        parse_app_output(found).answer,
        parse_app_output(found).documents,
        parse_app_output(found).problem,
    ) == (None, found, None)


@pytest.mark.parametrize("key", ["context", "source_documents", "retrieved", "documents"])
def test_documents_beside_the_answer(key):
    found = [Document("a")]
    assert parse_app_output({"answer": "x", key: found}).documents == found


def test_an_empty_list_says_that_nothing_was_retrieved():
    assert parse_app_output({"answer": "x", "retrieved": []}).documents == []
    assert parse_app_output({"answer": "x"}).documents is None


def test_a_context_that_is_one_text_is_not_taken_for_passages():
    assert parse_app_output({"answer": "x", "context": "all of it"}).documents is None
    assert parse_app_output({"answer": "x", "context": ["all", "of it"]}).documents is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "returned None"),
        (7, "returned int: '7'"),
        ({"a": 1, "b": 2}, "returned a, b, and no"),
    ],
)
def test_anything_else_is_said_to_be_no_answer(value, said):
    assert said in parse_app_output(value).problem
    assert parse_app_output(value).answer is None


def test_a_factory_in_the_place_of_an_app_is_told():
    assert "call its parameter `retriever`" in parse_app_output(lambda question: question).problem
