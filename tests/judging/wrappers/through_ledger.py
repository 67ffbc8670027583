"""Ask through a ledger: a server, or a judge of somebody's own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from honest_judge import small_ask
from misslink.judging.models.openai import open_openai
from misslink.judging.wrappers.ledger import Ledger
from misslink.judging.wrappers.throttle import Throttle


@asynccontextmanager
async def ledger(server, path, concurrency=8, **options):
    settings = {"base_url": server.url, **options}
    judge = Ledger(Throttle(open_openai("test-judge", **settings), concurrency, retries=0), path)
    try:
        yield judge
    finally:
        await judge.close()


def replies(server, path, numbers, **options):
    """Ask once each; return the replies and the ledger."""

    async def put():
        async with ledger(server, path, **options) as judge:
            asks = (judge.ask(small_ask(n)) for n in numbers)
            return await asyncio.gather(*asks), judge

    return asyncio.run(put())


class Scripted:
    """A judge of somebody's own that says what it is told, and knows what its server can do."""

    name = "scripted"

    def __init__(self, reply=None, abilities=None, identity="scripted"):
        self.identity = {"judge": identity}
        self.reply = reply
        self.abilities = abilities
        self.learnt = []

    def learn(self, abilities):
        self.learnt.append(dict(abilities))

    async def ask(self, ask):
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply

    async def close(self):
        pass


def parsed(**more):
    return small_ask(1).schema(claims=(), passages=(), response="answers", **more)


def put_to(judge, path, *asks):
    """Ask a judge through a ledger; return the replies and the usage."""

    async def put():
        kept = Ledger(Throttle(judge, 4, retries=0), path)
        try:
            return [await kept.ask(ask) for ask in asks], kept.usage()
        finally:
            await kept.close()

    return asyncio.run(put())
