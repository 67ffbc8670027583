"""A judge asked as fast as it bears, again where nothing came, and no more when it is down."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Mapping
from typing import Any

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.protocol import (
    Ask,
    Judge,
    NotAskedError,
    Reply,
    TryAgainError,
    innermost,
    longest_reply,
)
from misslink.judging.wrappers.circuit import Circuit
from misslink.judging.wrappers.clock import ask_in_time
from misslink.judging.wrappers.limits import Pace, Places

__all__ = ["Throttle"]

_GRACE_S = 20.0  # who pressed Ctrl-C waits no longer
_FIRST_WAIT_S = 0.5
_FIRST_WAIT_TOLD_S = 2.0  # told to slow down, not how long: quotas are by the minute
_LONGEST_OWN_WAIT_S = 30.0  # longer, a server that is back would go unnoticed
_LONGEST_TOLD_WAIT_S = 120.0  # two windows of a quota by the minute; more is a quota by the day
_NO_WAIT_S = 0.05  # told to wait less than that, it would be asked again at once, and in a loop
_SILENT_ROUNDS_BORNE = 1  # a connection breaks now and then; twice in a row is the server's doing


class Throttle:
    """A judge whose calls are limited in number, in time and a minute, and repeated when in vain.

    It starts with `concurrency` calls at once, goes down by half when the server says that it is
    too much, and up again with every reply. A wait that the server asks for holds for all calls.
    Otherwise a question waits for itself before it is tried again, exponentially longer with full
    jitter. It is a circuit breaker too (see `Circuit`): where the judge is down every further ask
    raises at once instead of going through tries of its own.

    Parameters
    ----------
    judge : Judge
        Makes one attempt an ask, and raises TryAgainError where it brought nothing.
    concurrency : int
        How many calls are out at once at most, at least 1; fewer for a judge whose ``at_once``
        says that it takes no more.
    timeout : float
        Seconds for one call, from its own beginning (see `ask_in_time`).
    retries : int
        How often a call that brought nothing is repeated, at least 0. Fewer while questions fail
        in a row: then it is not the question.
    rpm, tpm : int or None
        Calls and tokens a minute (see `Pace`).
    deadline : float or None
        Seconds from the first ask on, after which no call is begun.
    rng : random.Random or None
        Draws the jitter; None takes one of seed 0.

    Raises
    ------
    InputError
        `concurrency` is below 1.
    """

    def __init__(
        self,
        judge: Judge,
        concurrency: int,
        *,
        timeout: float = 300.0,
        retries: int = 5,
        rpm: int | None = None,
        tpm: int | None = None,
        deadline: float | None = None,
        rng: random.Random | None = None,
    ) -> None:
        if concurrency < 1:
            raise InputError(f"--concurrency is {concurrency}; it must be at least 1")
        self.judge = judge
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.note: str | None = getattr(judge, "note", None)
        self._innermost = innermost(judge)
        self.places = Places(min(concurrency, getattr(self._innermost, "at_once", concurrency)))
        self._timeout = timeout
        self._retries = retries
        self._deadline = deadline
        self._ends: float | None = None
        self._rng = rng or random.Random(0)  # noqa: S311 (jitter is no secret)
        limited = rpm is not None or tpm is not None
        self._pace = Pace(rpm, tpm, longest_reply(self._innermost)) if limited else None
        self._circuit = Circuit(judge.name)
        self._outage: str | None = None
        self._over = asyncio.Event()
        self._questions = 0
        self._calls = 0
        self._paused_until = -math.inf

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask`, again where nothing came.

        Returns
        -------
        Reply
            Where all tries were in vain, one to which nothing came, with the last reason.

        Raises
        ------
        JudgeUnreachableError
            The judge cannot be asked, now or since an earlier ask.
        NotAskedError
            The time of the run is used up, or the question is too large for a minute.
        """
        if self._deadline is not None and self._ends is None:
            self._ends = asyncio.get_running_loop().time() + self._deadline
        if not self._questions and getattr(self._innermost, "abilities", None):
            self._circuit.answers()  # a ledger told what an earlier run found out
        self._questions += 1
        question = _Question(self._questions)
        while True:
            question.tries += 1
            try:
                reply = await self._try(ask, question)
            except TryAgainError as trouble:
                patience = self._retries >> self._circuit.in_vain
                if question.tries <= patience and _bearable(trouble):
                    await self._back_off(trouble, question.tries)
                    continue
                reply = Reply.nothing(_in_vain(trouble, question.tries))
                why = self._circuit.failed(reply.problem, question.call, trouble)
            else:
                if reply.came:
                    self._circuit.answered(self._calls)
                    return reply
                why = self._circuit.refused(reply.problem or "", ask.key)
            if why:
                raise self._open(why)
            return reply

    async def close(self) -> None:
        """Let the calls in flight come home for up to 20 s, start no other, and close the judge."""
        self._open("the run has ended")
        stop = getattr(self.judge, "stop", None)
        if stop is not None:
            stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await self.places.all_left()
        await self.judge.close()

    async def _try(self, ask: Ask, question: _Question) -> Reply:
        """Wait for all that must be waited for, and make one call."""
        await self.places.enter(question.number)
        slot, reply, cut = None, None, False
        try:
            self._refuse_if_over()
            if self._pace:
                slot = await self._pace.begin(ask.characters, self._wait)
            while (pause := self._paused_until - asyncio.get_running_loop().time()) > 0:
                await self._wait(pause)
            reply = await self._call(ask, question)
        except TryAgainError as trouble:
            cut = trouble.kind == "time"
            raise
        else:
            return reply
        finally:
            if self._pace and slot:
                self._pace.end(slot, reply, cut=cut)
            self.places.leave()

    async def _call(self, ask: Ask, question: _Question) -> Reply:
        def begin() -> None:
            self._refuse_if_over()
            self._calls += 1
            question.call = self._calls

        try:
            reply = await ask_in_time(self.judge, ask, self._timeout, begin)
        except TryAgainError as trouble:
            self._learn_from(trouble, question)
            raise
        except JudgeUnreachableError as outage:
            raise self._open(self._circuit.gone(str(outage))) from None
        self.places.grow()
        return reply

    def _learn_from(self, trouble: TryAgainError, question: _Question) -> None:
        """What trouble with one call means for the others."""
        told = trouble.after is not None and _bearable(trouble)
        if trouble.kind == "rate" or (trouble.kind == "server" and told):
            self.places.halve(question.call, self._calls)
        if trouble.after is not None and told:
            self._pause(trouble.after)
        rounds = self._circuit.troubled(trouble, question.number, question.call, self._calls)
        if why := self._circuit.why_silent(trouble):
            raise self._open(why)
        if trouble.kind in ("connection", "absent") and rounds > _SILENT_ROUNDS_BORNE:
            self._pause(self._jittered(rounds - _SILENT_ROUNDS_BORNE, _FIRST_WAIT_S))

    async def _back_off(self, trouble: TryAgainError, tries: int) -> None:
        """Wait before the next try; a wait that the server asked for is everybody's already."""
        if trouble.after is None or trouble.after < _NO_WAIT_S:
            first = _FIRST_WAIT_TOLD_S if trouble.kind == "rate" else _FIRST_WAIT_S
            await self._wait(self._jittered(tries, first))

    def _jittered(self, tries: int, first: float) -> float:
        most = min(_LONGEST_OWN_WAIT_S, first * 2.0 ** min(tries - 1, 10))
        return self._rng.uniform(0, most)

    def _pause(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        self._paused_until = max(self._paused_until, until)

    async def _wait(self, seconds: float, event: asyncio.Event | None = None) -> None:
        """Wait so long, or until the event; not beyond the deadline or the end of the asking."""
        self._refuse_if_over()
        left = self._seconds_left()
        if math.isfinite(seconds) and seconds > left:
            raise self._out_of_time()
        longest = min(seconds, left)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest if math.isfinite(longest) else None):
                await (event or self._over).wait()
        self._refuse_if_over()

    def _refuse_if_over(self) -> None:
        if self._outage:
            raise JudgeUnreachableError(self._outage)
        if self._seconds_left() <= 0:
            raise self._out_of_time()

    def _seconds_left(self) -> float:
        if self._ends is None:
            return math.inf
        return self._ends - asyncio.get_running_loop().time()

    def _out_of_time(self) -> NotAskedError:
        return NotAskedError(
            f"the time of the run is used up (--deadline {self._deadline:g}); "
            "the same command goes on"
        )

    def _open(self, why: str) -> JudgeUnreachableError:
        """Open the circuit: whoever waits for anything is told, calls in flight come home."""
        if self._outage is None:
            self._outage = why
            self._over.set()
            self.places.turn_away()
            if self._pace:
                self._pace.wake()
        return JudgeUnreachableError(self._outage)


class _Question:
    """A question on its way: its number, how often it was tried, its latest call's number."""

    __slots__ = ("call", "number", "tries")

    def __init__(self, number: int) -> None:
        self.number = number
        self.tries = 0
        self.call = 0


def _bearable(trouble: TryAgainError) -> bool:
    """Whether the server asks for no longer wait than is worth it."""
    return trouble.after is None or trouble.after <= _LONGEST_TOLD_WAIT_S


def _in_vain(trouble: TryAgainError, tries: int) -> str:
    times = "once" if tries == 1 else f"{tries} times"
    if _bearable(trouble):
        return f"{trouble.problem} (tried {times})"
    return f"{trouble.problem} (tried {times}; more than {_LONGEST_TOLD_WAIT_S:g} s are not waited)"
