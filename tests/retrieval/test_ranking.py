import gzip
import math

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.retrieval.evaluate import evaluate_run
from misslink.retrieval.readers import open_qrels, open_run
from misslink.retrieval.runs import RankedRun

THEIRS = {
    "hit@1": "success_1",
    "hit@5": "success_5",
    "mrr": "recip_rank",
    "recall@5": "recall_5",
    "recall@100": "recall_100",
    "precision@5": "P_5",
    "precision@10": "P_10",
    "ndcg@5": "ndcg_cut_5",
    "ndcg@10": "ndcg_cut_10",
    "map": "map",
    "map@5": "map_cut_5",
    "r-precision": "Rprec",
    "bpref": "bpref",
}
ASKED = {
    *("success.1,5", "recip_rank", "recall.5,100", "P.5,10", "ndcg_cut.5,10"),
    *("map", "map_cut.5", "Rprec", "bpref"),
}


def frame_of(mapping, number):
    rows = [(q, d, n) for q, documents in mapping.items() for d, n in documents.items()]
    return pd.DataFrame(rows, columns=["query_id", "doc_id", number])


def written(folder, mapping, name, line):
    path = folder / name
    text = "".join(line(q, d, n) for q, ds in mapping.items() for d, n in ds.items())
    path.write_text(text, encoding="utf-8")
    return path


IDS = st.sampled_from([f"d{n}" for n in range(12)] + ["é", "z" * 40, "z" * 39 + "y", "Ω-9", "10"])
SCORES = st.sampled_from([0.0, -1.5, 1.0, 2.0, 2.5, 1e9])
QRELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q4"]),
    st.dictionaries(IDS, st.integers(-1, 3), min_size=1),
    min_size=1,
)
RUNS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q5"]),
    st.dictionaries(IDS, SCORES, min_size=1),
    min_size=1,
)


def agree(ours, qrels, run, level=1):
    judge = pytrec_eval.RelevanceEvaluator(qrels, ASKED, relevance_level=level)
    theirs = judge.evaluate(run)
    for query, values in ours.items():
        relevant = any(grade >= level for grade in qrels[query].values())
        for metric, value in values.items():
            if not relevant:
                assert value is None, (query, metric)
            elif query not in run:
                assert value == 0, (query, metric)
            else:
                expected = theirs[query][THEIRS[metric]]
                assert value == pytest.approx(expected, abs=1e-9), (query, metric)


@pytest.mark.slow
@given(QRELS, RUNS, st.integers(1, 2))
def test_every_way_in_gives_what_trec_eval_gives(qrels, run, level):
    if not qrels.keys() & run.keys():
        with pytest.raises(InputError, match="the query ids of both must agree"):
            evaluate_run(qrels, run, ["mrr"])
        return
    ours = evaluate_run(qrels, run, list(THEIRS), relevance_level=level)
    agree(ours.per_query(), qrels, run, level)
    frames = frame_of(qrels, "relevance"), frame_of(run, "score")
    shuffled = [frame.sample(frac=1, random_state=3) for frame in frames]
    for judged, retrieved in (frames, shuffled, (qrels, frames[1]), (frames[0], run)):
        again = evaluate_run(judged, retrieved, list(THEIRS), relevance_level=level)
        # The order of the queries is that of the qrels; the values do not depend on it.
        assert again.per_query() == ours.per_query()
        assert again.counts == ours.counts
    ordered = {
        q: sorted(sorted(docs, reverse=True), key=lambda d, s=docs: -s[d])
        for q, docs in run.items()
    }
    as_lists = evaluate_run(qrels, ordered, list(THEIRS), relevance_level=level)
    assert as_lists.per_query() == ours.per_query()


@settings(max_examples=8)
@given(QRELS, RUNS)
def test_files_give_the_same_as_dicts(tmp_path_factory, qrels, run):
    if not qrels.keys() & run.keys():
        return
    folder = tmp_path_factory.mktemp("trec")
    judged = written(folder, qrels, "q.qrels", lambda q, d, g: f"{q}\t0  {d} {g}\n")
    retrieved = written(folder, run, "r.trec", lambda q, d, s: f"{q} Q0 {d}\t1 {s!r} tag\r\n")
    expected = evaluate_run(qrels, run, list(THEIRS))
    assert evaluate_run(judged, retrieved, list(THEIRS)).per_query() == expected.per_query()
    packed = folder / "r.trec.gz"
    packed.write_bytes(gzip.compress(retrieved.read_bytes()))
    assert evaluate_run(judged, packed, list(THEIRS)).per_query() == expected.per_query()
    for ending in ("csv", "parquet"):
        frames = frame_of(qrels, "label"), frame_of(run, "score")
        paths = [folder / f"{name}.{ending}" for name in ("qrels", "run")]
        for frame, path in zip(frames, paths, strict=True):
            frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
        assert evaluate_run(*paths, list(THEIRS)).per_query() == expected.per_query()


