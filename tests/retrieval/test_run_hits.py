"""Hits of runs."""

import numpy as np
import pandas as pd
import pytest

from misslink.retrieval import collect_hits
from misslink.retrieval.readers import open_qrels, open_run
from misslink.retrieval.runs import RunBlock, UngroupedRunError, block_hits
from misslink.types import Case, Passage


def collect_run_hits(judgements, run, *, relevance_level=1):
    blocks = list(run.blocks(judgements))
    offsets = np.cumsum([0] + [len(block.query) for block in blocks]).tolist()
    columns = {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in ("query", "retrieved", "grade", "rank")
    }
    row = [block.row + offset for block, offset in zip(blocks, offsets, strict=False)]
    block = RunBlock(**columns, row=np.concatenate(row), unjudged=None)
    return block_hits(judgements, block, relevance_level)


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


def test_scattered_rows_are_brought_together():
    frame = pd.DataFrame(
        {"qid": list("pqpq"), "docno": list("aabb"), "score": [1.0, 2.0, 3.0, 1.0]}
    )
    judgements, run = open_qrels({"p": {"a": 1}, "q": {"a": 1}}), open_run(frame)
    with pytest.raises(UngroupedRunError, match="sort the run by query"):
        list(run.blocks(judgements))
    hits = collect_run_hits(judgements, run.together())
    assert hits.rank.tolist() == [2, 1]
