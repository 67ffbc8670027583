"""Labels in one file, and read again as they were."""

from __future__ import annotations

import csv

import pytest

from labelled_runs import label_all, put, run_of
from misslink.annotation import AnnotationSession, export_labels
from misslink.errors import InputError
from misslink.io.labels import read_labels

METRIC = "faithfulness"


@pytest.fixture
def folder(tmp_path):
    folder = put(tmp_path / "run", run_of([n / 40 for n in range(40)]))
    with AnnotationSession(folder) as desk:
        label_all(desk, "ada", lambda case: int(case[-1] in "02468"), upto=15)
        label_all(desk, "bob", lambda case: None if case[-1] == "1" else 1, upto=6)
        desk.label("bob", 0, METRIC, 1, 0, '=1+1, "quoted"\r\n\u2028end')
        desk.reveal("bob", 20)
        desk.label("bob", 20, METRIC, None, 1, "")
    return folder


def read(path):
    return {
        (one.case_id, one.claim, one.annotator): (
            one.value, one.weight, one.judge_shown,
            one.comment.replace("\r\n", "\n").removeprefix("'"),  # that a formula is given in CSV
        )
        for one in read_labels(path).items
    }  # fmt: skip


@pytest.mark.parametrize("name", ["all.csv", "all.jsonl", "ALL.CSV"])
def test_an_export_is_read_again_as_the_folder_is(folder, tmp_path, name):
    count = export_labels(folder, tmp_path / name)
    said = read(folder / "labels")
    assert count == len(said)
    assert read(tmp_path / name) == said
    assert sum(shown for _, _, shown, _ in said.values()) == 2  # revealed, or already labelled
    assert len({weight for _, weight, _, _ in said.values()}) > 1


def test_where_it_cannot_go_is_told(folder, tmp_path):
    with pytest.raises(InputError, match=r"exported as .csv or .jsonl"):
        export_labels(folder, tmp_path / "all.xlsx")
    with pytest.raises(InputError, match="folder of the labels"):
        export_labels(folder, folder / "labels" / "all.jsonl")
    with pytest.raises(InputError, match="this run has no labels"):
        export_labels(put(tmp_path / "other", run_of([0.5])), tmp_path / "all.csv")


@pytest.mark.parametrize("comment", ["=1+1", "@SUM(A1)", "\t=1", "bare\rreturn", "two\nlines"])
def test_a_comment_is_one_cell_and_no_formula(tmp_path, comment):
    folder = put(tmp_path / "run", run_of([n / 9 for n in range(10)]))
    with AnnotationSession(folder) as desk:
        desk.label("ada", 0, METRIC, None, 1, comment)
        desk.label("ada", 1, METRIC, None, 0, "plain")
    export_labels(folder, tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="", encoding="utf-8") as file:
        cells = [row["comment"] for row in csv.DictReader(file)]
    runs = comment[0] in "=@\t"
    assert cells == [f"'{comment}" if runs else comment, "plain"]
    assert len(read_labels(tmp_path / "all.csv").items) == 2