def test_a_list_keeps_its_order_and_ties_are_by_id_descending():
    qrels = {"q": {"a": 1}}
    assert evaluate_run(qrels, {"q": ["b", "a"]}, ["mrr"]).per_query()["q"]["mrr"] == 0.5
    assert evaluate_run(qrels, {"q": {"a": 1.0, "b": 1.0}}, ["mrr"]).per_query()["q"]["mrr"] == 0.5
    assert evaluate_run(qrels, {"q": {"a": 1.0, "A": 1.0}}, ["mrr"]).per_query()["q"]["mrr"] == 1


def test_what_was_pooled_and_never_judged_is_unjudged():
    qrels = {"q": {"a": 1, "b": -1, "c": 0}}
    scores = evaluate_run(qrels, {"q": ["b", "c", "a"]}, ["bpref", "judged@10", "mrr"])
    assert scores.per_query()["q"] == {"bpref": 0, "judged@10": 2 / 3, "mrr": 1 / 3}


def test_counts_tell_who_was_not_measured():
    qrels = {"q1": {"a": 1}, "q2": {"a": 0}, "q3": {"b": 2}, "q4": {"c": 1}}
    scores = evaluate_run(
        qrels, {"q1": ["a", "x"], "q2": ["a"], "q4": [], "other": ["a"]}, ["recall@5"]
    )
    assert scores.counts == {
        "queries": 4,
        "evaluated": 3,
        "without_relevant": 1,
        "failed": 0,
        "missing_from_run": 1,
        "not_in_qrels": 1,
        "judged_at_10": 0.75,
    }
    assert [each["recall@5"] for each in scores.per_query().values()] == [1, None, 0, 0]
    found = scores.mean("recall@5")
    assert (found.value, found.n) == (1 / 3, 3)
    assert found.low < found.value < found.high
    assert scores.means() == {"recall@5": pytest.approx(1 / 3)}


def test_no_relevant_document_at_all_is_no_zero():
    scores = evaluate_run({"q": {"a": 0}}, {"q": ["a"]}, ["mrr", "judged@5"])
    assert scores.mean("mrr").value is None
    assert scores.mean("mrr").reason
    assert scores.means() == {"mrr": None, "judged@5": 1}


@pytest.mark.parametrize("form", [dict, lambda run: frame_of(run, "score")])
@pytest.mark.parametrize("bad", [math.nan, math.inf, "x", None])
def test_a_score_that_is_no_number_is_refused(form, bad):
    with pytest.raises(InputError, match="number") as caught:
        evaluate_run({"q": {"a": 1}}, form({"q": {"a": 1.0, "b": bad}}), ["mrr"])
    assert "\n" not in str(caught.value)


def test_a_document_that_stands_twice_is_named_with_its_query():
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}}
    for run in ({"q2": ["x", "b", "x"]}, frame_of({"q1": {"a": 1.0}}, "score")):
        if not isinstance(run, dict):
            more = pd.DataFrame(
                [("q2", "x", 3), ("q2", "b", 2), ("q2", "x", 1)], columns=run.columns
            )
            run = pd.concat([run, more])  # noqa: PLW2901
        with pytest.raises(InputError, match="query 'q2' has the document 'x' twice"):
            evaluate_run(qrels, run, ["mrr"])
        assert evaluate_run(qrels, run, ["mrr"], dedupe="first").per_query()["q2"]["mrr"] == 0.5


def test_rows_that_stand_apart_hide_no_repetition_in_a_query_that_nobody_judged(tmp_path):
    lines = ["x Q0 a 1 3 t", "q Q0 a 1 3 t", "x Q0 b 2 2 t", "x Q0 a 3 1 t"]
    path = tmp_path / "run.trec"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 4: query 'x' has the document 'a' twice"):
        evaluate_run({"q": {"a": 1}}, path, "mrr")
    assert evaluate_run({"q": {"a": 1}}, path, "mrr", dedupe="first").counts["not_in_qrels"] == 1
    path.write_text("\n".join(lines[:3]), encoding="utf-8")
    assert evaluate_run({"q": {"a": 1}}, path, "mrr").counts["not_in_qrels"] == 1


def test_dedupe_keeps_the_better_score():
    run = pd.DataFrame(
        [("q", "a", 1.0), ("q", "b", 2.0), ("q", "a", 3.0)], columns=["qid", "docno", "score"]
    )
    assert evaluate_run({"q": {"a": 1}}, run, ["mrr"], dedupe="first").means() == {"mrr": 1}


