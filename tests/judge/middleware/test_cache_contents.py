"""What a response cache keeps of a reply, and what is never in it."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from judge_faults import broken_json
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.protocol import LabelAlone, Reply
from misslink.types import Usage
from through_cache import cache, put_to, replies

KEY = "sk-secret-0123456789"


def test_an_unreadable_reply_was_paid_for_and_is_kept(judge_server, tmp_path):
    judge_server.script = broken_json
    (first,), _ = replies(judge_server, tmp_path / "l", [1])
    judge_server.script = None
    (second,), _ = replies(judge_server, tmp_path / "l", [1])
    assert len(judge_server.calls) == 1
    assert second.parsed is None
    assert (second.raw, second.problem) == (first.raw, first.problem)


def test_probabilities_come_back_too(tmp_path):
    chances = {"claims.0.support": {"supported": 0.25}}
    sure = FakeJudge(lambda ask: Reply(answer_to(ask), "raw", probabilities=chances))

    async def put():
        judge = CachedJudge(sure, tmp_path / "l")
        found = [await judge.ask(small_ask(1)) for _ in range(2)]
        await judge.close()
        return found, judge.calls

    found, calls = asyncio.run(put())
    assert calls == 1
    assert [reply.probabilities for reply in found] == [chances] * 2
    assert [reply.usage for reply in found] == [None, None]


def test_one_word_that_a_judge_gave_at_once_comes_back_too(tmp_path):
    word = Reply(LabelAlone(supported="no"), "no", judge="somebody")
    put_to(FakeJudge(word), tmp_path / "l", small_ask(1))
    (kept,), _ = put_to(FakeJudge(), tmp_path / "l", small_ask(1))
    assert kept == replace(word, from_cache=True)


def test_what_no_file_can_hold_is_kept_as_well_as_can_be(tmp_path):
    half = "half \ud800 of a character"
    usage_beyond_belief = Usage(prompt_tokens=10**30)
    readable = Reply(
        small_ask(1).schema(
            claims=[{"text": half, "support": "supported"}], passages=(), response="answers"
        ),
        half,
        Usage(prompt_tokens=10**30, completion_tokens=7),
    )
    for number, reply in enumerate(
        (Reply(None, half, usage_beyond_belief, problem=half), readable)
    ):
        (now,), usage = put_to(FakeJudge(reply), tmp_path / "l", small_ask(number))
        (later,), _ = put_to(FakeJudge(), tmp_path / "l", small_ask(number))
        assert later == replace(now, from_cache=True)
        assert now.raw == "half ? of a character"
        assert usage["prompt_tokens"] is None
    assert now.parsed.claims[0].text == "half ? of a character"
    assert now.usage == Usage(completion_tokens=7)


def test_a_kept_reply_that_no_longer_fits_is_a_failure_not_a_crash(judge_server, tmp_path):
    path = tmp_path / "l"
    replies(judge_server, path, [1])
    with sqlite3.connect(path) as file:
        file.execute("UPDATE replies SET parsed = '{}'")
    (reply,), _ = replies(judge_server, path, [1])
    assert reply.parsed is None
    assert "does not fit the answer schema any more" in reply.problem


def test_a_text_that_is_asked_twice_is_kept_once(judge_server, tmp_path):
    async def put():
        async with cache(judge_server, tmp_path / "l") as judge:
            for ask in (small_ask(1), replace(small_ask(1), repeat=1), small_ask(2)):
                await judge.ask(ask)

    asyncio.run(put())
    with sqlite3.connect(tmp_path / "l") as file:
        texts = [text for (text,) in file.execute("SELECT content FROM texts")]
    system, first, second = (
        small_ask(1).messages[0]["content"],
        small_ask(1).messages[1]["content"],
        small_ask(2).messages[1]["content"],
    )
    assert texts == [system, first, second]


def test_no_byte_of_the_key_or_a_header_is_in_the_files(judge_server, tmp_path):
    judge_server.key = KEY
    judge_server.script = lambda _: f"I was given {KEY}"
    folder = tmp_path / "kept"

    async def put():
        async with cache(judge_server, folder / "l", api_key=KEY) as judge:
            await judge.ask(small_ask(1))
            return {file.name: file.read_bytes() for file in folder.iterdir()}

    in_use = asyncio.run(put())
    assert set(in_use) == {"l", "l-wal", "l-shm"}
    closed = {file.name: file.read_bytes() for file in folder.iterdir()}
    for files in (in_use, closed):
        content = b"".join(files.values())
        assert b"I was given [key]" in content  # what was said is there
        assert KEY.encode() not in content
        assert not any(word in content.lower() for word in (b"bearer", b"authorization"))
