"""A stream can be taken back until it says something."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessageChunk

from misslink.live.answering import NoAnswerError, StreamHead, join_chunks


def accepted(_):
    return None


@pytest.mark.parametrize("silent", ["", None, AIMessageChunk("")])
def test_chunks_that_say_nothing_are_held_and_then_all_go_out(silent):
    opening = StreamHead()
    assert opening.take(silent) == []
    assert not opening.is_over
    assert opening.take("word") == [silent, "word"]
    assert opening.is_over
    assert opening.take(silent) == [silent]
    assert opening.remaining_chunks(accepted) == []


@pytest.mark.parametrize(
    "said",
    [
        "a",
        {},
        0,
        [],
        AIMessageChunk("", additional_kwargs={"reasoning_content": "hm"}),
        AIMessageChunk(
            "",
            tool_call_chunks=[
                {"name": "f", "args": "", "id": "1", "index": 0, "type": "tool_call_chunk"}
            ],
        ),
    ],
)
def test_what_somebody_may_read_is_not_held(said):
    assert StreamHead().take(said) == [said]


def test_not_more_than_a_hundred_are_held():
    opening = StreamHead()
    gone = [opening.take("") for _ in range(101)]
    assert [len(chunks) for chunks in gone[-3:]] == [0, 100, 1]


def test_a_stream_that_said_nothing_is_judged_as_a_whole():
    with pytest.raises(NoAnswerError, match="nothing"):
        StreamHead().remaining_chunks(accepted)
    opening = StreamHead()
    opening.take("")
    seen = []
    assert opening.remaining_chunks(seen.append) == [""]
    assert seen == [""]


def test_chunks_add_up_or_the_last_stands_for_all():
    assert join_chunks([]) is None
    assert join_chunks(["a", "b"]) == "ab"
    assert join_chunks([{"a": 1}, {"b": 2}]) == {"b": 2}
