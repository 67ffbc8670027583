"""misslink retrieval on files that nobody meant to give: a result, or one sentence and exit 2."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

QRELS = b"q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n"
RUN = b"q1 Q0 a 1 3.0 t\nq1 Q0 b 2 2.0 t\nq2 Q0 c 1 1.0 t\n"
CSV = b"query_id,doc_id,score\nq1,a,3\nq1,b,2\nq2,c,1\n"
WHOLE = {
    "trec qrels": QRELS,
    "trec run": RUN,
    "csv run": CSV,
    "csv qrels": CSV.replace(b"score", b"relevance"),
    "beir qrels": CSV.replace(b"query_id,doc_id", b"query-id,corpus-id").replace(b",", b"\t"),
    "gold set": b'{"id":"q1","question":"w?","relevant":["a"]}\n{"id":"q2","question":"v?"}\n',
    "traces": b'{"case_id":"q1","retrieved":["a","b"]}\n{"case_id":"q2","retrieved":[]}\n',
    "array": b'[{"id":"q1","question":"w?","relevant":{"a":2}}]',
    "lists": b'{"q1":["a","b"],"q2":["c"]}',
    "dicts": b'{"q1":{"a":2,"b":1},"q2":{"c":1}}',
    "packed": gzip.compress(RUN),
}
PARTS = (
    *b"q1 a 0 1 , ; \" ' # \\ . { } [ ] : null true nan NaN inf 1e999 - 1_0 \\ud800".split(b" "),
    *b'query_id doc_id score rank relevance "retrieved" "case_id" "id"'.split(),
    *(b" ", b"\t", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b"),
    *(b"\xe2\x80\xa8", b"\xd9\xa1"),
)
SCRAPS = st.lists(st.sampled_from(PARTS), max_size=30).map(b"".join)


@st.composite
def torn(draw):
    """A whole file with something put in, something taken out or a byte changed, a few times."""
    raw = draw(st.sampled_from(list(WHOLE.values())))
    for _ in range(draw(st.integers(1, 4))):
        at, end = sorted((draw(st.integers(0, len(raw))), draw(st.integers(0, len(raw)))))
        put = draw(st.one_of(st.sampled_from(PARTS), st.binary(max_size=2)))
        raw = raw[:at] + put + raw[min(end, at + draw(st.integers(0, 6))) :]
    return raw


GARBAGE = st.one_of(st.binary(max_size=60), SCRAPS, torn(), torn())


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    qrels=st.one_of(st.just(QRELS), GARBAGE),
    run=st.one_of(st.just(RUN), GARBAGE),
    options=st.sampled_from(((), ("--dedupe", "first"), ("--by", "doc_id"))),
)
def test_any_bytes_as_qrels_or_run_give_a_document_or_one_sentence(misslink, qrels, run, options):
    Path("qrels").write_bytes(qrels)
    Path("run").write_bytes(run)
    given_ = ("--qrels", "qrels", "--run", "run", "--metrics", "mrr,judged@2", "--json")
    code, out, err = misslink("retrieval", *given_, *options)
    assert code in (0, 2)
    assert "Traceback" not in err
    if code:
        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith("misslink: ")
    else:
        assert set(json.loads(out)["metrics"]) == {"mrr", "judged@2"}


@pytest.mark.parametrize("kind", list(WHOLE))
def test_what_the_garbage_is_torn_from_is_read_as_one_of_the_two(misslink, kind):
    """Else the test above would only ever see files that are refused at their first byte."""
    Path("whole").write_bytes(WHOLE[kind])
    Path("qrels").write_bytes(QRELS)
    Path("run").write_bytes(RUN)
    pairs = (("whole", "run"), ("qrels", "whole"))
    codes = [misslink("retrieval", "--qrels", q, "--run", r, "--json")[0] for q, r in pairs]
    assert 0 in codes
