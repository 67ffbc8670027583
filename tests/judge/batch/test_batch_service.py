"""Files and batches of a real server, of one that sends what is none, and when questions go out."""

import asyncio
import io
import json

import pytest

from misslink.judge.backends.connection import ServerError, http_status
from misslink.judge.backends.openai import open_openai
from misslink.judge.batch.queue import BatchQueue, BatchTiming
from misslink.judge.batch.service import BatchLine, BatchService, BatchState, input_line
from misslink.judge.protocol import RetryableError


def with_service(server, work):
    judge = open_openai("m", base_url=server.url, api_key="k")

    async def within():
        try:
            return await work(BatchService(judge.connection, 30.0))
        finally:
            await judge.close()

    return asyncio.run(within())


def test_what_goes_up_comes_down_cut_at_line_feeds_alone(server):
    content = 'a\u2028b\x0b\n\n{"c": "\x85"}\r\n'.encode() + b"x" * 200_000 + b"\n{}"

    async def round_trip(service):
        file = await service.upload("q.jsonl", io.BytesIO(content))
        return [line async for line in service.lines(file)]

    assert with_service(server, round_trip) == content.split(b"\n")


def test_a_line_without_an_end_does_not_fill_the_memory(server, monkeypatch):
    monkeypatch.setattr("misslink.judge.batch.service._MAX_LINE_BYTES", 1_000)
    server.files["file-x"] = b"{}\n" + b"x" * 1_000_000

    async def read(service):
        return [line async for line in service.lines("file-x")]

    with pytest.raises(RetryableError, match="file-x has a line without an end"):
        with_service(server, read)


@pytest.mark.parametrize("end", [b'{"a": ', b"{", b"nul"])
def test_a_file_that_ends_in_the_middle_of_a_line_broke_off(server, end):
    server.files["file-x"] = b"{}\n" + end

    async def read(service):
        return [line async for line in service.lines("file-x")]

    with pytest.raises(RetryableError, match="file-x broke off in the middle of a line"):
        with_service(server, read)


def test_a_file_that_is_shorter_than_was_said_broke_off(server):
    server.meddle = lambda *_: (200, {"content-length": "100"}, iter([b"{}\n"]))

    async def read(service):
        return [line async for line in service.lines("file-x")]

    with pytest.raises(RetryableError, match="file-x broke off"):
        with_service(server, read)


@pytest.mark.parametrize("sent", ["[]", "no JSON", "{}", '{"id": 3}', '{"id": ""}', "null"])
def test_an_answer_that_is_none_is_told(server, sent):
    server.meddle = lambda *_: (200, {}, sent)
    for work in (
        lambda service: service.upload("q.jsonl", io.BytesIO(b"{}\n")),
        lambda service: service.create("file-0", "/chat/completions"),
        lambda service: service.retrieve("batch_0"),
    ):
        with pytest.raises(RetryableError, match=r"\w"):
            with_service(server, work)


def test_a_list_that_never_ends_is_left(server):
    page = {"data": [{"id": "batch_1"}], "has_more": True}
    server.meddle = lambda *_: (200, {}, json.dumps(page))

    async def listed(service):
        return [state.id async for state in service.list_batches()]

    assert with_service(server, listed) == ["batch_1", "batch_1"]


def test_a_state_is_read_whatever_stands_in_it():
    strange = {"status": 3, "request_counts": [], "errors": {"data": 7}, "metadata": "x",
               "created_at": "now", "output_file_id": ["f"]}  # fmt: skip
    assert BatchState.of({"id": "b", **strange}) == BatchState(id="b")
    assert BatchState.of([]) is BatchState.of({}) is None
    counts = {"total": 3, "completed": 2, "failed": True}
    problems = [{"code": "c", "message": "wrong", "line": 4}, "text", {"code": "d"}]
    state = BatchState.of(
        {"id": "b", "status": "failed", "request_counts": counts, "errors": {"data": problems}}
    )
    assert (state.answered, state.failed, state.over) == (2, 0, True)
    assert state.problems == ["line 4: wrong", "d"]
    assert state.codes == ["c", "d"]


@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_the_error_of_a_line_is_that_of_a_request(status):
    body = {"error": {"message": "so it is", "code": "why", "param": "seed", "type": "t"}}
    found = ServerError(status, body)
    assert (found.status, found.code, found.param) == (status, "why", "seed")
    assert str(found) == "so it is"
    for strange in (None, "text", [], 3):
        assert http_status(ServerError(status, strange)) == status, strange


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


def a_queue():
    return BatchQueue(
        BatchService(None, 0.0), None, BatchTiming(0, 0, 0), "/chat/completions", 0, lambda _: None
    )


def test_nothing_goes_out_while_answers_are_read_however_slowly_they_come():
    async def within():
        flow = a_queue()
        flow.reading += 1
        quiet = asyncio.create_task(flow.wait_until_idle())
        for _ in range(200):
            await asyncio.sleep(0)
        waited = not quiet.done()
        flow.reading -= 1
        await quiet
        return waited

    assert asyncio.run(within())


def test_after_a_full_queue_one_goes_after_the_other():
    async def within():
        flow, most, now = a_queue(), 0, 0

        async def submit():
            nonlocal most, now
            async with flow.submission_turn():
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        await asyncio.gather(*(submit() for _ in range(5)))
        at_first = most
        most, flow.queue_full = 0, True
        await asyncio.gather(*(submit() for _ in range(5)))
        return at_first, most

    assert asyncio.run(within()) == (5, 1)