def test_documents_of_the_same_hash_are_told_apart():
    """Only the first bytes of a long id enter its hash."""
    first, second, third = (f"{'x' * 300}{end}" for end in "abc")
    qrels = {"q": {first: 1, third: 2}, "p": {second: 1}}
    run = {"q": {second: 3.0, third: 2.0, first: 1.0}, "p": {first: 2.0, third: 1.0}}
    frame = frame_of(run, "score")
    scores = evaluate_run(qrels, frame, ["mrr", "recall@3"])
    assert scores.per_query() == {"q": {"mrr": 0.5, "recall@3": 1}, "p": {"mrr": 0, "recall@3": 0}}
    assert scores.per_query() == evaluate_run(qrels, run, ["mrr", "recall@3"]).per_query()
    again = pd.concat([frame, frame.iloc[4:]])
    with pytest.raises(InputError, match=r"row 6: query 'p' has the document 'x+c' twice"):
        evaluate_run(qrels, again, ["mrr"])
    assert evaluate_run(qrels, again, ["mrr"], dedupe="first").means() == {"mrr": 0.25}


@pytest.mark.parametrize("tied", [1, 3, 90])
def test_ties_of_every_reader_are_those_of_trec_eval(tied):
    """Unsorted scores of which few or all are equal, also 0 and -0."""
    qrels, run = random_case(5, 20)
    run = {
        query: {d: float(np.copysign(at // tied % 7, -1)) for at, d in enumerate(documents)}
        for query, documents in run.items()
    }
    expected = evaluate_run(qrels, run, list(THEIRS)).per_query()
    agree(expected, qrels, run)
    frame = frame_of(run, "score").sample(frac=1, random_state=1)
    assert evaluate_run(qrels, frame, list(THEIRS)).per_query() == expected


def random_case(seed, queries=60):
    draw = np.random.default_rng(seed)
    qrels, run = {}, {}
    for number in range(queries):
        docs = [f"doc{n}" for n in draw.permutation(200)[: draw.integers(1, 90)].tolist()]
        run[f"q{number}"] = {
            d: float(s) for d, s in zip(docs, draw.integers(0, 30, len(docs)), strict=True)
        }
        qrels[f"q{number}"] = {f"doc{n}": int(g) for n, g in enumerate(draw.integers(-1, 4, 30))}
    return qrels, run


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 64])
def test_blocks_do_not_show(monkeypatch, tmp_path, rows):
    qrels, run = random_case(2, 8)
    expected = evaluate_run(qrels, run, list(THEIRS))
    agree(expected.per_query(), qrels, run)
    around = evaluate_run(qrels, run, ["recall@5", "ndcg@5"], bounds=True)
    path = tmp_path / "run.parquet"
    frame_of(run, "score").to_parquet(path)
    monkeypatch.setattr("misslink.io.tables.BATCH_ROWS", rows)
    monkeypatch.setattr("misslink.retrieval.runs.BATCH_ROWS", rows)
    monkeypatch.setattr("misslink.retrieval.run_mappings.BATCH_ROWS", rows)
    for given_run in (run, path, frame_of(run, "score")):
        assert evaluate_run(qrels, given_run, list(THEIRS)).per_query() == expected.per_query()
        again = evaluate_run(qrels, given_run, ["recall@5", "ndcg@5"], bounds=True)
        np.testing.assert_array_equal(again.lowest, around.lowest)
        np.testing.assert_array_equal(again.highest, around.highest)


def test_bounds_lie_around_the_value():
    qrels, run = random_case(3, 20)
    scores = evaluate_run(qrels, run, ["recall@5", "ndcg@5"], bounds=True)
    own, known = scores.query_values("ndcg@5")
    assert known.all()
    assert (scores.lowest[1] <= own).all()
    assert (own <= scores.highest[1]).all()
    low, high = scores.bounds("ndcg@5")
    assert low.value - 1e-12 <= scores.mean("ndcg@5").value <= high.value + 1e-12
    assert scores.mean("ndcg@5").value == pytest.approx(scores.means()["ndcg@5"])


def test_numbers_are_ids_too():
    qrels = {1: {10: 1, 11: 0}}
    for run in ({1: [11, 10]}, {1: {10: 0.5, 11: 0.7}}, {"1": ["11", "10"]}):
        assert evaluate_run(qrels, run, ["mrr"]).means() == {"mrr": 0.5}
    frame = pd.DataFrame({"q_id": [1, 1], "pid": [11, 10], "rank": [1, 2]})
    assert evaluate_run(qrels, frame, ["mrr"]).means() == {"mrr": 0.5}
    kinds = frame.astype({"q_id": "category", "pid": "object"})
    assert evaluate_run(qrels, kinds, ["mrr"]).means() == {"mrr": 0.5}


def test_a_frame_without_numbers_is_in_its_own_order():
    frame = pd.DataFrame({"query_id": ["q", "q", "p"], "doc_id": ["x", "a", "a"]})
    assert evaluate_run({"q": {"a": 1}}, frame, ["mrr"]).means() == {"mrr": 0.5}


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ({}, {"q": ["a"]}, "no queries"),
        ({"q": {"a": 1}}, {}, "no queries"),
        ({"q": {"a": 0.5}}, {"q": ["a"]}, "whole number"),
        ({"q": {"a": "1"}}, {"q": ["a"]}, "whole number"),
        ({"q": {"a": None}}, {"q": ["a"]}, "whole number"),
        ({"q": 3}, {"q": ["a"]}, "neither grades"),
        ({"q": {"a": 1}}, {"q": ["a"], "p": {"a": 1.0}}, "give each query a list"),
        ({"q": {"a": 1}}, {"q": "abc"}, "give each query a list"),
        ({"q": {"a": 1}}, {"q": {"a", "b"}}, "give each query a list"),
        ({"q": {"a": 1}}, {"q": 7}, "give each query a list"),
        ({1: {"a": 1}, "1": {"a": 1}}, {"1": ["a"]}, "the same id"),
        ({"1": {"a": 1}}, {"1": ["a"], 1: ["a"]}, "the same id"),
        ({"q": {1: 1, "1": 0}}, {"q": ["a"]}, "two documents of the same id"),
        ({"q": {"a": 1}}, {"q": {1: 1.0, "1": 0.0}}, "two documents of the same id"),
        ({"q": {"a": 1}}, {"q": [("a", 2.0)]}, r"query 'q' lists \('a', 2.0\).* dict of documents"),
        ({"q": {"a": 1}}, {"q": [{"id": "a"}]}, "query 'q' lists .*give a list of ids"),
        ({"q": {"a": 1}}, {"q": ["a", ["b"]]}, r"query 'q' lists \['b'\]"),
        ({"q": {"a": 1}}, {"q": [None]}, "query 'q' lists None"),
        ({"q": [("a", 1)]}, {"q": ["a"]}, "query 'q' lists .*dict of documents with grades"),
        ({"q": [{"id": "a"}]}, {"q": ["a"]}, "query 'q' lists .*give a list of ids"),
        ({"q": {"a": 10**30}}, {"q": ["a"]}, "the grade 10+ of query 'q', .*is too large"),
        ({"q": {"a": 1e30}}, {"q": ["a"]}, r"the grade 1e\+30 of query 'q', .*is too large"),
        ({"q": {"a": 10**400}}, {"q": ["a"]}, "the grade 10+... .*is too large"),
        ({"q": {"a": 10**5000}}, {"q": ["a"]}, "the grade with thousands of digits .*is too large"),
        ({"q": {"a": 1}}, {"q": {"a": 10**400}}, "the score 10+... .*is not a finite number"),
        ({"q": {"a": 1}}, {"q": {"a": -(10**5000)}}, "is not a finite number"),
    ],
)
def test_wrong_python_objects_are_told_in_a_sentence(qrels, run, message):
    with pytest.raises(InputError, match=message):
        evaluate_run(qrels, run, ["mrr"])


