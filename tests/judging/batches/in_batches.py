"""Questions put in batches to a real server, without a wait between two looks."""

from __future__ import annotations

import asyncio

from honest_judge import small_ask
from misslink.engines.batch import Batch
from misslink.judging.asking import put
from misslink.judging.batches.timing import Timing
from misslink.judging.opening import open_judge
from misslink.judging.terms import Terms

AT_ONCE = Timing(linger=0, first=0, longest=0)
ENGINE = Batch(AT_ONCE)


def opened(server, folder, *, judge="openai:test-judge", reach=ENGINE.reach, **terms):
    """The judge, with a ledger in `folder`."""
    return open_judge(
        judge,
        ledger=folder / "ledger.sqlite",
        concurrency=8,
        terms=Terms(base_url=server.url, api_key="k", **terms),
        reach=reach,
    )


def ask_all(server, folder, count, **options):
    """Put so many questions; return their replies and what was spent."""

    async def within():
        judge = opened(server, folder, **options)
        try:
            replies = await asyncio.gather(*(put(judge, small_ask(n)) for n in range(count)))
            return replies, judge.usage()
        finally:
            await judge.close()

    return asyncio.run(within())


def came(replies):
    return [reply.parsed is not None for reply in replies]
