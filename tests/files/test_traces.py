"""Traces from a file are an equal citizen."""

from __future__ import annotations

import json

import pytest

from misslink.errors import InputError
from misslink.files import read_traces


def read(tmp_path, *traces):
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(json.dumps(trace) for trace in traces), encoding="utf-8")
    return read_traces(path)


def test_ranks_come_from_the_order_or_from_the_file(tmp_path):
    traces = read(
        tmp_path,
        {"case_id": "a", "retrieved": [{"id": "x", "text": "X"}, "y", {"text": "Z"}]},
        {"case_id": 2, "retrieved": [{"id": "x", "rank": 7}, {"id": "y", "rank": 3}]},
    )
    first = traces["a"].retrieved
    assert [(p.id, p.rank) for p in first[:2]] == [("x", 1), ("y", 2)]
    assert first[2].id.startswith("text-")
    assert [(p.id, p.rank) for p in traces["2"].retrieved] == [("y", 1), ("x", 2)]


def test_a_dumped_langchain_document_is_a_passage_and_an_empty_id_is_none(tmp_path):
    trace = {
        "case_id": "a",
        "retrieved": [{"page_content": "X", "id": ""}, {"text": "Y", "id": ""}],
    }
    found = read(tmp_path, trace)["a"].retrieved
    assert [passage.text for passage in found] == ["X", "Y"]
    assert len({passage.id for passage in found}) == 2


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ({"retrieved": []}, "field 'case_id': this field is required"),
        ({"case_id": "a", "retrieved": ["x", "x"]}, "the passage 'x' is listed twice"),
        ({"case_id": "a", "retrieved": ["x"], "prompted": ["y"]}, "'y' reached the prompt but"),
        ({"case_id": "a", "answers": "x"}, "did you mean 'answer'"),
        ({"case_id": "a", "retrieved": [{"id": "x", "score": "high"}]}, "retrieved.0.score"),
        ({"case_id": "a", "retrieved": [{"score": 1}]}, "retrieved.0.id"),
        ({"case_id": "a", "retrieved": {"x": 1}}, "field 'retrieved'"),
    ],
)
def test_a_mistake_names_the_line_and_the_field(tmp_path, trace, message):
    with pytest.raises(InputError, match=r"traces.jsonl, line 2.*") as caught:
        read(tmp_path, {"case_id": "fine"}, trace)
    assert message in str(caught.value)


def test_two_traces_of_one_case_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"line 2.*the case 'a' has two traces"):
        read(tmp_path, {"case_id": "a"}, {"case_id": "a"})
