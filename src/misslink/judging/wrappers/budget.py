"""Not more calls and not more money than allowed, at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.protocol import (
    Ask,
    Judge,
    NotAskedError,
    Reply,
    TryAgainError,
    longest_reply,
)
from misslink.judging.schema import schema_json
from misslink.judging.terms import Price
from misslink.judging.wrappers.clock import ask_in_time

__all__ = ["Budget"]

_BYTES_PER_TOKEN = 2  # at least: no tokenizer cuts text finer on average
_REQUESTS = 2  # that a question may need: one may have to be worded otherwise for itself


class Budget:
    """A judge that is asked until the next call could pass a cap.

    Before a call the most that it may cost is held back, and afterwards what it reported is
    booked. Where that does not fit while others are in flight it waits for what they leave.

    A judge that says how many requests it ``sent`` has them counted, those included that the server
    refused for their wording. While such a judge has not found out what its server takes, one
    question is out at a time under a cap of calls, and as many near its end as could all be worded
    otherwise once. So the cap is passed only by the refused requests, for which no server
    charges, of the one question that reaches it; never by answered ones.

    Calls that go another way than by `ask`, as those of a batch do, are let in by `hold`, and
    their end is told by `book`.

    Parameters
    ----------
    judge : Judge
        Makes one attempt an ask.
    max_calls : int or None
        How many calls are made at most, those that brought nothing included.
    max_cost : float or None
        How much money is spent at most.
    price : Price or None

    Attributes
    ----------
    calls : int
        Attempts made, or requests sent where a judge sends more.

    Raises
    ------
    InputError
        A cost is limited without a price.
    """

    def __init__(
        self,
        judge: Judge,
        *,
        max_calls: int | None = None,
        max_cost: float | None = None,
        price: Price | None = None,
    ) -> None:
        if max_cost is not None and price is None:
            raise InputError("--max-cost needs prices: add --price-in and --price-out")
        self.judge = judge
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self.note: str | None = getattr(judge, "note", None)
        self._attempts = 0
        self._max_calls = max_calls
        self._max_cost = max_cost
        self._price = price
        self._elsewhere = 0  # calls that were let in by `hold`
        self._spent = _Tokens()
        self._held = _Tokens()
        self._in_flight = 0
        self._turn = asyncio.Lock()
        self._settled = asyncio.Event()
        self._stopped = False

    @property
    def calls(self) -> int:
        """Attempts, or requests where a judge sent more: finding out what a server takes does."""
        sent: int = getattr(self.judge, "sent", 0)
        return max(self._attempts, sent) + self._elsewhere

    @property
    def spent(self) -> float | None:
        """Money spent; None without a price.

        Where a reply does not say what it cost, and for a call that was cut off while the server
        may have been writing, that is the most it can have been. A call to which the server said
        no, or whose connection broke, is taken to have cost nothing.
        """
        return None if self._price is None else self._spent.cost(self._price)

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask`, if no cap can be passed by it.

        Raises
        ------
        NotAskedError
            A cap is reached.
        """
        return await self._put(ask, lambda: self.judge.ask(ask))

    async def ask_in_time(self, ask: Ask, seconds: float, begin: Callable[[], None]) -> Reply:
        """Put `ask` as `ask` does; the wait for a place under the caps takes none of the seconds.

        The parameters are those of the function of this name.
        """
        return await self._put(ask, lambda: ask_in_time(self.judge, ask, seconds, begin))

    def hold(self, ask: Ask, share: float, *, made: bool = False) -> bool:
        """Let a call in that goes another way, and hold back the most that it may cost.

        Parameters
        ----------
        ask : Ask
        share : float
            Of the price that it costs there, in [0, 1].
        made : bool
            Whether it was made before, by an earlier run: then it counts and is not refused.

        Returns
        -------
        bool
            False where it does not fit now, and may once others have come home.

        Raises
        ------
        NotAskedError
            A cap is reached.
        """
        most = self._most(ask, share)
        if not made:
            if self._calls_used_up():
                raise self._no_more_calls()
            if self._would_pass(most):
                if not self._in_flight:
                    raise self._too_dear()
                return False
        self._elsewhere += 1
        self._in_flight += 1
        self._held.add(most)
        return True

    def book(self, ask: Ask, share: float, reply: Reply | None, *, lost: bool = False) -> None:
        """Say what a call that was let in by `hold` brought.

        Parameters
        ----------
        ask, share
            As it was held.
        reply : Reply or None
            None: nothing, so it cost nothing.
        lost : bool
            Whether there was an answer that cannot be had: then it cost the most that it may.
        """
        most = self._most(ask, share)
        self._in_flight -= 1
        self._held.add(most, -1)
        if lost:
            self._spent.add(most)
        elif reply is not None:
            self._spent.add(_reported(reply, most))
        self._settled.set()

    def withdraw(self, ask: Ask, share: float) -> None:
        """Say that a call that was let in by `hold` was not made."""
        self._elsewhere -= 1
        self.book(ask, share, None)

    def stop(self) -> None:
        """Turn away whoever waits for others to come home."""
        self._stopped = True
        self._settled.set()

    async def close(self) -> None:
        """Close the judge."""
        self.stop()
        await self.judge.close()

    async def _put(self, ask: Ask, call: Callable[[], Awaitable[Reply]]) -> Reply:
        most = self._most(ask)
        await self._admit(most)
        booked = most  # unless more is known: what was cut off may have been written to its end
        try:
            reply = await call()
            booked = _reported(reply, most)
        except TryAgainError as trouble:
            if trouble.kind != "time":
                booked = _Tokens()
            raise
        except JudgeUnreachableError:
            booked = _Tokens()
            raise
        except NotAskedError:  # it never began
            self._attempts -= 1
            booked = _Tokens()
            raise
        else:
            return reply
        finally:
            self._in_flight -= 1
            self._held.add(most, -1)
            self._spent.add(booked)
            self._settled.set()

    async def _admit(self, most: _Tokens) -> None:
        """Wait until a call of at `most` fits under the caps, and hold that much."""
        async with self._turn:  # first come, first served
            while not self._calls_used_up() and (self._would_pass(most) or self._may_pass_calls()):
                if self._stopped:
                    raise NotAskedError("the run has ended")
                if not self._in_flight:
                    raise self._too_dear()
                self._settled.clear()
                await self._settled.wait()
            if self._calls_used_up():
                raise self._no_more_calls()
            self._attempts += 1
            self._in_flight += 1
            self._held.add(most)

    def _calls_used_up(self) -> bool:
        return self._max_calls is not None and self.calls >= self._max_calls

    def _may_pass_calls(self) -> bool:
        """Whether requests of those in flight and of one more might; never for one alone."""
        if self._max_calls is None or not self._in_flight or not hasattr(self.judge, "sent"):
            return False
        if not getattr(self.judge, "abilities", True):  # how requests are worded is not known yet
            return True
        further = self._in_flight * (_REQUESTS - 1) + _REQUESTS
        return self.calls + further > self._max_calls

    def _would_pass(self, most: _Tokens) -> bool:
        if self._price is None or self._max_cost is None:
            return False
        together = _Tokens()
        for tokens in (self._spent, self._held, most):
            together.add(tokens)
        return together.cost(self._price) > self._max_cost

    def _no_more_calls(self) -> NotAskedError:
        return NotAskedError(f"--max-calls {self._max_calls} is used up; the same command goes on")

    def _too_dear(self) -> NotAskedError:
        return NotAskedError(
            f"--max-cost {self._max_cost:g} would be passed by the next question; "
            "raise it, and the same command goes on"
        )

    def _most(self, ask: Ask, share: float = 1.0) -> _Tokens:
        if self._price is None:
            return _Tokens()
        texts = [message["content"] for message in ask.messages]
        if ask.structured:
            texts.append(schema_json(ask.schema))
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        return _Tokens(-(-size // _BYTES_PER_TOKEN), longest_reply(self.judge), share)


class _Tokens:
    """Tokens read and tokens written, by the share of the price that they cost.

    Whole tokens, not sums of money: so nothing is lost to rounding.
    """

    __slots__ = ("by_share",)

    def __init__(self, prompt: int = 0, completion: int = 0, share: float = 1.0) -> None:
        self.by_share = {share: (prompt, completion)}

    def add(self, other: _Tokens, times: int = 1) -> None:
        for share, (prompt, completion) in other.by_share.items():
            had = self.by_share.get(share, (0, 0))
            self.by_share[share] = had[0] + times * prompt, had[1] + times * completion

    def cost(self, price: Price) -> float:
        return sum(share * price.of(*tokens) for share, tokens in self.by_share.items())


def _reported(reply: Reply, most: _Tokens) -> _Tokens:
    """What a call cost: as reported, and where it does not say, the most it can have been."""
    if reply.usage is None:
        return most if reply.came else _Tokens()
    ((share, (prompt, completion)),) = most.by_share.items()
    told = reply.usage
    return _Tokens(
        prompt if told.prompt_tokens is None else told.prompt_tokens,
        completion if told.completion_tokens is None else told.completion_tokens,
        share,
    )
