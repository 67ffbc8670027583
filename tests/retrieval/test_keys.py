"""Ids as numbers of 64 bits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval import arrays as keys
from misslink.retrieval.arrays import hash_ids


def column(ids):
    return pa.array(ids, pa.large_string())


@given(st.lists(st.text("ab\0é", min_size=1, max_size=30), unique=True), st.integers(1, 5))
def test_different_ids_have_different_keys_wherever_they_stand(ids, at_once):
    whole = hash_ids(column(ids))
    assert len(set(whole.tolist())) == len(ids)
    assert hash_ids(column(["before", *ids, "after"])[1:-1]).tolist() == whole.tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_BLOCK_IDS", at_once)
        assert hash_ids(column(ids)).tolist() == whole.tolist()


@pytest.mark.parametrize(
    "pattern", ["{}", "doc{}", "doc{:07}", "{:016}", "passage_{}_of_the_corpus"]
)
def test_ids_that_are_counted_up_share_no_key_and_spread_over_the_low_bits(pattern):
    made = hash_ids(column([pattern.format(number) for number in range(100_000)]))
    assert len(np.unique(made)) == len(made)
    # So many of 2^16 places are met by as many balls thrown at random.
    expected = 2**16 * (1 - np.exp(-len(made) / 2**16))
    assert len(np.unique(made & np.uint64(0xFFFF))) == pytest.approx(expected, rel=0.01)


def test_no_ids_have_no_keys():
    assert hash_ids(column([])).tolist() == []
