"""Rows of CSV, TSV and parquet: each with its place, and as the same line of JSON is."""

import csv
import datetime as dt
import decimal
import io
import json
import uuid
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.io import read_goldset
from misslink.io.jsonl import SourceItem
from misslink.io.rows import iter_csv_records, open_items, read_parquet_rows, read_rows
from misslink.io.trace_formats import read_recording

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


CASES = [
    {
        "id": f"c{n}",
        "question": f"Wie groß ist {n}?",
        "relevant": {f"p{n}": 2, "q": 1},
        "relevant_any": [["a", "b"], ["c"]],
        "references": ["one", "two"],
        "tags": {"lang": "de"},
        "answerable": True,
    }
    for n in range(5)
]
TRACES = [
    {
        "case_id": f"c{n}",
        "answer": f"A {n}",
        "retrieved": [
            {"id": f"d{m}", "text": "x", "score": m / 3, "metadata": {"page": m}} for m in range(n)
        ],
        "prompted": [f"d{m}" for m in range(n)],
        "usage": {"prompt_tokens": 3, "completion_tokens": n},
        "latency_s": 0.5,
    }
    for n in range(5)
]


def write(tmp_path, table, **how):
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, **how)
    return path


def read(path):
    return [row.data for row in read_parquet_rows(path, path)]


def test_structs_maps_and_json_texts_give_the_cases_of_json(tmp_path):
    wanted = read_goldset(CASES).cases
    structs = pa.Table.from_pylist(CASES)  # a struct of all passages, null in most
    maps = structs.set_column(
        2,
        "relevant",
        pa.array([list(c["relevant"].items()) for c in CASES], pa.map_(pa.string(), pa.int8())),
    )
    nested = ("relevant", "relevant_any", "references", "tags")
    texts = pa.Table.from_pylist([{**c, **{n: json.dumps(c[n]) for n in nested}} for c in CASES])
    for table in (structs, maps, texts):
        assert read_goldset(write(tmp_path, table)).cases == wanted


def test_traces_of_tables_are_those_of_json_whatever_the_row_groups(tmp_path):
    table = pa.Table.from_pylist(TRACES)
    for size in (1, 2, 100):
        assert (
            read_recording(write(tmp_path, table, row_group_size=size)).traces
            == read_recording(TRACES).traces
        )
    pd.DataFrame(TRACES).set_index("case_id", drop=False).iloc[::-1].to_parquet(
        tmp_path / "t.parquet"
    )
    assert read_recording(tmp_path / "t.parquet").traces == dict(
        reversed(list(read_recording(TRACES).traces.items()))
    )


def test_null_and_nan_are_absent(tmp_path):
    table = pa.table(
        {
            "case_id": ["a", "b"],
            "answer": pa.array([None, "B"]),
            "latency_s": [float("nan"), 1.0],
            "retrieved": pa.array(
                [[{"id": "x", "score": None}], None],
                pa.list_(pa.struct([("id", pa.string()), ("score", pa.float32())])),
            ),
        }
    )
    path = write(tmp_path, table)
    assert read(path) == [
        {"case_id": "a", "retrieved": [{"id": "x"}]},
        {"case_id": "b", "answer": "B", "latency_s": 1.0},
    ]
    traces = read_recording(path).traces
    assert (traces["a"].answer, traces["a"].latency_s) == (None, None)
    assert traces["a"].retrieved[0].score is None


def test_the_rarer_kinds_are_what_json_holds_of_them(tmp_path):
    utc = dt.datetime(2026, 1, 2, 3, 4, 5, 600, dt.UTC)
    table = pa.table(
        {
            "date": [dt.date(2026, 1, 2)],
            "moment": pa.array([utc], pa.timestamp("ns", "UTC")),
            "time": [dt.time(1, 2)],
            "whole": [decimal.Decimal("12.00")],
            "part": [decimal.Decimal("0.5")],
            "bytes": [b"caf\xc3\xa9"],
            "words": pa.array(["x"]).dictionary_encode(),
            "fixed": pa.array([[1.5, 2.5]], pa.list_(pa.float32(), 2)),
            "dates": [[dt.date(2026, 1, 2)]],
            "uuid": pa.array([uuid.UUID(int=5).bytes], pa.uuid()),
        }
    )
    (row,) = read(write(tmp_path, table))
    assert row == {
        "date": "2026-01-02",
        "moment": "2026-01-02T03:04:05.000600+00:00",
        "time": "01:02:00",
        "whole": 12,
        "part": 0.5,
        "bytes": "café",
        "words": "x",
        "fixed": [1.5, 2.5],
        "dates": ["2026-01-02"],
        "uuid": str(uuid.UUID(int=5)),
    }
    assert json.loads(json.dumps(row)) == row


