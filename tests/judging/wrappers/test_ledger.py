from __future__ import annotations

import asyncio
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from honest_judge import small_ask
from judge_faults import after, broken_json, status
from judge_server import JudgeServer
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.models.openai import open_openai
from misslink.judging.protocol import Reply
from misslink.judging.wrappers.ledger import Ledger
from misslink.judging.wrappers.throttle import Throttle

KEY = "sk-secret-0123456789"
TESTS = Path(__file__).parents[2]
ASK_IN_A_PROCESS = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from honest_judge import small_ask
from misslink.judging.opening import open_judge
from misslink.judging.terms import Terms

async def put(url, path, count, concurrency):
    terms = Terms(base_url=url)
    judge = open_judge(
        "openai:test-judge", ledger=Path(path), concurrency=int(concurrency), terms=terms
    )
    asks = [small_ask(n) for n in range(int(count))]
    replies = await asyncio.gather(*(judge.ask(ask) for ask in asks))
    await judge.close()
    spent = judge.usage()
    print(sum(r.parsed is not None for r in replies), spent["calls"], spent["from_ledger"])

asyncio.run(put(*sys.argv[2:]))
"""


@asynccontextmanager
async def ledger(server, path, concurrency=8, **options):
    settings = {"base_url": server.url, "max_retries": 0, **options}
    judge = Ledger(Throttle(open_openai("test-judge", **settings), concurrency), path)
    try:
        yield judge
    finally:
        await judge.close()


def replies(server, path, numbers, **options):
    """Ask once each; return the replies and the ledger."""

    async def put():
        async with ledger(server, path, **options) as judge:
            asks = (judge.ask(small_ask(n)) for n in numbers)
            return await asyncio.gather(*asks), judge

    return asyncio.run(put())


def process(server, path, count, concurrency=4):
    command = [sys.executable, "-c", ASK_IN_A_PROCESS, TESTS, server.url, path]
    return subprocess.Popen(
        [*command, str(count), str(concurrency)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_second_run_asks_nothing_and_gets_the_same(judge_server, tmp_path):
    path = tmp_path / "new" / "folder" / "ledger.sqlite"
    first, before = replies(judge_server, path, range(6))
    second, after_that = replies(judge_server, path, range(6))
    assert len(judge_server.calls) == 6
    assert [reply.parsed for reply in second] == [reply.parsed for reply in first]
    assert [reply.usage for reply in second] == [reply.usage for reply in first]
    assert [reply.raw for reply in second] == [reply.raw for reply in first]
    assert not any(reply.from_ledger for reply in first)
    assert all(reply.from_ledger for reply in second)
    tokens = sum(reply.usage.prompt_tokens for reply in first)
    assert before.usage()["prompt_tokens"] == tokens
    assert (before.calls, before.from_ledger) == (6, 0)
    assert after_that.usage() == {
        "calls": 0,
        "from_ledger": 6,
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
    assert [reply.from_ledger for reply in found] == [False, True, True, False]
    assert (judge.calls, judge.from_ledger) == (2, 2)


@pytest.mark.parametrize("options", [{"temperature": 0.5}, {"seed": 1}, {"max_tokens": 9}])
def test_another_setting_is_another_question(judge_server, tmp_path, options):
    replies(judge_server, tmp_path / "l", [1])
    replies(judge_server, tmp_path / "l", [1], **options)
    assert len(judge_server.calls) == 2


def test_the_key_and_the_retries_are_no_part_of_the_question(judge_server, tmp_path):
    replies(judge_server, tmp_path / "l", [1], api_key="sk-one", max_retries=0)
    replies(judge_server, tmp_path / "l", [1], api_key="sk-two", max_retries=3, timeout=9)
    assert len(judge_server.calls) == 1


def test_each_repetition_is_a_question_of_its_own(judge_server, tmp_path):
    async def put():
        async with ledger(judge_server, tmp_path / "l") as judge:
            for repeat in (0, 1, 2, 1):
                await judge.ask(replace(small_ask(1), repeat=repeat))
            return judge.calls, judge.from_ledger

    assert asyncio.run(put()) == (3, 1)


def test_an_unreadable_reply_was_paid_for_and_is_kept(judge_server, tmp_path):
    judge_server.script = broken_json
    (first,), _ = replies(judge_server, tmp_path / "l", [1])
    judge_server.script = None
    (second,), _ = replies(judge_server, tmp_path / "l", [1])
    assert len(judge_server.calls) == 1
    assert second.parsed is None
    assert (second.raw, second.problem) == (first.raw, first.problem)


def test_what_never_came_is_asked_again(judge_server, tmp_path):
    judge_server.script = after(1, status(500))
    (first,), judge = replies(judge_server, tmp_path / "l", [1])
    assert first.parsed is None
    assert judge.usage() == {
        "calls": 1,
        "from_ledger": 0,
        "prompt_tokens": None,
        "completion_tokens": None,
    }
    (second,), _ = replies(judge_server, tmp_path / "l", [1])
    assert second.parsed is not None


def test_it_knows_whether_it_holds_replies_of_this_judge(judge_server, tmp_path):
    async def holds(**options):
        async with ledger(judge_server, tmp_path / "l", **options) as judge:
            return judge.holds_any()

    assert not asyncio.run(holds())
    replies(judge_server, tmp_path / "l", [1])
    assert asyncio.run(holds())
    assert not asyncio.run(holds(seed=1))


def test_probabilities_come_back_too(tmp_path):
    class Sure:
        name = "sure"
        identity = {"judge": "sure"}  # noqa: RUF012 - a constant of this test

        async def ask(self, ask):
            answer = {"claims": [], "passages": [], "response": "answers"}
            parsed = ask.schema.model_validate(answer)
            return Reply(parsed, "raw", probabilities={"claims.0.support": {"supported": 0.25}})

        async def close(self):
            pass

    async def put():
        judge = Ledger(Sure(), tmp_path / "l")
        found = [await judge.ask(small_ask(1)) for _ in range(2)]
        await judge.close()
        return found, judge.calls

    found, calls = asyncio.run(put())
    assert calls == 1
    assert [reply.probabilities for reply in found] == [
        {"claims.0.support": {"supported": 0.25}}
    ] * 2
    assert [reply.usage for reply in found] == [None, None]


def test_the_row_can_be_read_by_people_and_holds_no_key(judge_server, tmp_path):
    judge_server.key = KEY
    judge_server.script = lambda _: f"I was given {KEY}"
    path = tmp_path / "l"
    replies(judge_server, path, [1], api_key=KEY)
    with sqlite3.connect(path) as file:
        file.row_factory = sqlite3.Row
        (row,) = file.execute("SELECT * FROM replies").fetchall()
    assert (row["judge"], row["prompt"]) == ("openai:test-judge", "examination")
    assert "The sky over town 1" in row["messages"]
    assert row["raw"] == "I was given [key]"
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_call_nobody_waits_for_any_more_is_kept(judge_server, tmp_path):
    arrived, go_on = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        go_on.wait(10)

    async def put():
        async with ledger(judge_server, tmp_path / "l", concurrency=1) as judge:
            asked = [asyncio.create_task(judge.ask(small_ask(n))) for n in range(3)]
            await asyncio.to_thread(arrived.wait, 10)
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            go_on.set()

    judge_server.script = slow
    asyncio.run(put())
    assert len(judge_server.calls) == 1  # those that waited for a place are not asked any more
    (kept,), judge = replies(judge_server, tmp_path / "l", [0])
    assert kept.parsed is not None
    assert judge.calls == 0


def test_a_killed_run_repeats_no_finished_call(judge_server, tmp_path):
    sixth = threading.Event()

    def hang(_):
        sixth.set()
        judge_server.wait_until_stopped()

    judge_server.script = after(5, lambda _: None, hang)
    with process(judge_server, tmp_path / "l", 20, concurrency=1) as running:
        assert sixth.wait(30)
        running.send_signal(signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL
    assert judge_server.answered == 5

    judge_server.script = None
    found, judge = replies(judge_server, tmp_path / "l", range(20))
    assert all(reply.parsed for reply in found)
    assert (judge.calls, judge.from_ledger) == (15, 5)


def test_two_processes_share_a_new_ledger(judge_server, tmp_path):
    both = [process(judge_server, tmp_path / "l", 30) for _ in range(2)]
    said = [running.communicate(timeout=60) for running in both]
    assert [running.returncode for running in both] == [0, 0], said
    assert all(out.startswith("30 ") for out, _ in said)
    _, judge = replies(judge_server, tmp_path / "l", range(30))
    assert (judge.calls, judge.from_ledger) == (0, 30)


def test_of_two_replies_to_one_ask_the_first_stored_serves_both(judge_server, tmp_path):
    arrived, go_on = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        go_on.wait(10)
        return "said first, stored second"

    judge_server.script = after(1, slow, lambda _: "said second, stored first")

    async def put():
        path = tmp_path / "l"
        async with ledger(judge_server, path) as ours, ledger(judge_server, path) as theirs:
            waiting = asyncio.create_task(ours.ask(small_ask(1)))
            await asyncio.to_thread(arrived.wait, 10)
            quick = await theirs.ask(small_ask(1))
            go_on.set()
            return quick, await waiting

    quick, waited = asyncio.run(put())
    assert quick.raw == waited.raw == "said second, stored first"
    assert not waited.from_ledger
    assert len(judge_server.calls) == 2


def test_a_kept_reply_that_no_longer_fits_is_a_failure_not_a_crash(judge_server, tmp_path):
    path = tmp_path / "l"
    replies(judge_server, path, [1])
    with sqlite3.connect(path) as file:
        file.execute("UPDATE replies SET parsed = '{}'")
    (reply,), _ = replies(judge_server, path, [1])
    assert reply.parsed is None
    assert "does not fit the answer schema any more" in reply.problem


@contextmanager
def no_file_may_grow_beyond(size):
    """What a full disk does to a file, done by the operating system."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_up_stops_the_asking(judge_server, tmp_path):
    path = tmp_path / "l"

    async def put():
        async with ledger(judge_server, path) as judge:
            await judge.ask(small_ask(0))
            with no_file_may_grow_beyond(path.with_name("l-wal").stat().st_size):
                for n in (1, 2, 3):
                    with pytest.raises(InputError, match="disk"):
                        await judge.ask(small_ask(n))
                assert (await judge.ask(small_ask(0))).from_ledger

    asyncio.run(put())
    assert len(judge_server.calls) == 2
