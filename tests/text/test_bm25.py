import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.text.bm25 import Bm25Index

STEMS = st.sampled_from(["ferry", "holm", "harbor", "bridge", "\ud800", "\u6e2f\u53e3"])
TEXTS = st.lists(st.lists(STEMS, max_size=8), max_size=8)


def by_formula(query, rows, k1=1.5, b=0.75):
    """Robertson and Zaragoza's BM25, with an inverse document frequency that is never negative."""
    mean = sum(map(len, rows)) / len(rows) if rows else 0
    scores = []
    for row in rows:
        score = 0.0
        for word in query:
            having = sum(word in other for other in rows)
            rarity = math.log(1 + (len(rows) - having + 0.5) / (having + 0.5))
            often = row.count(word)
            score += rarity * often / (often + k1 * (1 - b + b * len(row) / mean)) if often else 0
        scores.append(score)
    return scores


@given(TEXTS, st.lists(STEMS, max_size=6))
def test_scores_are_those_of_the_formula(rows, query):
    scores = Bm25Index(rows).scores(query)
    assert scores.tolist() == pytest.approx(by_formula(query, rows), rel=1e-5)


@given(TEXTS)
def test_the_frequency_of_a_stem_is_the_number_of_texts_with_it(rows):
    index = Bm25Index(rows)
    for stem in ("ferry", "holm", "zebra", ""):
        assert index.frequency(stem) == sum(stem in row for row in rows)


@pytest.mark.parametrize("rows", [[], [[]], [[], ["ferry"]]])
@pytest.mark.parametrize("query", [[], ["zebra"], [""]])
def test_without_a_known_stem_every_score_is_zero(rows, query):
    assert Bm25Index(rows).scores(query).tolist() == [0.0] * len(rows)
