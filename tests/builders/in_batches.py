"""Questions put in batches to a real server, without a wait between two looks."""

import asyncio

from honest_judge import small_ask
from misslink.engines.batch import BatchEngine
from misslink.judge.batch.queue import BatchTiming
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import ask_safely
from misslink.judge.session import open_judge

AT_ONCE = BatchTiming(linger=0, first=0, longest=0)
ENGINE = BatchEngine(AT_ONCE)


def opened(server, folder, *, judge="openai:test-judge", reach=ENGINE.reach, **terms):
    """The judge, with a response cache in `folder`."""
    return open_judge(
        judge,
        cache=folder / "cache.sqlite",
        concurrency=8,
        terms=JudgeConfig(base_url=server.url, api_key="k", **terms),
        reach=reach,
    )


def ask_all(server, folder, count, **options):
    """Put so many questions; return their replies and what was spent."""

    async def within():
        judge = opened(server, folder, **options)
        try:
            replies = await asyncio.gather(*(ask_safely(judge, small_ask(n)) for n in range(count)))
            return replies, judge.usage().document()
        finally:
            await judge.close()

    return asyncio.run(within())


def came(replies):
    return [reply.parsed is not None for reply in replies]
