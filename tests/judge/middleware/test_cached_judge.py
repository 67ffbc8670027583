"""What is paid for once is not paid for again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from judge_faults import after, no_schema, status
from judge_server import JudgeServer
from misslink.errors import JudgeUnreachableError
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.protocol import Reply, SkippedAskError
from through_cache import cache, put_to, replies


def test_a_second_run_asks_nothing_and_gets_the_same(judge_server, tmp_path):
    path = tmp_path / "new" / "folder" / "cache.sqlite"
    first, before = replies(judge_server, path, range(6))
    second, after_that = replies(judge_server, path, range(6))
    assert len(judge_server.calls) == 6
    assert [reply.parsed for reply in second] == [reply.parsed for reply in first]
    assert [reply.usage for reply in second] == [reply.usage for reply in first]
    assert [reply.raw for reply in second] == [reply.raw for reply in first]
    assert not any(reply.from_cache for reply in first)
    assert all(reply.from_cache for reply in second)
    tokens = sum(reply.usage.prompt_tokens for reply in first)
    assert before.usage()["prompt_tokens"] == tokens
    assert (before.calls, before.from_cache) == (6, 0)
    assert after_that.usage() == {
        "calls": 0,
        "from_cache": 6,
        "prompt_tokens": 0,
        "completion_tokens": 0,
    }


def test_a_repeated_run_needs_no_server(tmp_path):
    with JudgeServer() as server:
        replies(server, tmp_path / "l", range(2))
    found, _ = replies(server, tmp_path / "l", range(2))
    assert all(reply.parsed for reply in found)
    with pytest.raises(JudgeUnreachableError):
        replies(server, tmp_path / "l", range(3))


def test_identical_asks_at_once_are_asked_once(judge_server):
    found, judge = replies(judge_server, None, [1, 1, 1, 2])
    assert len(judge_server.calls) == 2
    assert found[0].parsed == found[1].parsed == found[2].parsed
    assert [reply.from_cache for reply in found] == [False, True, True, False]
    assert (judge.calls, judge.from_cache) == (2, 2)


@pytest.mark.parametrize("options", [{"temperature": 0.5}, {"seed": 1}, {"max_tokens": 9}])
def test_another_setting_is_another_question(judge_server, tmp_path, options):
    replies(judge_server, tmp_path / "l", [1])
    replies(judge_server, tmp_path / "l", [1], **options)
    assert len(judge_server.calls) == 2


def test_the_key_is_no_part_of_the_question(judge_server, tmp_path):
    replies(judge_server, tmp_path / "l", [1], api_key="sk-one")
    replies(judge_server, tmp_path / "l", [1], api_key="sk-two")
    assert len(judge_server.calls) == 1


def test_each_repetition_is_a_question_of_its_own(judge_server, tmp_path):
    async def put():
        async with cache(judge_server, tmp_path / "l") as judge:
            for repeat in (0, 1, 2, 1):
                await judge.ask(replace(small_ask(1), repeat=repeat))
            return judge.calls, judge.from_cache

    assert asyncio.run(put()) == (3, 1)


def test_what_never_came_is_asked_again(judge_server, tmp_path):
    judge_server.script = after(1, status(500))
    (first,), judge = replies(judge_server, tmp_path / "l", [1])
    assert first.parsed is None
    assert judge.usage() == {
        "calls": 1,
        "from_cache": 0,
        "prompt_tokens": None,
        "completion_tokens": None,
    }
    (second,), _ = replies(judge_server, tmp_path / "l", [1])
    assert second.parsed is not None


@pytest.mark.parametrize(
    "trouble", [SkippedAskError("--max-calls 1 is used up"), JudgeUnreachableError("gone")]
)
def test_what_was_not_asked_is_no_call_and_not_kept(tmp_path, trouble):
    path = tmp_path / "l"

    async def put():
        judge = CachedJudge(FakeJudge(trouble), path)
        with pytest.raises(type(trouble)):
            await asyncio.gather(judge.ask(small_ask(1)), judge.ask(small_ask(1)))
        usage = judge.usage()
        await judge.close()
        return usage

    assert asyncio.run(put())["calls"] == 0
    (reply,), _ = put_to(
        FakeJudge(Reply(answer_to(small_ask(1), response="answers"), "said")), path, small_ask(1)
    )
    assert reply.parsed is not None
    assert not reply.from_cache


def test_it_knows_whether_it_holds_replies_of_this_judge(judge_server, tmp_path):
    async def holds(**options):
        async with cache(judge_server, tmp_path / "l", **options) as judge:
            return judge.has_replies()

    assert not asyncio.run(holds())
    replies(judge_server, tmp_path / "l", [1])
    assert asyncio.run(holds())
    assert not asyncio.run(holds(seed=1))


def test_whether_a_reply_is_kept_is_known_without_asking(judge_server, tmp_path):
    async def held(**options):
        async with cache(judge_server, tmp_path / "l", **options) as judge:
            asks = (small_ask(1), replace(small_ask(1), repeat=1), small_ask(2))
            return [judge.is_cached(ask) for ask in asks]

    replies(judge_server, tmp_path / "l", [1])
    assert asyncio.run(held()) == [True, False, False]
    assert asyncio.run(held(seed=1)) == [False, False, False]
    assert len(judge_server.calls) == 1


def test_what_earlier_replies_used_is_told_newest_first(judge_server, tmp_path):
    judge_server.script = after(3, lambda _: None, lambda _: "no JSON at all")
    replies(judge_server, tmp_path / "l", [1])
    replies(judge_server, tmp_path / "l", [2])
    replies(judge_server, tmp_path / "l", [3], seed=7)  # another judge

    async def spent(limit):
        async with cache(judge_server, tmp_path / "l") as judge:
            await judge.ask(small_ask(4))
            return judge.past_usage(limit)

    rows = asyncio.run(spent(10))
    assert [json.loads(row[0]) for row in rows] == [
        [dict(message) for message in small_ask(n).messages] for n in (4, 2, 1)
    ]
    assert rows[0][1] == "no JSON at all"
    assert json.loads(rows[1][1])["response"] == "answers"
    assert all(prompt > completion > 0 for _, _, prompt, completion in rows)
    assert asyncio.run(spent(1)) == rows[:1]


def test_replies_without_reported_tokens_teach_nothing_about_tokens(tmp_path):
    async def put():
        judge = CachedJudge(
            FakeJudge(Reply(answer_to(small_ask(1), response="answers"), "said")), tmp_path / "l"
        )
        await judge.ask(small_ask(1))
        usage, spent = judge.usage(), judge.past_usage(5)
        await judge.close()
        return usage, spent

    usage, spent = asyncio.run(put())
    assert usage["prompt_tokens"] is usage["completion_tokens"] is None
    assert spent == []


def test_what_a_judge_found_out_is_told_to_the_next_one(tmp_path):
    first = FakeJudge(
        Reply(answer_to(small_ask(1), response="answers"), "said"),
        abilities={"structure": "json_object", "price": {"in": 0.1}},
    )
    put_to(first, tmp_path / "l", small_ask(1))
    assert first.learned == []
    second = FakeJudge(
        Reply(answer_to(small_ask(1), response="answers"), "said"), abilities={"structure": "plain"}
    )
    put_to(second, tmp_path / "l", small_ask(1))  # asks nothing, so nothing new is found out
    assert second.learned == [{"structure": "json_object", "price": {"in": 0.1}}]
    put_to(second, tmp_path / "l", small_ask(2))
    third = FakeJudge()
    put_to(third, tmp_path / "l")
    assert third.learned == [{"structure": "plain"}]
    stranger = FakeJudge(name="another")
    put_to(stranger, tmp_path / "l")
    assert stranger.learned == []


def test_a_judge_without_abilities_is_told_none(tmp_path):
    put_to(
        FakeJudge(Reply(answer_to(small_ask(1), response="answers"), "said")),
        tmp_path / "l",
        small_ask(1),
    )
    again = FakeJudge()
    put_to(again, tmp_path / "l")
    assert again.learned == []


def test_a_resumed_run_asks_the_server_as_the_first_one_did(judge_server, tmp_path):
    judge_server.script = no_schema
    replies(judge_server, tmp_path / "l", [1])
    assert [call.status for call in judge_server.calls] == [400, 200]
    judge_server.calls.clear()
    replies(judge_server, tmp_path / "l", [2])
    (call,) = judge_server.calls
    assert (call.status, call.body["response_format"]["type"]) == (200, "json_object")
