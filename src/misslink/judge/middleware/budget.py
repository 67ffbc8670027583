"""Caps on the number of judge calls and on their cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from pydantic import BaseModel

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.config import DEFAULTS, JudgeConfig, Price
from misslink.judge.middleware.throttle import ask_with_timeout
from misslink.judge.protocol import (
    Ask,
    Judge,
    JudgeLayer,
    Reply,
    RetryableError,
    SkippedAskError,
    judge_info,
    schema_json,
)

_ROUNDING = 1e-6  # by which a probability may leave 0 to 1
_BYTES_PER_TOKEN = 2  # at least: no tokenizer splits text finer on average


class BatchTerms(NamedTuple):
    """How a question in a batch is counted; without any, one that is asked live.

    ``share`` of the live price, in [0, 1], is its price. One ``is_submitted`` by an earlier run
    counts and is not refused. ``on_wait`` takes the number of calls that it waits for.
    """

    share: float = 1.0
    is_submitted: bool = False
    on_wait: Callable[[int], object] = lambda _calls: None


_LIVE = BatchTerms()


class BudgetedJudge(JudgeLayer):
    """A judge that stops before a call could exceed the cap on calls or cost.

    The judges with the same `ledger` share the caps.
    """

    def __init__(
        self, judge: Judge, config: JudgeConfig = DEFAULTS, ledger: Ledger | None = None
    ) -> None:
        super().__init__(judge)
        self._config = config
        self._price = config.price
        self.ledger = ledger or Ledger()
        self._stopped = False

    async def ask(self, ask: Ask) -> Reply:
        """Ask, or raise SkippedAskError where a cap is reached."""
        return await self.call_within_caps(ask, lambda: self.judge.ask(ask))

    async def ask_with_timeout(self, ask: Ask, seconds: float, begin: Callable[[], None]) -> Reply:
        """Ask as `ask` does; waiting under the caps does not count as part of the seconds."""
        call = lambda: ask_with_timeout(self.judge, ask, seconds, begin)  # noqa: E731
        return await self.call_within_caps(ask, call)

    def stop(self) -> None:
        """Refuse calls that wait for others to end."""
        self._stopped = True
        self.ledger.changed.set()

    async def call_within_caps(
        self, ask: Ask, call: Callable[[], Awaitable[Reply]], terms: BatchTerms = _LIVE
    ) -> Reply:
        """Return the reply of a call, or raise SkippedAskError where a cap is reached."""
        maximum = self._max_tokens(ask, terms.share)
        if not terms.is_submitted:
            await self._admit(maximum, terms.on_wait)
        self.ledger.calls += 1
        self.ledger.in_flight += 1
        self.ledger.reserved.update(maximum)
        spent = maximum  # unless more is known: the server may finish a reply that was cut off
        try:
            reply = _check_reply(await call(), self.name)
            spent = _reported_tokens(reply, maximum)
        except RetryableError as error:
            if error.kind != "time":
                spent = _TokenCount()
            raise
        except (JudgeUnreachableError, SkippedAskError) as error:
            self.ledger.calls -= isinstance(error, SkippedAskError)  # it was not made
            spent = _TokenCount()
            raise
        finally:
            self.ledger.in_flight -= 1
            self.ledger.reserved.subtract(maximum)
            self.ledger.recorded.update(spent)
            self.ledger.changed.set()
        return reply

    async def _admit(self, maximum: _TokenCount, on_wait: Callable[[int], object]) -> None:
        """Wait until a call fits under the caps; raise SkippedAskError where it never will."""
        async with self.ledger.admission:  # first come, first served
            while self._has_calls_left() and self._exceeds_cost(maximum):
                if self._stopped:
                    raise SkippedAskError("the run has ended")
                if not self.ledger.in_flight:
                    raise SkippedAskError(
                        f"the next question could exceed max_cost {self._config.max_cost:g}; "
                        "raise it, and the same command continues"
                    )
                on_wait(self.ledger.in_flight)
                self.ledger.changed.clear()
                await self.ledger.changed.wait()
            if not self._has_calls_left():
                raise SkippedAskError(
                    f"max_calls {self._config.max_calls} is used up; the same command continues"
                )

    def _has_calls_left(self) -> bool:
        most = self._config.max_calls
        return most is None or self.ledger.calls < most

    def _exceeds_cost(self, maximum: _TokenCount) -> bool:
        most = self._config.max_cost
        if self._price is None or most is None:
            return False
        total = _TokenCount(self.ledger.recorded)
        total.update(self.ledger.reserved)
        total.update(maximum)
        return total.cost(self._price) > most

    def _max_tokens(self, ask: Ask, share: float) -> _TokenCount:
        if self._price is None:
            return _TokenCount()
        texts = [message["content"] for message in ask.messages]
        texts.append(schema_json(ask.schema))
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        info = judge_info(self.judge)
        if info.request_characters is not None:
            size = max(size, info.request_characters(ask))
        prompt = -(-size // _BYTES_PER_TOKEN)
        most = {"prompt_tokens": prompt, "completion_tokens": info.max_tokens}
        return _TokenCount({(kind, share): count for kind, count in most.items()})


class _TokenCount(Counter[tuple[str, float]]):
    """Tokens by kind, as `Usage` names it, and share of the price; whole, so nothing is rounded."""

    def cost(self, price: Price) -> float:
        shares = sorted({share for _, share in self})
        return sum(
            share * price.cost(self["prompt_tokens", share], self["completion_tokens", share])
            for share in shares
        )


class Ledger:
    """What the judges under the same caps have spent and reserved.

    Where a reply does not report its tokens, and for a call that was cut off while the server may
    have been writing, the maximum is spent. Refused calls and broken connections are free.
    """

    def __init__(self) -> None:
        self.calls = 0  # attempts made
        self.in_flight = 0  # calls that have not ended
        self.recorded = _TokenCount()
        self.reserved = _TokenCount()
        self.admission = asyncio.Lock()
        self.changed = asyncio.Event()


def _check_reply(reply: object, judge: str) -> Reply:
    """Raise an InputError where a judge returned no Reply, or one that holds something else."""
    if not isinstance(reply, Reply):
        raise InputError(
            f"the judge {judge} returned {type(reply).__name__}; its ask must return a "
            "misslink.judge.Reply"
        )
    if not isinstance(reply.parsed, BaseModel | None) or not isinstance(reply.raw, str):
        raise InputError(
            f"the judge {judge} returned a Reply whose 'parsed' is "
            f"{type(reply.parsed).__name__} and whose 'raw' is {type(reply.raw).__name__}; give an"
            " instance of ask.schema, or None, and a text"
        )
    for place, of_label in reply.probabilities.items():
        for label, value in of_label.items():
            if not isinstance(value, int | float) or not -_ROUNDING <= value <= 1 + _ROUNDING:
                raise InputError(
                    f"the judge {judge} returned the probability {value!r} of '{label}' at"
                    f" '{place}'; give a number from 0 to 1"
                )
    return reply


def _reported_tokens(reply: Reply, maximum: _TokenCount) -> _TokenCount:
    """What a call used: as reported, and the maximum where nothing is reported."""
    if reply.usage is None:
        return maximum if reply.came else _TokenCount()
    reported = {kind: count for kind, count in reply.usage if count is not None}
    return _TokenCount({key: reported.get(key[0], most) for key, most in maximum.items()})
