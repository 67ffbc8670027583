import codecs
import gzip
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from misslink.errors import InputError
from misslink.retrieval.evaluate import evaluate_run
from misslink.retrieval.readers import as_traces, open_qrels, open_run
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
    scores = evaluate_run(gold, traces, ["mrr"])
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
    assert evaluate_run(*nouns, ["mrr"]).per_query() == scores.per_query()


def test_evidence_texts_are_looked_for_in_the_traces(tmp_path):
    cases = [{"id": "c1", "question": "How many?", "evidence": ["it is ten"]}, *CASES[1:]]
    gold, traces = lines(tmp_path / "g.jsonl", cases), lines(tmp_path / "t.jsonl", TRACES)
    scores = evaluate_run(gold, traces, ["mrr", "recall@1"], bounds=True)
    assert scores.per_query()["c1"] == {"mrr": 0.5, "recall@1": 0}
    assert scores.per_query()["c2"]["mrr"] is None
    assert scores.per_query()["c4"]["mrr"] == 0
    with pytest.raises(InputError, match="give traces"):
        evaluate_run(gold, {"c1": ["a"]}, ["mrr"])
    run = tmp_path / "r.trec"
    run.write_text("c1 Q0 a 1 1 t\n")
    with pytest.raises(InputError, match="give traces"):
        evaluate_run(gold, run, ["mrr"])
    with pytest.raises(InputError, match="relevance level"):
        evaluate_run(gold, traces, ["mrr"], relevance_level=2)


