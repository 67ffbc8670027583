"""The local engine keeps the order, the bound, and the first error."""

import asyncio
import weakref

import pytest

from misslink.timeouts import map_concurrently


def test_results_come_in_the_order_of_the_items_whoever_is_done_first():
    gates = [asyncio.Event() for _ in range(3)]
    finished = []

    async def work(item):
        if item < 2:
            await gates[item + 1].wait()  # each waits for its successor
        gates[item].set()
        finished.append(item)
        return item * 10

    seen = []
    found = asyncio.run(
        map_concurrently(range(3), work, 3, lambda done, total: seen.append((done, total)))
    )
    assert finished == [2, 1, 0]
    assert found == [0, 10, 20]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_never_more_than_so_many_are_under_way():
    under_way = 0
    most = 0

    async def work(item):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(3):
            await asyncio.sleep(0)  # lets the others run, were they allowed to
        under_way -= 1
        return item

    asyncio.run(map_concurrently(range(20), work, 4, lambda *_: None))
    assert most == 4


def test_the_first_error_ends_the_rest():
    started = []

    async def work(item):
        started.append(item)
        if item == 1:
            raise ValueError("broken")
        await asyncio.Event().wait()

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(map_concurrently(range(100), work, 2, lambda *_: None))
    assert len(started) < 5


def test_nothing_to_do_is_done():
    assert asyncio.run(map_concurrently([], None, 3, None)) == []


def test_no_more_work_exists_than_is_under_way_however_many_items_there_are():
    alive = weakref.WeakSet()

    class Work:
        """An awaitable that can be counted."""

        def __init__(self, item):
            self.item = item
            alive.add(self)

        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return self.item

    most = 0

    async def work(item):
        nonlocal most
        held = Work(item)
        most = max(most, len(alive), len(asyncio.all_tasks()) - 1)  # this test's own is no work
        return await held

    found = asyncio.run(map_concurrently(range(1000), work, 4, lambda *_: None))
    assert found == list(range(1000))
    assert most == 4


def test_items_are_made_one_by_one_as_places_come_free():
    made = []
    ahead = []

    def items():
        for item in range(30):
            made.append(item)
            yield item

    finished = []

    async def work(item):
        ahead.append(len(made) - len(finished))
        await asyncio.sleep(0)
        finished.append(item)
        return item

    seen = []
    found = asyncio.run(
        map_concurrently(items(), work, 3, lambda done, total: seen.append((done, total)), total=30)
    )
    assert found == list(range(30))
    assert max(ahead) == 3
    assert seen[-1] == (30, 30)


def test_items_of_unknown_number_are_refused_before_any_is_made():
    with pytest.raises(TypeError, match="total"):
        asyncio.run(map_concurrently(iter([1]), None, 3, None))


def test_an_item_that_cannot_be_made_ends_the_rest():
    ended = []

    def items():
        yield 0
        yield 1
        raise ValueError("the file is cut")

    async def work(item):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    with pytest.raises(ValueError, match="the file is cut"):
        asyncio.run(map_concurrently(items(), work, 3, lambda *_: None, total=3))
    assert sorted(ended) == [0, 1]


def test_whoever_stops_waiting_stops_the_work():
    ended = []
    second = asyncio.Event()

    async def work(item):
        if item == 1:
            second.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    async def stopped():
        running = asyncio.create_task(map_concurrently(range(9), work, 2, lambda *_: None))
        await second.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(stopped())
    assert sorted(ended) == [0, 1]
