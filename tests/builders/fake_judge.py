"""A judge that says what a test gives it, and answers that follow the schema of the question."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from misslink.judge.protocol import JudgeInfo, Reply, strict_schema
from misslink.testing import complete


def answer_to(ask, **said):
    """The answer to an ask that says this, and of everything else as little as its schema takes."""
    return ask.schema.model_validate(complete(strict_schema(ask.schema), said))


def wanted_schema(body: dict[str, Any]) -> dict[str, Any]:
    """The schema of a request, from its response format or else from the end of its prompt."""
    wanted = body.get("response_format", {})
    if "json_schema" in wanted:
        return wanted["json_schema"]["schema"]
    for message in reversed(body["messages"]):
        start = message["content"].rfind('\n{"')
        if start >= 0:
            try:
                return json.loads(message["content"][start:])
            except ValueError:
                continue
    return {}


class FakeJudge:
    """A judge of somebody's own.

    Parameters
    ----------
    said
        What it replies: a reply, an exception that it raises, a function of the ask that returns
        one, a list of these to say in turn, or None for a plain answer.
    name : str
    info
        Fields of its info.
    """

    def __init__(self, said=None, name="fake", **info):
        self.name = name
        self.identity = {"judge": name}
        self.said = said
        self.asked = []
        self.learned = []
        self.closed = False
        self.info = JudgeInfo(learn=lambda abilities: self.learned.append(dict(abilities)), **info)

    async def ask(self, ask):
        self.asked.append(ask)
        said = self.said.pop(0) if isinstance(self.said, list) else self.said
        said = said(ask) if callable(said) else said
        said = await said if asyncio.iscoroutine(said) else said
        if isinstance(said, Exception):
            raise said
        return Reply(answer_to(ask, response="answers"), "{}") if said is None else said

    async def close(self):
        self.closed = True
