"""The other rank metrics held against pytrec_eval and what trec_eval itself printed."""

import gzip
from collections import defaultdict
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given, settings
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


@settings(deadline=None)
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


@settings(deadline=None, max_examples=50)
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


@settings(deadline=None, max_examples=30)
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


def read_qrels(path):
    judged = defaultdict(dict)
    for line in path.read_text().splitlines():
        query, _, document, grade = line.split()
        judged[query][document] = int(grade)
    return judged


def read_run(path):
    scored = defaultdict(list)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            query, _, document, _, value, _ = line.split()
            scored[query].append((float(value), document))
    # trec_eval orders by score and then by document id, both from the top down.
    return {q: [name for _, name in sorted(found, reverse=True)] for q, found in scored.items()}


def read_output(path):
    printed = defaultdict(dict)
    for line in path.read_text().splitlines():
        name, query, value = line.split("\t")
        if query.strip() != "all" and not name.startswith("relstring"):
            printed[name.strip()][query.strip()] = float(value)
    return printed


def compare(printed, qrels, run, level, names):
    qrels = {query: grades for query, grades in qrels.items() if query in run}
    hits = hits_of_qrels(qrels, run, level)
    compared = 0
    for name, (their_name, of_theirs) in names.items():
        found = dict(zip(qrels, metric_values(parse_metric(name), hits), strict=True))
        for query, value in printed[their_name].items():
            assert found[query] == pytest.approx(of_theirs(value), abs=5.1e-5), (name, query)
            compared += 1
    return compared


def same(value):
    return value


def rest(value):
    return 1 - value


@pytest.mark.skipif(not TEST.is_dir(), reason="the reference results are not beside the checkout")
@pytest.mark.parametrize(
    ("output", "qrels", "level"),
    [("out.test.aq", "qrels.test", 1), ("out.test.aql", "qrels.rel_level", 2)],
)
def test_metrics_are_what_trec_eval_printed_in_its_own_test(output, qrels, level):
    cuts = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
    names = {"mrr": "recip_rank", "map": "map", "r-precision": "Rprec", "bpref": "bpref"}
    for ours, theirs in (
        ("map", "map_cut"),
        ("precision", "P"),
        ("recall", "recall"),
        ("ndcg", "ndcg_cut"),
    ):
        names |= {f"{ours}@{k}": f"{theirs}_{k}" for k in cuts}
    names |= {f"hit@{k}": f"success_{k}" for k in (1, 5, 10)}
    names = {name: (theirs, same) for name, theirs in names.items()}
    names |= {f"judged@{k}": (f"unj_{k}", rest) for k in (5, 10, 20)}
    compared = compare(
        read_output(TEST / output),
        read_qrels(TEST / qrels),
        read_run(TEST / "results.test"),
        level,
        names,
    )
    assert compared == 3 * (4 + 4 * len(cuts) + 3 + 3)


@pytest.mark.skipif(not TEST.is_dir(), reason="the reference results are not beside the checkout")
def test_rank_biased_precision_is_what_trec_eval_printed_where_grades_are_0_and_1():
    names = {"rbp@0.9": ("rbp", same), "rbp_residual@0.9": ("rbp_resid", same)}
    qrels, run = read_qrels(TEST / "qrels.test"), read_run(TEST / "results.test")
    assert compare(read_output(TEST / "out.test.aq"), qrels, run, 1, names) == 6


@pytest.mark.skipif(not DL19.is_dir(), reason="the reference results are not beside the checkout")
@pytest.mark.parametrize("system", ["bm25base_p", "ICT-CKNRM_B50"])
def test_metrics_are_what_trec_eval_printed_for_trec_2019_deep_learning(system):
    printed = read_output(DL19 / f"{system}.treceval.txt")
    names = {"map": "map", "r-precision": "Rprec", "bpref": "bpref", "mrr": "recip_rank"}
    names |= {f"precision@{k}": f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)}
    qrels, run = read_qrels(DL19 / "qrels.dl19-passage.txt"), read_run(DL19 / f"{system}.run.gz")
    compared = compare(printed, qrels, run, 1, {n: (theirs, same) for n, theirs in names.items()})
    assert compared == 43 * len(names)
