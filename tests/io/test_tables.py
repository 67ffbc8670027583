"""Qrels and runs as CSV, TSV, parquet and frames: what they are, and what is wrong with them."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from misslink.errors import InputError
from misslink.io.tables import (
    find_beir_qrels,
    find_columns,
    has_header,
    read_csv_table,
    read_frame_table,
    read_parquet_table,
    read_trec_table,
)


@pytest.mark.parametrize(
    ("header", "purpose", "expected"),
    [
        (
            ["query_id", "doc_id", "relevance"],
            "qrels",
            ("query_id", "doc_id", "relevance", "grade"),
        ),
        (["query-id", "corpus-id", "score"], "qrels", ("query-id", "corpus-id", "score", "grade")),
        (["Q_ID", "PID", "Label"], "qrels", ("Q_ID", "PID", "Label", "grade")),
        (["qid", "docno", "rank", "score"], "run", ("qid", "docno", "score", "score")),
        (["qid", "passage_id", "rank"], "run", ("qid", "passage_id", "rank", "rank")),
        (["qid", "docid"], "run", ("qid", "docid", None, "order")),
        (["text", "qid", "doc id", "score", "label"], "run", ("qid", "doc id", "score", "score")),
    ],
)
def test_columns_are_found_by_their_usual_names(header, purpose, expected):
    found = find_columns(header, purpose, "f")
    assert (found.query, found.document, found.number, found.kind) == expected


@pytest.mark.parametrize(
    ("header", "purpose", "message"),
    [
        (["a", "doc_id"], "run", "no column holds the query ids"),
        (["qid", "b"], "run", "no column holds the document ids"),
        (["qid", "docno"], "qrels", "no column holds the grades"),
        (["qid", "docno", "rank"], "qrels", "this is a run"),
        (["qid", "docno", "relevance"], "run", "these are qrels"),
    ],
)
def test_a_column_that_is_not_there_is_told(header, purpose, message):
    with pytest.raises(InputError, match=message):
        find_columns(header, purpose, "f")


def test_a_header_is_told_from_a_line_of_ids():
    assert has_header("query-id\tcorpus-id\tscore")
    assert has_header('"qid","docno"')
    assert not has_header("q1 0 doc_id 1")
    assert not has_header("query\t0\td\t1")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("query_id", ["q", None], "row 2: the column 'query_id' is empty"),
        ("doc_id", [7, None], "row 2: the column 'doc_id' is empty"),
        ("doc_id", [["a"], None], "row 2: the column 'doc_id' is empty"),
        ("doc_id", ["a", ""], "row 2: the column 'doc_id' is empty"),
        ("doc_id", [1.0, 2.5], "not whole numbers"),
        ("relevance", [1, 0.5], "row 2: the grade 0.5 is not a whole number"),
        ("relevance", [1, None], "row 2: the grade nan is not a finite number"),
        ("relevance", ["a", "b"], "not a number"),
        ("relevance", [1, 1e30], r"row 2: the grade 1e\+30 is too large"),
        ("relevance", [1, 2**53 + 1], "row 2: the grade 9007199254740993 is too large"),
        ("relevance", [1, 2**60], "row 2: the grade 1152921504606846976 is too large"),
        ("relevance", [1, 10**400], "row 2: the grade 10+... .* is too large"),
    ],
)
def test_a_frame_is_read_with_care(column, values, message):
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "relevance": [1, 1]})
    frame[column] = values
    with pytest.raises(InputError, match=message):
        list(read_frame_table(frame, "qrels").batches())


def test_ranks_that_no_float_tells_apart_are_refused_and_scores_are_not():
    frame = pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "rank": [1, 2**60]})
    with pytest.raises(InputError, match="row 2: the rank 1152921504606846976 is too large"):
        list(read_frame_table(frame, "run").batches())
    frame = frame.rename(columns={"rank": "score"})
    assert next(iter(read_frame_table(frame, "run").batches()))[2].tolist() == [1, 2.0**60]


def test_an_empty_id_far_down_is_told_by_its_row(monkeypatch):
    monkeypatch.setattr("misslink.io.tables.BATCH_ROWS", 2)
    frame = pd.DataFrame({"qid": ["q"] * 5, "docno": ["a", "b", "c", "", "e"]})
    with pytest.raises(InputError, match="row 4: the column 'docno' is empty"):
        list(read_frame_table(frame, "run").batches())


def test_an_empty_table_is_refused(tmp_path):
    frame = pd.DataFrame({"query_id": [], "doc_id": [], "score": []})
    path = tmp_path / "r.parquet"
    frame.to_parquet(path)
    for read in (lambda: read_frame_table(frame, "run"), lambda: read_parquet_table(path, "run")):
        with pytest.raises(InputError, match="no row"):
            read()


def test_a_damaged_parquet_file_is_told(tmp_path):
    path = tmp_path / "r.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="cannot be read"):
        read_parquet_table(path, "run")


HEAD = b"query-id,corpus-id,score\n"


def test_a_quoted_csv_is_read(tmp_path):
    raw = b"\xef\xbb\xbf" + HEAD + b'q1,"a, b",1\r\nq1,c,0\r\n'
    batch = next(iter(read_csv_table(raw, tmp_path / "f", "qrels").batches()))
    assert batch[1].to_pylist() == ["a, b", "c"]
    assert batch[2].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        (HEAD + b"q1,a,1\nq1,b\n", 3, "2 fields, but 3 names"),
        (HEAD + b"q1,a,1\nq1,b," + b"9" * 400 + b"\n", 3, "not a finite number"),
        (HEAD, None, "column names and no rows"),
        (HEAD + b"q1,a,1\n\nq1,b,nan\n", 4, "not a finite number"),
        (HEAD + b"q1,a,1\n,b,1\n", 3, "the column 'query-id' is empty"),
    ],
)
def test_a_malformed_line_of_a_table_is_told(tmp_path, raw, line, message):
    with pytest.raises(InputError, match=message) as caught:
        list(read_csv_table(raw, tmp_path / "f.csv", "run").batches())
    assert caught.value.line == line


def test_the_test_split_of_a_beir_folder_is_taken(tmp_path):
    with pytest.raises(InputError, match="holds no qrels"):
        find_beir_qrels(tmp_path)
    folder = tmp_path / "qrels"
    folder.mkdir()
    for split in ("dev", "train"):
        (folder / f"{split}.tsv").touch()
    with pytest.raises(InputError, match=r"several qrels in it \(dev.tsv, train.tsv\)"):
        find_beir_qrels(tmp_path)
    (folder / "test.tsv").touch()
    assert find_beir_qrels(tmp_path) == find_beir_qrels(folder) == folder / "test.tsv"


def test_ids_of_several_kinds_are_text():
    frame = pd.DataFrame({"qid": ["q", 1], "docno": pd.Categorical(["a", "b"]), "label": [1, 0]})
    batch = next(iter(read_frame_table(frame, "qrels").batches()))
    assert batch[0].to_pylist() == ["q", "1"]
    assert batch[1].to_pylist() == ["a", "b"]


def test_a_grade_of_a_table_that_is_too_large_is_told_with_its_line(tmp_path):
    for grade in (b"1e30", b"9" * 25):
        raw = HEAD + b"q1,a,1\nq1,b," + grade + b"\n"
        with pytest.raises(InputError, match=r"the grade .* is too large") as caught:
            list(read_csv_table(raw, tmp_path / "f.csv", "qrels").batches())
        assert caught.value.line == 3


@pytest.mark.parametrize("bad", ["query_id", "doc_id"])
def test_what_a_parquet_file_calls_text_and_is_none_is_told_with_its_row(
    tmp_path, monkeypatch, bad
):
    monkeypatch.setattr("misslink.io.tables.BATCH_ROWS", 2)
    raw = pa.array([b"a", b"b", b"\xc3\xa9", b"b\xff"])
    columns = {"query_id": ["q", "q", "r", "r"], "doc_id": ["a", "b", "c", "d"]}
    columns[bad] = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    path = tmp_path / "run.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=f"row 4: the column '{bad}' is not UTF-8 here") as caught:
        list(read_parquet_table(path, "run").batches())
    assert caught.value.path == str(path)


RUN = "query_id,doc_id,score\n"
QRELS = "query_id,doc_id,relevance\n"


def table_rows(text, purpose="run"):
    table = read_csv_table(text.encode(), "f.csv", purpose)
    return [
        row
        for query, document, number in table.batches()
        for row in zip(query.to_pylist(), document.to_pylist(), number.tolist(), strict=True)
    ]


def refused(raw, purpose):
    given = raw if isinstance(raw, bytes) else raw.encode()
    with pytest.raises(InputError) as caught:
        list(read_csv_table(given, "f.csv", purpose).batches())
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("above", ["", "\n", "\r\n\n", "  \n\n", "\ufeff"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_blank_lines_may_stand_anywhere_and_are_counted(above, mark):
    text = (above + RUN + "q1,a,1\n\nq1,b,2\n").replace(",", mark)
    assert table_rows(text) == [("q1", "a", 1), ("q1", "b", 2)]
    wrong = refused(text + f"q1{mark}c{mark}x\n", "run")
    assert wrong.line == 5 + above.count("\n")
    table = read_csv_table(text.encode(), "f.csv", "run")
    lines = above.count("\n")
    assert [table.line(row) for row in range(3)] == [2 + lines, 4 + lines, None]


def test_a_quoted_field_may_span_lines_even_between_two_blocks_of_the_reader():
    """Arrow reads a megabyte at a time, and there a line within quotes may end."""
    text = "query_id,doc_id,score,text\n"
    text += "".join(f'q{n},d{n},1,"{"x" * 40}\n{"y" * 40}"\n' for n in range(30_000))
    assert len(table_rows(text)) == 30_000
    table = read_csv_table(text.encode(), "f.csv", "run")
    assert table.line(20_000) == 40_002


@pytest.mark.parametrize("number", ["1_0", "\uff11", "\u0661", "0x1", "1,0", "one", "1e", "--1"])
@pytest.mark.parametrize(("head", "purpose"), [(RUN, "run"), (QRELS, "qrels")])
def test_a_number_is_one_as_c_writes_it(number, head, purpose):
    wrong = refused(f'{head}q1,a,1\nq1,b,"{number}"\n', purpose)
    assert (wrong.line, wrong.field) == (3, head.strip().split(",")[2])
    assert f"{number!r} is not a number" in str(wrong)


def test_a_missing_number_is_told():
    assert str(refused(QRELS + "q1,a,\n", "qrels")).endswith(
        "field 'relevance': there is no grade here; give a number"
    )


def test_another_encoding_is_told_with_its_line():
    wrong = refused(RUN.encode() + b"q1,a,1\nq1,\xe9,2\n", "run")
    assert wrong.line == 3
    assert "byte 0xe9 is not UTF-8" in str(wrong)


def test_a_run_given_as_qrels_is_told_by_its_score():
    wrong = refused(RUN + "q1,a,2\nq1,b,1.5\n", "qrels")
    assert wrong.line == 3
    assert str(wrong).endswith(
        "this looks like a run: its 'score' is 1.5 here, and grades are whole numbers; give it as "
        "the run, and here the qrels"
    )


def test_the_qrels_of_a_beir_folder_are_no_run_but_its_scores_are():
    head = "query-id\tcorpus-id\tscore\n"
    wrong = refused(head + "q1\ta\t1\n", "run")
    assert "these look like the qrels of a BEIR folder" in str(wrong)
    assert table_rows(head + "q1\ta\t1\n", "qrels") == [("q1", "a", 1)]
    assert table_rows(head + "q1\ta\t1.5\nq1\tb\t1\n") == [("q1", "a", 1.5), ("q1", "b", 1)]
    assert table_rows(RUN + "q1,a,1\n") == [
        ("q1", "a", 1)
    ]  # a name of our own: whole scores are fine


def trec_rows(raw, purpose):
    table = read_trec_table(raw, "the.file", purpose)
    return [
        (query, document, number)
        for batch in table.batches()
        for query, document, number in zip(
            batch[0].to_pylist(), batch[1].to_pylist(), batch[2].tolist(), strict=True
        )
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b"q1 0 a 1\nq1 0 b -1\n",
        b"q1\t0\ta\t1\nq1\t0\tb\t-1",
        b"  q1  0 \t a   1  \r\n\r\n# a remark\nq1 0\tb -1\r\n",
        b"\xef\xbb\xbfq1 0 a 1\n   \n  # remark\nq1 0 b -1.0\n\n",
    ],
)
def test_any_run_of_blanks_and_tabs_separates(raw):
    assert trec_rows(raw, "qrels") == [("q1", "a", 1), ("q1", "b", -1)]


def test_a_run_is_its_scores_and_what_follows_the_tag_is_not_read():
    plain = b'q1 Q0 a 7 1e-3 tag\nq1 Q0 "b 1 -2 tag\n'
    assert trec_rows(plain, "run") == [("q1", "a", 0.001), ("q1", '"b', -2)]
    assert trec_rows(plain.replace(b"tag\n", b"tag and more\n"), "run") == trec_rows(plain, "run")


@pytest.mark.parametrize("end", [b"tag\n", b"tag and more\n"])
@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2028", "\x85", "\x1c"])
def test_an_id_may_hold_blanks_that_are_not_of_ascii(blank, end):
    """Both the fast and the careful way, which what follows the tag calls for."""
    found = trec_rows(f"q Q0 a{blank}b 1 1.0 ".encode() + end, "run")
    assert [row[1] for row in found] == [f"a{blank}b"]


def test_a_million_is_read_as_it_stands():
    raw = b"".join(b"q%d Q0 d%d 1 %d.5 t\n" % (n // 9, n, n) for n in range(40_000))
    read = trec_rows(raw, "run")
    assert read[12_345] == ("q1371", "d12345", 12345.5)
    assert len(read) == 40_000


@pytest.mark.parametrize(
    ("raw", "purpose", "line", "message"),
    [
        (b"q 0 a 1\n\nq 0 a\n", "qrels", 3, "3 columns, where qrels have 4"),
        (b"q 0 a 1\nq 0 a 1 2\n", "qrels", 2, "5 columns, where qrels have 4"),
        (b"q 0 a 1\nq 0 b high\n", "qrels", 2, "the grade 'high' is not a number"),
        (b"q 0 a 1\nq 0 b 0.5\n", "qrels", 2, "the grade '0.5' is not a whole number"),
        (b"q 0 a 1\nq 0 b nan\n", "qrels", 2, "the grade 'nan' is not a finite number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2 1.0\n", "run", 2, "5 columns, where runs have 6"),
        (b"#\nq Q0 a one 2.0 t\n", "run", 2, "the rank 'one' is not a number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2 x t\n", "run", 2, "the score 'x' is not a number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2 inf t\n", "run", 2, "the score 'inf' is not a finite number"),
        (b"q Q0 a 1 nan t\n", "run", 1, "the score 'nan' is not a finite number"),
        (b"q Q0 a 1 1 t\nq Q0 \xff 1 1 t\n", "run", 2, "not UTF-8"),
        (b"\nq 0 a 1\n", "run", 2, "these are qrels"),
        (b"# run\nq Q0 a 1 2.0 t\n", "qrels", 2, "this is a run"),
        (b"# nothing\n\n", "run", None, "the file is empty"),
        (b"q 0 a 1\nq 0 b 1e30\n", "qrels", 2, "the grade '1e30' is too large"),
        (b"q 0 a 9223372036854775808\n", "qrels", 1, "is too large"),
        (b"q 0 a 1\nq 0 b -" + b"9" * 400, "qrels", 2, "is too large"),
        (b"q Q0 a 1 " + b"9" * 400 + b" t\n", "run", 1, "is not a finite number"),
        (b"q 0 a 1\n# 0 b high\n", "qrels", 2, "the grade 'high' is not a number"),
        (b"q 0 a 1_0\n", "qrels", 1, "the grade '1_0' is not a number"),
        ("q 0 a 1\nq 0 b \uff11\n".encode(), "qrels", 2, "the grade '\uff11' is not a number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2_0 1 t\n", "run", 2, "the rank '2_0' is not a number"),
        ("q Q0 a \u0661 2.0 t\n".encode(), "run", 1, "the rank '\u0661' is not a number"),
        (b"q Q0 a 1 3_0 two words\n", "run", 1, "the score '3_0' is not a number"),
        (b"foo,bar\n1,2\n", "qrels", 1, "such as query_id,doc_id,relevance"),
        (b"hello\n", "run", 1, "1 column, where runs have 6"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(raw, purpose, line, message):
    with pytest.raises(InputError) as caught:
        list(read_trec_table(raw, "the.file", purpose).batches())
    assert caught.value.line == line
    assert message in str(caught.value)
    assert str(caught.value).startswith("the.file")
    assert "\n" not in str(caught.value)


def test_a_row_knows_its_line():
    table = read_trec_table(b"# x\nq 0 a 1\n\nq 0 b 1\n", "f", "qrels")
    assert [table.line(row) for row in range(3)] == [2, 4, None]


def test_a_query_id_may_begin_with_the_sign_of_a_remark():
    qrels = b"# a remark\n#1 0 a 1\nq 0 b 0\n # one more that is long\n#2 0 c 2\n"
    assert trec_rows(qrels, "qrels") == [("#1", "a", 1), ("q", "b", 0), ("#2", "c", 2)]
    table = read_trec_table(qrels, "f", "qrels")
    assert [table.line(row) for row in range(3)] == [2, 3, 5]
    run = b"#1 Q0 a 1 2.5 t\n# made of bm25 with k1 0.9 t\n#2 Q0 b 1 1.5 two words\n"
    assert trec_rows(run, "run") == [("#1", "a", 2.5), ("#2", "b", 1.5)]
    assert trec_rows(run.splitlines(keepends=True)[0], "run") == [("#1", "a", 2.5)]


@pytest.mark.parametrize("block", [1, 40, 1000])
def test_where_a_long_file_is_cut_does_not_show(monkeypatch, block):
    lines = [f"q{at} Q0 d{at} 1 {at}.5 t" for at in range(20)]
    lines[3] = "# a remark"
    lines[7] = ""
    lines[11] += " more words"
    raw = "\ufeff" + "\r\n".join(lines)
    monkeypatch.setattr("misslink.io.tables._BLOCK_BYTES", block)
    kept = [at for at in range(20) if at not in {3, 7}]
    assert trec_rows(raw.encode(), "run") == [(f"q{at}", f"d{at}", at + 0.5) for at in kept]
    table = read_trec_table(raw.encode(), "the.file", "run")
    assert [table.line(row) for row in range(len(kept))] == [at + 1 for at in kept]
    lines[17] = "q17 Q0 d17 1 nan t"
    with pytest.raises(InputError, match="line 18: the score 'nan' is not a finite number"):
        list(read_trec_table("\n".join(lines).encode(), "the.file", "run").batches())
