import math
import subprocess
import sys

import numpy as np
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


def test_scores_are_those_of_bm25s():
    bm25s = pytest.importorskip("bm25s")
    generator = np.random.default_rng(0)
    texts = [[f"w{stem}" for stem in generator.zipf(1.4, size) % 300] for size in range(200)]
    index, theirs = Bm25Index(texts), bm25s.BM25()
    theirs.index(texts, create_empty_token=False, show_progress=False)
    for query in (["w1", "w2"], ["w77", "w5", "w1"], ["w3", "w3"]):
        np.testing.assert_allclose(index.scores(query), theirs.get_scores(query), atol=1e-6)


def test_no_compiler_is_imported():
    code = "import sys; from misslink.text.bm25 import Bm25Index; Bm25Index([['a']]).scores(['a'])"
    code += "; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