def test_empty_maps_and_lists_stay_what_they_are(tmp_path):
    table = pa.table(
        {
            "map": pa.array([[], None], pa.map_(pa.string(), pa.string())),
            "list": pa.array([[], [None]], pa.list_(pa.string())),
        }
    )
    assert read(write(tmp_path, table)) == [{"map": {}, "list": []}, {"list": [None]}]


nested = st.recursive(
    st.sampled_from([pa.string(), pa.int32(), pa.bool_()]),
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(pa.large_list)
        | inner.map(lambda kind: pa.map_(pa.string(), kind))
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: pa.struct([(f"f{at}", kind) for at, kind in enumerate(kinds)])
        )
    ),
    max_leaves=6,
)


def values_of(kind):
    plain = {
        pa.string(): st.text(max_size=3),
        pa.int32(): st.integers(0, 9),
        pa.bool_(): st.booleans(),
    }
    if kind in plain:
        found = plain[kind]
    elif pa.types.is_map(kind):
        items = values_of(kind.item_type)
        found = st.dictionaries(st.text(max_size=2), items, max_size=3).map(
            lambda d: list(d.items())
        )
    elif pa.types.is_struct(kind):
        found = st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    else:
        found = st.lists(values_of(kind.value_type), max_size=3)
    return st.none() | found


