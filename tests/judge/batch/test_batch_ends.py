"""However a batch ends, no answer that was paid for is lost and none is paid for twice."""

import asyncio
import logging

import pytest

from in_batches import ask_all, came
from judge_faults import Reset, error
from misslink.engines.batch import BatchEngine
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.batch.queue import BatchQueue, BatchTiming
from misslink.judge.batch.service import pending_batches


def test_an_expired_batch_counts_as_far_as_it_came(server, tmp_path, caplog):
    server.end = lambda number: "expired" if number == 0 else "completed"
    replies, _ = ask_all(server, tmp_path, 9)
    assert came(replies) == [True] * 9
    assert [len(batch) for batch in server.questions] == [8, 4]
    assert set(server.asked.values()) == {1}


def test_a_cancelled_batch_ends_the_run_and_the_next_one_goes_on(server, tmp_path):
    server.end = lambda number: "cancelled" if number == 0 else "completed"
    with pytest.raises(JudgeUnreachableError, match=r"batch_0 was cancelled with 4 questions open"):
        ask_all(server, tmp_path, 9)
    replies, spent = ask_all(server, tmp_path, 9)
    assert came(replies) == [True] * 9
    assert [len(batch) for batch in server.questions] == [8, 4]
    assert spent["from_cache"] == 5


def test_a_batch_that_is_refused_is_told_with_what_is_wrong(server, tmp_path):
    server.end = lambda _: "failed"
    server.problems = [{"code": "invalid_json_line", "message": "This line is no JSON", "line": 3}]
    with pytest.raises(
        JudgeUnreachableError, match=r"refuses the batch batch_0: line 3: This line"
    ):
        ask_all(server, tmp_path, 4)
    assert pending_batches(tmp_path / "cache.sqlite") == []


def test_what_is_too_much_at_once_goes_out_in_parts(server, tmp_path):
    server.end = lambda number: "failed" if len(server.questions[number]) > 3 else "completed"
    server.problems = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    replies, _ = ask_all(server, tmp_path, 10)
    assert came(replies) == [True] * 10
    sizes = [len(batch) for batch in server.questions]
    begun = [size for size in sizes if size <= 3]
    assert sizes[0] == sum(begun) == sum(server.asked.values()) == 9
    assert set(server.asked.values()) == {1}


def test_a_look_that_shows_nothing_is_repeated(server, tmp_path):
    looks = iter(range(100))

    def meddle(method, path):
        if method == "GET" and "batch_" in path and next(looks) < 4:
            return error(500, "out of order")
        return None

    server.meddle = meddle
    replies, _ = ask_all(server, tmp_path, 4)
    assert came(replies) == [True] * 4
    assert len(server.batches) == 1


def test_a_server_whose_looks_fail_for_good_is_given_up_and_nothing_is_asked_again(
    server, tmp_path
):
    server.meddle = lambda _, path: error(502, "away") if "batch_" in path else None
    with pytest.raises(JudgeUnreachableError, match=r"show a batch, which continues.*502: away"):
        ask_all(server, tmp_path, 4)
    (out,) = pending_batches(tmp_path / "cache.sqlite")
    assert (out["batch"], out["waiting"]) == ("batch_0", 3)
    server.meddle = None
    replies, _ = ask_all(server, tmp_path, 4)
    assert came(replies) == [True] * 4
    assert len(server.batches) == 1
    assert pending_batches(tmp_path / "cache.sqlite") == []


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_without_batches_is_told_and_the_way_out_named(server, tmp_path, status):
    server.meddle = lambda *_: error(status, "no such path")
    with pytest.raises(InputError, match=r"has no batch API .* use --engine local"):
        ask_all(server, tmp_path, 4)
    assert server.batches == {}
    assert len(server.calls) == (0 if status == 404 else 1)


def test_a_refused_key_is_told_before_anything_is_submitted(server, tmp_path):
    server.key = "another"
    with pytest.raises(JudgeUnreachableError, match=r"refuses the key \(HTTP 401\)"):
        ask_all(server, tmp_path, 4)
    assert server.files == {}


def test_answers_that_are_kept_no_more_are_asked_anew(server, tmp_path, caplog):
    gone = iter([True])

    def meddle(method, path):
        return error(404, "no such file") if path.endswith("content") and next(gone, 0) else None

    server.meddle = meddle
    with caplog.at_level(logging.WARNING):
        replies, _ = ask_all(server, tmp_path, 5)
    assert came(replies) == [True] * 5
    assert "the answers of batch batch_0 do not exist any more" in caplog.text
    assert [len(batch) for batch in server.questions] == [4, 4]


@pytest.mark.parametrize(("misses", "submitted"), [(1, 1), (4, 1), (50, 2)])
def test_a_batch_is_asked_anew_only_where_it_is_surely_gone(
    server, tmp_path, caplog, misses, submitted
):
    gone = iter([True] * misses)

    def meddle(method, path):
        if method == "GET" and path.endswith("batch_0"):
            return error(404, "No batch found") if next(gone, False) else None
        return None

    server.meddle = meddle
    replies, _ = ask_all(server, tmp_path, 5)
    assert came(replies) == [True] * 5
    assert len(server.batches) == submitted
    assert ("batch batch_0 does not exist any more" in caplog.text) == (submitted == 2)


