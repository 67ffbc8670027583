"""What people write into a gold set, read as they mean it; ValueError where it cannot be."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

__all__ = [
    "evidence_has_text",
    "graded",
    "id_from_content",
    "number_as_id",
    "one_or_many",
    "question_has_text",
    "sets_of_ids",
    "tags_as_text",
]


def id_from_content(data: Any) -> Any:
    """Give a case without an id a hash of its question."""
    if not isinstance(data, Mapping) or data.get("id") is not None:
        return data
    question = data.get("question", data.get("query"))
    if not isinstance(question, str):
        return {**data, "id": "none"}  # the question's own error is the one to show
    digest = hashlib.sha256(question.encode()).hexdigest()[:12]
    return {**data, "id": f"q-{digest}"}


def number_as_id(value: Any) -> Any:
    """Read a number as an id."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


def question_has_text(value: str) -> str:
    """Refuse a blank question."""
    if not value.strip():
        raise ValueError("the question is blank")
    return value


def graded(value: Any) -> Any:
    """Read ids or texts, one or several, as grade 1; an object of them to grades as it stands."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {_named(name): grade for name, grade in value.items()}
    return {_named(item): 1 for item in _items(value)}


def evidence_has_text(value: dict[str, int]) -> dict[str, int]:
    """Refuse blank evidence."""
    if any(not text.strip() for text in value):
        raise ValueError("an evidence text is empty; leave it out or quote the passage")
    return value


def one_or_many(value: Any) -> Any:
    """Read one text or several; blank ones go."""
    texts = () if value is None else _items(value)
    return tuple(text for text in texts if not isinstance(text, str) or text.strip())


def sets_of_ids(value: Any) -> Any:
    """Read a list of sets of ids; a set of one may stand alone."""
    if not isinstance(value, list | tuple):
        return () if value is None else value
    return tuple(tuple(map(_named, _items(ids))) for ids in value)


def tags_as_text(value: Any) -> Any:
    """Read a list of tags as an object of them to 'yes', and all values as text."""
    if isinstance(value, list | tuple):
        return {str(tag): "yes" for tag in value}
    if isinstance(value, Mapping):
        return {str(name): str(tag) for name, tag in value.items()}
    return {} if value is None else value


def _items(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else (value,)


def _named(item: Any) -> str:
    """Return an id or a text as it stands in a gold set; a number is an id too."""
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if isinstance(item, str) and item.strip():
        return item
    raise ValueError("give ids or texts that are not empty, or an object of them to grades")
