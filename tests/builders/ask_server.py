"""Ask a server through the judge for it, in one line of a test."""

import asyncio

import pytest

from honest_judge import small_ask
from misslink.errors import JudgeUnreachableError
from misslink.judge.backends.openai import open_openai
from misslink.judge.protocol import RetryableError


def with_judge(server, use, opening=open_openai, **options):
    """Open the judge, use it and close it."""

    async def whole():
        judge = opening("test-judge", **{"base_url": server.url, **options})
        try:
            return await use(judge)
        finally:
            await judge.close()

    return asyncio.run(whole())


def replies(server, count=1, opening=open_openai, **options):
    """Put `count` asks at once and return the replies."""

    async def use(judge):
        return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(count)))

    return with_judge(server, use, opening, **options)


def in_turn(server, count, opening=open_openai, **options):
    """Put `count` asks one after the other; return the judge and the replies."""

    async def use(judge):
        return judge, [await judge.ask(small_ask(n)) for n in range(count)]

    return with_judge(server, use, opening, **options)


def trouble(server, opening=open_openai, **options):
    """The trouble that one ask meets."""
    with pytest.raises(RetryableError) as raised:
        replies(server, opening=opening, **options)
    return raised.value


def outage(server, **options):
    with pytest.raises(JudgeUnreachableError) as raised:
        replies(server, **options)
    return str(raised.value)
