"""Claims are tied to the passage that they needed; `benchmarks/linking/ties.py` has more rounds."""

import pytest

from ties import KINDS, shares


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_passage_of_several_is_named_by_a_judge_that_sees_the_difference(kind):
    right, relation, supported = shares(kind, 60, exact=True)
    assert right >= 0.97
    assert relation >= 0.97
    assert supported == (1 if kind == "the same" else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_heuristic_judge_seldom_takes_a_difference_for_support(kind):
    right, _, supported = shares(kind, 60, exact=False)
    assert right >= 0.9
    assert kind == "the same" or supported <= 0.1
