"""The same judge asked through the Responses interface, where a server has it.

Source: OpenAI's API reference, "Create a model response".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from misslink.judging.models.dialect import ALTERNATIVES, Dialect, Interface
from misslink.judging.models.openai import OpenAIJudge, open_interface
from misslink.judging.models.reading import EXCERPT, Said, read_body, read_usage
from misslink.judging.protocol import Ask
from misslink.registry import judges
from misslink.text import valid_text

__all__ = ["RESPONSES", "open_responses"]


@judges.register("openai-responses")
def open_responses(
    argument: str | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float = 0.0,
    max_tokens: int = 4096,
    context_length: int | None = None,
) -> OpenAIJudge:
    """Open the judge ``openai-responses:MODEL``; this interface takes no seed.

    Parameters and errors are those of `open_openai`.
    """
    settings = {"temperature": temperature, "max_tokens": max_tokens}
    return open_interface(RESPONSES, argument, base_url, api_key, settings, context_length)


def _request(
    dialect: Dialect, ask: Ask, *, model: str, temperature: float, max_tokens: int
) -> dict[str, Any]:
    """The body of the request that puts `ask`."""
    body: dict[str, Any] = {"model": model, "input": dialect.messages(ask)}
    wanted = dialect.format(ask)
    if wanted is not None:
        body["text"] = {"format": wanted}
    if dialect.logprobs:
        body |= {"include": ["message.output_text.logprobs"], "top_logprobs": ALTERNATIVES}
    if dialect.store:
        body["store"] = False  # what is judged may be private, and is kept there by default
    return body | dialect.parameters(temperature, max_tokens)


def _said_in(body: str) -> Said | str:
    """Return what a response says, or in a sentence why it says nothing."""
    response = read_body(body)
    if isinstance(response, str):
        return response
    output = response.get("output")
    if not isinstance(output, list) or response.get("status") == "failed":
        return f"the server sent no response: {json.dumps(response.get('error') or body)[:EXCERPT]}"
    parts = list(_parts(output))
    texts = [part for part in parts if isinstance(part.get("text"), str)]
    refusals = [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
    listed = [part.get("logprobs") for part in texts]
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    content = valid_text("".join(part["text"] for part in texts))
    return Said(
        content=content,
        message="" if content else json.dumps(output),
        usage=read_usage(response.get("usage"), "input_tokens", "output_tokens"),
        refusal=valid_text(" ".join(refusals)) or None,
        cut=reason == "max_output_tokens",
        withheld=reason == "content_filter",
        logprobs=listed[0] if len(listed) == 1 else None,
    )


def _parts(output: list[Any]) -> Iterator[dict[str, Any]]:
    """The parts of the messages; what the model reasoned is none."""
    for item in output:
        if isinstance(item, dict) and item.get("type") == "message":
            content = item.get("content")
            yield from (part for part in content or () if isinstance(part, dict))


RESPONSES = Interface(
    "openai-responses",
    "/responses",
    Dialect(limit="max_output_tokens", seed=False),
    _request,
    _said_in,
)
