"""TREC RAG: qrels of people and of a model, as labels and verdicts."""

import pytest

from misslink.calibration import calibrate, read_verdicts
from misslink.errors import InputError
from misslink.io.label_sets import ImportOptions
from misslink.io.labels import read_labels
from misslink.registry import importers

PEOPLE = "14 0 doc#1 3\n14 0 doc#2 1\n14 Q0 doc#3 0\n15 0 doc#1 2\n"
MODEL = "14 0 doc#1 2\n14 0 doc#2 2\n15 0 doc#1 -1\n15 0 doc#9 1\n"


def read(*paths, **wanted):
    return importers.get("trec-rag")(paths, ImportOptions(**wanted))


@pytest.fixture
def qrels(tmp_path):
    def write(people="qrels.rag24.txt", model="qrels.umbrela.rag24.txt"):
        paths = tmp_path / people, tmp_path / model
        for path, text in zip(paths, (PEOPLE, MODEL), strict=True):
            path.write_text(text, encoding="utf-8")
        return paths

    return write


def values(rows, key):
    return {row["case_id"]: row.get(key) for row in rows}


def test_grades_are_shares_of_the_highest_grade_there_is(qrels):
    found = read(*qrels())
    assert values(found.labels, "label") == pytest.approx(
        {"14/doc#1": 1, "14/doc#2": 1 / 3, "14/doc#3": 0, "15/doc#1": 2 / 3}
    )
    graded = {name: v for name, v in values(found.verdicts, "value").items() if v is not None}
    expected = {"14/doc#1": 2 / 3, "14/doc#2": 2 / 3, "15/doc#1": 0, "15/doc#9": 1 / 3}
    assert graded == pytest.approx(expected)


def test_whose_grades_are_whose_is_told_by_a_name_and_else_by_the_order(qrels):
    people, model = qrels()
    assert read(model, people).labels == read(people, model).labels
    assert read(people, model).verdicts[0]["judge"] == "qrels.umbrela.rag24"
    first, second = qrels("one.txt", "two.txt")
    assert values(read(first, second).labels, "label")["14/doc#1"] == 1
    turned = read(second, first)
    assert turned.verdicts[0]["judge"] == "one"
    assert "two.txt for people's" in turned.notes[0]


def test_what_people_alone_graded_is_kept_and_said_to_have_no_verdict(qrels):
    found = read(*qrels())
    skipped = [one for one in found.verdicts if one.get("status") == "skipped"]
    assert [one["case_id"] for one in skipped] == ["14/doc#3"]
    document = calibrate(
        read_verdicts(found.verdicts, "relevance"), read_labels(found.labels)
    ).document()
    assert document["n"] == 3
    assert document["left_out"] == {"skipped": 1}
    assert document["unknown_labels"] == 0


def test_the_reduced_form_has_both_grades_and_the_models_name(tmp_path):
    path = tmp_path / "both.tsv"
    path.write_text("query_id\tdoc_id\thuman\tumbrela2\n14\td1\t4\t2\n", encoding="utf-8")
    found = read(path)
    assert found.labels[0]["label"] == 1
    assert found.verdicts[0]["value"] == 0.5  # of 4
    assert found.verdicts[0]["judge"] == "umbrela2"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("14 doc 1\n", r"line 1: this is not a line of qrels \(3 words"),
        ("14 0 doc 1\n14 0 doc high\n", "line 2, field 'grade': 'high' is not a whole number"),
        ("14 0 doc 9\n", "line 1, field 'grade': '9' is not a whole number from -4 to 4"),
        (f"14 0 doc {'9' * 5000}\n", "line 1, field 'grade': .* is not a whole number"),
        ("14 0 doc 1\n14 0 doc 2\n", "line 2: 14 and doc have the grade 1 and 2; keep one"),
        ("99 0 doc 1\n", "these grade no passage that the first file grades"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(qrels, tmp_path, text, problem):
    people, _ = qrels()
    bad = tmp_path / "umbrela.txt"
    bad.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        read(people, bad)


def test_one_file_or_three_are_not_two(qrels):
    people, model = qrels()
    with pytest.raises(InputError, match="one file of grades has nothing to be compared with"):
        read(people)
    with pytest.raises(InputError, match="3 files are given"):
        read(people, model, model)


def test_a_table_with_a_broken_line_is_told(tmp_path):
    path = tmp_path / "both.tsv"
    path.write_text("query_id\tdoc_id\thuman\tllm\n14\td1\t4\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2: 3 fields where the first line names 4"):
        read(path)
    path.write_text("query_id\tdoc_id\thuman\tllm\n", encoding="utf-8")
    with pytest.raises(InputError, match="the file has column names and no rows"):
        read(path)
