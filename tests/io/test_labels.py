"""Human labels read from files and frames, and what is refused."""

import json

import pandas as pd
import pytest

from misslink.errors import InputError
from misslink.io.labels import read_labels

HEAD = "case_id,metric,label,annotator"


@pytest.fixture
def written(tmp_path):
    def write(text, name="labels.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def said(labels):
    return [(one.case_id, one.metric, one.value, one.annotator, one.claim) for one in labels.items]


LINES = """
{"case_id": 1, "metric": "faithfulness", "label": true, "annotator": "ada"}
{"case_id": "1", "metric": "faithfulness", "label": 0, "annotator": "bob"}
{"case_id": 2, "metric": "faithfulness", "label": 0.5, "annotator": "ada"}
"""
EXPECTED = [
    ("1", "faithfulness", 1.0, "ada", None),
    ("1", "faithfulness", 0.0, "bob", None),
    ("2", "faithfulness", 0.5, "ada", None),
]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            f"{HEAD}\n1,faithfulness,yes,ada\n1,faithfulness,0,bob\n2,faithfulness,0.5,ada\n",
            "a.csv",
        ),
        (
            "\ufeffcase_id;metric;label;annotator;note\n1;faithfulness;TRUE;ada;x\n"
            '1;faithfulness;"not good";bob;\n\n2;faithfulness;.5;ada;\n'.replace(
                '"not good"', "unfaithful"
            ),
            "b.csv",
        ),
        (
            LINES,
            "c.jsonl",
        ),
    ],
)
def test_csv_and_jsonl_say_the_same(written, text, name):
    assert said(read_labels(written(text, name))) == EXPECTED


def test_a_frame_whose_ids_became_floats_says_the_same():
    frame = pd.DataFrame(
        {
            "case_id": [1.0, 1.0, 2.0],
            "metric": "faithfulness",
            "label": ["good", "bad", 0.5],
            "annotator": ["ada", "bob", "ada"],
            "claim": [float("nan")] * 3,
        }
    )
    assert said(read_labels(frame)) == EXPECTED


def test_claims_weights_and_comments_are_kept_with_their_line(written):
    text = 'case_id,metric,label,annotator,claim,weight,comment\n"a",m,1,x,2,3.5,"two\nlines"\n'
    text += "b,m,0,x,0,1,\n"
    first, second = read_labels(written(text)).items
    assert (first.claim, first.weight, first.comment, first.line) == (2, 3.5, "two\nlines", 2)
    assert (second.claim, second.weight, second.comment, second.line) == (0, 1.0, "", 4)


def test_one_half_is_good_and_less_is_bad(written):
    labels = read_labels(written(f"{HEAD}\na,m,0.5,x\nb,m,0.49,x\n"))
    assert [one.good for one in labels.items] == [True, False]


def test_a_label_that_stands_twice_counts_once(written):
    labels = read_labels(written(f"{HEAD}\na,m,1,x\na,m,yes,x\n"))
    assert len(labels.items) == 1


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("", "", "the file is empty"),
        (f"{HEAD}\na,m,2,x\n", "line 2, field 'label'", "'2' is not a label"),
        (f"{HEAD}\na,m,-0.1,x\n", "line 2, field 'label'", "is not a label"),
        (f"{HEAD}\na,m,perhaps,x\n", "line 2, field 'label'", "or yes or no"),
        (f"{HEAD}\na,m,nan,x\n", "line 2, field 'label'", "required; give it a value"),
        (f"{HEAD}\na,m,1,x\n\nb,m,,x\n", "line 4, field 'label'", "required"),
        (f"{HEAD}\n,m,1,x\n", "line 2, field 'case_id'", "required"),
        ("case,metric,label\na,m,1\n", "line 2, field 'case_id'", "is 'case' it?"),
        ("case_id,metric,label,anotator\na,m,1,x\n", "'anotator'", "did you mean 'annotator'?"),
        (f"{HEAD}\na,m,1,x\na,m,0,x\n", "line 3, field 'label'", "0 here and 1 on line 2"),
        (f"{HEAD},claim\na,m,1,x,-1\n", "line 2, field 'claim'", "0, 1, 2, ..."),
        (f"{HEAD},claim\na,m,1,x,1.5\n", "line 2, field 'claim'", "0, 1, 2, ..."),
        (f"{HEAD},weight\na,m,1,x,0\n", "line 2, field 'weight'", "above 0"),
        (f'{HEAD},weight\na,m,1,x,"1,0"\n', "line 2, field 'weight'", "; write 1.0"),
        (f'{HEAD}\na,m,"0,5",x\n', "line 2, field 'label'", "is not a label; write 0.5"),
        (f"{HEAD},weight\na,m,1,x,1e200\n", "line 2, field 'weight'", "at most 1e+12"),
        (f"{HEAD},weight\na,m,1,x,1e-320\n", "line 2, field 'weight'", "at most 1e+12"),
        (f"{HEAD},weight\na,m,1,x,1\na,m,1,y,2\n", "line 3, field 'weight'", "1 on line 2"),
        (f"{HEAD},weight\na,m,1,x,1\nb,m,1,x,\n", "line 3, field 'weight'", "all or none"),
        (f"{HEAD}\na,m,1,x,too,many\n", "line 2", "6 fields, but 4 names"),
        (f'{HEAD}\na,m,1,"x\n', "line 2", "not valid CSV"),
        ("case_id,label,label\na,1,1\n", "field 'label'", "two columns"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(written, text, place, said):
    path = written(text)
    with pytest.raises(InputError) as caught:
        read_labels(path)
    assert str(path) in str(caught.value)
    assert place in str(caught.value)
    assert said in str(caught.value)


def test_a_broken_json_line_is_named(written):
    with pytest.raises(InputError, match="line 2: this is not JSON"):
        read_labels(written('{"case_id": "a", "metric": "m", "label": 1}\n{"x\n', "l.jsonl"))


@pytest.mark.parametrize("given", [[], pd.DataFrame({"case_id": []}), 5, [1]])
def test_what_is_no_table_in_python_is_refused(given):
    with pytest.raises(InputError, match="labels"):
        read_labels(given)


def test_unknown_cases_are_refused_with_the_nearest_or_left_out(written):
    labels = read_labels(written(f"{HEAD}\ncase-1,m,1,x\ncase-22,m,0,x\n"))
    with pytest.raises(InputError, match=r"line 3, field 'case_id'.*did you mean 'case-2'"):
        labels.select_cases({"case-1", "case-2"}, "runs/a")
    kept = labels.select_cases({"case-1", "case-2"}, "runs/a", leave_out=True)
    assert [one.case_id for one in kept.items] == ["case-1"]


def test_labels_of_another_run_are_told_as_such(written):
    labels = read_labels(written(f"{HEAD}\na,m,1,x\n"))
    for leave_out in (False, True):
        with pytest.raises(InputError, match="these labels belong to another run"):
            labels.select_cases({"b"}, "runs/a", leave_out=leave_out)


def test_a_metric_without_labels_names_those_there_are(written):
    labels = read_labels(written(f"{HEAD}\na,faithfulness,1,x\na,correctness,1,x\n"))
    with pytest.raises(InputError, match="did you mean 'faithfulness'"):
        labels.select_metric("faithfullness")


def test_hostile_text_is_kept_as_it_is(written):
    row = {"case_id": "=cmd|' /C calc'!A0", "metric": "m", "label": 1, "annotator": "<script>"}
    labels = read_labels(written(json.dumps(row), "l.jsonl"))
    assert (labels.items[0].case_id, labels.items[0].annotator) == (row["case_id"], "<script>")
