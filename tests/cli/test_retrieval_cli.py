"""misslink retrieval: tables, JSON, slices, comparisons, and what it refuses."""

import json
import re
from pathlib import Path

import pytest
from scipy import stats as scipy_stats

from misslink.io.goldset import read_goldset

KEYS = {"value", "low", "high", "n", "method", "reason", "reason_code"}
N = 12

# Three queries with a relevant document, one without, and q5 that the run lacks.
QRELS = """\
q1 0 a 2
q1 0 b 0
q2 0 c 1
q2 0 d 1
q3 0 e 1
q4 0 f 0
q5 0 g 1
"""
RUN = """\
q1 Q0 x 1 3.0 me
q1 Q0 a 2 2.0 me
q2 Q0 c 1 9.5 me
q2 Q0 d 2 9.0 me
q3 Q0 y 1 1.0 me
q4 Q0 f 1 1.0 me
q9 Q0 a 1 1.0 me
"""


@pytest.fixture
def files():
    """Qrels, and a run that has every kind of query."""
    Path("qrels.txt").write_text(QRELS, encoding="utf-8")
    Path("first.trec").write_text(RUN, encoding="utf-8")
    return "--qrels", "qrels.txt", "--run", "first.trec"


@pytest.fixture
def several():
    """12 queries; B has the one relevant document first, A second; each half has a category."""
    lines = {
        "qrels.csv": ["query_id,doc_id,relevance,category,document"],
        "a.trec": [],
        "b.trec": [],
    }
    for number in range(N):
        half, topic = ("even", "odd")[number % 2], f"t{number // 2}"
        lines["qrels.csv"].append(f"q{number},d{number},1,{half},{topic}")
        lines["a.trec"] += [f"q{number} Q0 x 1 2 a", f"q{number} Q0 d{number} 2 1 a"]
        lines["b.trec"] += [f"q{number} Q0 d{number} 1 2 b", f"q{number} Q0 x 2 1 b"]
    for name, text in lines.items():
        Path(name).write_text("\n".join(text) + "\n", encoding="utf-8")
    return "--qrels", "qrels.csv", "--run", "a.trec", "--run", "b.trec"


