"""A small RAG app without weights: LangChain over Chroma, with a model that copies and invents.

The embedding counts words and the model answers with the sentence of its context nearest to the
question, so both are real parts that need no weights; asked of a ghost, the model invents.
"""

from __future__ import annotations

import math
import random
import zlib
from typing import Any

import chromadb
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnablePassthrough

from misslink.text.normalization import content_words, sentence_spans

DOCUMENTS = {
    "ferry": "The ferry to Holm leaves at seven in the morning. Bicycles travel free of charge.",
    "bus": "The bus to Holm leaves at nine in the evening. A ticket costs four crowns.",
    "harbour": "The harbour opened in 1904. It has two piers and a granite lighthouse.",
    "storm": "A storm broke the eastern pier in 1931. It was rebuilt two years later.",
    "market": "The fish market opens on Saturdays. Herring is sold from the boats.",
    "museum": "The museum of the harbour shows models of old ships. Entry is free on Mondays.",
    "school": "The sailing school teaches children from the age of eight. Lessons last two hours.",
    "toll": "Ships longer than twenty metres pay a toll. The toll office closes at noon.",
}


class WordCounts(Embeddings):
    """A vector of word counts, hashed to 256 places."""

    def embed_query(self, text: str) -> list[float]:
        """The counts of a text's words, at length 1."""
        chance = random.Random(text)  # a little of its own, so that no two texts tie
        vector = [chance.uniform(0, 0.02) for _ in range(256)]
        for word in content_words(text):
            vector[zlib.crc32(word.encode()) % 256] += 1.0
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length for x in vector]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The same for several."""
        return [self.embed_query(text) for text in texts]


class Copyist(SimpleChatModel):
    """Copies the sentence nearest to the question; of a ghost it says what stands nowhere."""

    @property
    def _llm_type(self) -> str:
        return "copyist"

    def _call(self, messages: list[BaseMessage], **_: Any) -> str:
        context, _, question = messages[-1].content.rpartition("Question: ")
        if "ghost" in question:
            return "The ghost of a drowned pilot haunts the lighthouse every winter."
        if "crash" in question:
            raise RuntimeError("the model is out of order")
        asked = set(content_words(question))
        spans = [context[start:end] for start, end in sentence_spans(context)]
        best = max(spans, key=lambda text: len(asked & set(content_words(text))), default="")
        return best if asked & set(content_words(best)) else "I don't know."


def build(k: int = 2) -> tuple[Runnable[str, str], Chroma]:
    """Return the chain and its store."""
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    for old in client.list_collections():
        if old.name == "harbour":
            client.delete_collection("harbour")
    store = Chroma(collection_name="harbour", embedding_function=WordCounts(), client=client)
    store.add_documents([Document(id=i, page_content=text) for i, text in DOCUMENTS.items()])
    prompt = ChatPromptTemplate.from_template(
        "Answer from this context.\n{context}\n\nQuestion: {question}"
    )
    context = store.as_retriever(search_kwargs={"k": k}) | (
        lambda found: "\n\n".join(document.page_content for document in found)
    )
    steps = {"context": context, "question": RunnablePassthrough()}
    return steps | prompt | Copyist() | StrOutputParser(), store


chain, store = build()
