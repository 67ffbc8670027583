"""What an app gave back: its answer, and the passages it shows where nothing else showed them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from misslink.text import valid_text

__all__ = ["Returned", "message_text", "read"]

_ANSWER_KEYS = (
    "answer",
    "output",
    "result",
    "response",
    "text",
    "output_text",
    "final_answer",
    "generation",
)
_PASSAGE_KEYS = ("retrieved", "context", "contexts", "source_documents", "documents", "docs")


@dataclass(frozen=True)
class Returned:
    """What was found in the value an app returned.

    Parameters
    ----------
    answer : str or None
    documents : list or None
        Documents, mappings or texts, best first. None: it shows none; an empty list: it shows
        that nothing was retrieved.
    prompted : tuple of str or None
        Ids that the app itself says it put into its prompt.
    problem : str or None
        Why there is no answer in it.
    """

    answer: str | None = None
    documents: list[Any] | None = None
    prompted: tuple[str, ...] | None = None
    problem: str | None = None


def read(value: Any) -> Returned:
    """Find the answer in what an app returned.

    A text is the answer; so is a message's text. In a mapping, a dataclass or a pydantic model it
    stands under answer, output, result, response, text, output_text, final_answer, generation, or
    it is the last of ``messages``. A list of documents, what a retriever returns, is no answer
    and no problem.
    """
    if isinstance(value, str):
        return Returned(answer=valid_text(value))
    if hasattr(value, "content") and not isinstance(value, Mapping):
        return Returned(answer=message_text(value.content))
    if isinstance(value, list | tuple) and all(_is_document(item) for item in value):
        return Returned(documents=list(value))
    fields = _fields(value)
    if fields is None:
        way_out = _FACTORY if callable(value) else _EXPECTED
        return Returned(problem=f"the app returned {_described(value)}; {way_out}")
    documents = _documents(fields)
    prompted = fields.get("prompted")
    answer = _answer(fields)
    if answer is None and documents is None:
        named = valid_text(", ".join(map(str, fields))) or "nothing"
        return Returned(problem=f"the app returned {named}, and no answer; {_EXPECTED}")
    return Returned(
        answer=answer,
        documents=documents,
        prompted=(
            tuple(valid_text(str(name)) for name in prompted)
            if isinstance(prompted, list | tuple)
            else None
        ),
    )


_FACTORY = "if it builds the app, call its parameter `retriever`"
_EXPECTED = "return a text, a message, or a dict with 'answer' (and 'retrieved', if you like)"


def message_text(content: Any) -> str:
    """The text of a message's content: itself, or its text blocks joined."""
    if isinstance(content, str):
        return valid_text(content)
    if not isinstance(content, list):
        return "" if content is None else valid_text(str(content))
    texts = []
    for block in content:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping) and isinstance(block.get("text"), str):
            texts.append(block["text"])
    return valid_text("".join(texts))


def _fields(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    names = getattr(type(value), "model_fields", None)
    return {name: getattr(value, name) for name in names} if isinstance(names, dict) else None


def _answer(fields: Mapping[str, Any]) -> str | None:
    for key in _ANSWER_KEYS:
        value = fields.get(key)
        if isinstance(value, str):
            return valid_text(value)
        if hasattr(value, "content"):
            return message_text(getattr(value, "content", None))
        inner = None if value is None or isinstance(value, list) else _fields(value)
        if inner is not None and (found := _answer(inner)) is not None:
            return found
    messages = fields.get("messages")
    if isinstance(messages, list) and messages:
        last = messages[-1]
        content = last.get("content") if isinstance(last, Mapping) else _content(last)
        return message_text(content)
    return None


def _content(message: Any) -> Any:
    return getattr(message, "content", message)


def _documents(fields: Mapping[str, Any]) -> list[Any] | None:
    for key in _PASSAGE_KEYS:
        value = fields.get(key)
        # A list of bare texts may be anything, unless its key says what it is.
        texts_too = key in ("retrieved", "contexts")
        if isinstance(value, list | tuple) and all(
            _is_document(item) or (texts_too and isinstance(item, str)) for item in value
        ):
            return list(value)
    return None


def _is_document(item: Any) -> bool:
    if isinstance(item, Mapping):
        return any(isinstance(item.get(key), str) for key in ("id", "text", "page_content"))
    return isinstance(getattr(item, "page_content", None), str)


def _described(value: Any) -> str:
    if value is None:
        return "None"
    if callable(value):
        return "a function"  # whose text would be its address
    return f"{type(value).__name__}: {valid_text(str(value))[:80]!r}"
