"""Ask through a response cache: a server, or a judge of somebody's own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from honest_judge import small_ask
from misslink.judge.backends.openai import open_openai
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.middleware.throttle import ThrottledJudge


@asynccontextmanager
async def cache(server, path, concurrency=8, **options):
    settings = {"base_url": server.url, **options}
    judge = CachedJudge(
        ThrottledJudge(open_openai("test-judge", **settings), concurrency, JudgeConfig(retries=0)),
        path,
    )
    try:
        yield judge
    finally:
        await judge.close()


def replies(server, path, numbers, **options):
    """Ask once each; return the replies and the cache."""

    async def put():
        async with cache(server, path, **options) as judge:
            asks = (judge.ask(small_ask(n)) for n in numbers)
            return await asyncio.gather(*asks), judge

    return asyncio.run(put())


def put_to(judge, path, *asks):
    """Ask a judge through a response cache; return the replies and the usage."""

    async def put():
        kept = CachedJudge(ThrottledJudge(judge, 4, JudgeConfig(retries=0)), path)
        try:
            return [await kept.ask(ask) for ask in asks], kept.usage()
        finally:
            await kept.close()

    return asyncio.run(put())
