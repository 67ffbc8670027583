"""Records of CSV and TSV, each with the line on which it begins."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.io.rows import iter_csv_records

FIELDS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=6)


@given(st.lists(st.lists(FIELDS, min_size=2, max_size=4), min_size=1, max_size=5))
def test_what_the_csv_module_wrote_is_read_back_with_its_lines(rows):
    rows.insert(0, ["id", "label"])
    written, starts = io.StringIO(newline=""), []
    writer = csv.writer(written, quoting=csv.QUOTE_ALL)
    for row in rows:
        starts.append(1 + len(written.getvalue().splitlines(keepends=False)))
        writer.writerow(row)
    found = list(iter_csv_records(written.getvalue(), "f.csv"))
    assert [fields for _, fields in found] == rows
    plain = all(not set("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029") & set("".join(row)) for row in rows)
    if plain:
        assert [line for line, _ in found] == starts


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_the_names_tell_what_separates(mark):
    text = f"id{mark}label\n\n1{mark}a, b; c\n"
    found = list(iter_csv_records(text, "f.csv"))
    if mark == "\t":
        assert found == [(1, ["id", "label"]), (3, ["1", "a, b; c"])]
    assert found[0] == (1, ["id", "label"])


def test_a_field_over_several_lines_counts_them():
    text = 'id,note\n1,"a\nb\n\nc"\n2,d\n'
    assert list(iter_csv_records(text, "f.csv")) == [
        (1, ["id", "note"]),
        (2, ["1", "a\nb\n\nc"]),
        (6, ["2", "d"]),
    ]


@pytest.mark.parametrize("text", ['a,b\n1,2\n"3,4\n5,6\n', 'a,b\n1,2\n"3"4,5\n'])
def test_a_quotation_mark_that_is_not_closed_is_told_where_its_record_begins(text):
    with pytest.raises(InputError, match="this is not valid CSV") as caught:
        list(iter_csv_records(text, "f.csv"))
    assert caught.value.line == 3


def test_a_field_longer_than_the_csv_module_allows_is_read_and_the_limit_put_back():
    before = csv.field_size_limit()
    long = "x" * (before + 1)
    assert list(iter_csv_records(f"a,b\n1,{long}\n", "f.csv"))[1] == (2, ["1", long])
    assert csv.field_size_limit() == before


def test_nothing_is_no_record():
    assert list(iter_csv_records("", "f.csv")) == list(iter_csv_records("\n\n", "f.csv")) == []


def test_lines_of_every_ending_are_counted_and_a_cut_off_last_one_is_read():
    text = 'id;note\r1;a\r\n2;"b\rc\x0b\u2028"\n\r3;d'
    assert list(iter_csv_records(text, "f.csv")) == [
        (1, ["id", "note"]),
        (2, ["1", "a"]),
        (3, ["2", "b\rc\x0b\u2028"]),
        (6, ["3", "d"]),
    ]
