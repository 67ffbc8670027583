"""A run that is killed, two at once, a call nobody waits for, a full disk."""

from __future__ import annotations

import asyncio
import resource
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from honest_judge import small_ask
from judge_faults import after
from misslink.errors import InputError
from through_cache import cache, replies

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
    print(sum(r.parsed is not None for r in replies), spent["calls"], spent["from_cache"])

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


def test_two_processes_share_a_new_cache(judge_server, tmp_path):
    both = [process(judge_server, tmp_path / "l", 30) for _ in range(2)]
    said = [running.communicate(timeout=60) for running in both]
    assert [running.returncode for running in both] == [0, 0], said
    assert all(out.startswith("30 ") for out, _ in said)
    _, judge = replies(judge_server, tmp_path / "l", range(30))
    assert (judge.calls, judge.from_cache) == (0, 30)


def test_of_two_replies_to_one_ask_the_first_stored_serves_both(judge_server, tmp_path):
    arrived, go_on = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        go_on.wait(10)
        return "said first, stored second"

    judge_server.script = after(1, slow, lambda _: "said second, stored first")

    async def put():
        path = tmp_path / "l"
        async with cache(judge_server, path) as ours, cache(judge_server, path) as theirs:
            waiting = asyncio.create_task(ours.ask(small_ask(1)))
            await asyncio.to_thread(arrived.wait, 10)
            quick = await theirs.ask(small_ask(1))
            go_on.set()
            return quick, await waiting

    quick, waited = asyncio.run(put())
    assert quick.raw == waited.raw == "said second, stored first"
    assert not waited.from_cache
    assert len(judge_server.calls) == 2


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
    assert len(judge_server.calls) == 2
    found, judge = replies(judge_server, path, range(4))  # what was kept is whole, and it goes on
    assert all(reply.parsed for reply in found)
    assert (judge.calls, judge.from_cache) == (3, 1)
