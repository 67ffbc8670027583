"""A gold set that is wrong says where, and what to do."""

from __future__ import annotations

import json

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
    assert lines.lines == {"a": 1, "b": 3}
    assert array.lines == {"a": 2, "b": 6}


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
        ('{"question": "A?"}\n{"question": "A?"}', r"line 2, field 'question'.*stands twice"),
        ('{"question": "A?", "query": "A?"}', r"field 'query': another name of this field"),
        ('{"question": "A?", "relevant": [{"id": "x"}]}', r"field 'relevant': give ids or texts"),
        ('{"question": "A?", "relevant": [null]}', r"field 'relevant': give ids or texts"),
        ('{"question": "A?", "relevant": ""}', r"field 'relevant': give ids or texts"),
        ('{"question": "A?", "relevant_any": ["a", true]}', r"field 'relevant_any': give ids"),
        ('"A?"', r"line 1: this is 'A\?', not a JSON object"),
        ("", r"gold.jsonl: there is nothing in it"),
        (" \n\n", r"gold.jsonl: there is nothing in it"),
        ("[]", r"gold.jsonl: there is nothing in it"),
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
    with pytest.raises(InputError, match=r"gold.jsonl, line 2: this is nested too deeply to be re"):
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
    with pytest.raises(InputError, match="no case in it"):
        read_goldset([])


def test_only_some_of_its_cases_keep_its_order_and_an_unknown_id_names_the_nearest():
    gold = read_goldset([{"id": one, "question": f"{one}?"} for one in ("ferry", "bus", "dogs")])

    assert [case.id for case in gold.only(["dogs", "ferry", "dogs"]).cases] == ["ferry", "dogs"]
    with pytest.raises(InputError, match=r"the gold set: there is no case with the id 'fery'; did"):
        gold.only(["bus", "fery"])
