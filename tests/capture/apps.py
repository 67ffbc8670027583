"""The apps that people write, small."""

# ruff: noqa: ARG002 - a fake takes whatever the real one is given

from __future__ import annotations

from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

ANSWER = "Salmon swim up rivers to spawn."


def model(*answers):
    return FakeListChatModel(responses=list(answers or [ANSWER]))


def joined(documents):
    return "\n\n".join(document.page_content for document in documents)


def chain_over(retriever, show=joined, llm=None):
    """The chain of every tutorial."""
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQ: {question}")
    parts = {"context": retriever | show, "question": RunnablePassthrough()}
    return parts | prompt | (llm or model()) | StrOutputParser()


class ToolCaller(GenericFakeChatModel):
    """A chat model that calls what it was told to, and takes tools without looking at them."""

    def bind_tools(self, tools, **kwargs):
        return self


def tool_caller(*calls, answer=ANSWER):
    """Calls each (tool, query) in turn, then answers."""
    asked = [
        AIMessage("", tool_calls=[{"name": tool, "args": {"query": query}, "id": f"call-{at}"}])
        for at, (tool, query) in enumerate(calls)
    ]
    used = {"input_tokens": 70, "output_tokens": 5, "total_tokens": 75}
    return ToolCaller(messages=iter([*asked, AIMessage(answer, usage_metadata=used)]))
