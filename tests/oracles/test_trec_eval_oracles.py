"""The other rank metrics held against pytrec_eval and what trec_eval itself printed."""

from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval import parse_metric
from naive_hits import hits_of_qrels, metric_values

CUTS = (1, 3, 5, 10, 100)
THEIRS = {
    "mrr": "recip_rank",
    "map": "map",
    "r-precision": "Rprec",
    "bpref": "bpref",
    **{f"map@{k}": f"map_cut_{k}" for k in CUTS},
    **{f"hit@{k}": f"success_{k}" for k in CUTS},
    **{f"recall@{k}": f"recall_{k}" for k in CUTS},
    **{f"precision@{k}": f"P_{k}" for k in CUTS},
    **{f"ndcg@{k}": f"ndcg_cut_{k}" for k in CUTS},
}
ASKED = {"recip_rank", "map", "Rprec", "bpref"} | {
    f"{name}.{','.join(map(str, CUTS))}"
    for name in ("map_cut", "success", "recall", "P", "ndcg_cut")
}
SHARED = Path(__file__).parents[3] / "shared" / "data" / "retrieval"
TEST, DL19 = SHARED / "trec_eval_test", SHARED / "dl19"

documents = st.sampled_from([f"d{number}" for number in range(30)])
queries = st.lists(
    st.tuples(
        st.dictionaries(documents, st.integers(-2, 4), min_size=1, max_size=15),
        st.lists(documents, unique=True, min_size=1, max_size=25),
    ),
    min_size=1,
    max_size=4,
)


@given(queries, st.sampled_from([1, 2, 3]))
def test_metrics_are_those_of_pytrec_eval_at_every_relevance_level(pairs, level):
    qrels = {f"q{n}": {**judged, "d": 0} for n, (judged, _) in enumerate(pairs)}
    run = {f"q{n}": ids for n, (_, ids) in enumerate(pairs)}
    scored = {q: {d: float(-rank) for rank, d in enumerate(ids)} for q, ids in run.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, ASKED, relevance_level=level)
    theirs = evaluator.evaluate(scored)
    hits = hits_of_qrels(qrels, run, level)
    for name, their_name in THEIRS.items():
        for query, value in zip(qrels, metric_values(parse_metric(name), hits), strict=True):
            if max(qrels[query].values()) < level:
                assert value is None
            else:
                assert value == pytest.approx(theirs[query][their_name], abs=1e-9), name


@given(queries)
def test_exponential_gain_is_that_of_pytrec_eval_on_grades_so_transformed(pairs):
    qrels = {f"q{n}": {**judged, "d": 0} for n, (judged, _) in enumerate(pairs)}
    run = {f"q{n}": ids for n, (_, ids) in enumerate(pairs)}
    scored = {q: {d: float(-rank) for rank, d in enumerate(ids)} for q, ids in run.items()}
    gains = {
        query: {name: 2**grade - 1 if grade > 0 else grade for name, grade in judged.items()}
        for query, judged in qrels.items()
    }
    theirs = pytrec_eval.RelevanceEvaluator(gains, {"ndcg_cut.1,3,10"}).evaluate(scored)
    hits = hits_of_qrels(qrels, run)
    for k in (1, 3, 10):
        for query, value in zip(
            qrels, metric_values(parse_metric(f"ndcg_exp@{k}"), hits), strict=True
        ):
            if max(qrels[query].values()) > 0:
                assert value == pytest.approx(theirs[query][f"ndcg_cut_{k}"], abs=1e-9)


@given(queries, st.sampled_from([1, 2]))
def test_what_trec_eval_has_otherwise_is_that_of_ir_measures(pairs, level):
    theirs = pytest.importorskip("ir_measures")
    pytest.importorskip("cwl", reason="ir_measures takes RBP from cwl-eval")
    qrels = {
        f"q{n}": {name: grade for name, grade in judged.items() if grade >= 0} | {"d": 0}
        for n, (judged, _) in enumerate(pairs)
    }
    run = {f"q{n}": ids for n, (_, ids) in enumerate(pairs)}
    scored = {q: {d: float(-rank) for rank, d in enumerate(ids)} for q, ids in run.items()}
    hits = hits_of_qrels(qrels, run, level)
    for name, measure in {
        "judged@3": theirs.Judged @ 3,
        "judged@20": theirs.Judged @ 20,
        "rbp@0.8": theirs.RBP(p=0.8, rel=level),
    }.items():
        found = {one.query_id: one.value for one in theirs.iter_calc([measure], qrels, scored)}
        for query, value in zip(qrels, metric_values(parse_metric(name), hits), strict=True):
            if value is not None:
                assert value == pytest.approx(found[query], abs=1e-9)
