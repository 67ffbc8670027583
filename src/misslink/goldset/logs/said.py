"""What a person asked and what was answered, out of the shapes in which apps log it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from misslink.text import content_id, valid_text
from misslink.types import Passage

__all__ = ["ANSWERS", "QUESTIONS", "answered", "asked", "decoded", "passages"]

# Names that apps give a question and an answer, the likeliest first.
QUESTIONS = (
    "question", "query", "user_input", "user_query", "input", "prompt", "search_query", "search",
    "message", "text", "content", "value", "q",
)  # fmt: skip
ANSWERS = (
    "answer", "output", "response", "completion", "reply", "result", "text", "content", "message",
    "value",
)  # fmt: skip
_PEOPLE = {"user", "human", "humanmessage"}
_MODELS = {"assistant", "ai", "aimessage", "aimessagechunk", "model", "bot"}
_ROLES = _PEOPLE | _MODELS | {"system", "systemmessage", "tool", "toolmessage", "function"}
_PAIR = 2
_DEEPEST = 8


def asked(value: Any) -> str | None:
    """The question in a text, an object, or a list of messages (then the last that a person wrote).

    A text that is JSON as a whole is read as what it holds; texts inside of it stay as they are.

    >>> asked({"input": {"messages": [{"role": "user", "content": "Why?"}]}})
    'Why?'
    """
    return _said(decoded(value), QUESTIONS, _PEOPLE, _DEEPEST)


def answered(value: Any) -> str | None:
    """The answer in a text, an object, or a list of messages (then the last of a model)."""
    return _said(decoded(value), ANSWERS, _MODELS, _DEEPEST)


def decoded(value: Any) -> Any:
    """A text that holds a JSON object or list, as that; anything else as it is."""
    if isinstance(value, str) and value.strip()[:1] in {"{", "["}:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def passages(value: Any) -> tuple[Passage, ...] | None:
    """Retrieved passages from a list of texts, ids or objects, in order, each once.

    Objects have an id (``id``, ``document.id``, ``_id``, ``doc_id``, ``chunk_id``), a text
    (``text``, ``content``, ``page_content``, ``document.content``) and a score. None
    where there is no list.
    """
    value = decoded(value)
    if isinstance(value, Mapping):
        inner = next((value[n] for n in ("documents", "results", "retrieved") if n in value), None)
        value = decoded(inner)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    found: dict[str, Passage] = {}
    for item in map(decoded, value):
        passage = _passage(item, len(found) + 1)
        if passage is not None:
            found.setdefault(passage.id, passage)
    return tuple(found.values())


def _passage(item: Any, rank: int) -> Passage | None:
    if isinstance(item, str):
        text = valid_text(item)
        return Passage(id=content_id(text), text=text, rank=rank) if text.strip() else None
    if isinstance(item, int) and not isinstance(item, bool):
        return Passage(id=str(item), rank=rank)
    if not isinstance(item, Mapping):
        return None
    inner = item.get("document")
    row = {**item, **inner} if isinstance(inner, Mapping) else item
    text = _first(row, ("text", "content", "page_content", "pageContent", "document.content"))
    text = valid_text(text) if isinstance(text, str) else ""
    metadata = decoded(_first(row, ("metadata", "document.metadata")))
    name = _first(row, ("id", "document.id", "_id", "doc_id", "document_id", "chunk_id"))
    if name is None and isinstance(metadata, Mapping):
        name = _first(metadata, ("id", "chunk_id", "doc_id"))
    is_id = isinstance(name, str | int) and not isinstance(name, bool) and str(name).strip()
    if not is_id and not text.strip():
        return None
    score = _first(row, ("score", "document.score", "similarity"))
    return Passage(
        id=valid_text(str(name)) if is_id else content_id(text),
        text=text,
        rank=rank,
        score=_finite(score),
    )


def _finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _said(value: Any, names: Sequence[str], roles: set[str], levels: int) -> str | None:
    if isinstance(value, str):
        return valid_text(value).strip() or None
    if not levels:
        return None
    if isinstance(value, Mapping):
        return _in_object(value, names, roles, levels - 1)
    if isinstance(value, list | tuple):
        return _in_list(value, names, roles, levels - 1)
    return None


def _in_object(
    value: Mapping[str, Any], names: Sequence[str], roles: set[str], levels: int
) -> str | None:
    kwargs = value.get("kwargs")
    if isinstance(kwargs, Mapping):  # a message as LangChain dumps it
        value = kwargs
    if isinstance(value.get("messages"), list):
        return _said(value["messages"], names, roles, levels)
    if isinstance(value.get("parts"), list):
        return _said(value["parts"], names, roles, levels)
    if isinstance(value.get("data"), Mapping) and "type" in value:
        return _said(value["data"], names, roles, levels)
    for name in names:
        if value.get(name) is not None and (found := _said(value[name], names, roles, levels)):
            return found
    if len(value) == 1:
        return _said(next(iter(value.values())), names, roles, levels)
    return None


def _in_list(
    value: Sequence[Any], names: Sequence[str], roles: set[str], levels: int
) -> str | None:
    """The last message of such a role; of parts without roles their texts, one behind another."""
    spoken = [(_role(item), item) for item in value if isinstance(item, Mapping | str | list)]
    if any(role for role, _ in spoken):
        mine = [item for role, item in spoken if role in roles]
        said = (item[1] if _is_said(item) else item for item in reversed(mine))
        found = (_said(one, names, roles, levels) for one in said)
        return next((text for text in found if text), None)
    texts = [_said(item, names, roles, levels) for _, item in spoken if not _is_image(item)]
    return "\n".join(text for text in texts if text) or None


def _role(item: Any) -> str | None:
    if isinstance(item, list | tuple):  # ["human", "Why?"], or a batch of messages
        if _is_pair(item):
            return str(item[0]).casefold()
        item = item[-1] if item and isinstance(item[-1], Mapping) else {}
    if not isinstance(item, Mapping):
        return None
    if isinstance(item.get("message"), Mapping):
        item = item["message"]
    role = item.get("role", item.get("message.role"))
    if isinstance(role, str):
        return role.casefold()
    name = item.get("id")
    for one in (item.get("type"), name[-1] if isinstance(name, list) and name else None):
        if isinstance(one, str) and one.casefold() in _ROLES:
            return one.casefold()
    return None


def _is_said(item: Any) -> bool:
    return isinstance(item, list | tuple) and _is_pair(item)


def _is_pair(item: Sequence[Any]) -> bool:
    """Whether a list is a role and what was said."""
    return (len(item) == _PAIR and all(isinstance(one, str) for one in item)) and item[
        0
    ].casefold() in _ROLES


def _is_image(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("type") in {"image", "image_url", "audio", "file"}
