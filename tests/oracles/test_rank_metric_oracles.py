"""Rank metrics held against pytrec_eval, scikit-learn and trec_eval's published output."""

import random

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval import score_cases
from misslink.types import Case, Passage, Trace

CUTS = (1, 3, 5, 10, 100)
THEIRS = {
    "mrr": "recip_rank",
    **{f"hit@{k}": f"success_{k}" for k in CUTS},
    **{f"recall@{k}": f"recall_{k}" for k in CUTS},
    **{f"precision@{k}": f"P_{k}" for k in CUTS},
    **{f"ndcg@{k}": f"ndcg_cut_{k}" for k in CUTS},
}
ASKED = {
    "recip_rank",
    *(f"{name}.{','.join(map(str, CUTS))}" for name in ("success", "recall", "P", "ndcg_cut")),
}

documents = st.sampled_from([f"d{number}" for number in range(30)])
queries = st.lists(
    st.tuples(
        st.dictionaries(documents, st.integers(0, 4), min_size=1, max_size=15),
        st.lists(documents, unique=True, min_size=1, max_size=25),
    ),
    min_size=1,
    max_size=4,
)


def as_traces(run):
    return [
        Trace(case_id=query, retrieved=[Passage(id=d, rank=r) for r, d in enumerate(ids, start=1)])
        for query, ids in run.items()
    ]


def agree(qrels, run):
    scored = {q: {d: float(-rank) for rank, d in enumerate(ids)} for q, ids in run.items()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(scored)
    cases = [Case(id=query, question="?", relevant=judged) for query, judged in qrels.items()]
    ours = score_cases(cases, as_traces(run), list(THEIRS))
    compared = 0
    for query, judged in qrels.items():
        for name, their_name in THEIRS.items():
            if any(judged.values()):
                assert ours[name][query] == pytest.approx(theirs[query][their_name], abs=1e-9)
                compared += 1
            else:
                assert ours[name][query] is None
    return compared


@given(queries)
def test_metrics_are_those_of_pytrec_eval(pairs):
    agree(
        {f"q{n}": judged for n, (judged, _) in enumerate(pairs)},
        {f"q{n}": ids for n, (_, ids) in enumerate(pairs)},
    )


def test_metrics_are_those_of_pytrec_eval_on_long_rankings():
    chance = random.Random(0)
    names = [f"d{number}" for number in range(2_000)]
    qrels = {
        f"q{n}": {name: chance.choice([0, 0, 1, 2, 3]) for name in chance.sample(names, 200)}
        for n in range(20)
    }
    run = {query: chance.sample(names, 500) for query in qrels}
    assert agree(qrels, run) == 20 * len(THEIRS)


@given(st.permutations(range(8)), st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(any))
def test_ndcg_is_that_of_scikit_learn(order, grades):
    from sklearn.metrics import ndcg_score

    asked = Case(id="q", question="?", relevant={str(n): grade for n, grade in enumerate(grades)})
    traces = as_traces({"q": [str(number) for number in order]})
    scores = np.zeros((1, 8))
    scores[0, list(order)] = range(8, 0, -1)
    for k in (1, 3, 8):
        theirs = ndcg_score([grades], scores, k=k)
        assert score_cases([asked], traces, [f"ndcg@{k}"])[f"ndcg@{k}"]["q"] == pytest.approx(
            theirs
        )