def test_wrong_options_are_told():
    qrels, run = {"q": {"a": 1}}, {"q": ["a"]}
    for options in ({"relevance_level": 0}, {"dedupe": "last"}, {"metrics": []}):
        with pytest.raises(InputError):
            evaluate_run(qrels, run, **{"metrics": ["mrr"], **options})
    for level in ("1", 1.5, True, None):
        with pytest.raises(InputError, match=r"the relevance level is .* counts from 1"):
            evaluate_run(qrels, run, ["mrr"], relevance_level=level)
    for metrics in ([5], [None], 5, None, " , "):
        with pytest.raises(InputError, match="metric"):
            evaluate_run(qrels, run, metrics)
    with pytest.raises(ValueError, match="bounds=True"):
        evaluate_run(qrels, run, ["mrr"]).bounds("mrr")


def test_what_is_open_stays_open():
    judgements, run = open_qrels({"q": ["a"]}), open_run({"q": ["a"]})
    assert open_qrels(judgements) is judgements
    assert isinstance(open_run(run), RankedRun)
    assert evaluate_run(judgements, run, ["mrr"]).means() == {"mrr": 1}


def test_metrics_in_one_text_stand_between_commas():
    qrels, run = {"q": {"a": 1}}, {"q": ["b", "a"]}
    assert evaluate_run(qrels, run, "mrr").means() == {"mrr": 0.5}
    assert evaluate_run(qrels, run, "mrr, recall@5", relevance_level=np.int64(1)).means() == {
        "mrr": 0.5,
        "recall@5": 1,
    }


def test_a_frame_with_a_column_twice_is_refused():
    frame = pd.DataFrame([("q", "a", 1.0, 2.0)], columns=["qid", "docno", "score", "score"])
    with pytest.raises(InputError, match="two columns are called 'score'; keep one"):
        evaluate_run({"q": {"a": 1}}, frame, ["mrr"])
