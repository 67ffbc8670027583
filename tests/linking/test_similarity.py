"""Cosines of many pairs at once are those of each alone."""

from __future__ import annotations

import numpy as np
import pytest

from misslink.linking.similarity import Meaning


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
    return Meaning(questions, passages, unit(20), given)


def test_many_pairs_at_once_are_as_each_alone_and_strangers_have_none(meaning):
    pairs = [(f"q{q}", f"p{p}") for q in range(22) for p in range(33)]
    alone = [meaning.cosine(*pair) for pair in pairs]
    together = meaning.cosines(pairs)
    assert [one is None for one in together] == [one is None for one in alone]
    known = [one for one in alone if one is not None]
    assert [one for one in together if one is not None] == pytest.approx(known, abs=1e-6)
    assert all(-1 <= one <= 1 for one in together if one is not None)


def test_pairs_are_multiplied_in_portions_without_a_seam(meaning, monkeypatch):
    pairs = [(f"q{n % 20}", f"p{n % 30}") for n in range(100)]
    whole = meaning.cosines(pairs)
    monkeypatch.setattr("misslink.linking.similarity._PAIRS_AT_ONCE", 7)
    assert meaning.cosines(pairs) == pytest.approx(whole, abs=1e-6)


def test_of_no_pair_there_is_no_cosine(meaning):
    assert meaning.cosines([]) == []
