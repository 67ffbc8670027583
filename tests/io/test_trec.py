import pytest

from misslink.errors import InputError
from misslink.io.trec import read_trec_table


def rows(raw, purpose):
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
    assert rows(raw, "qrels") == [("q1", "a", 1), ("q1", "b", -1)]


def test_a_run_is_its_scores_and_what_follows_the_tag_is_not_read():
    plain = b'q1 Q0 a 7 1e-3 tag\nq1 Q0 "b 1 -2 tag\n'
    assert rows(plain, "run") == [("q1", "a", 0.001), ("q1", '"b', -2)]
    assert rows(plain.replace(b"tag\n", b"tag and more\n"), "run") == rows(plain, "run")


@pytest.mark.parametrize("end", [b"tag\n", b"tag and more\n"])
@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2028", "\x85", "\x1c"])
def test_an_id_may_hold_blanks_that_are_not_of_ascii(blank, end):
    """Both the fast and the careful way, which what follows the tag calls for."""
    found = rows(f"q Q0 a{blank}b 1 1.0 ".encode() + end, "run")
    assert [row[1] for row in found] == [f"a{blank}b"]


def test_a_million_is_read_as_it_stands():
    raw = b"".join(b"q%d Q0 d%d 1 %d.5 t\n" % (n // 9, n, n) for n in range(40_000))
    read = rows(raw, "run")
    assert read[12_345] == ("q1371", "d12345", 12345.5)
    assert len(read) == 40_000


@pytest.mark.parametrize(
    ("raw", "purpose", "line", "message"),
    [
        (b"q 0 a 1\n\nq 0 a\n", "qrels", 3, "3 columns, where qrels have 4"),
        (b"q 0 a 1\nq 0 a 1 2\n", "qrels", 2, "5 columns, where qrels have 4"),
        (b"q 0 a 1\nq 0 b high\n", "qrels", 2, "the grade 'high' is no number"),
        (b"q 0 a 1\nq 0 b 0.5\n", "qrels", 2, "the grade '0.5' is no whole number"),
        (b"q 0 a 1\nq 0 b nan\n", "qrels", 2, "the grade 'nan' is no finite number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2 1.0\n", "run", 2, "5 columns, where runs have 6"),
        (b"#\nq Q0 a one 2.0 t\n", "run", 2, "the rank 'one' is no number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2 x t\n", "run", 2, "the score 'x' is no number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2 inf t\n", "run", 2, "the score 'inf' is no finite number"),
        (b"q Q0 a 1 nan t\n", "run", 1, "the score 'nan' is no finite number"),
        (b"q Q0 a 1 1 t\nq Q0 \xff 1 1 t\n", "run", 2, "not UTF-8"),
        (b"\nq 0 a 1\n", "run", 2, "these are qrels"),
        (b"# run\nq Q0 a 1 2.0 t\n", "qrels", 2, "this is a run"),
        (b"# nothing\n\n", "run", None, "there is nothing in it"),
        (b"q 0 a 1\nq 0 b 1e30\n", "qrels", 2, "the grade '1e30' is too large"),
        (b"q 0 a 9223372036854775808\n", "qrels", 1, "is too large"),
        (b"q 0 a 1\nq 0 b -" + b"9" * 400, "qrels", 2, "is too large"),
        (b"q Q0 a 1 " + b"9" * 400 + b" t\n", "run", 1, "is no finite number"),
        (b"q 0 a 1\n# 0 b high\n", "qrels", 2, "the grade 'high' is no number"),
        (b"q 0 a 1_0\n", "qrels", 1, "the grade '1_0' is no number"),
        ("q 0 a 1\nq 0 b \uff11\n".encode(), "qrels", 2, "the grade '\uff11' is no number"),
        (b"q Q0 a 1 2.0 t\nq Q0 b 2_0 1 t\n", "run", 2, "the rank '2_0' is no number"),
        ("q Q0 a \u0661 2.0 t\n".encode(), "run", 1, "the rank '\u0661' is no number"),
        (b"q Q0 a 1 3_0 two words\n", "run", 1, "the score '3_0' is no number"),
        (b"foo,bar\n1,2\n", "qrels", 1, "such as query_id,doc_id,relevance"),
        (b"hello\n", "run", 1, "1 column, where runs have 6"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(raw, purpose, line, message):
    with pytest.raises(InputError) as caught:
        read_trec_table(raw, "the.file", purpose)
    assert caught.value.line == line
    assert message in str(caught.value)
    assert str(caught.value).startswith("the.file")
    assert "\n" not in str(caught.value)


def test_a_row_knows_its_line():
    table = read_trec_table(b"# x\nq 0 a 1\n\nq 0 b 1\n", "f", "qrels")
    assert [table.line(row) for row in range(3)] == [2, 4, None]


def test_a_query_id_may_begin_with_the_sign_of_a_remark():
    qrels = b"# a remark\n#1 0 a 1\nq 0 b 0\n # one more that is long\n#2 0 c 2\n"
    assert rows(qrels, "qrels") == [("#1", "a", 1), ("q", "b", 0), ("#2", "c", 2)]
    table = read_trec_table(qrels, "f", "qrels")
    assert [table.line(row) for row in range(3)] == [2, 3, 5]
    run = b"#1 Q0 a 1 2.5 t\n# made of bm25 with k1 0.9 t\n#2 Q0 b 1 1.5 two words\n"
    assert rows(run, "run") == [("#1", "a", 2.5), ("#2", "b", 1.5)]
    assert rows(run.splitlines(keepends=True)[0], "run") == [("#1", "a", 2.5)]


@pytest.mark.parametrize("block", [1, 40, 1000])
def test_where_a_long_file_is_cut_does_not_show(monkeypatch, block):
    lines = [f"q{at} Q0 d{at} 1 {at}.5 t" for at in range(20)]
    lines[3] = "# a remark"
    lines[7] = ""
    lines[11] += " more words"
    raw = "\ufeff" + "\r\n".join(lines)
    monkeypatch.setattr("misslink.io.trec._BLOCK_BYTES", block)
    kept = [at for at in range(20) if at not in {3, 7}]
    assert rows(raw.encode(), "run") == [(f"q{at}", f"d{at}", at + 0.5) for at in kept]
    table = read_trec_table(raw.encode(), "the.file", "run")
    assert [table.line(row) for row in range(len(kept))] == [at + 1 for at in kept]
    lines[17] = "q17 Q0 d17 1 nan t"
    with pytest.raises(InputError, match="line 18: the score 'nan' is no finite number"):
        read_trec_table("\n".join(lines).encode(), "the.file", "run")
