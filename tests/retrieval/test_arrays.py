"""Arrays of many short rankings."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval.arrays import HASH_BITS, hash_texts


@given(st.lists(st.text(max_size=30) | st.text("ab", min_size=250, max_size=300), max_size=8))
def test_the_hash_of_a_text_is_that_of_its_bytes_alone(texts):
    together = hash_texts(pa.array(texts, pa.large_string()))
    later = hash_texts(pa.array(["x", *texts], pa.large_string())[1:])
    alone = [int(hash_texts(pa.array([text], pa.large_string()))[0]) for text in texts]
    assert together.tolist() == later.tolist() == alone
    assert all(0 <= number < 1 << HASH_BITS for number in alone)


def test_ids_of_one_length_that_differ_anywhere_have_different_hashes():
    for length in (1, 7, 8, 9, 15, 16, 17, 24, 31, 40):
        texts = {"a" * at + "b" + "a" * (length - at - 1) for at in range(length)} | {"a" * length}
        assert (
            len(set(hash_texts(pa.array(sorted(texts), pa.large_string())).tolist())) == length + 1
        )
