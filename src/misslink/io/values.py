"""Values that programs give in Python, as JSON has them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import Any

from pydantic import JsonValue

from misslink.text.normalization import valid_text

_MAX_DEPTH = 50  # levels of metadata
_TEXT_KEYS = ("text", "page_content", "content")


def json_value(value: Any) -> Any:
    """Return a value as JSON has it; None where there is none, as in NaN."""
    if value is None or isinstance(value, str | int):  # these first: most values are
        return value
    if isinstance(value, float):  # whole numbers of a column with gaps are floats
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, list | tuple):
        is_pair = isinstance(value, tuple) and value and is_document(value[0])
        return _document_value(value) if is_pair else [json_value(item) for item in value]
    if isinstance(value, dict):
        return {
            name if isinstance(name, str) else str(json_value(name)): plain
            for name, item in value.items()
            if (plain := item if type(item) is str else json_value(item)) is not None
        }
    if hasattr(value, "tolist"):  # NumPy's
        return json_value(value.tolist())
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    kinds = (convert for kind, convert in _CONVERSIONS.items() if isinstance(value, kind))
    convert = next(kinds, _document_value if is_document(value) else None)
    return value if convert is None else convert(value)


def _document_value(document: Any) -> dict[str, object]:
    """A document, or one with its score, as an object."""
    name, text, metadata, score = document_fields(document)
    fields = {"id": name, "text": text, "score": json_value(score)}
    fields["metadata"] = {valid_text(str(k)): metadata_value(v) for k, v in metadata.items()}
    return {name: field for name, field in fields.items() if field is not None}


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    decimal.Decimal: lambda number: (
        int(number) if number == number.to_integral_value() else json_value(float(number))
    ),
    # Excel and pandas hold a date as the midnight at which it begins.
    dt.datetime: lambda time: (time.date() if _is_midnight(time) else time).isoformat(),
    dt.date: methodcaller("isoformat"),
    dt.time: methodcaller("isoformat"),
    dt.timedelta: methodcaller("total_seconds"),
    bytes: lambda raw: raw.decode("utf-8"),
    uuid.UUID: str,
}


def _is_midnight(time: dt.datetime) -> bool:
    return time.tzinfo is None and time.time() == dt.time()


def metadata_value(value: Any, depth: int = 0) -> JsonValue:
    """Return a value of a document's metadata; what JSON cannot hold becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if depth > _MAX_DEPTH:
        return "(nested too deeply)"
    if isinstance(value, Mapping):
        return {valid_text(str(k)): metadata_value(item, depth + 1) for k, item in value.items()}
    if isinstance(value, list | tuple):
        return [metadata_value(item, depth + 1) for item in value]
    return valid_text(str(value))


def is_document(value: Any) -> bool:
    """Whether it is a document of LangChain or Haystack, or a node of LlamaIndex with a score."""
    # A message has a content too.
    text = getattr(value, "content", None) if hasattr(value, "meta") else None
    in_node = getattr(getattr(value, "node", None), "text", None)
    return isinstance(getattr(value, "page_content", text), str) or isinstance(in_node, str)


def document_fields(document: Any) -> tuple[Any, str, dict[Any, Any], Any]:
    """The id, text, metadata and score that a document of any shape carries."""
    if isinstance(document, str):
        return None, valid_text(document), {}, None
    if isinstance(document, tuple):
        return (*document_fields(document[0])[:3], document[1])
    if isinstance(document, Mapping):
        text = next((document[key] for key in _TEXT_KEYS if key in document), "")
        metadata = document.get("metadata")
        metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
        return document.get("id"), valid_text(str(text)), metadata, document.get("score")
    node = getattr(document, "node", document)  # LlamaIndex's node with a score
    texts = (getattr(node, key, None) for key in ("page_content", "text", "content"))
    text = next((text for text in texts if isinstance(text, str)), str(document))
    metadata = dict(getattr(node, "metadata", None) or getattr(node, "meta", None) or {})
    if source := getattr(node, "ref_doc_id", None):  # LlamaIndex's id of the document it is of
        metadata.setdefault("ref_doc_id", source)
    identity = getattr(node, "id", None) or getattr(node, "node_id", None)
    return identity, valid_text(text), metadata, getattr(document, "score", None)
