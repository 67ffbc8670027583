"""What is paid for once is not paid for again, whatever ends the run."""

import asyncio
import json
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from judge_faults import after, broken_json, no_schema, status
from judge_server import JudgeServer
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.backends.openai import open_openai
from misslink.judge.backends.response_parsing import DECLINED, WITHHELD
from misslink.judge.config import DEFAULTS, JudgeConfig
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import Reply, SkippedAskError
from misslink.types import Usage


@asynccontextmanager
async def cache(server, path, concurrency=8, **options):
    settings = {"base_url": server.url, **options}
    judge = CachedJudge(
        ThrottledJudge(open_openai("test-judge", **settings), concurrency, JudgeConfig(retries=0)),
        path,
    )
    try:
        yield judge
    finally:
        await judge.close()


def replies(server, path, numbers, **options):
    """Ask once each; return the replies and the cache."""

    async def put():
        async with cache(server, path, **options) as judge:
            asks = (judge.ask(small_ask(n)) for n in numbers)
            return await asyncio.gather(*asks), judge

    return asyncio.run(put())


def put_to(judge, path, *asks):
    """Ask a judge through a response cache; return the replies and the usage."""

    async def put():
        kept = CachedJudge(ThrottledJudge(judge, 4, JudgeConfig(retries=0)), path)
        try:
            return [await kept.ask(ask) for ask in asks], kept.usage()
        finally:
            await kept.close()

    return asyncio.run(put())


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
    assert before.usage().prompt_tokens == tokens
    assert (before.calls, before.from_cache) == (6, 0)
    assert after_that.usage() == (0, 6, 0, 0, None)


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


@pytest.mark.parametrize("options", [{"temperature": 0.5}, {"max_tokens": 9}])
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
    assert judge.usage() == (1, 0, None, None, None)
    (second,), _ = replies(judge_server, tmp_path / "l", [1])
    assert second.parsed is not None