def as_arrow_says(value, kind):
    """The oracle: Arrow's own reading, value by value, with the nulls of structs and maps left out."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        items = {key: as_arrow_says(one, kind.item_type) for key, one in value}
        return {name: one for name, one in items.items() if one is not None}
    if pa.types.is_struct(kind):
        fields = {field.name: as_arrow_says(value[field.name], field.type) for field in kind}
        return {name: one for name, one in fields.items() if one is not None}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [as_arrow_says(one, kind.value_type) for one in value]
    return value


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_nesting_is_what_arrow_reads(data):
    kind = data.draw(nested)
    array = pa.array(data.draw(st.lists(values_of(kind), max_size=6)), kind)
    file = io.BytesIO()
    pq.write_table(pa.table({"column": array}), file)
    read = [row.data.get("column") for row in read_parquet_rows(file, Path("f.parquet"))]
    assert read == [as_arrow_says(value, kind) for value in array.to_pylist()]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"id": ["a", "b"], "question": ["A?", None]},
            r"row 2, field 'question': this field is re",
        ),
        ({"id": ["a", "a"], "question": ["A?", "B?"]}, r"row 2, field 'id': .*\(first in row 1\)"),
        ({"question": ["A?", "B?"], "relevent": ["x", "y"]}, r"row 1, field 'relevent'.*did you"),
        (
            {"question": ["A?", "B?"], "relevant": ["[x] y", '{"a": 1']},
            r"row 2, field 'relevant': th",
        ),
        ({"question": ["A?", "B?"], "tags": ["{}", "x"]}, r"row 2, field 'tags'"),
        ({"question": [True, False]}, r"row 1, field 'question'.*found true"),
        ({"question": ["A?", "A?"]}, r"row 2, field 'question': this question occurs twice"),
        ({"question": [b"A?", b"\xff"]}, r"row 2, field 'question': byte 0xff is not UTF-8"),
    ],
)
def test_a_mistake_names_the_file_the_row_and_the_field(tmp_path, columns, message):
    path = write(tmp_path, pa.table(columns))
    with pytest.raises(InputError, match=rf"t\.parquet, {message}"):
        read_goldset(path)


def test_a_text_that_is_not_utf8_names_its_row_deep_within(tmp_path):
    raw = pa.array([b"fine"] * 2000 + [b"\xe9"], pa.binary()).view(pa.string())
    lists = pa.ListArray.from_arrays(pa.array(range(2002), pa.int32()), raw)
    path = write(tmp_path, pa.table({"references": lists}))
    with pytest.raises(InputError, match=r"row 2001, field 'references': byte 0xe9 is not UTF-8"):
        read(path)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["question", "question"])
    with pytest.raises(InputError, match="field 'question': two columns have this name"):
        read(write(tmp_path, table))


def test_a_damaged_file_is_told_and_rows_before_the_damage_are_read(tmp_path):
    texts = [f"{n} " * 200 for n in range(4000)]
    table = pa.table({"question": texts})
    path = write(tmp_path, table, row_group_size=1000, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    third = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset
    path.write_bytes(whole[:third] + b"\xff" * 400 + whole[third + 400 :])
    found = read_parquet_rows(path, path)
    assert next(found) == SourceItem({"question": texts[0]}, str(path), 1, in_row=True)
    with pytest.raises(InputError, match="this parquet file cannot be read"):
        list(found)
    path.write_bytes(whole[:-20])
    with pytest.raises(InputError, match="this parquet file cannot be read"):
        read(path)


def test_lists_of_a_fixed_length_hold_objects_as_other_lists_do(tmp_path):
    passage = pa.struct([("id", pa.string()), ("score", pa.float64())])
    rows_of = [[{"id": "x", "score": 0.5}], None, [{"id": "y", "score": None}]]
    table = pa.table({
        "case_id": ["a", "b", "c"], "retrieved": pa.array(rows_of, pa.list_(passage, 1)),
    })  # fmt: skip
    path = tmp_path / "traces.parquet"
    pq.write_table(table, path)
    found = read_recording(path).traces
    listed = {name: [(one.id, one.score) for one in of.retrieved] for name, of in found.items()}
    assert listed == {"a": [("x", 0.5)], "b": [], "c": [("y", None)]}


def test_a_duration_is_a_number_of_seconds(tmp_path):
    took = pa.array([dt.timedelta(seconds=1.5), None], pa.duration("us"))
    path = tmp_path / "traces.parquet"
    pq.write_table(pa.table({"case_id": ["a", "b"], "latency_s": took}), path)
    assert [one.latency_s for one in read_recording(path).traces.values()] == [1.5, None]


def test_of_several_sheets_the_one_that_is_read_is_named(tmp_path, caplog):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "questions"
    for row in (("id", "question"), ("a", "When?")):
        book.active.append(row)
    book.save(tmp_path / "one.xlsx")
    book.create_sheet("drafts")
    book.save(tmp_path / "two.xlsx")
    book.move_sheet("drafts", -1)
    book["drafts"].sheet_state = "hidden"
    book.save(tmp_path / "hidden.xlsx")
    warnings = ("one.xlsx", []), ("two.xlsx", ["questions"]), ("hidden.xlsx", ["questions"])
    for name, warned in warnings:
        caplog.clear()
        _, items = open_items(tmp_path / name, "the gold set")
        assert [item.data["id"] for item in items] == ["a"]
        assert [
            "questions" for text in caplog.messages if "'questions', is read; 'drafts'" in text
        ] == warned


def test_what_pandas_prints_for_nothing_is_absent_but_for_ids(tmp_path, caplog):
    path = tmp_path / "rows.csv"
    path.write_text("query_id,context,answer\nNaN,nan,None\nb,A ferry.,<NA>\n", encoding="utf-8")
    rows = [item.data for item in read_rows(path, "rows")]
    assert rows == [{"query_id": "NaN", "answer": "None"}, {"query_id": "b", "context": "A ferry."}]
    assert sorted(text.rpartition("column ")[2] for text in caplog.messages) == [
        "'answer' that say 'nan' count as empty: 1",
        "'context' that say 'nan' count as empty: 1",
    ]
