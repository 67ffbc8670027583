"""A function that asks chromadb directly; misslink sees the queries."""

from __future__ import annotations

import chromadb
from chromadb import Documents, EmbeddingFunction, Embeddings
from desk import PASSAGES, make_prompt, words, write_answer

_VOCABULARY = sorted(set().union(*map(words, PASSAGES.values())))


class WordCounts(EmbeddingFunction[Documents]):
    """Which known words a text has; put your embedding model in its place."""

    def __init__(self) -> None:
        """No setting."""

    def __call__(self, input: Documents) -> Embeddings:
        return [[float(word in words(text)) for word in _VOCABULARY] for text in input]


client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
collection = client.get_or_create_collection("ferry", embedding_function=WordCounts())
collection.upsert(ids=list(PASSAGES), documents=list(PASSAGES.values()))


def app(question: str) -> str:
    """Answer a question."""
    found = collection.query(query_texts=[question], n_results=3)
    return write_answer(make_prompt(question, found["documents"][0]))
