"""A judge that costs nothing to ask, and caches that hold what it said."""

from __future__ import annotations

import asyncio

from honest_judge import small_ask
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.protocol import JudgeInfo, Reply
from misslink.types import Usage


class Own:
    """A judge that says `raw` to everything, and counts how often it is asked."""

    def __init__(self, name="own:a", raw="raw", abilities=None):
        self.name = name
        self.identity = {"judge": name}
        self.raw = raw
        self.abilities = abilities
        self.asked = 0
        self.learnt = None

    @property
    def info(self):
        return JudgeInfo(abilities=self.abilities, learn=self.learn)

    def learn(self, abilities):
        self.learnt = dict(abilities)

    async def ask(self, ask):
        self.asked += 1
        parsed = ask.schema(claims=(), passages=(), response="answers")
        usage = Usage(prompt_tokens=7, completion_tokens=2)
        return Reply(parsed, self.raw, usage, {"response": {"answers": 0.75}})

    async def close(self):
        pass


def keep(path, judge, *numbers):
    """Let a judge answer these of the small asks, through a response cache."""

    async def put():
        kept = CachedJudge(judge, path)
        replies = [await kept.ask(small_ask(n)) for n in numbers]
        await kept.close()
        return replies

    return asyncio.run(put())
