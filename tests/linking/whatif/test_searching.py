from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.embedding import Embedder
from misslink.linking.whatif.search import DenseSearch, LexicalSearch, _top_places, fuse_rankings
from misslink.text.normalization import stems
from town import Hashed

TEXTS = [
    "The ferry to Holm leaves at seven from the old harbour.",
    "The ferry is red.",
    "Bakers bake bread, and the bakery opens early.",
    "Nothing here.",
    "Ferries, ferries, ferries: the harbour is full of ferries to Holm.",
]


def rank(search, questions, depth=10):
    return asyncio.run(search.rank(questions, depth))


def test_bm25_orders_as_the_formula_of_robertson_and_zaragoza_does():
    asked = "When does the ferry leave for Holm?"
    rows = [stems(text) for text in TEXTS]
    mean = sum(map(len, rows)) / len(rows)
    scores = []
    for row in rows:
        total = 0.0
        for word in stems(asked):
            holders = sum(word in other for other in rows)
            idf = np.log(1 + (len(rows) - holders + 0.5) / (holders + 0.5))
            count = row.count(word)
            total += idf * count / (count + 1.5 * (1 - 0.75 + 0.75 * len(row) / mean))
        scores.append(total)
    expected = [at for at in np.argsort(-np.array(scores), kind="stable") if scores[at] > 0]
    assert len(expected) >= 3
    assert rank(LexicalSearch(TEXTS), [asked]) == [expected]


def test_bm25_finds_nothing_where_no_word_is_shared_and_in_no_corpus():
    assert rank(LexicalSearch(TEXTS), ["Zebras?", "the and of"]) == [[], []]
    assert rank(LexicalSearch([]), ["ferry"]) == [[]]
    assert rank(LexicalSearch(["", "..."]), ["ferry"]) == [[]]


def test_dense_orders_by_cosine():
    model = Hashed()
    asked = "the ferry to Holm"
    vectors = np.array([model.one(text) for text in TEXTS])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ np.array(model.one(asked))
    found = rank(DenseSearch(TEXTS, Embedder(model)), [asked], 3)
    assert found == [np.argsort(-cosines, kind="stable")[:3].tolist()]


def test_the_corpus_is_embedded_once():
    model = Hashed()
    dense = DenseSearch(TEXTS, Embedder(model))
    rank(dense, ["ferry"])
    rank(dense, ["bakery"])
    assert model.calls == 1


def test_diversity_puts_a_repeated_passage_behind_another_one():
    # By hand, for the second place: the copy (0.82 - 1) / 2, the bakery (0.5 - 0.41) / 2.
    texts = ["red ferry holm", "red ferry holm", "ferry bakery", "museum garden"]
    dense = DenseSearch(texts, Embedder(Hashed()))
    assert rank(dense, ["red ferry"], 2) == [[0, 1]]
    assert asyncio.run(dense.diverse(["red ferry"], 2, 4)) == [[0, 2]]


def test_fusion_adds_the_reciprocal_ranks_by_hand():
    # 5: 1/61 + 1/62; 6: 1/62 + 1/61, the same, and 5 is first in the corpus; 7: 1/63.
    assert fuse_rankings([[5, 6, 7], [6, 5]], 3) == [5, 6, 7]
    assert fuse_rankings([[1, 2], [3, 2]], 1) == [2]
    assert fuse_rankings([[], []], 5) == []


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=30), st.integers(0, 12))
def test_the_best_are_those_of_a_stable_sort(scores, depth):
    array = np.array(scores)
    expected = np.argsort(-array, kind="stable")[:depth].tolist() if scores else []
    assert _top_places(array, depth) == expected


@pytest.mark.parametrize("search", [LexicalSearch([]), DenseSearch([], Embedder(Hashed()))])
def test_no_question_has_no_ranking(search):
    assert rank(search, []) == []
