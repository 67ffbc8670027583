"""A gold set that is wrong says where, and what to do."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from misslink.errors import InputError
from misslink.io import read_goldset
from misslink.types import Case


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "gold.jsonl"
    path.write_bytes(text.encode(encoding))
    return path


def test_json_lines_and_a_json_array_give_the_same_cases(tmp_path):
    cases = [{"id": "a", "question": "A?"}, {"id": "b", "query": "B?", "relevant": "p"}]
    lines = read_goldset(write(tmp_path, "\n\n".join(map(json.dumps, cases)) + "\n"))
    array = read_goldset(write(tmp_path, json.dumps(cases, indent=1)))
    assert lines.cases == array.cases
    assert [lines.item(name).number for name in "ab"] == [1, 3]
    assert [array.item(name).number for name in "ab"] == [2, 6]


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    gold = read_goldset(
        write(tmp_path, '\ufeff{"id":"a","question":"A?"}\r\n{"question":"B?"}\r\n')
    )
    assert len(gold.cases) == 2


def test_a_line_separator_inside_a_text_does_not_cut_the_line(tmp_path):
    gold = read_goldset(write(tmp_path, '{"id":"a","question":"A\u2028B?"}\n'))
    assert gold.cases[0].question == "A\u2028B?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "A?"}\n{"question": \n', r"gold.jsonl, line 2: this is not JSON"),
        ('{"id": "a"}', r"line 1, field 'question': this field is required"),
        ('{"question": ""}', r"line 1, field 'question'"),
        ('{"question": 5}', r"line 1, field 'question'.*found 5"),
        (
            '{"id":"a","question":"A?"}\n{"id":"a","question":"B?"}',
            r"line 2, field 'id': the id 'a' is used twice \(first on line 1\)",
        ),
        ('{"question": "A?", "relevent": ["x"]}', r"field 'relevent'.*did you mean 'relevant'"),
        ('{"question": "A?", "relevant": {"x": "high"}}', r"line 1, field 'relevant.x'"),
        ('{"question": "A?", "relevant": {"x": NaN}}', r"line 1: this is not JSON \(NaN"),
        ('{"question": "A?"}\n{"question": "A?"}', r"line 2, field 'question'.*occurs twice"),
        ('{"question": "A?", "query": "A?"}', r"field 'query': this field has two names here"),
        ('{"question": "A?", "relevant": [{"id": "x"}]}', r"field 'relevant': give ids or texts"),
        ('{"question": "A?", "relevant": [null]}', r"field 'relevant': give ids or texts"),
        ('{"question": "A?", "relevant": ""}', r"field 'relevant': give ids or texts"),
        ('{"question": "A?", "relevant_any": ["a", true]}', r"field 'relevant_any': give ids"),
        ('"A?"', r"line 1: this is 'A\?', not a JSON object"),
        ("", r"gold.jsonl: the file is empty"),
        (" \n\n", r"gold.jsonl: the file is empty"),
        ("[]", r"gold.jsonl: the file is empty"),
        ('[{"question": "A?"}\n{"question": "B?"}]', r"line 2: the JSON array lacks a comma"),
        ('[{"question": "A?"}', r"lacks a comma or its end"),
    ],
)
def test_a_mistake_names_file_line_and_field(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_goldset(write(tmp_path, text))


@pytest.mark.parametrize("depth", [100, 900, 200_000])
@pytest.mark.parametrize("form", ["{}", "[{}]"])
def test_what_is_nested_too_deeply_names_file_and_line(tmp_path, form, depth):
    """Refused before it is read, and before its parts are."""
    text = form.format('\n{"question": "A?", "tags": ' + '{"a":' * depth + "1" + "}" * depth + "}")
    with pytest.raises(InputError, match=r"gold.jsonl, line 2: this is nested too deeply; remove"):
        read_goldset(write(tmp_path, text))


def test_what_holds_itself_is_nested_too_deeply():
    tags = {}
    tags["self"] = tags
    with pytest.raises(InputError, match="the gold set: this is nested too deeply"):
        read_goldset([{"question": "A?", "tags": tags}])


def test_another_encoding_is_named_with_its_line(tmp_path):
    path = write(tmp_path, '{"question": "A?"}\n{"question": "Wie groß?"}', "cp1252")
    with pytest.raises(InputError, match=r"line 2: byte 0xdf is not UTF-8; save the file as UTF-8"):
        read_goldset(path)


def test_a_missing_file_and_an_empty_folder_are_told(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_goldset(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="this folder holds no file that ends in"):
        read_goldset(tmp_path)


def test_utf_16_is_named_as_such(tmp_path):
    with pytest.raises(InputError, match="iconv -f UTF-16"):
        read_goldset(write(tmp_path, '{"question": "A?"}', "utf-16"))


def test_a_blank_reference_is_none_and_number_ids_are_ids_everywhere(tmp_path):
    text = '{"question": "A?", "reference": " ", "relevant_any": [[1, 2], "x"], "relevant": [7]}'
    (case,) = read_goldset(write(tmp_path, text)).cases
    assert case.references == ()
    assert case.relevant_any == (("1", "2"), ("x",))
    assert case.relevant == {"7": 1}


@pytest.mark.parametrize("wrong", [{"question": "A?"}, 7, ["A?"]])
def test_what_is_no_list_of_objects_is_told(wrong):
    with pytest.raises(InputError, match=r"objects|object with fields"):
        read_goldset(wrong)


def test_cases_and_mappings_from_python_are_read_too():
    gold = read_goldset([Case(id="a", question="A?"), {"question": "B?"}])
    assert gold.cases[0].id == "a"
    with pytest.raises(InputError, match="it has no cases"):
        read_goldset([])


def test_only_some_of_its_cases_keep_its_order_and_an_unknown_id_names_the_nearest():
    gold = read_goldset([{"id": one, "question": f"{one}?"} for one in ("ferry", "bus", "dogs")])

    assert [case.id for case in gold.only(["dogs", "ferry", "dogs"]).cases] == ["ferry", "dogs"]
    with pytest.raises(InputError, match=r"the gold set: there is no case with the id 'fery'; did"):
        gold.only(["bus", "fery"])


ROWS = [
    {"id": 7, "question": "A?", "relevant": "p1; p2", "reference": "yes, two", "answerable": "yes"},
    {"id": 8, "question": "B?", "relevant": '["p,1"]', "asked_at": "2026-01-02"},
]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "table"])
def test_a_table_is_a_gold_set(tmp_path, kind):
    path, frame = tmp_path / f"gold.{kind}", pd.DataFrame(ROWS)
    if kind == "xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    gold = read_goldset(path)
    first, second = gold.cases
    assert (first.id, first.relevant, first.references) == ("7", {"p1": 1, "p2": 1}, ("yes, two",))
    assert (first.answerable, second.answerable) == (True, None)
    assert second.relevant == {"p,1": 1}
    assert second.asked_at is not None
    assert gold.item("8").place == f"{path}, {'row' if kind == 'xlsx' else 'line'} 3"


def test_a_data_frame_is_a_gold_set_and_nan_is_missing():
    frame = pd.DataFrame(
        [
            {"id": 1, "question": "A?", "relevant": ["p1"], "reference": float("nan")},
            {"id": 2, "question": "B?", "relevant": None, "reference": "R"},
            {"question": "C?", "relevant": np.array(["p2"])},
        ]
    )
    first, second, third = read_goldset(frame).cases
    assert (first.id, first.references, second.relevant) == ("1", (), {})
    assert third.relevant == {"p2": 1}
    assert third.id.startswith("q-")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gold.csv", "frage,relevant\nx,1\n", r"line 2, field 'question': .*required"),
        ("gold.csv", "question,relevnt\nx,1\n", r"field 'relevnt'.*did you mean 'relevant'"),
        ("gold.csv", "question\nx,1,3\n", r"line 2: 3 fields, but 1 names"),
        ("gold.csv", "question,question\nx,y\n", r"two columns have this name"),
        ("gold.csv", "question\n", "the file has column names and no rows"),
        ("gold.csv", "question,tags\nx,red\n", r"line 2, field 'tags'"),
        ("gold.xlsx", "PK\3\4 and nothing else", "not an Excel file"),
        ("gold.jsonl", '{"question": "A?", "answer": "B"}', "Call the expected answer 'reference'"),
        ("gold.jsonl", '{"user_input": "A?", "response": "B"}', r"data set of ragas.*--traces"),
        ("gold.jsonl", '{"question": "A?", "contexts": ["B"]}', r"ragas.*misslink goldset import"),
        ("gold.jsonl", '{"input": "A?", "actual_output": "B"}', r"data set of deepeval"),
    ],
)
def test_a_table_or_file_of_another_tool_says_what_to_do(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_goldset(tmp_path / name)


def test_a_frame_splits_ids_as_a_file_does_and_has_no_column_twice():
    rows = {"id": ["c1", "c2"], "question": ["A?", "B?"], "relevant": ["d1;d2", '["d3"]']}
    cases = read_goldset(pd.DataFrame(rows)).cases
    assert [list(case.relevant) for case in cases] == [["d1", "d2"], ["d3"]]
    for drop in (True, False):
        indexed = read_goldset(pd.DataFrame(rows).set_index("id", drop=drop)).cases
        assert [case.id for case in indexed] == ["c1", "c2"], "ids may be the index"
    twice = pd.DataFrame([["c1", "A?", "B?"]], columns=["id", "question", "question"])
    with pytest.raises(InputError, match="two columns 'question'; keep one"):
        read_goldset(twice)


def test_one_text_of_several_ids_is_an_error_outside_of_tables():
    with pytest.raises(InputError, match=r'2 ids\. Write a list: \["d1", "d2"\]'):
        read_goldset([{"id": "c1", "question": "A?", "relevant": "d1, d2"}])
    (case,) = read_goldset([{"id": "c1", "question": "A?", "relevant": "Smith, J.pdf"}]).cases
    assert list(case.relevant) == ["Smith, J.pdf"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"Question": "A?"}, "field 'Question': there is no such field; did you mean 'question'"),
        ({"question": "A?", "answerable": "nein"}, "this must be true or false"),
        ({"question": "A?", "relevant": {"d": -1}}, "this must be 0 or more"),
        ({"question": ["A?"]}, "this must be a text"),
    ],
)
def test_a_wrong_field_is_explained_in_plain_words(fields, message):
    with pytest.raises(InputError, match=re.escape(message)):
        read_goldset([fields])
