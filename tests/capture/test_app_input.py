"""How an app is asked."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough, chain

from misslink.capture import Watcher
from misslink.capture.app import input_builder, read_app_config
from misslink.errors import InputError
from misslink.types import Case
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


def test_a_map_of_functions_takes_the_text_and_an_assignment_an_object(store):
    retriever = store.as_retriever()
    steps = {
        "context": RunnableLambda(lambda text: retriever.invoke(text.lower())),
        "question": RunnablePassthrough(),
    }
    app = steps | PROMPT | model("yes")
    assert given(app) == "why"
    assert app.invoke(given(app)).content == "yes"
    assigning = RunnableParallel(rest=RunnablePassthrough.assign(size=len))
    assert given(assigning | RunnableLambda(dict) | PROMPT) == {"question": "why"}


async def pieces_later(question, tenant="none"):
    yield "Twelve "
    yield f"crowns, {tenant}."


def pieces(question, tenant="none"):
    yield {"retrieved": [{"id": "p1", "text": "A ticket costs 12 crowns."}]}
    yield None
    yield "Twelve "
    yield AIMessageChunk(content=f"crowns, {tenant}.")


@pytest.mark.parametrize("app", [pieces, pieces_later, partial(pieces, tenant="none")])
def test_pieces_are_joined(app):
    trace = asyncio.run(Watcher(app).watch(Case(question="why")))
    assert trace.answer == "Twelve crowns, none."
    assert [p.id for p in trace.retrieved] == ([] if app is pieces_later else ["p1"])


def test_settings_are_arguments_of_a_function_and_config_of_a_chain():
    def answer(data, config):
        return f"{data['question']} {data['language']} {config['configurable']['tenant']}"

    settings = {"inputs": {"language": "de"}, "configurable": {"tenant": "acme"}}
    app = RunnableLambda(answer)
    watcher = Watcher(app, input_key="question", settings=settings)
    assert asyncio.run(watcher.watch(Case(question="why"))).answer == "why de acme"
    watcher = Watcher(pieces_later, settings={"tenant": "acme"})
    assert asyncio.run(watcher.watch(Case(question="why"))).answer == "Twelve crowns, acme."


@pytest.mark.parametrize(
    ("app", "settings", "problem"),
    [
        (pieces, {"tenat": "acme"}, "unexpected keyword argument 'tenat'"),
        (RunnableLambda(str), {"tenant": "acme"}, "under 'configurable'"),
        (RunnableLambda(str), {"configurable": "acme"}, "must be objects"),
        (RunnableLambda(str), {"inputs": {"language": "de"}}, "--input-key"),
    ],
)
def test_settings_that_an_app_does_not_take(app, settings, problem):
    with pytest.raises(InputError, match=problem):
        Watcher(app, settings=settings)


def test_settings_come_from_yaml_toml_or_an_object(tmp_path):
    (tmp_path / "a.yaml").write_text("configurable:\n  tenant: acme\n")
    (tmp_path / "a.toml").write_text('[configurable]\ntenant = "acme"\n')
    (tmp_path / "a.json").write_text("[1]")
    for source in (tmp_path / "a.yaml", tmp_path / "a.toml", {"configurable": {"tenant": "acme"}}):
        assert read_app_config(source) == {"configurable": {"tenant": "acme"}}
    with pytest.raises(InputError, match="must be an object"):
        read_app_config(tmp_path / "a.json")


HISTORY = (
    {"role": "user", "content": "When does the ferry leave?"},
    {"role": "assistant", "content": "At seven."},
)


@pytest.mark.parametrize("history", [(), HISTORY], ids=["first turn", "later turn"])
def test_a_function_may_require_its_history(history):
    trace = asyncio.run(
        Watcher(lambda question, history: f"{question} {len(history)}").watch(
            Case(question="And in winter?", history=history)
        )
    )
    assert (trace.answer, trace.error) == (f"And in winter? {len(history)}", None)
