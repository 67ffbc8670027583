"""A corpus in a real Chroma whose cosines are planted."""

from __future__ import annotations

import uuid

import numpy as np
from langchain_core.embeddings import Embeddings

from misslink.capture import Watcher
from misslink.embedding import Embedder
from misslink.retrieval import match_unmet_needs
from misslink.types import Case


class PlantedEmbeddings(Embeddings):
    """Every question has an axis of its own, and a passage the cosines it was given to them."""

    def __init__(self, questions, passages):
        self.axis = {text: at for at, text in enumerate(questions)}
        self.given = {}
        for at, (text, cosines) in enumerate(passages):
            vector = np.zeros(len(questions) + len(passages))
            for question, cosine in cosines.items():
                vector[self.axis[question]] = cosine
            vector[len(questions) + at] = np.sqrt(1 - (vector**2).sum())
            self.given.setdefault(text, vector)
        self.length = len(questions) + len(passages)
        self.batches = []

    def embed_query(self, text):
        vector = np.zeros(self.length)
        vector[self.axis[text]] = 1
        return vector.tolist()

    def embed_documents(self, texts):
        self.batches.append(list(texts))
        return [self.given[text].tolist() for text in texts]


class World:
    """Cases and passages put down one by one, then indexed and asked for real."""

    def __init__(self):
        self.cases, self.passages = [], {}

    def case(self, name, question, **gold):
        self.cases.append(Case(id=name, question=question, **gold))

    def passage(self, name, text, **cosines):
        """`cosines` by case id; 0 to all other questions."""
        self.passages[name] = (text, cosines)

    async def asked(self, k, depth):
        """Return the traces of a retriever over a real Chroma, asked deeper, and the embedder."""
        from langchain_chroma import Chroma

        question = {case.id: case.question for case in self.cases}
        embeddings = PlantedEmbeddings(
            list(question.values()),
            [
                (text, {question[name]: cosine for name, cosine in cosines.items()})
                for text, cosines in self.passages.values()
            ],
        )
        store = Chroma(
            collection_name=f"planted-{uuid.uuid4().hex}",
            embedding_function=embeddings,
            collection_metadata={"hnsw:space": "cosine"},
        )
        store.add_texts([text for text, _ in self.passages.values()], ids=list(self.passages))
        watcher = Watcher(store.as_retriever(search_kwargs={"k": k}), depth=depth)
        traces = []
        for case in self.cases:
            trace = await watcher.watch(case)
            if wanted := match_unmet_needs(case, trace, k):
                trace = await watcher.deepen(case, trace, wanted)
            traces.append(trace)
        embeddings.batches.clear()
        return traces, Embedder(embeddings)
