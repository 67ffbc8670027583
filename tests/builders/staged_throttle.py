"""A throttle around a staged judge, and the troubles such a judge has."""

from __future__ import annotations

import random

from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import Reply, RetryableError
from staged_judge import StagedJudge, answer


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
