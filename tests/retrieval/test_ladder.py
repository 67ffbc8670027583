"""Sums over many cutoffs in one pass, against one cutoff at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval import hits as ladder_module
from misslink.retrieval.hits import CutoffSums, as_column

RANKS = st.lists(st.sets(st.integers(1, 30), max_size=12), max_size=6)
CUTOFFS = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def ladder_of(rankings):
    entries = [(row, rank) for row, ranks in enumerate(rankings) for rank in sorted(ranks)]
    row, rank = np.array(entries, dtype=np.int64).reshape(len(entries), 2).T
    return CutoffSums(row, rank, len(rankings))


@given(RANKS, CUTOFFS, st.integers(0, 2**32), st.sampled_from([1, 3, 64]), st.sampled_from([0, 6]))
def test_many_cutoffs_have_to_the_last_bit_what_each_has_alone(ranks, ks, seed, short, few):
    ladder = ladder_of(ranks)
    amount = np.random.default_rng(seed).random(len(ladder.row))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ladder_module, "_SHORT_ROW", short)
        patch.setattr(ladder_module, "_FEW_CUTOFFS", few)
        together = ladder.sums(amount, ks)
    assert together.shape == (len(ks), len(ranks))
    for k, line in zip(ks, together, strict=True):
        np.testing.assert_array_equal(line, ladder.sums(amount, k))
        assert line == pytest.approx(
            [amount[(ladder.row == row) & (ladder.rank <= k)].sum() for row in range(len(ranks))]
        )


def test_without_a_cutoff_all_is_summed_and_of_no_row_there_is_nothing():
    ladder = ladder_of([{1, 50}, set(), {7}])
    assert ladder.sums(np.ones(3), None).tolist() == [2, 0, 1]
    assert ladder_of([]).sums(np.ones(0), range(1, 9)).shape == (8, 0)
    assert ladder_of([set()]).sums(np.ones(0), [3, 1]).tolist() == [[0], [0]]


def test_a_long_row_among_short_ones():
    ladder = ladder_of([{3}, set(range(1, 1001)), {1, 2}])
    amount = np.random.default_rng(1).random(len(ladder.row))
    ks = [1000, 64, 65, 1, 2, 63, 500, 10_000]
    for k, line in zip(ks, ladder.sums(amount, ks), strict=True):
        np.testing.assert_array_equal(line, ladder.sums(amount, k))


def test_a_cutoff_stands_across_the_rows():
    assert as_column(4).shape == (1,)
    assert as_column([4, 2]).tolist() == [[4], [2]]
