"""A judge for tests of what is around a judge: it does what it is told to, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, replace

from honest_judge import Label, small_ask
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import Reply, RetryableError
from misslink.types import Usage
from virtual_time import now

_ASK = small_ask(0)


def numbered(n):
    """The `n`-th ask."""
    return replace(_ASK, repeat=n)


def answer(prompt=100, completion=20):
    usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
    return Reply(parsed=Label(supported="yes"), raw="yes", usage=usage)


@dataclass
class Put:
    """One call: the ask's number, which try of it this is (from 1), when it came and went."""

    number: int
    attempt: int
    came: float
    went: float | None = None


class StagedJudge:
    """Does `act(put)` after `latency` seconds: gives the reply it returns, or raises it."""

    name = "staged"
    identity = {"judge": "staged"}  # noqa: RUF012

    def __init__(self, act=lambda _: answer(), latency=1.0):
        self.act = act
        self.latency = latency
        self.puts = []
        self.out = 0
        self.most_at_once = 0
        self.closed = False
        self._attempts = Counter()

    async def ask(self, ask):
        self._attempts[ask.repeat] += 1
        put = Put(ask.repeat, self._attempts[ask.repeat], now())
        self.puts.append(put)
        self.out += 1
        self.most_at_once = max(self.most_at_once, self.out)
        try:
            done = self.act(put)
            await asyncio.sleep(self.latency)
            if isinstance(done, Exception):
                raise done
            return done
        finally:
            put.went = now()
            self.out -= 1

    async def close(self):
        self.closed = True


async def all_of(judge, count):
    """Put `count` asks at once; their outcomes, exceptions included."""
    asks = (judge.ask(numbered(n)) for n in range(count))
    return await asyncio.gather(*asks, return_exceptions=True)


def staged(act=lambda _: answer(), concurrency=8, *, latency=1.0, **options):
    rng = options.pop("rng", random.Random(0))
    return ThrottledJudge(StagedJudge(act, latency), concurrency, JudgeConfig(**options), rng)


def times(throttle):
    """When each call came, in seconds since the loop began."""
    return [put.came - 1000 for put in throttle.judge.puts]


def slow_down(after=None):
    return RetryableError("the server answers 429", "rate", after)


def reset():
    return RetryableError("the connection broke before a reply came", "connection")


def absent():
    return RetryableError("the connection is refused now", "absent")


def failing():
    return RetryableError("the server answers 500", "server")


def came(outcomes):
    return [isinstance(outcome, Reply) and outcome.came for outcome in outcomes]
