"""The local engine: one event loop, so many cases at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

__all__ = ["each"]

Item = TypeVar("Item")
Result = TypeVar("Result")


async def each(
    items: Sequence[Item],
    work: Callable[[Item], Awaitable[Result]],
    concurrency: int,
    done: Callable[[int, int], None],
) -> list[Result]:
    """Work on all items and return the results in the items' order.

    Parameters
    ----------
    items : sequence
    work : async callable
        Called once with each item. The first exception ends the rest and is raised.
    concurrency : int
        How many are under way at once.
    done : callable
        Called with how many are done, and how many there are.
    """
    gate = asyncio.Semaphore(concurrency)
    count = 0

    async def one(item: Item) -> Result:
        nonlocal count
        async with gate:
            result = await work(item)
        count += 1
        done(count, len(items))
        return result

    tasks = [asyncio.create_task(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