@pytest.mark.parametrize(
    "trouble", [SkippedAskError("max_calls 1 is used up"), JudgeUnreachableError("gone")]
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

    assert asyncio.run(put()).calls == 0
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
    assert not asyncio.run(holds(temperature=1.0))


def test_whether_a_reply_is_kept_is_known_without_asking(judge_server, tmp_path):
    async def held(**options):
        async with cache(judge_server, tmp_path / "l", **options) as judge:
            asks = (small_ask(1), replace(small_ask(1), repeat=1), small_ask(2))
            return [judge.is_cached(ask) for ask in asks]

    replies(judge_server, tmp_path / "l", [1])
    assert asyncio.run(held()) == [True, False, False]
    assert asyncio.run(held(temperature=1.0)) == [False, False, False]
    assert len(judge_server.calls) == 1


def test_what_earlier_replies_used_is_told_newest_first(judge_server, tmp_path):
    judge_server.script = after(3, lambda _: None, lambda _: "no JSON at all")
    replies(judge_server, tmp_path / "l", [1])
    replies(judge_server, tmp_path / "l", [2])
    replies(judge_server, tmp_path / "l", [3], temperature=0.7)  # another judge

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
    assert usage.prompt_tokens is usage.completion_tokens is None
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


KEY = "sk-secret-0123456789"


def test_an_unreadable_reply_was_paid_for_and_is_kept(judge_server, tmp_path):
    judge_server.script = broken_json
    (first,), _ = replies(judge_server, tmp_path / "l", [1])
    judge_server.script = None
    (second,), _ = replies(judge_server, tmp_path / "l", [1])
    assert len(judge_server.calls) == 1
    assert second.parsed is None
    assert (second.raw, second.problem) == (first.raw, first.problem)


def test_what_no_file_can_hold_is_kept_as_well_as_can_be(tmp_path):
    half = "half \ud800 of a character"
    usage_beyond_belief = Usage(prompt_tokens=10**30)
    readable = Reply(
        small_ask(1).schema(
            claims=[{"claim": half, "support": "supported"}], passages=(), response="answers"
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
        assert usage.prompt_tokens is None
    assert now.parsed.claims[0].claim == "half ? of a character"
    assert now.usage == Usage(completion_tokens=7)


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


TESTS = Path(__file__).parents[2] / "builders"
ASK_IN_A_PROCESS = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from honest_judge import small_ask
from misslink.judge.session import open_judge
from misslink.judge.config import JudgeConfig

async def put(url, path, count, concurrency):
    terms = JudgeConfig(base_url=url)
    judge = open_judge(
        "openai:test-judge", cache=Path(path), concurrency=int(concurrency), terms=terms
    )
    asks = [small_ask(n) for n in range(int(count))]
    replies = await asyncio.gather(*(judge.ask(ask) for ask in asks))
    await judge.close()
    spent = judge.usage()
    print(sum(r.parsed is not None for r in replies), spent.calls, spent.from_cache)

asyncio.run(put(*sys.argv[2:]))
"""


def process(server, path, count, concurrency=4):
    command = [sys.executable, "-c", ASK_IN_A_PROCESS, TESTS, server.url, path]
    return subprocess.Popen(
        [*command, str(count), str(concurrency)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
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
    assert (judge.calls, judge.from_cache) == (15, 5)


def test_a_call_nobody_waits_for_any_more_is_kept(judge_server, tmp_path):
    arrived, go_on = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        go_on.wait(10)

    async def put():
        async with cache(judge_server, tmp_path / "l", concurrency=1) as judge:
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


@pytest.mark.slow
def test_processes_that_share_a_new_cache_ask_each_question_once(judge_server, tmp_path):
    judge_server.script = lambda _: time.sleep(0.02)
    both = [process(judge_server, tmp_path / "l", 30) for _ in range(2)]
    said = [running.communicate(timeout=300) for running in both]
    assert [running.returncode for running in both] == [0, 0], said
    assert all(out.startswith("30 ") for out, _ in said)
    assert len(judge_server.calls) == 30
    _, judge = replies(judge_server, tmp_path / "l", range(30))
    assert (judge.calls, judge.from_cache) == (0, 30)


@pytest.fixture
def two_askers(judge_server, tmp_path):
    """Ask one question through two caches of a file, the first of which waits for `go_on`."""
    arrived, go_on = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        go_on.wait(10)
        return "asked first"

    judge_server.script = after(1, slow, lambda _: "asked second")

    def run(meanwhile):
        async def put():
            path = tmp_path / "l"
            async with cache(judge_server, path) as ours, cache(judge_server, path) as theirs:
                first = asyncio.create_task(ours.ask(small_ask(1)))
                await asyncio.to_thread(arrived.wait, 10)
                second = asyncio.create_task(theirs.ask(small_ask(1)))
                await meanwhile(path, first, second, go_on.set)
                return await first, await second

        return asyncio.run(put())

    return run


def test_a_question_that_another_process_asks_is_waited_for(two_askers, judge_server):
    async def wait(path, first, second, go_on):
        await asyncio.sleep(0.2)
        assert not second.done()
        go_on()

    first, second = two_askers(wait)
    assert first.raw == second.raw == "asked first"
    assert (first.from_cache, second.from_cache) == (False, True)
    assert len(judge_server.calls) == 1


@pytest.mark.parametrize(
    "lost", ["UPDATE claims SET expires = 0", "UPDATE claims SET process = 999999999"]
)
def test_the_claim_of_a_process_that_is_gone_is_taken_over(two_askers, judge_server, lost):
    """Of two replies to one question the first that is stored serves both."""

    async def lose(path, first, second, go_on):
        with sqlite3.connect(path) as file:
            file.execute(lost)
        await second
        go_on()

    first, second = two_askers(lose)
    assert first.raw == second.raw == "asked second"
    assert len(judge_server.calls) == 2


def test_a_question_that_failed_is_free_for_others(judge_server, tmp_path):
    judge_server.script = after(1, status(500))

    async def put():
        path = tmp_path / "l"
        async with cache(judge_server, path) as ours, cache(judge_server, path) as theirs:
            return await ours.ask(small_ask(1)), await theirs.ask(small_ask(1))

    first, second = asyncio.run(put())
    assert (first.parsed is None, second.parsed is None) == (True, False)


def test_refused_questions_are_asked_again_on_request_and_others_are_not(tmp_path):
    said = {1: f"{DECLINED} (sorry)", 2: f"{WITHHELD} (content_filter)", 3: "not JSON"}

    def ask_all(reply, config=DEFAULTS):
        async def put():
            judge = FakeJudge(reply)
            kept = CachedJudge(judge, tmp_path / "l", config)
            found = [await kept.ask(small_ask(n)) for n in said]
            await kept.close()
            return kept.calls, [one.problem for one in found]

        return asyncio.run(put())

    problems = iter(said.values())
    ask_all(lambda _: Reply(None, "no", problem=next(problems)))
    good = Reply(answer_to(small_ask(1)), "yes")
    assert ask_all(good) == (0, list(said.values()))
    assert ask_all(good, JudgeConfig(retry_refused=True)) == (2, [None, None, "not JSON"])


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
        async with cache(judge_server, path) as judge:
            await judge.ask(small_ask(0))
            with no_file_may_grow_beyond(path.with_name("l-wal").stat().st_size):
                for n in (1, 2, 3):
                    with pytest.raises(InputError, match="disk"):
                        await judge.ask(small_ask(n))
                assert (await judge.ask(small_ask(0))).from_cache

    asyncio.run(put())
    assert len(judge_server.calls) == 1, "nothing is asked that could not be kept"
    found, judge = replies(judge_server, path, range(4))  # what was kept is whole, and it goes on
    assert all(reply.parsed for reply in found)
    assert (judge.calls, judge.from_cache) == (3, 1)
