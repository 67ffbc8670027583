"""Validators that accept the common ways to write a gold set field."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any


def fill_missing_id(data: Any) -> Any:
    """Give a case without an id a hash of its question."""
    if not isinstance(data, Mapping) or data.get("id") is not None:
        return data
    question = data.get("question", data.get("query"))
    if not isinstance(question, str):
        return {**data, "id": "none"}  # the question's own error is the one to show
    digest = hashlib.sha256(question.encode()).hexdigest()[:12]
    return {**data, "id": f"q-{digest}"}


def read_number_as_id(value: Any) -> Any:
    """Read a number as an id."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


def check_question_text(value: str) -> str:
    """Refuse a blank question."""
    if not value.strip():
        raise ValueError("the question is blank")
    return value


def read_grades(value: Any) -> Any:
    """Read ids or texts, one or several, as grade 1; an object of them to grades as it stands."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {_as_id(name): grade for name, grade in value.items()}
    return {_as_id(item): 1 for item in _as_list(value)}


def check_evidence_text(value: dict[str, int]) -> dict[str, int]:
    """Refuse blank evidence."""
    if any(not text.strip() for text in value):
        raise ValueError("an evidence text is empty; leave it out or quote the passage")
    return value


def read_one_or_many(value: Any) -> Any:
    """Read one text or several; blank ones go."""
    texts = () if value is None else _as_list(value)
    return tuple(text for text in texts if not isinstance(text, str) or text.strip())


def read_id_sets(value: Any) -> Any:
    """Read a list of sets of ids; a set of one may stand alone."""
    if not isinstance(value, list | tuple):
        return () if value is None else value
    return tuple(tuple(map(_as_id, _as_list(ids))) for ids in value)


def read_tags(value: Any) -> Any:
    """Read a list of tags as an object of them to 'yes', and all values as text."""
    if isinstance(value, list | tuple):
        return {str(tag): "yes" for tag in value}
    if isinstance(value, Mapping):
        return {str(name): str(tag) for name, tag in value.items()}
    return {} if value is None else value


def _as_list(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else (value,)


def _as_id(item: Any) -> str:
    """Return an id or a text unchanged; a number becomes an id."""
    if isinstance(item, int) and not isinstance(item, bool):
        return str(item)
    if isinstance(item, str) and item.strip():
        return item
    raise ValueError("give ids or texts that are not empty, or an object of them to grades")
