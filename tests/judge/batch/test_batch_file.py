"""What a line of a file says, and how one is written."""

from __future__ import annotations

import json

import pytest

from misslink.judge.batch.batch_file import BatchLine, input_line


def told(**fields):
    return json.dumps({"id": "r", "custom_id": "k", **fields}).encode()


def test_an_answer_has_its_status_and_its_body():
    line = BatchLine.read(told(response={"status_code": 200, "body": {"a": 1}}, error=None))
    assert (line.key, line.status, line.body, line.good) == ("k", 200, {"a": 1}, True)
    assert not BatchLine.read(told(response={"status_code": 500, "body": {}})).good


def test_a_question_that_was_not_put_says_why():
    line = BatchLine.read(
        told(response=None, error={"code": "batch_expired", "message": "too late"})
    )
    assert (line.status, line.problem, line.good) == (None, "too late", False)
    assert (
        BatchLine.read(told(response=None, error={"code": "batch_expired"})).problem
        == "batch_expired"
    )
    assert BatchLine.read(told()).problem == "it was not processed, and no reason is given"


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[1]", b'"k"', b"{}", b'{"custom_id": 3}', b"\xff\xfe", b"[" * 100_000, b"null"],
)
def test_what_is_no_line_is_none(raw):
    assert BatchLine.read(raw) is None


@pytest.mark.parametrize("response", [3, [], {"status_code": "200"}, {"status_code": True}, {}])
def test_a_strange_answer_is_none_at_all(response):
    assert BatchLine.read(told(response=response)).status is None


@pytest.mark.parametrize("text", ["a\nb\r\u2028\x85\u2029c", "half \ud800 of a pair", "äöü 漢字"])
def test_a_line_is_one_line_whatever_it_asks(text):
    body = {"messages": [{"role": "user", "content": text}]}
    line = input_line("k" * 64, "/chat/completions", body)
    assert line.decode().splitlines(keepends=True) == [line.decode()]
    assert json.loads(line) == {
        "custom_id": "k" * 64,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }
