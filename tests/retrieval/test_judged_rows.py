"""The judged documents among the rows of a run, however many rows are compared at a time."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval.evaluate import evaluate_run

METRICS = ["mrr", "recall@5", "ndcg@5", "map", "bpref", "judged@10"]
DOCUMENTS = st.sampled_from([f"document-{number}" for number in range(15)])
QRELS = st.dictionaries(
    st.sampled_from("pqrs"), st.dictionaries(DOCUMENTS, st.integers(-1, 2), min_size=1), min_size=1
)
# Scores that fall all along, rise, or are equal; queries that were not judged.
RANKING = st.dictionaries(DOCUMENTS, st.integers(0, 9), min_size=1).flatmap(
    lambda scores: st.sampled_from(
        [
            scores,
            dict(sorted(scores.items(), key=lambda pair: -pair[1])),
            {name: -float(at) for at, name in enumerate(scores)},
            {name: float(at // 2) for at, name in enumerate(scores)},
        ]
    )
)
RUNS = st.dictionaries(st.sampled_from("pqrstuv"), RANKING, min_size=1)


@pytest.mark.slow
@given(QRELS, RUNS, st.sampled_from([1, 3, 20, 1 << 15]))
def test_scored_documents_are_ranked_as_a_sort_ranks_them(qrels, run, at_once):
    run = {**run, next(iter(qrels)): {"document-3": 1.0, "document-4": 2.0, "document-5": 2.0}}
    frame = pd.DataFrame(
        [(query, *pair) for query, scores in run.items() for pair in scores.items()],
        columns=["query_id", "doc_id", "score"],
    )
    ranked = {
        query: sorted(scores, key=lambda name: (scores[name], name), reverse=True)
        for query, scores in run.items()
    }
    expected = evaluate_run(qrels, ranked, METRICS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("misslink.io.tables.BATCH_ROWS", at_once)
        patch.setattr("misslink.retrieval.runs.BATCH_ROWS", at_once)
        patch.setattr("misslink.retrieval.run_mappings.BATCH_ROWS", at_once)
        for source in (frame, run, ranked):
            found = evaluate_run(qrels, source, METRICS)
            assert found.per_query() == expected.per_query()
            assert found.counts == expected.counts
