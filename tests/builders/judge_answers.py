"""What a judge's server checks in a request, and how its answers look, by either interface."""

from __future__ import annotations

import math
import re
from typing import Any

Body = dict[str, Any]

_PARAMETERS = {
    "model", "messages", "response_format", "temperature", "seed", "max_tokens",
    "max_completion_tokens", "logprobs", "top_logprobs", "stream", "n", "stop",
}  # fmt: skip
_RESPONSES_PARAMETERS = {
    "model", "input", "text", "temperature", "max_output_tokens", "include", "top_logprobs",
    "store",
}  # fmt: skip
_FAMILIES = (
    ["supported", "contradicted", "unsupported"],
    ["agrees", "contradicts", "silent"],
    ["states", "contradicts", "omits"],
    ["answers", "partly", "evades", "declines"],
    ["true", "false"],
    ["yes", "no"],
)
_SURE = 0.8  # the probability of the label that is given


def completion(body: Body, content: str | None, *, logprobs: bool = False, **more: Any) -> Body:
    """A whole completion around `content`; `more` goes into its choice."""
    choice = {"index": 0, "finish_reason": "stop", **more}
    choice.setdefault("message", {"role": "assistant", "content": content, "refusal": None})
    if logprobs and body.get("logprobs"):
        choice["logprobs"] = {"content": tokens(content or "")}
    prompt = sum(len(message["content"] or "") for message in body["messages"]) // 4
    written = len(content or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        },
    }


def response(body: Body, content: str | None, *, logprobs: bool = False, **more: Any) -> Body:
    """The same as an answer of the Responses interface; `more` goes into the response."""
    text: Body = {"type": "output_text", "text": content, "annotations": []}
    if logprobs and body.get("logprobs"):
        text["logprobs"] = tokens(content or "")
    usage = completion(body, content)["usage"]
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": body["model"],
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "status": "completed", "content": [text]},
        ],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
        },
        **more,
    }


def tokens(content: str) -> list[Body]:
    """Cut `content` into tokens, each label's word with the other labels as its alternatives."""
    cut = re.findall(r'[ \n]?"?[A-Za-z]+|[0-9]|\s+|[^A-Za-z0-9\s]', content)
    return [_token(text) for text in cut]


def _token(text: str) -> Body:
    word = text.strip(' \n"')
    lead = text[: len(text) - len(word)]
    family = next((labels for labels in _FAMILIES if word in labels), [word])
    others = [lead + label for label in family if label != word]
    shares = {text: _SURE if others else 1.0}
    shares |= {other: (1 - _SURE) / len(others) for other in others}
    listed = [
        {"token": token, "logprob": math.log(share), "bytes": list(token.encode())}
        for token, share in shares.items()
    ]
    return {**listed[0], "top_logprobs": listed}


def as_chat(body: Body) -> Body:
    """A request to the Responses interface as the chat request that asks the same."""
    chat = {name: body[name] for name in ("model", "temperature") if name in body}
    chat["messages"] = body["input"]
    wanted = body.get("text", {}).get("format")
    if wanted:
        kind = wanted["type"]
        named = {name: value for name, value in wanted.items() if name != "type"}
        chat["response_format"] = {"type": kind, **({kind: named} if named else {})}
    if "max_output_tokens" in body:
        chat["max_tokens"] = body["max_output_tokens"]
    if body.get("include"):
        chat |= {"logprobs": True, "top_logprobs": body.get("top_logprobs")}
    return chat


def invalid_response(body: Body) -> str | None:
    """What a strict server would object to in a request to the Responses interface, or None."""
    unknown = set(body) - _RESPONSES_PARAMETERS
    return f"unknown parameter: {min(unknown)}" if unknown else invalid(as_chat(body))


def invalid(body: Body) -> str | None:
    """What a strict server would object to, or None."""
    unknown = set(body) - _PARAMETERS
    if unknown:
        return f"unknown parameter: {min(unknown)}"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is missing"
    roles = {"system", "user", "assistant"}
    if any(m.get("role") not in roles or not m.get("content") for m in messages):
        return "a message lacks a known role or content"
    return _invalid_format(body.get("response_format", {"type": "text"}), str(messages))


def _invalid_format(wanted: Body, messages: str) -> str | None:
    if wanted["type"] == "json_object" and "json" not in messages.lower():
        return "'messages' must contain the word 'json'"
    if wanted["type"] == "json_schema":
        named = wanted["json_schema"]
        if not re.fullmatch(r"[\w-]{1,64}", named["name"]) or named.get("strict") is not True:
            return "response_format: a strict schema with a name is expected"
        return _open_object(named["schema"])
    return None


def _open_object(node: Any) -> str | None:
    """What of a schema strict mode refuses."""
    if isinstance(node, list):
        return next(filter(None, map(_open_object, node)), None)
    if not isinstance(node, dict):
        return None
    if "$ref" in node or "$defs" in node:
        return "response_format: references are not expected"
    if "properties" in node:
        if node.get("additionalProperties") is not False:
            return "response_format: additionalProperties must be false"
        if set(node.get("required", ())) != set(node["properties"]):
            return "response_format: every property must be required"
    return next(filter(None, map(_open_object, node.values())), None)
