"""Where in a JSON text the labels of an answer stand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Place", "label_places", "labels_of"]

_DECODER = json.JSONDecoder(strict=False)
_BLANKS = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Place:
    """A value that is one of a few labels.

    Parameters
    ----------
    name : str
        Keys and numbers from the root, such as ``claims.0.support``.
    start, end : int
        Character offsets of the value in the text, quote marks included.
    labels : mapping of str to str
        Every label, and how it is written in JSON.
    """

    name: str
    start: int
    end: int
    labels: Mapping[str, str]


def label_places(text: str, schema: Mapping[str, Any]) -> list[Place]:
    """Find every value of `text` for which `schema` leaves two labels or more, in order.

    Parameters
    ----------
    text : str
        A JSON document.
    schema : mapping
        A strict JSON schema without references: enumerations, booleans and nullable ones are
        labels. Where a key stands twice, the last one counts.

    Raises
    ------
    ValueError
        The text is no JSON.
    """
    found: dict[str, Place] = {}
    _walk(text, _skip(text, 0), schema, "", found)
    return sorted(found.values(), key=lambda place: place.start)


def labels_of(schema: Mapping[str, Any]) -> dict[str, str]:
    """Every label that a schema node leaves, and how it is written in JSON; empty if it is none."""
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "enum" in schema:
        values = list(schema["enum"])
    elif set(kinds) <= {"boolean", "null"} and "boolean" in kinds:
        values = [True, False, *([None] if "null" in kinds else [])]
    else:
        return {}
    if any(isinstance(value, dict | list | float) for value in values):
        return {}
    written = [json.dumps(value, ensure_ascii=False) for value in values]
    names = [
        value if isinstance(value, str) else text
        for value, text in zip(values, written, strict=True)
    ]
    return dict(zip(names, written, strict=True)) if len(set(names)) == len(names) > 1 else {}


def _walk(text: str, at: int, schema: Mapping[str, Any], name: str, found: dict[str, Place]) -> int:
    """Enter the labels of the value at `at` into `found`; return where the value ends."""
    schema = _option(schema, text[at : at + 1])
    opening = text[at : at + 1]
    if opening == "{" and "properties" in schema:
        return _object(text, at, schema["properties"], name, found)
    if opening == "[" and "items" in schema:
        return _array(text, at, schema["items"], name, found)
    _, end = _DECODER.raw_decode(text, at)
    labels = labels_of(schema)
    if labels:
        found[name] = Place(name, at, end, labels)
    return end


def _object(
    text: str, at: int, properties: Mapping[str, Any], name: str, found: dict[str, Place]
) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise ValueError("a key is missing")
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _past(text, at, ":"))
        inner = f"{name}.{key}" if name else key
        at = _skip(text, _walk(text, at, properties.get(key, {}), inner, found))
        if text[at : at + 1] == "}":
            return at + 1
        at = _skip(text, _past(text, at, ","))


def _array(text: str, at: int, items: Mapping[str, Any], name: str, found: dict[str, Place]) -> int:
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    number = 0
    while True:
        inner = f"{name}.{number}" if name else str(number)
        at = _skip(text, _walk(text, at, items, inner, found))
        if text[at : at + 1] == "]":
            return at + 1
        at = _skip(text, _past(text, at, ","))
        number += 1


def _option(schema: Mapping[str, Any], opening: str) -> Mapping[str, Any]:
    """Of several schemas of a value the first that may begin so; the schema itself if it is one."""
    for option in schema.get("anyOf", ()):
        if (opening == "{") == ("properties" in option) and (opening == "[") == ("items" in option):
            chosen: Mapping[str, Any] = option
            return chosen
    return schema


def _past(text: str, at: int, mark: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != mark:
        raise ValueError(f"a {mark!r} is missing")
    return at + 1


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
