"""Labels of several people in several files."""

from __future__ import annotations

import json

import pytest

from judged_runs import labels_of
from misslink.calibration.inter_annotator import load_labels
from misslink.errors import InputError
from misslink.io.labels import read_labels


@pytest.fixture
def file(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def test_files_of_two_people_are_read_as_one(file):
    ada, bob = labels_of("110"), labels_of("101", annotator="bob")
    found = load_labels([file("a.jsonl", ada), file("b.jsonl", bob)])
    assert sorted((one.annotator, one.case_id, one.value) for one in found.items) == sorted(
        (one["annotator"], one["case_id"], float(one["label"])) for one in [*ada, *bob]
    )
    assert "a.jsonl" in found.name
    assert "b.jsonl" in found.name


def test_a_label_that_stands_in_two_files_counts_once(file):
    one, two = file("a.jsonl", labels_of("110")), file("b.jsonl", labels_of("11"))
    assert len(load_labels([one, two]).items) == 3
    assert len(load_labels([one, one]).items) == 3


def test_one_file_is_read_as_ever(file):
    path = file("a.jsonl", labels_of("110"))
    assert load_labels([path]) == load_labels(path) == read_labels(path)


def test_one_person_who_disagrees_with_oneself_is_told_with_both_places(file):
    one, two = file("a.jsonl", labels_of("110")), file("b.jsonl", labels_of("-0"))
    with pytest.raises(InputError, match=r"b\.jsonl.*ada labels this 0 here and 1 in .*a\.jsonl"):
        load_labels([one, two])


@pytest.mark.parametrize("rows", [labels_of("11", weight=3), labels_of("--1")])
def test_weights_are_of_all_files_or_of_none(file, rows):
    one = file("a.jsonl", labels_of("11", weight=2))
    with pytest.raises(InputError, match="weight"):
        load_labels([one, file("b.jsonl", rows)])


def test_no_source_is_an_error():
    with pytest.raises(InputError, match="no labels are given"):
        load_labels([])
