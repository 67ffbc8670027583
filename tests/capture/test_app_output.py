"""The answer in what an app returned."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from misslink.capture.app import join_pieces, parse_app_output
from misslink.capture.passages import passages_from


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


def test_keys_that_only_resemble_an_answer_are_no_typo():
    for other in ({"context": "oak"}, {"results": [1]}, {"query": "which?"}):
        assert "mean" not in (parse_app_output({"retrieved": [], **other}).problem or "")


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


@pytest.mark.parametrize("key", ["sources", "source_nodes", "passages", "retrieved_contexts"])
def test_what_other_frameworks_call_retrieval(key):
    passages = [{"id": "oak", "text": "An oak is a tree."}]
    assert parse_app_output({"answer": "x", key: passages}).documents == passages


def test_bare_strings_are_ids_or_texts():
    def retrieved(*strings):
        documents = parse_app_output({"answer": "x", "retrieved": list(strings)}).documents
        return documents and [(p.id, p.text) for p in passages_from(documents)]

    assert retrieved("oak", 7) == [("oak", ""), ("7", "")]
    # A text of one word beside other texts is no id.
    assert [text for _, text in retrieved("Paris", "Berlin is big")] == ["Paris", "Berlin is big"]
    assert retrieved("oak", 1.5) is None
    assert parse_app_output({"answer": "x", "sources": ["oak.pdf"]}).documents is None


@pytest.mark.parametrize("wrap", [lambda pairs: pairs, lambda pairs: {"retrieved": pairs}])
def test_pairs_of_document_and_score(wrap):
    documents = parse_app_output(wrap([(Document("a", id="oak"), 0.5)])).documents
    (passage,) = passages_from(documents)
    assert (passage.id, passage.text, passage.score) == ("oak", "a", 0.5)


@pytest.mark.parametrize("method", ["query", "get"])
@pytest.mark.parametrize("wrap", [lambda found: found, lambda found: {"passages": found}])
def test_what_chromadb_itself_returns(chroma_client, method, wrap):
    name = f"c{uuid.uuid4().hex}"
    collection = chroma_client.create_collection(name)
    vectors = [[1.0, 0.0], [0.0, 1.0]]
    collection.add(["a", "b"], vectors, [{"page": 1}, {"page": 2}], ["A text.", "B text."])
    asked = {"query_embeddings": vectors[:1]} if method == "query" else {"ids": ["a", "b"]}
    documents = parse_app_output(wrap(getattr(collection, method)(**asked))).documents
    chroma_client.delete_collection(name)
    passages = passages_from(documents)
    assert [(p.id, p.text, p.metadata) for p in passages] == [
        ("a", "A text.", {"page": 1}),
        ("b", "B text.", {"page": 2}),
    ]
    assert [p.score for p in passages] == ([0.0, 2.0] if method == "query" else [None, None])


@dataclass
class Node:
    text: str
    node_id: str
    metadata: dict


@dataclass
class NodeWithScore:
    node: Node
    score: float


def test_llama_index_nodes_and_haystack_documents():
    @dataclass
    class Haystack:
        id: str
        content: str
        meta: dict
        score: float

    node = NodeWithScore(Node("An oak.", "n1", {"page": 1}), 0.5)
    haystack = Haystack("n1", "An oak.", {"page": 1}, 0.5)
    for value in ({"response": "x", "source_nodes": [node]}, {"answer": "x", "docs": [haystack]}):
        (passage,) = passages_from(parse_app_output(value).documents)
        assert (passage.id, passage.text, passage.score) == ("n1", "An oak.", 0.5)
        assert passage.metadata == {"page": 1}
    messages = [AIMessage("An oak.", id="m1")]
    assert parse_app_output({"answer": "x", "documents": messages}).documents is None


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


def test_a_stream_of_documents_and_text_has_both():
    times = Document("The ferry leaves at seven.", id="times")
    pieces = [[times], AIMessage("At "), "seven."]
    assert join_pieces(iter(pieces)) == {"retrieved": [times], "answer": "At seven."}
    assert join_pieces(iter([[times]])) == [times]
    assert join_pieces(iter(["At ", "seven."])) == "At seven."
