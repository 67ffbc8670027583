"""All cases as parquet: the table of the CSV with types, whatever the texts, and nothing lost."""

from __future__ import annotations

import csv

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from example_run import HOSTILE, example_run
from misslink.errors import InputError
from misslink.report import exports as parquet
from misslink.report import exports as table
from misslink.report.exports import case_records, check_overwritable, write_parquet
from misslink.types import Case, Run, Trace
from proven_run import proven_run


def run_of(*cases, **parts):
    empty = {"traces": (), "verdicts": (), "links": ()}
    return Run(manifest={}, summary={}, cases=cases, **(empty | parts))


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    return pq.read_table(
        write_parquet(proven_run(), tmp_path_factory.mktemp("parquet") / "a.parquet")
    )


def test_it_has_the_columns_of_the_csv_and_every_value_of_the_document(read, tmp_path):
    with table.write_csv(proven_run(), tmp_path / "a.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        assert read.column_names == next(csv.reader(file))
    records = case_records(proven_run())
    assert read.column("id").to_pylist() == [one["id"] for one in records]
    for row, record in zip(read.to_pylist(), records, strict=True):
        values = {name.partition(".")[2]: value for name, value in row.items()
                  if name.startswith("metrics.")}  # fmt: skip
        assert values == record["metrics"]
        assert row["missed.passage_id"] == [one["passage_id"] for one in record["missed"]]
        assert row["missed.true_rank"] == [one["true_rank"] for one in record["missed"]]
        assert (row["correct"], row["failure"]) == (record["correct"], record["failure"])
        assert row["retrieved"] == record["retrieved"]


def test_columns_have_types_also_where_no_case_has_a_value(read):
    types = {name: read.schema.field(name).type for name in read.column_names}
    assert types["number"] == pa.int64()
    assert types["correct"] == types["verdicts.faithfulness.label"] == pa.bool_()
    assert types["metrics.recall@5"] == types["latency_s"] == pa.float64()
    assert types["verdicts.faithfulness.probability"] == types["metrics.faithfulness"]
    assert types["missed.true_rank"] == pa.list_(pa.int64())
    assert types["also"] == types["retrieved"] == pa.list_(pa.string())
    assert types["claims.unsupported"] == pa.int64()
    assert types["verdicts.faithfulness.status"] == types["tier"] == pa.string()


def test_what_is_missing_is_null_and_no_nan(read):
    assert read.column("metrics.recall@5")[2].as_py() is None, "it needs no passage"
    assert read.column("claims.supported")[4].as_py() is None, "its verdict failed"


def test_pandas_computes_with_it(tmp_path):
    path = write_parquet(example_run(), tmp_path / "a.parquet")
    frame = pd.read_parquet(path)
    missed = frame[frame["failure"] == "retrieval_miss"]
    assert list(missed["id"]) == ["<script>window.pwned = 1</script>", "with-exit"]
    assert missed["metrics.faithfulness"].mean() == pytest.approx((0.25 + 0.4) / 2)


@pytest.mark.parametrize("text", [*HOSTILE, "=1+1", "a\0b", "\u2028", "", "\U0001f40d"])
def test_a_text_is_what_it_was(text, tmp_path):
    case = Case(id="c", question=f"What of {text}?", category=text, tags={text: text})
    read = pq.read_table(write_parquet(run_of(case), tmp_path / "a.parquet"))
    assert read.column(f"tags.{text}").to_pylist() == [text]
    assert read.column("category").to_pylist() == [text]


def test_half_a_surrogate_pair_is_no_obstacle(tmp_path):
    case = Case(id="c", question="?").model_copy(
        update={"question": "What\ud800?", "tags": {"a\udc00": "b\ud800"}}
    )
    read = pq.read_table(write_parquet(run_of(case), tmp_path / "a.parquet"))
    assert read.column("question").to_pylist() == ["What??"]
    assert read.column("tags.a?").to_pylist() == ["b?"]


def test_a_run_without_cases_has_columns_and_no_row(tmp_path):
    read = pq.read_table(write_parquet(run_of(), tmp_path / "a.parquet"))
    assert read.num_rows == 0
    assert {"number", "id", "failure", "missed.passage_id", "retrieved"} <= set(read.column_names)


def test_it_is_written_in_groups_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_BATCH_ROWS", 4)
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
