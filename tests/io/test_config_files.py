"""YAML and JSON are read plainly, and every entry knows its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.io.config_files import read_yaml

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abc d", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", min_size=1), inner),
    max_leaves=8,
)


def read(tmp_path, text, texts=()):
    path = tmp_path / "some.yaml"
    path.write_text(text, encoding="utf-8")
    return read_yaml(path, texts)


@given(PLAIN)
def test_json_is_what_json_says(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("located") / "some.json"
    path.write_text(json.dumps({"data": data}), encoding="utf-8")
    assert read_yaml(path).data == {"data": data}


def test_every_entry_has_its_line_and_a_missing_one_that_of_what_is_around_it(tmp_path):
    found = read(tmp_path, "a: 1\nb:\n  - c: x\n    d: 2\n  - e\n")
    assert found.data == {"a": 1, "b": [{"c": "x", "d": 2}, "e"]}
    places = [(), ("a",), ("b",), ("b", 0, "d"), ("b", 1), ("b", 0, "none"), ("none",)]
    assert [found.line(place) for place in places] == [1, 1, 2, 4, 5, 3, 1]


def test_text_stays_as_it_is_written_under_the_keys_that_hold_text(tmp_path):
    text = "id: 007\nanswer: no\nwhen: 2024-01-02\nscore: 1e-1\n"
    found = read(tmp_path, text, {"id", "answer"})
    assert found.data == {"id": "007", "answer": "no", "when": "2024-01-02", "score": 0.1}


def test_an_empty_file_holds_nothing(tmp_path):
    assert read(tmp_path, "\n# nothing\n").data is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "line 2: 'a' is repeated here"),
        ("a: &x 1\n", "anchors and aliases are not read"),
        ("a: !!python/object:os.system x\n", "tags .with !. are not read"),
        ("a: [1\n", "this is not YAML"),
        ("? [a]\n: 1\n", "a key is a word"),
        ("[" * 40 + "]" * 40, "levels deep"),
        ("a: \x07\n", "this is not YAML"),
        ("a: " + "9" * 5000, "this number is too long"),
    ],
)
def test_what_is_not_read_is_told_with_its_place(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as told:
        read(tmp_path, text)
    assert "some.yaml" in str(told.value)
