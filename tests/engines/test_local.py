"""The local engine keeps the order, the bound, and the first error."""

from __future__ import annotations

import asyncio

import pytest

from misslink.engines.local import each


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
    found = asyncio.run(each(range(3), work, 3, lambda done, total: seen.append((done, total))))
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

    asyncio.run(each(range(20), work, 4, lambda *_: None))
    assert most == 4


def test_the_first_error_ends_the_rest():
    started = []

    async def work(item):
        started.append(item)
        if item == 1:
            raise ValueError("broken")
        await asyncio.Event().wait()

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(each(range(100), work, 2, lambda *_: None))
    assert len(started) < 5


def test_nothing_to_do_is_done():
    assert asyncio.run(each([], None, 3, None)) == []
