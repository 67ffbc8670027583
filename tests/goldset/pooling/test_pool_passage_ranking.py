"""How near passages are to a question: by words, and by meaning as numpy says."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from misslink.embedding import open_embedder
from misslink.goldset.pooling.rankings import Bm25Ranking, EmbeddingRanking

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


def test_by_words_the_nearest_share_the_rarest_words():
    assert Bm25Ranking(TEXTS).order("old bridge").tolist() == [1, 3, 0, 2, 4, 5]


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