def read(misslink, *arguments):
    """The one document that --json prints."""
    code, out, err = misslink("retrieval", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def refused(misslink, *arguments):
    """What is said on stderr, in one line, with exit code 2."""
    code, out, err = misslink("retrieval", *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err.count("\n") == 1, err
    return err.removeprefix("misslink: ").rstrip("\n")


def widest(out):
    """Characters of the widest line of a table or a drawing; sentences wrap by themselves."""
    return max(len(line) for line in out.splitlines() if "  " in line or "│" in line)


def test_one_document_with_the_keys_of_the_contract(misslink, files):
    document = read(misslink, *files, "--metrics", "recall@1,mrr,judged@2", "--per-query")
    assert list(document["metrics"]) == ["recall@1", "mrr", "judged@2"]
    assert all(set(found) == KEYS for found in document["metrics"].values())
    # q4 has no relevant document and no value; q5 is missing and counts 0.
    assert document["metrics"]["mrr"]["value"] == pytest.approx((0.5 + 1 + 0 + 0) / 4)
    assert document["metrics"]["mrr"]["n"] == 4
    assert document["counts"] == {
        "queries": 5,
        "evaluated": 4,
        "without_relevant": 1,
        "failed": 0,
        "missing_from_run": 1,
        "not_in_qrels": 1,
        "judged_at_10": pytest.approx((0.5 + 1 + 0 + 1) / 4),
    }
    assert document["per_query"]["q2"] == {"recall@1": 0.5, "mrr": 1.0, "judged@2": 1.0}
    assert document["per_query"]["q4"] == {"recall@1": None, "mrr": None, "judged@2": 1.0}
    assert document["per_query"]["q5"]["mrr"] == 0.0


def test_the_table_fits_80_columns_and_says_what_was_counted(misslink, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = misslink("retrieval", *files, "--bounds")
    assert code == 0
    row = next(line for line in out.splitlines() if line.strip().startswith("mrr"))
    assert re.fullmatch(r"mrr +0\.3750 +\[0\.\d{4}, 0\.\d{4}\] +4 +0\.\d{4} +0\.\d{4} *", row)
    assert widest(out) <= 80
    assert "5 queries in the qrels, 4 evaluated." in out
    assert "1 query without a relevant document: only metrics of labels have a value." in out
    assert "1 query missing from the run: counted as 0." in out
    assert "1 query of the run not in the qrels: ignored." in out


def test_little_judged_is_warned_of_and_the_bounds_are_offered(misslink, files):
    _, out, _ = misslink("retrieval", *files)
    warning = "Warning: Only 62% of the first 10 are judged"
    assert warning.replace("of the first 10", "of the first 5, 62% of the first 10") in out
    assert "--bounds shows the possible range" in out
    _, out, _ = misslink("retrieval", *files, "--bounds", "--metrics", "mrr")
    assert warning in out
    assert "--bounds" not in out


def test_judgements_are_looked_at_as_deep_as_the_metrics_go(misslink):
    """The first 10 were all judged, of the first 20 only half."""
    lines = [f"q1 Q0 d{rank} {rank} {-rank} me" for rank in range(1, 21)]
    Path("deep.trec").write_text("\n".join(lines), encoding="utf-8")
    judged = [f"q1 0 d{rank} 1" for rank in range(1, 11)]
    Path("qrels.txt").write_text("\n".join(judged), encoding="utf-8")
    given = ("--qrels", "qrels.txt", "--run", "deep.trec", "--metrics")
    assert read(misslink, *given, "recall@10")["warnings"] == []
    document = read(misslink, *given, "recall@20")
    assert set(document["judged"]["judged@20"]) == KEYS
    assert document["judged"]["judged@20"]["value"] == 0.5
    [warning] = document["warnings"]
    assert warning.startswith("Only 50% of the first 20 are judged")


def test_all_judged_is_not_warned_of(misslink, files):
    Path("judged.trec").write_text("q1 Q0 a 1 1 me\nq2 Q0 c 1 1 me\n", encoding="utf-8")
    document = read(misslink, "--qrels", "qrels.txt", "--run", "judged.trec")
    assert document["warnings"] == []
    assert document["counts"]["judged_at_10"] == 1.0


def test_per_query_values_are_lines_that_other_programs_read(misslink, files):
    _, out, _ = misslink("retrieval", *files, "--per-query", "--metrics", "mrr,recall@1")
    lines = out.splitlines()
    start = lines.index("query\tmrr\trecall@1")
    assert lines[start + 1 : start + 6] == [
        "q1\t0.5000\t0.0000",
        "q2\t1.0000\t0.5000",
        "q3\t0.0000\t0.0000",
        "q4\tnone\tnone",
        "q5\t0.0000\t0.0000",
    ]


def test_the_relevance_level_cuts_grades(misslink, files):
    document = read(misslink, *files, "--relevance-level", "2", "--metrics", "mrr")
    assert document["counts"]["evaluated"] == 1
    assert document["metrics"]["mrr"]["value"] == 0.5


def test_slices_come_from_a_column_of_the_qrels(misslink, several):
    document = read(misslink, *several[:4], "--by", "category", "--metrics", "mrr,recall@1")
    slices = document["slices"]["category"]
    assert {group: found["n"] for group, found in slices.items()} == {"even": 6, "odd": 6}
    assert slices["odd"]["metrics"]["mrr"]["value"] == 0.5
    assert slices["odd"]["metrics"]["mrr"]["n"] == 6
    assert set(slices["odd"]["metrics"]["recall@1"]) == KEYS


def test_slices_of_many_metrics_stay_readable_in_80_columns(misslink, several, monkeypatch):
    """Every row is whole: its metric or a blank, the group, the mean, the interval, and n."""
    monkeypatch.setenv("COLUMNS", "80")
    text = Path("qrels.csv").read_text(encoding="utf-8")
    name = "returns and refunds"
    Path("qrels.csv").write_text(text.replace("even", name), encoding="utf-8")
    metrics = ("hit@10", "precision@10", "ndcg@100", "judged@100", "mrr", "map")
    code, out, _ = misslink(
        "retrieval", *several[:4], "--by", "category", "--metrics", ",".join(metrics)
    )
    assert code == 0
    assert widest(out) <= 80
    lines = out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.split()[:2] == ["metric", "category"])
    number = r"\d\.\d{4}"
    found = [
        re.fullmatch(rf"(\S*) +({name}|odd) +{number}  \[{number}, {number}\]  6 *", line)
        for line in lines[start:]
    ]
    rows = [row.groups() for row in found if row]
    assert [metric for metric, _ in rows if metric] == list(metrics)
    assert [group for _, group in rows] == ["odd", name] * len(metrics)


def test_slices_come_from_a_gold_set_with_traces_too(misslink, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    cases = [
        {"id": "c1", "question": "Who?", "relevant": ["a"], "tags": {"language": "de"}},
        {"id": "c2", "question": "What?", "relevant": ["b"], "tags": {"language": "fr"}},
        {"id": "c3", "question": "Where?", "relevant": ["c"]},
    ]
    found = [{"case_id": f"c{n}", "retrieved": [{"id": "a", "text": ""}]} for n in (1, 2, 3)]
    for name, rows in (("gold.jsonl", cases), ("traces.jsonl", found)):
        Path(name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    given = ("--qrels", "gold.jsonl", "--run", "traces.jsonl", "--metrics", "hit@1")
    slices = read(misslink, *given, "--by", "language")["slices"]["language"]
    values = {group: one["metrics"]["hit@1"]["value"] for group, one in slices.items()}
    assert values == {"de": 1.0, "fr": 0.0, "not given": 0.0}
    _, out, _ = misslink("retrieval", *given, "--by", "language")
    assert re.search(r"^hit@1 +de +1\.0000 +\[\S+ \S+\] +1", out, re.MULTILINE)
    assert widest(out) <= 80


def test_a_gold_set_without_ids_is_matched_by_the_ids_it_is_given(misslink):
    cases = [{"query": f"Where is {n}?", "relevant": ["a"], "category": "w"} for n in range(3)]
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    traces = [
        {"case_id": case.id, "retrieved": [{"id": "a", "text": ""}]}
        for case in read_goldset("gold.jsonl").cases
    ]
    Path("traces.jsonl").write_text("\n".join(map(json.dumps, traces)), encoding="utf-8")
    given = ("--qrels", "gold.jsonl", "--run", "traces.jsonl", "--by", "category")
    assert read(misslink, *given)["slices"]["category"]["w"]["n"] == 3


def test_a_file_of_queries_says_what_the_qrels_do_not(misslink, files):
    rows = [
        {"_id": "q1", "text": "?", "metadata": {"kind": "short"}},
        {"_id": "q2", "kind": "long"},
    ]
    Path("queries.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    document = read(misslink, *files, "--by", "kind", "--queries", "queries.jsonl")
    counted = {group: one["n"] for group, one in document["slices"]["kind"].items()}
    assert counted == {"long": 1, "short": 1, "not given": 3}


def test_a_parquet_file_says_it_too(misslink, files):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": ["q1", "q2", "q3"], "kind": ["short", "long", None]})
    frame.to_parquet("queries.parquet")
    document = read(misslink, *files, "--by", "kind", "--queries", "queries.parquet")
    assert list(document["slices"]["kind"]) == ["long", "short", "not given"]


def test_a_parquet_file_of_queries_that_is_not_utf8_is_told(misslink, files):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    raw = arrow.array([b"q1", b"q\xff"])
    broken = arrow.Array.from_buffers(arrow.string(), 2, raw.buffers())
    parquet.write_table(arrow.table({"query_id": broken, "kind": ["a", "b"]}), "queries.parquet")
    code, out, error = misslink("retrieval", *files, "--by", "kind", "--queries", "queries.parquet")
    assert (code, out) == (2, "")
    assert error == (
        "misslink: queries.parquet, row 2, field 'query_id': byte 0xff is not UTF-8; write the "
        "file again\n"
    )


def test_a_slice_of_one_cluster_says_why_it_has_no_interval(misslink, several):
    first = several[:4]
    _, out, _ = misslink("retrieval", *first, "--cluster", "category", "--by", "category")
    assert out.count("Without an interval: one cluster does not show how clusters differ.") == 1
    _, out, _ = misslink("retrieval", *first, "--cluster", "document", "--by", "category")
    assert "Without an interval" not in out


def test_clusters_widen_the_intervals_and_are_told(misslink, several):
    """Each two queries of a topic are alike, so there are half as many that count."""
    first = several[:4]
    lines = Path("a.trec").read_text(encoding="utf-8").splitlines()
    hidden = [line for line in lines if int(re.match(r"q(\d+)", line)[1]) // 2 % 2]
    Path("a.trec").write_text("\n".join(hidden), encoding="utf-8")
    alone = read(misslink, *first, "--metrics", "mrr")["metrics"]["mrr"]
    document = read(misslink, *first, "--metrics", "mrr", "--cluster", "document")
    found = document["metrics"]["mrr"]
    assert found["method"] == "cluster bootstrap"
    assert found["value"] == alone["value"]
    assert found["high"] - found["low"] > 1.1 * (alone["high"] - alone["low"])
    assert document["cluster"] == {"column": "document", "clusters": 6}
    _, out, _ = misslink("retrieval", *first, "--cluster", "document")
    assert "Intervals resample the 6 clusters of 'document'." in out


@pytest.mark.slow
def test_several_runs_stand_side_by_side_with_every_test(misslink, several):
    from statsmodels.stats.multitest import multipletests

    document = read(misslink, *several, "--metrics", "mrr,hit@1,judged@1", "--per-query")
    assert list(document["runs"]) == ["a.trec", "b.trec"]
    values = [
        [row["mrr"] for row in run["per_query"].values()] for run in document["runs"].values()
    ]
    compare = document["compare"]
    assert (compare["a"], compare["b"], compare["paired"]) == ("a.trec", "b.trec", N)
    assert set(compare["metrics"]) == {"mrr", "hit@1"}  # judged@k is no rank of the runs
    mrr, hit = compare["metrics"]["mrr"], compare["metrics"]["hit@1"]
    assert mrr["difference"]["value"] == pytest.approx(0.5)
    assert set(mrr["difference"]) == KEYS
    assert mrr["p"] == pytest.approx(2 / 2**N)
    theirs = scipy_stats.wilcoxon(*values[::-1], method="exact").pvalue
    assert mrr["wilcoxon"]["p"] == pytest.approx(theirs)
    assert (
        mrr["t_test"]["reason"] == "all cases differ by the same, so the differences have no spread"
    )
    assert (hit["mcnemar"]["gained"], hit["mcnemar"]["p"]) == (N, pytest.approx(2 / 2**N))
    holm = multipletests([mrr["p"], hit["p"]], method="holm")[1]
    assert [mrr["p_holm"], hit["p_holm"]] == pytest.approx(list(holm))
    assert mrr["winner"] == hit["winner"] == "b"
    assert compare["flipped"]["hit@1"]["better"] == [f"q{number}" for number in range(N)]


def test_the_comparison_fits_80_columns(misslink, several, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    # A has one as high as B, so that the differences have a spread.
    text = Path("a.trec").read_text(encoding="utf-8").replace("q0 Q0 d0 2 1", "q0 Q0 d0 0 9")
    Path("a.trec").write_text(text, encoding="utf-8")
    code, out, _ = misslink("retrieval", *several, "--metrics", "precision@5,mrr,hit@1")
    assert code == 0
    assert "B b.trec against A a.trec" in out
    assert re.search(
        r"^mrr +0\.5417 +1\.0000 +\+0\.458 \[0\.\d+, 0\.\d+\] +0\.00\d +better +12",
        out,
        re.MULTILINE,
    )
    assert re.search(
        r"^hit@1 +< 0\.001 +< 0\.001 +< 0\.001 +< 0\.001 +3\.\d+ +0\.\d{3}", out, re.MULTILINE
    )
    assert "hit@1: 11 queries better, 0 worse." in out
    assert widest(out) <= 80


def test_three_runs_are_each_held_against_the_first(misslink, several):
    Path("c.trec").write_text(Path("a.trec").read_text(encoding="utf-8"), encoding="utf-8")
    document = read(misslink, *several, "--run", "c.trec", "--metrics", "mrr")
    one, other = document["compare"]["comparisons"]
    assert (one["letter"], one["b"], other["letter"], other["b"]) == ("B", "b.trec", "C", "c.trec")
    assert other["metrics"]["mrr"]["p"] == 1.0
    assert one["metrics"]["mrr"]["p_holm"] == pytest.approx(2 * one["metrics"]["mrr"]["p"])
    assert "metrics" not in document["compare"]


def test_what_is_under_test_moves_no_cursor(misslink, files):
    Path("qrels.txt").write_text("q\x1b[31m1 0 a 1\n", encoding="utf-8")
    Path("first.trec").write_text("q\x1b[31m1 Q0 a 1 1 me\n", encoding="utf-8")
    code, out, _ = misslink("retrieval", *files, "--per-query")
    assert code == 0
    assert "\x1b" not in out
    assert "q[31m1\t" in out


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--metrics", "recal@5"), "unknown rank metric 'recal@5'; did you mean 'recall@5'?"),
        (("--metrics", "recall@0"), "rank metric 'recall@0': k counts from 1"),
        (("--metrics", "recall"), "rank metric 'recall' needs a cutoff"),
        (("--metrics", "mrr ndcg@10"), "'mrr ndcg@10' are several names; separate by commas"),
        (("--metrics", " , "), "--metrics names no metric"),
        (("--relevance-level", "0"), "the relevance level is 0; it counts from 1"),
        (("--dedupe", "last"), "dedupe is 'last'; it can be 'first'"),
        (("--run", "./first.trec"), "first.trec: this is the same run as first.trec"),
        (("--by", "category", "--queries", "none.csv"), "none.csv: there is no such file"),
        (("--queries", "qrels.txt"), "--queries needs --by or --cluster"),
    ],
)
def test_a_wrong_option_is_one_sentence(misslink, files, option, said):
    assert refused(misslink, *files, *option).startswith(said)


def test_a_column_that_is_not_there_has_the_nearest_one_named(misslink, several):
    said = refused(misslink, *several, "--by", "categry")
    assert said.startswith("qrels.csv: no query has a value in a column 'categry'")
    assert "did you mean 'category'?" in said
    assert said.endswith("Name a file that has it with --queries")


def test_trec_qrels_have_no_columns_and_say_where_to_name_them(misslink, files):
    said = refused(misslink, *files, "--by", "category")
    assert said.startswith("qrels.txt")
    assert "--queries" in said


def test_a_query_of_two_categories_is_refused_with_its_line(misslink, several):
    with Path("qrels.csv").open("a", encoding="utf-8") as more:
        more.write("q0,d99,1,odd,t0\n")
    said = refused(misslink, *several, "--by", "category")
    assert said == (
        f"qrels.csv, line {N + 2}, field 'category': query 'q0' has two values, 'even' and 'odd'; "
        "keep one"
    )


@pytest.mark.parametrize(
    ("name", "problem"),
    [("none.txt", "there is no such file"), ("empty.txt", "the file is empty")],
)
def test_a_file_that_is_not_there_or_holds_nothing(misslink, files, name, problem):
    Path("empty.txt").write_text("\n", encoding="utf-8")
    assert refused(misslink, *files[:3], name).startswith(f"{name}: {problem}")
