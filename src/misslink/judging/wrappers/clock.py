"""How long one call takes, counted from its own beginning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from misslink.judging.protocol import Ask, Judge, Reply, TryAgainError

__all__ = ["ask_in_time"]


async def ask_in_time(judge: Judge, ask: Ask, seconds: float, begin: Callable[[], None]) -> Reply:
    """Ask, with so many seconds for the call itself.

    What must be waited for before the call begins does not count: a call whose time ran out in a
    queue would be paid for and lost. A judge that lets calls wait says so by one of two methods
    of its own. ``ask_in_time`` takes what this function takes, and calls it for the judge within;
    ``ready`` (async) comes home when a call can begin at once.

    Parameters
    ----------
    judge : Judge
    ask : Ask
    seconds : float
        More than 0.
    begin : callable
        Called when the call begins; what it raises is raised here, and nothing is asked.

    Raises
    ------
    TryAgainError
        No reply came in time (kind ``time``), or what the judge raises.
    """
    within = getattr(judge, "ask_in_time", None)
    if within is not None:
        reply: Reply = await within(ask, seconds, begin)
        return reply
    ready = getattr(judge, "ready", None)
    if ready is not None:
        await ready()
    begin()
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            return await judge.ask(ask)
    except TimeoutError:
        if not clock.expired():  # the judge's own
            raise
        raise TryAgainError(f"no reply came within {seconds:g} s", "time") from None
