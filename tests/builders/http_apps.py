"""Apps that ask a model over HTTP with the clients people use, and the server that answers them.

``python tests/builders/http_apps.py KIND LOOP``, with ``OPENAI_BASE_URL`` set, evaluates an app twice
in a process of its own and prints how many cases each evaluation lost.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool

import misslink

MODEL = "test-judge"
ANSWER = "The ferry leaves at seven."
CASES = 8
SETTINGS: dict[str, Any] = {"judge": "heuristic", "cache": None, "embedding": "none"}
GOLD = [
    {"id": f"c{n}", "question": f"When does ferry number {n} leave?", "relevant": ["times"]}
    for n in range(CASES)
]


class Times(BaseRetriever):
    """Finds the same two passages for every question."""

    def _get_relevant_documents(self, query, *, run_manager):
        del query, run_manager
        texts = {"times": ANSWER, "pets": "Dogs travel free of charge."}
        return [Document(text, id=name) for name, text in texts.items()]


def model_script(body: dict[str, Any]) -> Any:
    """What the model answers: an agent first calls its tool."""
    if "tools" not in body or body["messages"][-1]["role"] != "user":
        return ANSWER
    function = {"name": "look_up", "arguments": '{"query": "ferry"}'}
    call = {"id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    around = {"id": "x", "object": "chat.completion", "created": 0, "model": MODEL}
    return 200, {}, {**around, "choices": [choice], "usage": usage}


def _messages(question: str) -> list[dict[str, str]]:
    passages = Times().invoke(question)
    prompt = "\n".join([*(passage.page_content for passage in passages), question])
    return [{"role": "user", "content": prompt}]


def _chain() -> Any:
    from langchain_openai import ChatOpenAI

    prompt = {
        "c": Times() | RunnableLambda(lambda d: d[0].page_content),
        "q": RunnablePassthrough(),
    }
    words = RunnableLambda(lambda x: f"{x['c']}\n{x['q']}")
    return prompt | words | ChatOpenAI(model=MODEL) | StrOutputParser()


def _agent() -> Any:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    look_up = create_retriever_tool(Times(), "look_up", "Looks things up.")
    return create_agent(ChatOpenAI(model=MODEL), [look_up])


def _openai() -> Any:
    import openai

    client = openai.AsyncOpenAI(max_retries=0)

    async def app(question: str) -> str | None:
        done = await client.chat.completions.create(model=MODEL, messages=_messages(question))
        return done.choices[0].message.content

    return app


def _httpx() -> Any:
    import httpx

    client = httpx.AsyncClient()

    async def app(question: str) -> str:
        body = {"model": MODEL, "messages": _messages(question)}
        url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        answer = await client.post(url, json=body)
        return answer.json()["choices"][0]["message"]["content"]

    return app


def _aiohttp() -> Any:
    import aiohttp

    sessions: list[aiohttp.ClientSession] = []

    async def app(question: str) -> str:
        if not sessions:  # it needs a running loop
            sessions.append(aiohttp.ClientSession())
        body = {"model": MODEL, "messages": _messages(question)}
        url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        async with sessions[0].post(url, json=body) as answer:
            return (await answer.json())["choices"][0]["message"]["content"]

    return app


def _llama_index() -> Any:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
    from llama_index.core.llms import CustomLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer
    from llama_index.core.retrievers import BaseRetriever as LlamaRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    ask = _httpx()

    class Model(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata()

        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: FBT002 - as its base has it
            raise NotImplementedError

        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:  # noqa: FBT002 - as its base has it
            raise NotImplementedError

        async def acomplete(
            self,
            prompt: str,
            formatted: bool = False,  # noqa: FBT002 - as its base has it
            **_: Any,
        ) -> CompletionResponse:
            del formatted
            return CompletionResponse(text=await ask(prompt))

    class Retriever(LlamaRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            found = Times().invoke(query_bundle.query_str)
            nodes = [TextNode(text=one.page_content, id_=one.id) for one in found]
            return [NodeWithScore(node=node, score=1.0) for node in nodes]

    return RetrieverQueryEngine(Retriever(), get_response_synthesizer(llm=Model()))


APPS: dict[str, Callable[[], Any]] = {
    "chain": _chain,
    "agent": _agent,
    "openai": _openai,
    "httpx": _httpx,
    "aiohttp": _aiohttp,
    "llama_index": _llama_index,
}


async def call(app: Any, question: str) -> Any:
    """Await the app as its owner does."""
    if hasattr(app, "aquery"):
        return await app.aquery(question)
    if type(app).__name__ == "CompiledStateGraph":
        return await app.ainvoke({"messages": [{"role": "user", "content": question}]})
    return await (app.ainvoke(question) if hasattr(app, "ainvoke") else app(question))


def lost(app: Any, **options: Any) -> int:
    """Evaluate the app; return how many cases have no answer of the model."""
    return lost_of(misslink.evaluate(app, GOLD, **SETTINGS, **options))


async def async_lost(app: Any) -> int:
    """Evaluate on the running loop; return the same."""
    return lost_of(await misslink.evaluate_async(app, GOLD, **SETTINGS))


def lost_of(run: misslink.Run) -> int:
    """How many cases have no answer of the model."""
    return sum(trace.answer != ANSWER for trace in run.traces)


def main() -> None:
    """Evaluate twice on the kind of loop that is named."""
    kind, loop = sys.argv[1:]
    app = APPS[kind]()
    if loop == "uvloop":
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    if loop == "nest_asyncio":
        import nest_asyncio

        nest_asyncio.apply()

        async def cell() -> list[int]:
            return [lost(app) for _ in range(2)]

        losses = asyncio.get_event_loop().run_until_complete(cell())
    else:
        losses = [lost(app) for _ in range(2)]
    sys.stdout.write(f"{losses}\n")


if __name__ == "__main__":
    main()
