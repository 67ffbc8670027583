"""The app: Chroma and a LangChain chain, whose retriever and model do as they were told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from numpy.typing import NDArray

from faults.planting import DEPTH, K
from misslink.text.normalization import content_words

__all__ = ["WordHashes", "build", "open_store"]

FEATURES = 1024  # buckets; the reference has some 5,000 different words, and collisions do no harm
BATCH = 512
_DIGITS = 4  # of a distance: less is the order of a sum
PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from the text alone. If it does not say, say that you do not know."),
        ("human", "{context}\n\nQuestion: {question}"),
    ]
)
_ASKED = re.compile(r"Question: (.*)\Z", re.DOTALL)


class WordHashes(Embeddings):
    """Content words hashed into buckets: no weights, the same on every machine, and quick."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._vectorise = HashingVectorizer(n_features=FEATURES, analyzer=content_words)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text, of norm 1."""
        rows: list[list[float]] = self._vectorise.transform(texts).toarray().tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """The question's vector."""
        return self.embed_documents([text])[0]


@lru_cache(maxsize=2)
def _indexed(store: Any) -> tuple[list[Document], NDArray[np.float64]]:
    """Documents and vectors of an index that gets no more of them."""
    held = store.get(include=["documents", "embeddings", "metadatas"])
    documents = [
        Document(text, id=passage_id, metadata=metadata or {})
        for passage_id, text, metadata in zip(
            held["ids"], held["documents"], held["metadatas"], strict=True
        )
    ]
    return documents, np.asarray(held["embeddings"], dtype=np.float64)


class BrokenRetriever(BaseRetriever):
    """A search of Chroma's vectors whose results are rearranged as planted for this question.

    Chroma's graph of neighbors is built by several threads and finds others each time. Its search
    is made as an app makes it, and all passages are ranked by their vectors, equal ones by id.
    """

    store: Any
    plants: Mapping[str, Any]
    k: int = K

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager  # LangChain hands it to whoever has such a parameter
        documents, vectors = _indexed(self.store)
        self.store.similarity_search(query, k=self.k)
        distances = (1 - vectors @ np.asarray(self.store.embeddings.embed_query(query))).round(
            _DIGITS
        )
        scored = zip(distances.tolist(), documents, strict=True)
        ranked = sorted(scored, key=lambda pair: (pair[0], pair[1].id))
        found = [document for _, document in ranked[: max(self.k, DEPTH)]]
        return self.plants[query].arranged(found)[: self.k]


class ScriptedModel(BaseChatModel):
    """Answers each question as planted."""

    plants: Mapping[str, Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self, messages: list[Any], stop: list[str] | None = None, *_: Any, **__: Any
    ) -> ChatResult:
        del stop
        asked = _ASKED.search(messages[-1].content)
        if asked is None:
            raise ValueError("the prompt holds no question")
        answer = self.plants[asked[1]].answer
        return ChatResult(generations=[ChatGeneration(message=AIMessage(answer))])


def open_store(documents: Sequence[Document], name: str) -> Any:
    """An index of the documents in memory."""
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    store = Chroma(name, WordHashes(), client=client, collection_metadata={"hnsw:space": "cosine"})
    for start in range(0, len(documents), BATCH):
        store.add_documents(list(documents[start : start + BATCH]))
    return store


def build(store: Any, plants: Mapping[str, Any]) -> Runnable[str, str]:
    """Make the app: question in, answer out.

    Parameters
    ----------
    store : Chroma
    plants : mapping of str to Plant or Staged
        By question.
    """

    def prompt_inputs(given: dict[str, Any]) -> dict[str, str]:
        withheld = plants[given["question"]].withheld
        kept = [one.page_content for one in given["documents"] if one.id not in withheld]
        return {"context": "\n\n".join(kept), "question": given["question"]}

    retriever = BrokenRetriever(store=store, plants=plants)
    found = {"documents": retriever, "question": RunnablePassthrough()}
    model = ScriptedModel(plants=plants)
    return found | RunnableLambda(prompt_inputs) | PROMPT | model | StrOutputParser()
