"""What crosses between the driver and its workers, so that it arrives as it was."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from misslink.judging.protocol import Ask, Reply

__all__ = ["Answer", "Raised", "received", "sendable"]


@dataclass(frozen=True)
class Raised:
    """An exception, taken apart: pickle would call its class with ``args`` alone, and fail.

    Parameters
    ----------
    kind : type
    args : tuple
    state : mapping
        Its attributes.
    """

    kind: type[BaseException]
    args: tuple[Any, ...]
    state: Mapping[str, Any]

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """Take `error` apart; one that cannot be pickled becomes a RuntimeError that tells it."""
        found = cls(type(error), error.args, dict(vars(error)))
        try:
            pickle.dumps(found)
        except Exception:  # noqa: BLE001 (an exception of somebody's own may hold anything)
            return cls(RuntimeError, (f"{type(error).__name__}: {error}",), {})
        return found

    def error(self) -> BaseException:
        """Put it together again."""
        error = self.kind.__new__(self.kind)
        error.args = self.args
        vars(error).update(self.state)
        return error


@dataclass(frozen=True)
class Answer:
    """How a call on a worker ended.

    Parameters
    ----------
    value : object
        What it brought.
    raised : Raised or None
        What it raised instead.
    facts : mapping
        What the judge's process has found out of its server so far.
    sent : int or None
        How many requests the judge there has sent since opening, where it counts them.
    """

    value: Any = None
    raised: Raised | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    sent: int | None = None

    def result(self) -> Any:
        """Return what the call brought, or raise what it raised."""
        if self.raised is not None:
            raise self.raised.error()
        return self.value


def sendable(ask: Ask) -> Ask:
    """Return the question with its messages rendered, and without what makes another of it.

    Its key stays what it was: that of messages which are rendered is another one.
    """
    key = ask.key
    messages = tuple(dict(message) for message in ask.messages)
    sent = replace(ask, messages=messages, alone=None)
    vars(sent)["key"] = key  # where a cached property keeps its value
    return sent


def received(reply: Reply, ask: Ask) -> Reply:
    """Return the reply with an instance of this process's own schema.

    A schema that the workers cannot import travels by value, and comes back as a class of its own.
    """
    parsed = reply.parsed
    if parsed is None or isinstance(parsed, ask.schema):
        return reply
    if type(parsed).__qualname__ != ask.schema.__qualname__:
        return reply
    return replace(reply, parsed=ask.schema.model_validate(parsed.model_dump()))
