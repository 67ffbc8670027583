"""How an app is asked."""

from __future__ import annotations

import pytest
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain

from misslink.capture.app import input_builder
from misslink.errors import InputError
from watched_apps import chain_over, model

PROMPT = ChatPromptTemplate.from_template("{context} {question}")
USER = {"messages": [{"role": "user", "content": "why"}]}


def given(app, **options):
    return input_builder(app, **options)("why")


def test_a_chain_that_takes_the_question(store):
    assert given(chain_over(store.as_retriever())) == "why"


def test_a_retriever_a_model_and_a_function_take_the_question(store):
    assert given(store.as_retriever()) == "why"
    assert given(model()) == "why"
    assert given(str.upper) == "why"


def test_the_only_field():
    @chain
    def asks(data):
        return data["ask_me"]

    assert given(asks) == {"ask_me": "why"}


def test_an_object_whose_fields_only_a_prompt_inside_knows_of():
    assigning = RunnablePassthrough.assign(length=lambda data: len(data["text"]))
    with pytest.raises(InputError, match=r"takes an object, .*--input-key"):
        given(assigning | RunnableLambda(str))
    # Not the chain's own word, which ends at the lambda.
    assert given(assigning | RunnableLambda(dict) | PROMPT | model()) == {"question": "why"}


def test_a_question_and_a_history():
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{question}")]
    )
    assert given(prompt | model()) == {"question": "why", "chat_history": []}


def test_a_history_that_only_a_prompt_inside_knows_of(store):
    chains = pytest.importorskip("langchain_classic.chains")
    from langchain_classic.chains.combine_documents import create_stuff_documents_chain

    prompt = ChatPromptTemplate.from_messages(
        [("system", "{context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    stuffing = create_stuff_documents_chain(model("yes"), prompt)
    app = chains.create_retrieval_chain(store.as_retriever(), stuffing)
    assert given(app) == {"input": "why", "chat_history": []}
    assert app.invoke(given(app))["answer"] == "yes"


def test_several_fields_of_which_none_is_the_question():
    @chain
    def app(data):
        return data["alpha"] + data["beta"]

    with pytest.raises(InputError, match=r"alpha, beta.*--input-key"):
        given(app)
    assert given(app, input_key="beta") == {"beta": "why"}


def test_an_agent_gets_a_user_message():
    agents = pytest.importorskip("langchain.agents")
    assert given(agents.create_agent(model(), [])) == USER


def test_a_graph_gets_its_question():
    graph = pytest.importorskip("langgraph.graph")
    from typing import TypedDict

    class State(TypedDict):
        documents: list
        question: str

    built = graph.StateGraph(State).add_sequence([("a", lambda state: state)])
    assert given(built.add_edge(graph.START, "a").compile()) == {"question": "why"}


def test_a_key_of_ones_own_for_a_plain_function():
    assert given(len, input_key="q") == {"q": "why"}
