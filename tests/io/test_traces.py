"""Traces from a file are an equal citizen."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from misslink.errors import InputError
from misslink.io.trace_formats import read_recording
from misslink.types import Trace


def read(tmp_path, *traces):
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(json.dumps(trace) for trace in traces), encoding="utf-8")
    return read_recording(path).traces


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


def nested(tmp_path, depth):
    """Traces of which the second has metadata as deep as that."""
    deep = '{"a":' * depth + "1" + "}" * depth
    second = '{"case_id": "b", "retrieved": [{"id": "x", "metadata": ' + deep + "}]}"
    path = tmp_path / "traces.jsonl"
    path.write_text('{"case_id": "a"}\n' + second, encoding="utf-8")
    return path


@pytest.mark.parametrize("depth", [254, 900, 200_000])
def test_metadata_nested_too_deeply_names_file_and_line(tmp_path, depth):
    """Of 254 levels on, the models take some that they cannot write."""
    with pytest.raises(InputError, match=r"traces.jsonl, line 2: this is nested too deeply to be"):
        read_recording(nested(tmp_path, depth))


def test_the_deepest_metadata_that_is_read_can_be_written(tmp_path):
    """The trace, its passages and each passage are three of the hundred levels."""
    trace = read_recording(nested(tmp_path, 97)).traces["b"]
    assert Trace.model_validate_json(trace.model_dump_json()) == trace
    with pytest.raises(InputError, match="leave out what lies deeper than 100 levels"):
        read_recording(nested(tmp_path, 98))


def test_two_traces_of_one_case_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"line 2.*the case 'a' has two traces"):
        read(tmp_path, {"case_id": "a"}, {"case_id": "a"})


def test_a_data_frame_of_traces(tmp_path):
    passages = np.array([{"id": "x", "text": "X", "score": np.nan}, {"id": "y", "score": 1.5}])
    frame = pd.DataFrame(
        [{"case_id": 1, "answer": "A", "retrieved": passages}, {"case_id": 2, "answer": np.nan}]
    )
    traces = read_recording(frame).traces
    assert [(p.id, p.score) for p in traces["1"].retrieved] == [("x", None), ("y", 1.5)]
    assert traces["2"].answer is None


@pytest.mark.parametrize("wrong", [["p"], {"a": 1}, True, 1.5])
def test_a_passage_id_of_another_kind_is_told(wrong):
    with pytest.raises(InputError, match=r"field 'retrieved\.0\.id'"):
        read_recording([{"case_id": "c", "retrieved": [{"id": wrong, "text": "x"}]}])
