"""How near passages are to a question: by BM25 as its formula says, by meaning as numpy says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from misslink.embedding import open_embedder
from misslink.goldset.pooling.rankings import Bm25Ranking, EmbeddingRanking
from misslink.text.normalization import stems

TEXTS = [
    "The ferry leaves the harbour at noon.",
    "A bridge over the harbour, the old harbour and the new harbour.",
    "Museum of bread.",
    "Ferries and bridges: a long text about ferries, timetables, tickets, dogs and bicycles.",
    "",
    "The harbour museum.",
]


class OfWords(Embeddings):
    """A model without a server."""

    model = "of-words"
    inner = DeterministicFakeEmbedding(size=12)

    def embed_documents(self, texts):
        return self.inner.embed_documents(texts)

    def embed_query(self, text):
        return self.inner.embed_query(f"query: {text}")


def by_formula(question, texts, k1=1.5, b=0.75):
    """Robertson and Zaragoza's BM25, with an inverse document frequency that is never negative."""
    rows = [list(stems(text)) for text in texts]
    mean = sum(map(len, rows)) / len(rows)
    scores = []
    for row in rows:
        score = 0.0
        for word in stems(question):
            having = sum(word in other for other in rows)
            rarity = math.log(1 + (len(rows) - having + 0.5) / (having + 0.5))
            often = row.count(word)
            score += rarity * often / (often + k1 * (1 - b + b * len(row) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("question", ["When does the ferry leave?", "harbour museum", "old bridge"])
def test_by_words_the_order_is_that_of_bm25s_formula(question):
    found = Bm25Ranking(TEXTS).order(question)
    want = sorted(range(len(TEXTS)), key=lambda at: (-by_formula(question, TEXTS)[at], at))
    assert found.tolist() == want


@pytest.mark.parametrize("question", ["???", "zebra", "\ud800 <script>"])
def test_a_question_without_a_known_word_leaves_the_order_of_the_corpus(question):
    assert Bm25Ranking(TEXTS).order(question).tolist() == list(range(len(TEXTS)))


def test_a_corpus_without_a_word_has_an_order():
    assert Bm25Ranking(["", "..."]).order("harbour").tolist() == [0, 1]


def test_by_meaning_the_order_is_that_of_the_cosines():
    model = OfWords()
    questions = ["Where is the ferry?", "Which museum?"]
    nearness = EmbeddingRanking.build(open_embedder(model, cache=None), questions, TEXTS)
    given = np.array(model.embed_documents(TEXTS))
    for question in questions:
        asked = np.array(model.embed_query(question))
        cosines = given @ asked / np.linalg.norm(given, axis=1) / np.linalg.norm(asked)
        filled = [at for at in np.argsort(-cosines, kind="stable").tolist() if TEXTS[at]]
        order = nearness.order(question).tolist()
        assert sorted(order) == list(range(len(TEXTS)))
        assert [at for at in order if TEXTS[at]] == filled
    assert "of-words" in nearness.name
