"""A small corpus, and the apps that people write over one, small."""

import re
import zlib

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough

ANSWER = "Salmon swim up rivers to spawn."
CORPUS = {
    "oak": "The oak is a tree that grows acorns and lives for centuries in English parks.",
    "pine": "The pine is a tree that keeps its needles in winter and smells of resin.",
    "birch": "The birch is a tree with white bark that grows fast on poor northern soils.",
    "salmon": "The salmon is a fish that swims up rivers to spawn where it was hatched.",
    "trout": "The trout is a fish that lives in cold streams and feeds on small insects.",
    "granite": "Granite is a hard rock made of quartz and feldspar, used for kerbs and floors.",
    "basalt": "Basalt is a dark rock that forms when lava cools quickly at the surface.",
    "violin": "A violin has four strings tuned in fifths and is played with a horsehair bow.",
}


class WordCounts(Embeddings):
    """Counts of words, each in a slot of its own hash: shared words bring texts together."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = [0.0] * 512
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 512] += 1.0
        return vector


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