def test_with_another_account_s_key_nothing_is_paid_again(server, tmp_path):
    server.meddle = lambda _, path: error(502, "away") if "batch_" in path else None
    with pytest.raises(JudgeUnreachableError):
        ask_all(server, tmp_path, 4)
    server.meddle = lambda _, path: error(404, "No batch found") if "batch_" in path else None
    with pytest.raises(
        JudgeUnreachableError, match=r"not know the batch batch_0 of .* give the key"
    ):
        ask_all(server, tmp_path, 4)
    server.meddle = None
    assert came(ask_all(server, tmp_path, 4)[0]) == [True] * 4
    assert len(server.batches) == 1


@pytest.mark.slow
def test_where_little_may_be_queued_batches_wait_for_each_other_and_get_no_smaller(
    server, tmp_path
):
    def end(number):
        mine, *others = [list(server.batches.values())[number], *server.batches.values()]
        begun = [one for one in others if one["status"] in ("in_progress", "finalizing")]
        if mine["status"] != "validating":
            return "completed"
        queued = [server.files[one["input_file_id"]].count(b"\n") for one in (mine, *begun)]
        return "failed" if sum(queued) > 6 else "completed"

    server.end = end
    server.problems = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    replies, _ = ask_all(server, tmp_path, 80)
    assert came(replies) == [True] * 80
    assert set(server.asked.values()) == {1}
    done = [b for b in server.batches.values() if b["status"] == "completed"]
    sizes = [server.files[one["input_file_id"]].count(b"\n") for one in done]
    assert sum(sizes) == 79
    assert len(sizes) <= 79 / 2  # 79, 39, 19, 9, 4; after a failure it would be 79 of one question
    assert len(server.batches) <= 3 * len(sizes)


def test_answers_that_do_not_lie_there_yet_are_waited_for(server, tmp_path):
    late = iter([True, True])

    def meddle(method, path):
        if path.endswith("/content") and next(late, False):
            content = server.files[path.split("/")[3]]
            return 200, {}, iter([b"".join(content.splitlines(keepends=True)[:3])])
        return None

    server.meddle = meddle
    replies, _ = ask_all(server, tmp_path, 9)
    assert came(replies) == [True] * 9
    assert len(server.batches) == 1


def test_answers_of_which_no_file_is_named_are_not_paid_again(server, tmp_path):
    def late(method, path):
        found = server.batches.get("batch_0", {})
        if path.endswith("batch_0") and found["status"] == "completed":
            return 200, {}, {**found, "output_file_id": None}
        return None

    server.late = late
    told = r"does not give the answers of batch batch_0: its files hold 0 of 3"
    with pytest.raises(JudgeUnreachableError, match=told):
        ask_all(server, tmp_path, 4)
    server.late = None
    assert came(ask_all(server, tmp_path, 4)[0]) == [True] * 4
    assert len(server.batches) == 1


def test_a_server_that_shows_no_batch_is_told(server, tmp_path):
    server.meddle = lambda _, path: error(405, "no") if "batch_0" in path else None
    with pytest.raises(InputError, match=r"has no batch API"):
        ask_all(server, tmp_path, 4)


def test_the_wait_that_a_server_asks_for_is_kept(server, tmp_path):
    slept, busy = [], iter([True, True])

    async def sleep(seconds):
        slept.append(seconds)
        await asyncio.sleep(0)

    def meddle(_, path):
        told = path.endswith(("/files", "batch_0")) and next(busy, False)
        return (429, {"retry-after": "70"}, {"error": {"message": "slowly"}}) if told else None

    server.meddle = meddle
    engine = BatchEngine(BatchTiming(linger=0, first=1, longest=2, sleep=sleep))
    replies, _ = ask_all(server, tmp_path, 3, reach=engine.reach)
    assert came(replies) == [True] * 3
    assert slept.count(70) == 2


def test_a_fault_of_our_own_ends_the_run_and_fails_no_verdict(server, tmp_path, monkeypatch):
    def fault(*_):
        raise KeyError("ours")

    with monkeypatch.context() as patched:
        patched.setattr(BatchQueue, "_state", fault)
        with pytest.raises(
            JudgeUnreachableError, match=r"failed unexpectedly \(KeyError: 'ours'\)"
        ):
            ask_all(server, tmp_path, 4)
    assert came(ask_all(server, tmp_path, 4)[0]) == [True] * 4
    assert len(server.batches) == 1


def test_a_batch_whose_making_was_not_told_is_found_and_not_made_again(server, tmp_path):
    def late(method, path):
        if method == "POST" and path == "/v1/batches":
            raise Reset

    server.late = late
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert len(server.batches) == 1


def test_a_batch_is_found_on_a_later_page_of_the_list_by_its_file(server, tmp_path):
    def late(method, path):
        if method == "POST" and path == "/v1/batches":
            mine = server.batches["batch_0"]
            for n in range(250):  # of others, made since
                server.batches[f"other-{n}"] = {**mine, "id": f"other-{n}", "input_file_id": "x"}
            raise Reset

    server.late = late
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert len(server.batches) == 251
