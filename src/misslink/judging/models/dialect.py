"""How a request is worded for servers that understand more or less of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from misslink.judging.endings import about_the_question
from misslink.judging.models.reading import Said
from misslink.judging.protocol import Ask
from misslink.judging.schema import schema_json

__all__ = [
    "ALTERNATIVES",
    "FLAGS",
    "LIMITS",
    "Dialect",
    "Interface",
    "Structure",
]

Structure = Literal["json_schema", "json_object", "plain"]

ALTERNATIVES = 5  # of each token; OpenAI gives up to 20, vLLM by default 5 and some proxies too
FLAGS = "temperature", "seed", "logprobs", "store"
_NEXT: dict[str, Structure] = {"json_schema": "json_object", "json_object": "plain"}
LIMITS = "max_tokens", "max_completion_tokens", "max_output_tokens"
_NAMED = {
    "structure": re.compile(
        r"response_?format|text\.format|'text'|json_?schema|json_object|grammar|structured.?output"
    ),
    "limit": re.compile(r"max_(completion_|output_)?tokens|in the completion"),
    "temperature": re.compile(r"\btemperature\b"),
    "seed": re.compile(r"\bseed\b"),
    "logprobs": re.compile(r"log_?probs?\b|log.probabilit|\binclude\b"),
    "store": re.compile(r"\bstore\b|'store'"),
}
_IN_WORDS = "Reply with one JSON object of this schema and nothing else:\n"
_RENAMED = re.compile(r"use '?max_completion_tokens|max_completion_tokens'? instead")


@dataclass(frozen=True)
class Dialect:
    """What of a request a server takes; the default is all of a chat request.

    Parameters
    ----------
    structure : {'json_schema', 'json_object', 'plain'}
        How a structured answer is asked for. Without a schema parameter the schema is written
        into the system message.
    limit : {'max_tokens', 'max_completion_tokens', 'max_output_tokens'} or None
        What the token limit is called; None sends none.
    temperature, seed, logprobs : bool
        Whether they are sent; some models refuse any value but their own.
    store : bool
        Whether the server is told to store nothing, where the interface would store by default.
    """

    structure: Structure = "json_schema"
    limit: str | None = "max_tokens"
    temperature: bool = True
    seed: bool = True
    logprobs: bool = True
    store: bool = True

    def request(
        self, ask: Ask, *, model: str, temperature: float, seed: int | None, max_tokens: int
    ) -> dict[str, Any]:
        """Return the body of the chat request that puts `ask`."""
        body: dict[str, Any] = {"model": model, "messages": self.messages(ask)}
        wanted = self.format(ask)
        if wanted is not None:
            kind = wanted.pop("type")
            body["response_format"] = {"type": kind, **({kind: wanted} if wanted else {})}
        if self.seed and seed is not None:
            body["seed"] = seed + ask.repeat  # the same seed would draw the same sample again
        if self.logprobs:
            body |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
        return body | self.parameters(temperature, max_tokens)

    def messages(self, ask: Ask) -> list[dict[str, str]]:
        """The messages; where no parameter carries the schema, with it in the system message."""
        messages = [dict(message) for message in ask.messages]
        if not ask.structured or self.structure == "json_schema":
            return messages
        text = _IN_WORDS + schema_json(ask.schema)
        if messages and messages[0]["role"] == "system":  # the stable part
            messages[0]["content"] += f"\n\n{text}"
            return messages
        return [{"role": "system", "content": text}, *messages]

    def format(self, ask: Ask) -> dict[str, Any] | None:
        """The answer format that is asked for by parameter; None where none is."""
        if not ask.structured or self.structure == "plain":
            return None
        if self.structure == "json_object":
            return {"type": "json_object"}
        name = re.sub(r"[^A-Za-z0-9_-]", "_", ask.name)[:64] or "answer"
        return {"type": "json_schema", "name": name, "schema": ask.json_schema, "strict": True}

    def parameters(self, temperature: float, max_tokens: int) -> dict[str, Any]:
        """The parameters that every interface has."""
        sent: dict[str, Any] = {self.limit: max_tokens} if self.limit else {}
        return sent | ({"temperature": temperature} if self.temperature else {})

    def named(self, complaint: str) -> Dialect | None:
        """The dialect without everything that `complaint` names; None where it names nothing."""
        said = complaint.lower()
        changes: dict[str, Any] = {
            name: False for name in FLAGS if getattr(self, name) and _NAMED[name].search(said)
        }
        if self.structure in _NEXT and _NAMED["structure"].search(said):
            changes["structure"] = _NEXT[self.structure]
        if self.limit == "max_tokens" and _RENAMED.search(said):
            changes["limit"] = "max_completion_tokens"
        elif self.limit and _NAMED["limit"].search(said):
            changes["limit"] = None
        return replace(self, **changes) if changes else None

    def without(self, complaint: str) -> Dialect | None:
        """Return the dialect to try after a server refused this one.

        Parameters
        ----------
        complaint : str
            What it said. Everything named in it is left out or renamed at once; where nothing
            is, the next simpler way to ask for structure is taken.

        Returns
        -------
        Dialect or None
            None where the complaint is about the question, or nothing is left to give up.
        """
        other = self.named(complaint)
        if other is not None:
            return other
        if about_the_question(complaint):
            return None
        simpler = _NEXT.get(self.structure)
        return replace(self, structure=simpler) if simpler else None

    def barest(self, complaint: str) -> Dialect:
        """The least that can be sent: messages, and the token limit unless it is complained of."""
        named = self.named(complaint)
        return Dialect("plain", (named or self).limit, *[False] * (len(fields(Dialect)) - 2))


@dataclass(frozen=True)
class Interface:
    """One of the ways of an OpenAI-compatible server.

    Parameters
    ----------
    name : str
        Of the judge that uses it.
    path : str
        Where requests go, below the base URL.
    dialect : Dialect
        The whole of it.
    request : callable
        Words an ask in a dialect, as `Dialect.request`.
    read : callable
        What the model said, from the body of a response; a sentence where it said nothing.
    """

    name: str
    path: str
    dialect: Dialect
    request: Callable[..., dict[str, Any]]
    read: Callable[[str], Said | str]
