"""Requests of a log: the question, the answer, and what came of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem
from misslink.io.numbers import parse_number
from misslink.io.rows import read_rows
from misslink.io.trace_formats.printed import decode_json, parse_printed_document
from misslink.text.normalization import content_id, valid_text
from misslink.text.prompt_matching import PromptMatch, merge_rankings
from misslink.types import Passage, RetrieverCall

# Seconds since 1970 stay below the least of these until 5138.
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


@dataclass(frozen=True, slots=True)
class LogRequest:
    """One question of a log, and what the app did.

    Parameters
    ----------
    question : str
    place : str
        File and line, for messages.
    id : str or None
    reference : str or None
        The expected answer.
    session : str or None
        Id of the conversation.
    at : datetime or None
        Time in UTC.
    answer : str or None
    passages : sequence of Passage or None
        What was retrieved, best first; None if the log does not say.
    error : str or None
    feedback : str, number or None
        The user's feedback, as logged.
    latency_s : float or None
    category : str or None
    trace_id, span_id : str or None
        Ids of the trace and its root span in the tool that logged it.
    response_id : str or None
        Id of the model's reply.
    history : list of dict
        Earlier messages of the conversation.
    prompt : PromptMatch or None
        The passages that reached the model's prompt; None if the log does not show it.
    """

    question: str
    place: str = ""
    id: str | None = None
    reference: str | None = None
    session: str | None = None
    at: dt.datetime | None = None
    answer: str | None = None
    passages: tuple[Passage, ...] | None = None
    error: str | None = None
    feedback: str | float | None = None
    latency_s: float | None = None
    category: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    response_id: str | None = None
    calls: tuple[RetrieverCall, ...] = ()
    history: Sequence[Mapping[str, str]] = ()
    prompt: PromptMatch | None = None


@dataclass(frozen=True)
class RequestLog:
    """The requests of some files, in their order.

    Parameters
    ----------
    requests : sequence of LogRequest
    columns : mapping of str to str
        The column that each field was read from.
    left_out : mapping of str to int
        Reasons why rows are not requests, with counts.
    """

    requests: tuple[LogRequest, ...]
    columns: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


def parse_time(value: Any) -> dt.datetime | None:
    """Parse ISO 8601, or seconds, milli-, micro- or nanoseconds since 1970, as a time in UTC.

    None for anything else; a time without a zone counts as UTC.

    >>> parse_time("2026-05-01T10:00:00+02:00").isoformat(), parse_time(1777622400000).isoformat()
    ('2026-05-01T08:00:00+00:00', '2026-05-01T08:00:00+00:00')
    """
    try:
        if isinstance(value, dt.datetime):
            time = value
        elif isinstance(value, bool) or (number := parse_number(value)) is None:
            time = dt.datetime.fromisoformat(str(value).strip())
        else:
            unit = next((unit for least, unit in _UNITS if abs(number) >= least), 1.0)
            time = dt.datetime.fromtimestamp(number / unit, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return time.astimezone(dt.UTC) if time.tzinfo else time.replace(tzinfo=dt.UTC)


def read_log_rows(path: Path) -> Iterator[SourceItem]:
    """Yield the rows of a file of JSON, CSV, Excel or parquet, without empty fields.

    Raises
    ------
    InputError
        The file cannot be read, a line is malformed, or it is empty.
    """
    if path.is_dir():
        raise InputError("This is a folder. Name the files in it.", path=path)
    yield from read_rows(path, str(path))


# Keys under which apps log a question and an answer, the most likely first.
QUESTION_KEYS = (
    "question", "query", "user_input", "user_query", "input", "prompt", "search_query", "search",
    "message", "text", "content", "value", "q",
)  # fmt: skip
ANSWER_KEYS = (
    "answer", "output", "response", "completion", "reply", "result", "text", "content", "message",
    "value",
)  # fmt: skip
_USER_ROLES = {"user", "human", "humanmessage"}
_MODEL_ROLES = {"assistant", "ai", "aimessage", "aimessagechunk", "model", "bot"}
_ROLES = _USER_ROLES | _MODEL_ROLES | {"system", "systemmessage", "tool", "toolmessage", "function"}
# Parts of a message that nobody wrote: media, calls of tools and what these returned.
_NO_TEXT = {
    "image", "image_url", "audio", "file",
    "tool_use", "tool_call", "tool_result", "tool_call_response", "function_call",
    "function_call_output",
}  # fmt: skip
_PAIR_LENGTH = 2
_MAX_DEPTH = 8


def extract_question(value: Any) -> str | None:
    """Return the question in a text, an object, or a list of messages (then the user's last).

    A text that is JSON as a whole is decoded; texts inside of it stay as they are.

    >>> extract_question({"input": {"messages": [{"role": "user", "content": "Why?"}]}})
    'Why?'
    """
    return _Extractor(QUESTION_KEYS, _USER_ROLES).text(decode_json(value), _MAX_DEPTH)


def extract_answer(value: Any) -> str | None:
    """Return the answer in a text, an object, or a list of messages (then the model's last)."""
    return _Extractor(ANSWER_KEYS, _MODEL_ROLES).text(decode_json(value), _MAX_DEPTH)


def extract_history(value: Any) -> list[dict[str, str]]:
    """Return the messages before the user's last one, oldest first; tools' and system's left out.

    Messages of one role that follow each other are one, as they are where the assistant only called
    a tool between them. A last message of the user without a reply is left out.

    >>> extract_history([["human", "Hi"], ["ai", "Hello."], ["human", "When?"]])
    [{'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Hello.'}]
    """
    value, before = decode_json(value), None
    for _ in range(_MAX_DEPTH):
        if isinstance(value, Mapping):
            before = decode_json(first_value(value, ("chat_history", "history")))
            value = before or decode_json(first_value(value, ("messages", "input")))
        elif isinstance(value, list) and len(value) == 1 and not _is_role_pair(value):
            value = value[0] if isinstance(value[0], list) else value  # a batch of messages
        else:
            break
    items = value if isinstance(value, list) else []
    messages: list[dict[str, str]] = []
    for item in items:
        name = _message_role(item)
        role = "user" if name in _USER_ROLES else "assistant"
        keys, roles = (
            (QUESTION_KEYS, _USER_ROLES) if role == "user" else (ANSWER_KEYS, _MODEL_ROLES)
        )
        text = _Extractor(keys, roles).text(item[1] if _is_role_pair(item) else item, _MAX_DEPTH)
        if name not in roles or not text:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1] = {"role": role, "content": f"{messages[-1]['content']}\n{text}"}
        else:
            messages.append({"role": role, "content": text})
    asked = [place for place, message in enumerate(messages) if message["role"] == "user"]
    if before:  # without the question
        return messages[:-1] if asked and asked[-1] == len(messages) - 1 else messages
    return messages[: asked[-1]] if asked else []


def last_answer(messages: Sequence[Any]) -> str | None:
    """Return what the assistant writes after the user's last message."""
    asked = [n for n, item in enumerate(messages) if _message_role(item) in _USER_ROLES]
    return extract_answer(messages[asked[-1] + 1 :]) if asked else None


def extract_passages(value: Any) -> tuple[Passage, ...] | None:
    """Return passages as `extract_chunks` does, each id once, with all its texts."""
    chunks = extract_chunks(value)
    return None if chunks is None else merge_rankings([chunks])


def extract_chunks(value: Any) -> list[Passage] | None:
    """Return what was retrieved from a list of texts, ids or objects, in order.

    Objects have an id (``id``, ``document.id``, ``_id``, ``doc_id``, ``chunk_id``), a text
    (``text``, ``content``, ``page_content``, ``document.content``) and a score. None without a list, or if no object has an id or a text.
    """
    value = decode_json(value)
    if isinstance(value, Mapping):
        value = decode_json(first_value(value, ("documents", "results", "retrieved")))
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    items = list(map(decode_json, value))
    chunks = [chunk for rank, item in enumerate(items, 1) if (chunk := _to_passage(item, rank))]
    return None if not chunks and any(isinstance(item, Mapping) for item in items) else chunks


_RESULT_KEYS = (
    "structured_content", "result", "results", "documents", "passages", "output", "content",
)  # fmt: skip
_TOOL_TEXT_KEYS = ("content", "snippet", "text", "page_content", "body")
_TOOL_ID_KEYS = ("id", "url", "link", "href")


def tool_documents(value: Any) -> list[Any]:
    """Return the documents in what a tool returned: objects with a text and an id or address.

    Web searches and MCP servers return them as lists, as JSON, or as blocks of text with JSON.
    """
    if isinstance(value, str):
        value = decode_json(value)
    if isinstance(value, Mapping):
        return tool_documents(first_value(value, _RESULT_KEYS))
    documents: list[Any] = []
    for item in value if isinstance(value, list) else ():
        if isinstance(getattr(item, "page_content", None), str):
            documents.append(item)
        elif isinstance(item, Mapping) and item.get("type") == "text":
            documents += tool_documents(item.get("text"))
        elif isinstance(item, Mapping):
            text, name = first_value(item, _TOOL_TEXT_KEYS), first_value(item, _TOOL_ID_KEYS)
            if isinstance(text, str) and isinstance(name, str | int):
                documents.append({"id": str(name), "text": text, "score": item.get("score")})
    return documents


def _to_passage(item: Any, rank: int) -> Passage | None:
    if isinstance(item, str):
        item = parse_printed_document(item)
    if isinstance(item, str):
        text = valid_text(item)
        return Passage(id=content_id(text), text=text, rank=rank) if text.strip() else None
    if isinstance(item, int) and not isinstance(item, bool):
        return Passage(id=str(item), rank=rank)
    if not isinstance(item, Mapping):
        return None
    inner = item.get("document")
    row = {**item, **inner} if isinstance(inner, Mapping) else item
    text = first_value(row, ("text", "content", "page_content", "pageContent", "document.content"))
    text = valid_text(text) if isinstance(text, str) else ""
    metadata = decode_json(first_value(row, ("metadata", "document.metadata")))
    name = first_value(row, ("id", "document.id", "_id", "doc_id", "document_id", "chunk_id"))
    if name is None and isinstance(metadata, Mapping):
        name = first_value(metadata, ("id", "chunk_id", "doc_id"))
    is_id = isinstance(name, str | int) and not isinstance(name, bool) and str(name).strip()
    if not is_id and not text.strip():
        return None
    passage_id = valid_text(str(name)) if is_id else content_id(text)
    score = parse_number(first_value(row, ("score", "document.score", "similarity")))
    return Passage(id=passage_id, text=text, rank=rank, score=score)


def first_value(row: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the value of the first key that is present and not None; None without one."""
    return next((row[key] for key in keys if row.get(key) is not None), None)


class _Extractor:
    """Finds a text under some keys, or in messages of some roles."""

    def __init__(self, keys: Sequence[str], roles: set[str]) -> None:
        self.keys, self.roles = keys, roles

    def text(self, value: Any, levels: int) -> str | None:
        if isinstance(value, str):
            return valid_text(value).strip() or None
        if not levels:
            return None
        if isinstance(value, Mapping):
            return self._of_object(value, levels - 1)
        return self._of_list(value, levels - 1) if isinstance(value, list | tuple) else None

    def _of_object(self, value: Mapping[str, Any], levels: int) -> str | None:
        kwargs = value.get("kwargs")
        if isinstance(kwargs, Mapping):  # a message as LangChain dumps it
            value = kwargs
        for key in ("messages", "parts"):
            if isinstance(value.get(key), list):
                return self.text(value[key], levels)
        if isinstance(value.get("data"), Mapping) and "type" in value:
            return self.text(value["data"], levels)
        for key in self.keys:
            if value.get(key) is not None and (text := self.text(value[key], levels)):
                return text
        return self.text(next(iter(value.values())), levels) if len(value) == 1 else None

    def _of_list(self, value: Sequence[Any], levels: int) -> str | None:
        """The last message of a role; without roles the texts of the parts, joined."""
        items = [item for item in value if isinstance(item, Mapping | str | list)]
        roles = [_message_role(item) for item in items]
        if any(roles):
            messages = [
                item[1] if _is_role_pair(item) else item
                for role, item in zip(roles, items, strict=True)
                if role in self.roles
            ]
            return next(filter(None, (self.text(item, levels) for item in messages[::-1])), None)
        texts = [
            self.text(item, levels)
            for item in items
            if not (isinstance(item, Mapping) and item.get("type") in _NO_TEXT)
        ]
        return "\n".join(filter(None, texts)) or None


def _message_role(item: Any) -> str | None:
    if isinstance(item, list):  # ["human", "Why?"], or a batch of messages
        if _is_role_pair(item):
            return str(item[0]).casefold()
        item = item[-1] if item else None
    if not isinstance(item, Mapping):
        return None
    if isinstance(item.get("message"), Mapping):
        item = item["message"]
    role = item.get("role", item.get("message.role"))
    if isinstance(role, str):
        return role.casefold()
    name = item.get("id")
    for kind in (item.get("type"), name[-1] if isinstance(name, list) and name else None):
        if isinstance(kind, str) and kind.casefold() in _ROLES:
            return kind.casefold()
    return None


def _is_role_pair(item: Any) -> bool:
    """Whether a list is a role and a text."""
    return (
        isinstance(item, list)
        and len(item) == _PAIR_LENGTH
        and all(isinstance(part, str) for part in item)
        and item[0].casefold() in _ROLES
    )
