"""BEGIN: its tab-separated files, the reduced form, and what is wrong with others."""

import json

import pytest

from misslink.errors import InputError
from misslink.io.label_sets import ImportOptions
from misslink.registry import importers

HEAD = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label"
ROWS = [
    't5\twow\tIt is the "largest" store.\tis it big?\t"Yes", the largest.\tFully attributable',
    "gpt2\twow\tGreen is a colour.\tyes\u2028or no\tI like blue.\tNot fully attributable",
    "doha\twow\tA film of 2010.\t\thaha\tGeneric",
]


@pytest.fixture
def dev(tmp_path):
    path = tmp_path / "begin_dev_wow.tsv"
    path.write_text("\n".join([HEAD, *ROWS, ""]), encoding="utf-8")
    return path


def read(*paths, **wanted):
    return importers.get("begin")(paths, ImportOptions(**wanted))


def test_only_what_is_fully_attributable_is_faithful(dev):
    assert [label["label"] for label in read(dev).labels] == [1, 0, 0]


def test_quotes_and_line_separators_within_a_text_are_text(dev):
    found = read(dev)
    assert found.traces["traces.jsonl"][0].answer == '"Yes", the largest.'
    assert found.traces["traces.jsonl"][0].retrieved[0].text == 'It is the "largest" store.'
    assert found.goldsets["goldset.jsonl"][1].question == "yes\u2028or no"


def test_a_case_has_the_files_name_its_place_and_what_is_known_of_it(dev):
    case = read(dev).goldsets["goldset.jsonl"][2]
    assert case.id == "begin_dev_wow-2"
    assert case.tags == {
        "model": "doha",
        "source": "wow",
        "split": "dev",
        "begin_label": "Generic",
    }


def test_a_reply_to_nothing_has_a_question_without_words(dev):
    found = read(dev)
    assert found.goldsets["goldset.jsonl"][2].question == "..."
    assert any("where there is none (1)" in note for note in found.notes)


def test_the_split_is_told_by_the_files_name(dev, tmp_path):
    test = tmp_path / "begin_test_wow.tsv"
    test.write_text("\r\n".join([HEAD, ROWS[0]]), encoding="utf-8")
    found = read(dev, test, split="test")
    assert [case.id for case in found.goldsets["goldset.jsonl"]] == ["begin_test_wow-0"]
    assert found.labels[0]["label"] == 1  # the line ends in \r\n
    assert found.left_out == {"another split or task": 3}
    with pytest.raises(InputError, match="--split train; known here: dev, test"):
        read(dev, test, split="train")


def test_the_reduced_form_is_known_by_its_fields(tmp_path):
    row = {
        "id": "begin_dev_wow-0",
        "source": "wow",
        "previous_turn": "is it big?",
        "contexts": ["It is the largest store."],
        "answer": "Yes.",
        "model": "t5",
        "human_label": "Fully attributable",
        "split": "dev",
    }
    path = tmp_path / "reduced.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    found = read(path, split="dev")
    assert found.labels == [
        {"case_id": "begin_dev_wow-0", "metric": "faithfulness", "label": 1, "annotator": "begin"}
    ]
    assert found.goldsets["goldset.jsonl"][0].tags["model"] == "t5"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: .*does not name model_name"),
        ("a\tb\n1\t2\n", "line 1: .*does not name model_name, data_source"),
        (HEAD, "the file has column names and no rows"),
        (f"{HEAD}\n{ROWS[0]}\nt5\twow\n", "line 3: 2 fields where the first line names 6"),
        (
            f"{HEAD}\nt5\twow\tk\tm\tr\tPerhaps",
            "line 2, field 'begin_label': ",
        ),
        (f"{HEAD}\nt5\twow\t \tm\tr\tGeneric", "line 2, field 'knowledge': this text is empty"),
        ('{"a": 1}', r"line 1: this is not of BEGIN \(it has the fields a\)"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, text, problem):
    path = tmp_path / "bad.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        read(path)
    assert caught.value.path == str(path)


def test_a_file_named_twice_is_refused(dev):
    with pytest.raises(InputError, match=r"line 2, field 'id': 'begin_dev_wow-0' occurs twice"):
        read(dev, dev)


def test_it_has_no_tasks(dev):
    with pytest.raises(InputError, match="BEGIN has no tasks; leave --task out"):
        read(dev, task="QA")