def test_a_json_file_of_dicts_or_lists_is_read(tmp_path):
    qrels, run = tmp_path / "q.json", tmp_path / "r.json"
    qrels.write_text(json.dumps({"q": {"a": 1}}, indent=1))
    for given in ({"q": ["b", "a"]}, {"q": {"b": 2.0, "a": 1}}):
        run.write_text(json.dumps(given))
        assert evaluate_run(qrels, run, ["mrr"]).means() == {"mrr": 0.5}


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
        evaluate_run({"p": {"a": 1}, "q": {"b": 1}}, path, ["mrr"])
    assert caught.value.line == 6
    found = evaluate_run({"p": {"a": 1}, "q": {"b": 1}}, path, ["mrr"], dedupe="first").per_query()
    assert found == {"p": {"mrr": 0.5}, "q": {"mrr": 0.5}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"q\0\1\2", "binary file"),
        (b"\x1f\x8b damaged", "this gzip file is damaged"),
        (gzip.compress(b"q Q0 a 1 1.5 t\n" * 99, mtime=0)[:-9], "this gzip file is damaged"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
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


@pytest.mark.parametrize(
    ("content", "dedupe", "message"),
    [
        ('{"q": {"a": 1, "b": 2, "a": 3}}', None, "query 'q' has the document 'a' twice"),
        ('{"q": ["a"], "p": ["a"], "q": ["b"]}', "first", "the query 'q' occurs twice; keep one"),
        ('{"q": {"a": ' + "9" * 400 + "}}", None, "is not a finite number"),
        ('{"q": {"a": ' + "9" * 5000 + "}}", None, "is not a finite number"),
    ],
)
def test_what_a_dict_would_hide_of_a_json_run_is_told(tmp_path, content, dedupe, message):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        evaluate_run({"q": {"a": 1}}, path, ["mrr"], dedupe=dedupe)
    assert str(path) in str(caught.value)


def test_a_json_run_keeps_the_better_of_two_scores(tmp_path):
    path = tmp_path / "r.json"
    path.write_text('{"q": {"a": 3, "b": 2, "a": 1}}')
    assert evaluate_run({"q": {"a": 1}}, path, ["mrr"], dedupe="first").means() == {"mrr": 1}
    with pytest.raises(InputError, match="'a' is judged twice for query 'q'"):
        open_qrels(path)


def test_a_grade_of_a_json_file_that_is_too_large_is_told(tmp_path):
    path = tmp_path / "q.json"
    for grade in ("1e30", "9" * 25, "9" * 5000):
        path.write_text('{"q": {"a": ' + grade + "}}")
        with pytest.raises(InputError, match=r"grade .* of query 'q', document 'a' is ") as caught:
            open_qrels(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["It is ten.", None])
def test_a_passage_that_a_trace_lists_twice_counts_once(tmp_path, text):
    """By ids, and where evidence is looked for in texts."""
    twice = [{"id": "x"}, {"id": "x"}, {"id": "a", "text": text or "."}, {"id": "x"}]
    traces = lines(tmp_path / "t.jsonl", [TRACES[1], {"case_id": "c1", "retrieved": twice}])
    case = {"evidence": ["it is ten"]} if text else {"relevant": ["a"]}
    cases = [{"id": "c1", "question": "How many?", **case}, CASES[1]]
    gold = lines(tmp_path / "g.jsonl", cases)
    for run in (traces, [json.loads(line) for line in traces.read_text().splitlines()]):
        with pytest.raises(InputError, match=r"'x' is listed twice for case 'c1'.*--dedupe"):
            evaluate_run(gold, run, ["mrr"])
        scores = evaluate_run(gold, run, ["mrr"], dedupe="first")
        assert scores.per_query() == {"c1": {"mrr": 0.5}, "c2": {"mrr": None}}
        assert scores.counts["failed"] == 1
    with pytest.raises(InputError) as caught:
        evaluate_run(gold, traces, ["mrr"])
    assert (caught.value.line, caught.value.path) == (2, str(traces))


def test_what_else_is_wrong_is_told_with_its_line_when_passages_are_kept_once(tmp_path):
    rows = [{"case_id": "c1", "retrieved": ["x", "x"]}, {"case_id": "c2", "retrieved": 5}]
    path = lines(tmp_path / "t.jsonl", rows)
    with pytest.raises(InputError) as caught:
        open_run(path, dedupe="first")
    assert caught.value.line == 2


def test_lines_may_end_as_on_an_old_macintosh(tmp_path):
    qrels, run, table = tmp_path / "q.txt", tmp_path / "r.txt", tmp_path / "q.csv"
    qrels.write_bytes(b"q 0 a 1\rp 0 a 1\r")
    table.write_bytes(b"qid,docno,grade\rq,a,1\rp,a,1\r")
    run.write_bytes(b"q Q0 b 1 2 t\rq Q0 a 2 1 t\rp Q0 a 1 1 t\r")
    for given in (qrels, table):
        assert evaluate_run(given, run, ["mrr"]).per_query() == {"q": {"mrr": 0.5}, "p": {"mrr": 1}}


@pytest.mark.parametrize(
    ("mark", "encoding", "named"),
    [
        (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
        (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
        (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    ],
)
def test_another_encoding_is_named(tmp_path, mark, encoding, named):
    path = tmp_path / "q.txt"
    path.write_bytes(mark + "q 0 a 1\n".encode(encoding))
    with pytest.raises(InputError, match=f"this is {named}; save it as UTF-8"):
        open_qrels(path)


def test_an_arrow_table_is_read_as_the_frame_it_holds():
    qrels = pa.table({"qid": ["q", "q", "r"], "docno": ["a", "b", "c"], "label": [1, 0, 2]})
    run = pa.table({"qid": ["q", "q", "r"], "docno": ["b", "a", "c"], "score": [1.0, 2.0, 3.0]})
    scores = evaluate_run(qrels, run, "mrr,bpref")
    assert (
        scores.per_query()
        == evaluate_run(qrels.to_pandas(), run.to_pandas(), "mrr,bpref").per_query()
    )
    assert scores.per_query() == {"q": {"mrr": 1, "bpref": 1}, "r": {"mrr": 1, "bpref": 1}}


def test_one_column_is_told_with_what_is_wanted_instead():
    column = pd.Series({"q": "a"})
    with pytest.raises(InputError, match=r"the qrels: this is one column .* relevance, or a dict"):
        evaluate_run(column, {"q": ["a"]}, "mrr")
    with pytest.raises(InputError, match=r"the run: this is one column .* score, or a dict"):
        evaluate_run({"q": {"a": 1}}, column, "mrr")
    with pytest.raises(InputError, match="this is one column"):
        as_traces(column)


def test_whole_scores_are_tied_where_trec_eval_ties_them():
    qrels = {"q": {"a": 1, "b": 0}}
    tied = pd.DataFrame({"qid": "q", "docno": ["a", "b"], "score": [2**24 + 1, 2**24]})
    ranked = tied.rename(columns={"score": "rank"}).assign(rank=[2**24, 2**24 + 1])
    assert evaluate_run(qrels, tied, "mrr").means() == {"mrr": 0.5}  # by id descending
    assert evaluate_run(qrels, ranked, "mrr").means() == {"mrr": 1.0}
