"""Not more than so many questions at once, and none to a judge that has stopped answering."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.protocol import Ask, Judge, Reply

__all__ = ["Throttle"]

_FAILURES_IN_A_ROW = 5
_GRACE_S = 20.0


class Throttle:
    """A judge that is asked at most `concurrency` questions at a time.

    It is a circuit breaker too: after five asks in a row to which nothing came back, or one that
    the judge declared pointless, every further ask raises at once instead of waiting through its
    own retries.

    Parameters
    ----------
    judge : Judge
    concurrency : int
        At least 1.

    Raises
    ------
    InputError
        `concurrency` is below 1.
    """

    def __init__(self, judge: Judge, concurrency: int) -> None:
        if concurrency < 1:
            raise InputError(f"--concurrency is {concurrency}; it must be at least 1")
        self.judge = judge
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.note: str | None = getattr(judge, "note", None)
        self._concurrency = concurrency
        self._places = asyncio.Semaphore(concurrency)
        self._failures = 0
        self._outage: str | None = None

    async def ask(self, ask: Ask) -> Reply:
        """Wait for a place, then ask.

        Raises
        ------
        JudgeUnreachableError
            The judge cannot be asked, now or since an earlier ask.
        """
        async with self._places:
            if self._outage:
                raise JudgeUnreachableError(self._outage)
            try:
                reply = await self.judge.ask(ask)
            except JudgeUnreachableError as outage:
                self._outage = str(outage)
                raise
            self._failures = 0 if reply.came else self._failures + 1
            if self._failures >= _FAILURES_IN_A_ROW:
                self._outage = (
                    f"the judge {self.name} failed {self._failures} questions in a row, "
                    f"the last one because {reply.problem}; what was answered is kept, "
                    "so run the same command again when it is well"
                )
                raise JudgeUnreachableError(self._outage)
            return reply

    async def close(self) -> None:
        """Let the asks in flight come home for up to 20 s, start no other, and close the judge."""
        self._outage = self._outage or "the run has ended"
        # Places are given in the order of asking: whoever waits is turned away, and when all
        # places are here nobody is out any more.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                for _ in range(self._concurrency):
                    await self._places.acquire()
        await self.judge.close()
