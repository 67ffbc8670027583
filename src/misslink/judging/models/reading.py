"""Read a judge's words as the answer that was asked for, however they are wrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from misslink.judging.protocol import Reply
from misslink.types import Usage

__all__ = ["read_answer", "read_completion"]

_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_EXCERPT = 300  # characters of somebody else's message that fit into one of ours


def read_answer(text: str, schema: type[BaseModel]) -> tuple[BaseModel | None, str | None]:
    """Find an instance of `schema` in what a model wrote.

    The text as it stands is tried first, then what follows its ``<think>`` part, then the
    outermost braces, then every object in it. Of several objects that fit, the last is taken: a
    model that quotes an example of the format writes its own answer after it.

    Parameters
    ----------
    text : str
        Empty text gives no answer and a problem.
    schema : type of BaseModel
        Keys it does not know are ignored.

    Returns
    -------
    answer : BaseModel or None
    problem : str or None
        Why there is no answer, as part of a sentence.
    """
    if not text.strip():
        return None, "the reply is empty"
    problem = "the reply holds no JSON object"
    for candidate in _candidates(text):
        try:
            return schema.model_validate_json(candidate), None
        except ValidationError as mismatch:
            first = mismatch.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            if first["type"] != "json_invalid":
                problem = f"the reply does not fit the answer schema: {place}: {first['msg']}"
            elif "does not fit" not in problem:
                problem = f"the reply is not JSON: {first['msg']}"
    return None, problem


def read_completion(body: str, schema: type[BaseModel]) -> Reply:
    """Read the body of a successful chat completion.

    Parameters
    ----------
    body : str
        What the server sent with status 200. Servers have been seen to send errors this way.
    schema : type of BaseModel
        What the content must be.

    Returns
    -------
    Reply
        Where the body holds no completion at all, the one of `Reply.nothing`.
    """
    try:
        completion = json.loads(body)
    except ValueError:
        return Reply.nothing(f"the server's answer is not JSON: {body[:_EXCERPT]!r}")
    choices = completion.get("choices") if isinstance(completion, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Reply.nothing(f"the server sent no completion: {body[:_EXCERPT]}")

    usage = _usage(completion.get("usage"))
    content = _content(message.get("content"))
    # The message itself stands in for empty content: it was paid for and has to be seen.
    raw = content or json.dumps(message, ensure_ascii=False)
    refusal = message.get("refusal")
    if refusal and not content:
        return Reply(None, str(refusal), usage, problem=f"the judge declined to answer: {refusal}")
    parsed, problem = read_answer(content, schema)
    finish = choice.get("finish_reason")
    if parsed is None and finish == "length":
        problem = "the reply was cut off at the token limit (max_tokens)"
    elif parsed is None and finish == "content_filter":
        problem = "the judge's provider withheld the reply (content filter)"
    return Reply(parsed, raw, usage, problem=problem)


def _candidates(text: str) -> Iterator[str]:
    yield text
    thought = _THOUGHT.match(text)
    rest = text[thought.end() :] if thought else text
    start, end = rest.find("{"), rest.rfind("}")
    if start < 0 or end < start:
        return
    yield rest[start : end + 1]
    yield from reversed(list(_objects(rest)))


def _objects(text: str) -> Iterator[str]:
    """Every outermost JSON object in `text`, in order."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield text[at:end]
        at = text.find("{", end)


def _content(content: Any) -> str:
    if isinstance(content, list):  # some servers send parts
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(reported: Any) -> Usage | None:
    if not isinstance(reported, dict):
        return None
    counts = {name: reported.get(name) for name in ("prompt_tokens", "completion_tokens")}
    return Usage(**{name: n for name, n in counts.items() if isinstance(n, int)})
