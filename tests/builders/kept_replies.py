"""A judge that costs nothing to ask, and caches that hold what it said."""

import asyncio

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.protocol import Reply
from misslink.types import Usage


def own(name="own:a", raw="raw", **info):
    """A judge that says `raw` to everything, with its tokens and probabilities."""

    def reply(ask):
        usage = Usage(prompt_tokens=7, completion_tokens=2)
        answer = answer_to(ask, response="answers")
        return Reply(answer, raw, usage, {"response": {"answers": 0.75}})

    return FakeJudge(reply, name, **info)


def keep(path, judge, *numbers):
    """Let a judge answer these of the small asks, through a response cache."""

    async def put():
        kept = CachedJudge(judge, path)
        replies = [await kept.ask(small_ask(n)) for n in numbers]
        await kept.close()
        return replies

    return asyncio.run(put())
