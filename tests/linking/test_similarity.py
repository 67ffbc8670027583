"""Cosines of many passages at once are those of each alone."""

from __future__ import annotations

import numpy as np
import pytest

from misslink.linking.similarity import EmbeddingSimilarity


@pytest.fixture
def meaning():
    draw = np.random.default_rng(7)

    def unit(rows):
        made = draw.standard_normal((rows, 12)).astype(np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    given = unit(30)
    given[3] = 0  # a blank text is near nothing
    questions = {f"q{n}": n for n in range(20)}
    passages = {f"p{n}": n for n in range(30)}
    return EmbeddingSimilarity(questions, passages, unit(20), given)


def test_many_passages_at_once_are_as_each_alone_to_the_last_digit(meaning):
    passages = [f"p{p}" for p in range(33)]
    for question in (f"q{q}" for q in range(22)):
        together = meaning.cosines(question, passages)
        assert together == [meaning.cosine(question, passage) for passage in passages]
        assert [one is None for one in together] == [
            question in {"q20", "q21"} or p >= 30 for p in range(33)
        ]
        assert all(-1 <= one <= 1 for one in together if one is not None)


def test_a_cosine_is_the_product_of_its_two_vectors(meaning):
    product = meaning._question_vectors.astype(float) @ meaning._passage_vectors.astype(float).T
    for q, p in ((0, 0), (19, 29), (7, 3)):
        assert meaning.cosine(f"q{q}", f"p{p}") == pytest.approx(product[q, p], abs=1e-6)


def test_of_no_passage_there_is_no_cosine(meaning):
    assert meaning.cosines("q0", []) == []
