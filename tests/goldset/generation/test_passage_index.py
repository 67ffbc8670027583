"""What is near: held against cosines and BM25 worked out here."""

import asyncio

import numpy as np
import pytest

from misslink.embedding import Embedder
from misslink.goldset.generation import corpus
from misslink.goldset.generation.corpus import PassageIndex

TEXTS = [
    "The ferry to Oban leaves the pier at seven.",
    "Ferries to Oban carry thirty cars from the pier.",
    "The ferry to Oban leaves the pier at seven, as ever.",
    "Seagulls nest upon the chapel roof.",
    "",
]


class Axes:
    """A model whose vectors are counted letters, so that cosines can be worked out."""

    def embed_documents(self, texts):
        return [[text.count(letter) + 0.01 for letter in "aeiostr"] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def opened(model=None):
    embedder = Embedder(model) if model else None
    return asyncio.run(PassageIndex.build(TEXTS, embedder))


def test_by_words_only_passages_that_share_one_are_near():
    index = opened()
    assert index.near("Which one leaves?", 4) == [0, 2]
    assert index.near("Which one leaves?", 4, without=[0]) == [2]
    assert index.near("Who knows?", 4) == []
    assert index.near("Who knows?", 4, answer="seagulls") == [3]


def test_a_neighbour_never_repeats_the_passage_and_shares_its_rare_words():
    assert opened().neighbours(0, 3, range(len(TEXTS))) == [1]
    assert opened().neighbours(0, 3, [0, 3, 4]) == []


def test_by_meaning_the_order_is_that_of_the_cosines():
    index = opened(Axes())
    question = "xyz aei"  # shares no word, so that meaning alone decides
    asyncio.run(index.read([question]))
    rows = np.array(Axes().embed_documents(TEXTS[:4]))
    asked = np.array(Axes().embed_query(question))
    cosines = rows @ asked / np.linalg.norm(rows, axis=1) / np.linalg.norm(asked)
    assert index.near(question, 4) == list(np.argsort(-cosines))


def test_questions_have_a_cosine_only_where_there_is_an_embedding():
    index = opened(Axes())
    asyncio.run(index.read(["a e", "a e", "o s"]))
    assert index.cosines("a e", ["a e"])[0] > 0.999
    assert opened().cosines("a e", ["a e"]) is None


def test_a_corpus_without_a_word_has_no_neighbours():
    index = PassageIndex(["...", "?!"], None, None)
    assert index.near("Which ferry?", 3) == []
    assert index.neighbours(0, 3, [0, 1]) == []


@pytest.mark.parametrize(("installed", "opened"), [(("numpy",), "minilm"), (("no_package",), None)])
def test_the_default_embedding_is_minilm_where_it_is_installed(monkeypatch, installed, opened):
    monkeypatch.setattr(corpus, "MINILM_PACKAGES", installed)
    monkeypatch.setattr(corpus, "open_embedder", lambda spec: spec)
    assert corpus.open_optional_embedder(None) == opened
    assert corpus.open_optional_embedder("none") is None
