"""Arrays of rankings, ids as 64-bit hashes, and hits of runs."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.retrieval import arrays as keys
from misslink.retrieval import collect_hits
from misslink.retrieval.arrays import (
    hash_ids,
    hash_pairs,
    rank_documents,
    segment_offsets,
    segments_with_duplicates,
    sort_within_segments,
)
from misslink.retrieval.readers import open_qrels, open_run
from misslink.retrieval.runs import UngroupedRunError, join_blocks
from misslink.types import Case, Passage

TEXTS = st.lists(st.text(max_size=30), max_size=40)
LISTS = st.lists(st.lists(st.integers(-3, 3).map(float), max_size=9), min_size=1, max_size=12)


@given(TEXTS, st.integers(0, 3))
def test_equal_ids_and_only_they_share_a_key(texts, cut):
    keys = hash_ids(pa.array(texts, pa.large_string()))
    assert (
        len({*zip(texts, keys.tolist(), strict=True)}) == len(set(texts)) == len(set(keys.tolist()))
    )
    # A slice of a longer array has the same keys.
    assert hash_ids(pa.array(texts, pa.large_string())[cut:]).tolist() == keys[cut:].tolist()


def test_a_key_reads_the_whole_id():
    long = ["x" * 1000 + "a", "x" * 1000 + "b", "x" * 999 + "a", "a" + "x" * 1000, "x\0", "x"]
    assert len(set(hash_ids(pa.array(long, pa.large_string())).tolist())) == len(long)


def test_a_pair_is_told_from_the_same_document_of_another_query():
    keys = hash_ids(pa.array(["a", "b"], pa.large_string()))
    pairs = [*hash_pairs(np.array([0, 0]), keys), *hash_pairs(np.array([1, 1]), keys)]
    assert len(set(map(int, pairs))) == 4


@given(LISTS)
def test_segments_are_sorted_each_by_itself(lists):
    start = segment_offsets(np.array([len(each) for each in lists]))
    flat = np.array([value for each in lists for value in each])
    assert sort_within_segments(flat, start).tolist() == [v for each in lists for v in sorted(each)]
    twice = [at for at, each in enumerate(lists) if len(set(each)) < len(each)]
    assert segments_with_duplicates(flat, start).tolist() == twice


@given(LISTS)
def test_ranks_are_those_of_sorting_by_score_and_then_by_id_descending(lists):
    named = [[(f"d{n}", score) for n, score in enumerate(each)] for each in lists]
    start = segment_offsets(np.array([len(each) for each in lists]))
    flat = np.array([value for each in lists for value in each])
    asked = [(row, *pair) for row, each in enumerate(named) for pair in each]
    found = rank_documents(
        flat,
        start,
        np.array([row for row, _, _ in asked], dtype=np.int64),
        np.array([score for _, _, score in asked], dtype=np.float64),
        [name for _, name, _ in asked].__getitem__,
        lambda row: named[row],
    )
    for (row, name, score), rank in zip(asked, found.tolist(), strict=True):
        ordered = sorted(((own, other) for other, own in named[row]), reverse=True)
        assert ordered.index((score, name)) == rank - 1


def collect_run_hits(judgements, run, *, relevance_level=1):
    return join_blocks(judgements, list(run.blocks(judgements)), relevance_level)


def same(ours, theirs):
    for name in ours.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)


@pytest.mark.parametrize("as_frame", [False, True])
def test_hits_are_those_of_cases_and_passages(as_frame):
    qrels = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"x": 0}, "q3": {"z": 1, "y": 3}, "q4": {"a": 1}}
    run = {"q3": ["y", "u", "z"], "q1": ["b", "u", "a"], "q2": ["u", "x"], "q9": ["a"], "q4": ["b"]}
    order = [query for query in run if query in qrels]
    cases = [Case(id=query, question="?", relevant=qrels[query]) for query in order]
    passages = [[Passage(id=n, rank=at) for at, n in enumerate(run[q], 1)] for q in order]
    given_run = run
    if as_frame:
        rows = [(query, name, at) for query, names in run.items() for at, name in enumerate(names)]
        given_run = pd.DataFrame(rows, columns=["qid", "docno", "rank"])
    same(collect_run_hits(open_qrels(qrels), open_run(given_run)), collect_hits(cases, passages))


def test_a_lower_grade_keeps_its_gain_and_is_judged_not_relevant():
    judgements = open_qrels({"q": {"a": 1, "b": 2, "c": -1}})
    hits = collect_run_hits(judgements, open_run({"q": ["c", "a", "b"]}), relevance_level=2)
    assert (hits.gain.tolist(), hits.satisfied.tolist(), hits.rank.tolist()) == (
        [1, 2],
        [0, 1],
        [2, 3],
    )
    assert (hits.judged_rank.tolist(), hits.nonrelevant.tolist()) == ([2], [1])
    assert (hits.needs.tolist(), hits.retrieved.tolist()) == ([1], [3])
    assert hits.ideal_gain.tolist() == [2, 1]
    with pytest.raises(InputError, match="counts from 1"):
        collect_run_hits(judgements, open_run({"q": ["a"]}), relevance_level=0)


def test_scattered_rows_are_brought_together():
    frame = pd.DataFrame(
        {"qid": list("pqpq"), "docno": list("aabb"), "score": [1.0, 2.0, 3.0, 1.0]}
    )
    judgements, run = open_qrels({"p": {"a": 1}, "q": {"a": 1}}), open_run(frame)
    with pytest.raises(UngroupedRunError, match="sort the run by query"):
        list(run.blocks(judgements))
    hits = collect_run_hits(judgements, run.together())
    assert hits.rank.tolist() == [2, 1]


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
