"""JSON objects are read one after another, with the lines and messages of the whole file."""

from __future__ import annotations

import gzip
import json

import pytest

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem, parse_nested_json, read_objects
from misslink.io.trace_formats import read_recording
from misslink.types import Trace


def test_a_line_is_read_before_what_is_wrong_further_on(tmp_path):
    """As only what streams can: neither the bad byte nor the cut archive hides the first line."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n\n' + b'{"b": "\xe9"}\n')
    found = read_objects(path)
    assert next(found) == SourceItem({"a": 1}, str(path), 1)
    with pytest.raises(InputError, match=r"a.jsonl, line 3: byte 0xe9 is not UTF-8"):
        next(found)
    lines = "".join(f'{{"a": {n}, "b": "{n * n}"}}\n' for n in range(40_000))
    path.write_bytes(gzip.compress(lines.encode())[:-40])
    found = read_objects(path)
    assert next(found) == SourceItem({"a": 0, "b": "0"}, str(path), 1)
    with pytest.raises(InputError, match="this gzip file is damaged"):
        list(found)


def test_every_line_of_a_long_file_is_read_once(tmp_path):
    """Longer than what is taken from the disk at once, with lines that go over its ends."""
    path = tmp_path / "a.jsonl"
    texts = [f"{n} é \u2028" * (n % 700) for n in range(3000)]
    path.write_text("\n".join(json.dumps({"t": t}, ensure_ascii=False) for t in texts), "utf-8")
    assert [(item.number, item.data["t"]) for item in read_objects(path)] == list(
        enumerate(texts, 1)
    )


def test_the_objects_of_an_array_keep_their_lines(tmp_path):
    path = tmp_path / "a.json"
    items = [{"a": n, "b": ["x"] * (n % 3)} for n in range(50)]
    text = "\n \n" + json.dumps(items, indent=2)
    path.write_text(text, encoding="utf-8")
    starts = [at + 1 for at, line in enumerate(text.split("\n")) if line == "  {"]
    found = [(item.number, item.data) for item in read_objects(path)]
    assert found == list(zip(starts, items, strict=True))


def test_a_byte_order_mark_in_the_middle_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('\ufeff{"a": 1}\n\ufeff{"a": 2}\n'.encode())
    with pytest.raises(InputError, match=r"line 2: this is not JSON \(a byte order mark precedes"):
        list(read_objects(path))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"p": 2}', {"p": 2}),
        (' ["a", "b"] ', ["a", "b"]),
        ("[draft] memo", "[draft] memo"),
        ("{braces}", "{braces}"),
        ("p1", "p1"),
        ("7", "7"),
    ],
)
def test_json_in_a_text_is_what_it_says_and_other_text_is_text(text, found):
    assert (
        parse_nested_json(text, SourceItem(None, "t.parquet", 1, in_row=True), "relevant") == found
    )


@pytest.mark.parametrize("text", ['{"p": 2', '["a",', '[{"id": NaN}]', "[" * 200_000])
def test_json_in_a_text_that_is_none_names_the_row_and_the_field(text):
    with pytest.raises(InputError, match=r"t.parquet, row 1.*(not JSON|nested too deeply)"):
        parse_nested_json(text, SourceItem(None, "t.parquet", 1, in_row=True), "relevant")


def test_equal_texts_of_a_file_are_held_once(tmp_path):
    path = tmp_path / "traces.jsonl"
    long, wide = "a passage " * 50, "eine Stra\u00dfe " * 50
    texts = [{"id": "p", "text": long}, {"id": "q", "text": wide}]
    path.write_text(
        "".join(json.dumps({"case_id": str(n), "retrieved": texts}) + "\n" for n in range(3)),
        encoding="utf-8",
    )
    held = [[one.text for one in trace.retrieved] for trace in read_recording(path).traces.values()]
    assert held == [[long, wide]] * 3
    assert len({id(text) for texts in held for text in texts}) == 2


def test_sharing_texts_changes_none_of_them():
    texts: dict[str, str] = {}
    given = [
        {"case_id": "1", "retrieved": [{"id": "1", "rank": 1, "metadata": {"1": 1, "n": 1.0}}]},
        {"case_id": "2", "answer": "1", "retrieved": [
            {"id": "\ud800", "rank": 1, "metadata": {"1": "1", "n": True}}]},
        {"case_id": "3", "answer": "\ud800", "retrieved": [
            {"id": "?", "rank": 1, "metadata": {"1": None, "n": 1}}]},
    ]  # fmt: skip
    alone = [SourceItem(one, "f", 1).parse(Trace) for one in given]
    shared = [SourceItem(one, "f", 1).parse(Trace, texts) for one in given]
    assert [one.model_dump_json() for one in shared] == [one.model_dump_json() for one in alone]
    kinds = [[type(v) for v in one.retrieved[0].metadata.values()] for one in shared]
    assert kinds == [[int, float], [str, bool], [type(None), int]]


@pytest.mark.parametrize("text", ['{"id": 1, "id": 2}', '[{"id": 1, "more": {"a": 1, "a": 1}}]'])
def test_a_key_that_is_there_twice_is_an_error_with_its_line(tmp_path, text):
    path = tmp_path / "items.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"items\.jsonl, line 1: the key '(id|a)' occurs twice"):
        list(read_objects(path))
