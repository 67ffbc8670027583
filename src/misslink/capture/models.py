"""What went to a model and what came back: texts and tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from misslink.types import Usage

__all__ = ["ModelCall", "added", "outputs", "texts", "tokens"]

_NO_TEXT = ("image", "audio", "video", "file")


@dataclass(eq=False)
class ModelCall:
    """One call of a model: the text it was given, and the text it gave."""

    prompt: str
    output: str = ""


def texts(content: Any) -> Iterator[str]:
    """Every text in a message's content, however deep; pictures and sounds are none."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for block in content:
            yield from texts(block)
    elif isinstance(content, Mapping) and not str(content.get("type", "")).startswith(_NO_TEXT):
        for key in ("title", "text", "content", "source", "data", "input", "output"):
            yield from texts(content.get(key))


def outputs(response: Any) -> str:
    """Everything a model said, the texts it called tools with among it."""
    said = []
    for one in _generations(response):
        said.append(str(getattr(one, "text", "") or ""))
        for call in getattr(getattr(one, "message", None), "tool_calls", None) or ():
            said += [value for value in call["args"].values() if isinstance(value, str)]
    return "\n".join(said)


def tokens(response: Any) -> Usage | None:
    """The tokens a model reported, by its messages or else for the whole call."""
    used: Usage | None = None
    for one in _generations(response):
        reported = getattr(getattr(one, "message", None), "usage_metadata", None)
        used = added(used, _usage(reported))
    if used is not None:
        return used
    whole = response.llm_output or {}
    return _usage(whole.get("token_usage") or whole.get("usage"))


def added(known: Usage | None, more: Usage | None) -> Usage | None:
    """The sum of two usages; what neither reported stays None."""
    if known is None or more is None:
        return known or more
    return Usage(
        prompt_tokens=_sum(known.prompt_tokens, more.prompt_tokens),
        completion_tokens=_sum(known.completion_tokens, more.completion_tokens),
    )


def _generations(response: Any) -> list[Any]:
    return [one for batch in response.generations for one in batch]


def _usage(reported: Any) -> Usage | None:
    if not isinstance(reported, Mapping) or not reported:
        return None
    return Usage(
        prompt_tokens=reported.get("input_tokens", reported.get("prompt_tokens")),
        completion_tokens=reported.get("output_tokens", reported.get("completion_tokens")),
    )


def _sum(known: int | None, more: int | None) -> int | None:
    return known if more is None else (known or 0) + more
