"""Qrels and runs as CSV and TSV: what they are, and what is wrong with them."""

import pytest

from misslink.errors import InputError
from misslink.io.tables import read_csv_table

RUN = "query_id,doc_id,score\n"
QRELS = "query_id,doc_id,relevance\n"


def rows(text, purpose="run"):
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
    assert rows(text) == [("q1", "a", 1), ("q1", "b", 2)]
    wrong = refused(text + f"q1{mark}c{mark}x\n", "run")
    assert wrong.line == 5 + above.count("\n")
    table = read_csv_table(text.encode(), "f.csv", "run")
    lines = above.count("\n")
    assert [table.line(row) for row in range(3)] == [2 + lines, 4 + lines, None]


def test_a_quoted_field_may_span_lines_even_between_two_blocks_of_the_reader():
    """Arrow reads a megabyte at a time, and there a line within quotes may end."""
    text = "query_id,doc_id,score,text\n"
    text += "".join(f'q{n},d{n},1,"{"x" * 40}\n{"y" * 40}"\n' for n in range(30_000))
    assert len(rows(text)) == 30_000
    table = read_csv_table(text.encode(), "f.csv", "run")
    assert table.line(20_000) == 40_002


@pytest.mark.parametrize("number", ["1_0", "\uff11", "\u0661", "0x1", "1,0", "one", "1e", "--1"])
@pytest.mark.parametrize(("head", "purpose"), [(RUN, "run"), (QRELS, "qrels")])
def test_a_number_is_one_as_c_writes_it(number, head, purpose):
    wrong = refused(f'{head}q1,a,1\nq1,b,"{number}"\n', purpose)
    assert (wrong.line, wrong.field) == (3, head.strip().split(",")[2])
    assert f"{number!r} is no number" in str(wrong)


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
    assert rows(head + "q1\ta\t1\n", "qrels") == [("q1", "a", 1)]
    assert rows(head + "q1\ta\t1.5\nq1\tb\t1\n") == [("q1", "a", 1.5), ("q1", "b", 1)]
    assert rows(RUN + "q1,a,1\n") == [("q1", "a", 1)]  # a name of our own: whole scores are fine
