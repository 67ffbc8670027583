"""Apps that answer, fail and hang, for tests of what is put before them."""

import asyncio
import threading

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from misslink.live import Experiment

EVEN = Experiment("test", {"A": 1, "B": 1})
ALL_B = Experiment("test", {"A": 0, "B": 1})


class Two(BaseRetriever):
    """Always the same two passages."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content="one", id="d1"), Document(page_content="two", id="d2")]


def chain(answer):
    """A real chain: retriever, prompt, chat model, parser."""
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    return (
        {"context": Two(), "question": RunnablePassthrough()}
        | prompt
        | FakeListChatModel(responses=[answer])
        | StrOutputParser()
    )


def of(unit, **others):
    return {"configurable": {"user_id": unit, **others}}


def raises(_):
    raise ValueError("secret words")


class Hangs(Runnable):
    """Answers nobody before it is let go."""

    def __init__(self):
        self.let_go = threading.Event()

    def invoke(self, input, config=None, **kwargs):  # noqa: A002 - LangChain's name
        self.let_go.wait(30)

    async def ainvoke(self, input, config=None, **kwargs):  # noqa: A002 - LangChain's name
        await asyncio.Event().wait()

    def stream(self, input, config=None, **kwargs):  # noqa: A002 - LangChain's name
        self.let_go.wait(30)
        yield "late"

    async def astream(self, input, config=None, **kwargs):  # noqa: A002 - LangChain's name
        await asyncio.Event().wait()
        yield "late"


def every_way(router, asked, config):
    """The answers by every face of a Runnable."""

    async def asyncs():
        streamed = [chunk async for chunk in router.astream(asked, config)]
        (batched,) = await router.abatch([asked], config)
        return [await router.ainvoke(asked, config), batched, "".join(streamed)]

    streamed = "".join(router.stream(asked, config))
    (batched,) = router.batch([asked], config)
    return [router.invoke(asked, config), batched, streamed, *asyncio.run(asyncs())]
