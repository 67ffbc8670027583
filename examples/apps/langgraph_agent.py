"""A LangGraph graph whose state has messages, as agents have; a node searches, another answers."""

from __future__ import annotations

from desk import make_prompt
from langchain_chain import CopyingModel
from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langchain_retriever import app as retriever
from langgraph.graph import START, MessagesState, StateGraph


class State(MessagesState):
    """Messages, and what was found."""

    found: list[Document]


def find(state: State) -> dict[str, list[Document]]:
    """Search for the last message."""
    return {"found": retriever.invoke(state["messages"][-1].content)}


def respond(state: State) -> dict[str, list[AnyMessage]]:
    """Ask the model."""
    texts = [document.page_content for document in state["found"]]
    prompt = make_prompt(state["messages"][-1].content, texts)
    return {"messages": [CopyingModel().invoke(prompt)]}


graph = StateGraph(State).add_node("find", find).add_node("respond", respond)
app = graph.add_edge(START, "find").add_edge("find", "respond").compile()
