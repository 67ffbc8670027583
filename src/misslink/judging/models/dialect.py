"""How a chat request is worded for servers that understand more or less of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from misslink.judging.protocol import Ask

__all__ = ["Dialect"]

Structure = Literal["json_schema", "json_object", "plain"]

_NEXT: dict[Structure, Structure] = {"json_schema": "json_object", "json_object": "plain"}
_STRUCTURE = re.compile(r"response_?format|json_?schema|json_object|grammar")
_LIMIT = re.compile(r"max_(completion_)?tokens|in the completion")
_RENAMED = re.compile(r"use '?max_completion_tokens|max_completion_tokens'? instead")


@dataclass(frozen=True)
class Dialect:
    """What of a request a server takes; the default is all of it.

    Parameters
    ----------
    structure : {'json_schema', 'json_object', 'plain'}
        How a structured answer is asked for. Without a schema parameter the schema is written
        into the system message.
    limit : {'max_tokens', 'max_completion_tokens'} or None
        What the token limit is called.
    temperature, seed : bool
        Whether they are sent; some models refuse any value but their own.
    """

    structure: Structure = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    temperature: bool = True
    seed: bool = True

    def request(
        self, ask: Ask, *, model: str, temperature: float, seed: int | None, max_tokens: int
    ) -> dict[str, Any]:
        """Return the body of the chat request that puts `ask`."""
        schema = ask.json_schema
        body: dict[str, Any] = {"model": model, "messages": [dict(m) for m in ask.messages]}
        if self.structure == "json_schema":
            named = {"name": ask.name, "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        else:
            body["messages"] = _with_schema(body["messages"], schema)
        if self.structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        if self.limit:
            body[self.limit] = max_tokens
        if self.temperature:
            body["temperature"] = temperature
        if self.seed and seed is not None:
            body["seed"] = seed
        return body

    def without(self, complaint: str) -> Dialect | None:
        """Return the dialect to try after a server refused this one.

        Parameters
        ----------
        complaint : str
            What it said. A parameter named in it is left out or renamed; otherwise, and whenever
            the answer format is named, the next simpler way to ask for structure is taken.

        Returns
        -------
        Dialect or None
            None where nothing is left to give up.
        """
        said = complaint.lower()
        if not _STRUCTURE.search(said):
            if self.limit == "max_tokens" and _RENAMED.search(said):
                return replace(self, limit="max_completion_tokens")
            if self.limit and _LIMIT.search(said):
                return replace(self, limit=None)
            if self.temperature and "temperature" in said:
                return replace(self, temperature=False)
            if self.seed and re.search(r"\bseed\b", said):
                return replace(self, seed=False)
        simpler = _NEXT.get(self.structure)
        return replace(self, structure=simpler) if simpler else None


def _with_schema(messages: list[dict[str, str]], schema: Mapping[str, Any]) -> list[dict[str, str]]:
    """The messages with the schema at the end of the system message, the stable part."""
    text = "Reply with one JSON object of this schema and nothing else:\n" + json.dumps(
        schema, separators=(",", ":"), ensure_ascii=False
    )
    if messages and messages[0]["role"] == "system":
        first = {**messages[0], "content": f"{messages[0]['content']}\n\n{text}"}
        return [first, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]
