import gzip
import json
from pathlib import Path

import pytest

from misslink.errors import InputError
from misslink.retrieval.opening import open_qrels, open_run
from misslink.retrieval.ranking import rank
from misslink.types import Case, Passage, Trace

CRANFIELD = Path(__file__).parents[3] / "shared" / "data" / "retrieval" / "cranfield"
TRACES = [
    {"case_id": "c1", "retrieved": [{"id": "x", "text": "no"}, {"id": "a", "text": "It is ten."}]},
    {"case_id": "c2", "retrieved": [], "error": "TimeoutError: slow"},
    {"case_id": "c3", "retrieved": [{"id": "b"}]},
]
CASES = [
    {"id": "c1", "question": "How many?", "relevant": {"a": 2, "x": 0}},
    {"id": "c2", "question": "Who?", "relevant": ["b"]},
    {"id": "c3", "question": "Where?", "answerable": False},
    {"id": "c4", "question": "When?", "relevant": "z"},
]


def lines(path, items):
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path


def test_a_gold_set_and_traces_are_qrels_and_a_run(tmp_path):
    gold, traces = lines(tmp_path / "g.jsonl", CASES), lines(tmp_path / "t.jsonl", TRACES)
    scores = rank(gold, traces, ["mrr"])
    # c2 was not measured, c3 needs nothing, and of c4 there is no trace
    assert scores.per_query() == {
        "c1": {"mrr": 0.5},
        "c2": {"mrr": None},
        "c3": {"mrr": None},
        "c4": {"mrr": 0.0},
    }
    assert scores.counts["missing_from_run"] == 1
    assert scores.counts["evaluated"] == 2
    nouns = (
        [Case(**case) for case in CASES],
        [
            Trace(
                **{
                    **t,
                    "retrieved": [Passage(rank=n, **p) for n, p in enumerate(t["retrieved"], 1)],
                }
            )
            for t in TRACES
        ],
    )
    assert rank(*nouns, ["mrr"]).per_query() == scores.per_query()


def test_evidence_texts_are_looked_for_in_the_traces(tmp_path):
    cases = [{"id": "c1", "question": "How many?", "evidence": ["it is ten"]}, *CASES[1:]]
    gold, traces = lines(tmp_path / "g.jsonl", cases), lines(tmp_path / "t.jsonl", TRACES)
    scores = rank(gold, traces, ["mrr", "recall@1"], bounds=True)
    assert scores.per_query()["c1"] == {"mrr": 0.5, "recall@1": 0}
    assert scores.per_query()["c2"]["mrr"] is None
    assert scores.per_query()["c4"]["mrr"] == 0
    with pytest.raises(InputError, match="give traces"):
        rank(gold, {"c1": ["a"]}, ["mrr"])
    run = tmp_path / "r.trec"
    run.write_text("c1 Q0 a 1 1 t\n")
    with pytest.raises(InputError, match="give traces"):
        rank(gold, run, ["mrr"])
    with pytest.raises(InputError, match="relevance level"):
        rank(gold, traces, ["mrr"], relevance_level=2)


def test_a_json_file_of_dicts_or_lists_is_read(tmp_path):
    qrels, run = tmp_path / "q.json", tmp_path / "r.json"
    qrels.write_text(json.dumps({"q": {"a": 1}}, indent=1))
    for given in ({"q": ["b", "a"]}, {"q": {"b": 2.0, "a": 1}}):
        run.write_text(json.dumps(given))
        assert rank(qrels, run, ["mrr"]).means() == {"mrr": 0.5}


@pytest.mark.skipif(not CRANFIELD.exists(), reason="../shared/data is absent")
def test_a_beir_folder_is_read_as_its_qrels():
    judgements = open_qrels(CRANFIELD)
    assert judgements.queries[0] == "1"
    assert judgements.by_query["1"]["184"] == 1
    assert len(judgements) == len(set(judgements.queries)) > 200


def test_a_document_judged_twice_is_named_with_its_line(tmp_path):
    path = tmp_path / "q.qrels"
    path.write_text("q1 0 a 1\nq2 0 a 1\n\nq1 0 b 0\nq1 0 a 0\n")
    with pytest.raises(InputError, match="'a' is judged twice for query 'q1'") as caught:
        open_qrels(path)
    assert caught.value.line == 5


def test_a_document_retrieved_twice_is_named_with_its_line(tmp_path):
    path = tmp_path / "r.trec"
    path.write_text("p Q0 a 1 1 t\n\nq Q0 a 1 3 t\np Q0 b 1 2 t\nq Q0 b 1 2 t\nq Q0 a 1 1 t\n")
    with pytest.raises(InputError, match="query 'q' has the document 'a' twice") as caught:
        rank({"p": {"a": 1}, "q": {"b": 1}}, path, ["mrr"])
    assert caught.value.line == 6
    found = rank({"p": {"a": 1}, "q": {"b": 1}}, path, ["mrr"], dedupe="first").per_query()
    assert found == {"p": {"mrr": 0.5}, "q": {"mrr": 0.5}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "there is nothing in it"),
        (b" \n\n", "there is nothing in it"),
        (b"q\0\1\2", "binary file"),
        (b"\x1f\x8b damaged", "this gzip file is damaged"),
        (gzip.compress(b"q Q0 a 1 1.5 t\n" * 99, mtime=0)[:-9], "this gzip file is damaged"),
        (gzip.compress(b"", mtime=0), "there is nothing in it"),
        (b"PAR1 no", "cannot be read"),
        (b'{"id": "c", "question": "?"}\n', "this is a gold set, not a run"),
        (b"qid,docno,grade\nq,a,1\n", "these are qrels"),
        (b"q 0 a 1\n", "these are qrels"),
    ],
)
def test_a_file_that_is_no_run_is_told(tmp_path, content, message):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        open_run(path)
    assert str(path) in str(caught.value)


def test_traces_and_runs_are_no_qrels(tmp_path):
    traces = lines(tmp_path / "t.jsonl", TRACES)
    with pytest.raises(InputError, match="these are traces"):
        open_qrels(traces)
    with pytest.raises(InputError, match="no such file"):
        open_qrels(tmp_path / "none")
    with pytest.raises(InputError, match="this is a folder"):
        open_run(tmp_path)
