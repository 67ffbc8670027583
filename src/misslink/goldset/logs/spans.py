"""Spans of OpenTelemetry from the files in which they are exported, their attributes made flat.

Read are OTLP's JSON encoding (``resourceSpans``, as collectors write it, whole or a batch a line),
what the SDKs' console exporters print, and Phoenix's tables of spans, flat or nested.

Sources: opentelemetry-proto, ``opentelemetry/proto/trace/v1/trace.proto`` and its JSON mapping;
https://arize.com/docs/phoenix (exporting spans).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.goldset.logs.request import moment
from misslink.goldset.logs.said import decoded
from misslink.goldset.logs.source import Row

__all__ = ["Span", "holds_spans", "spans_of"]

_BATCHES = ("resourceSpans", "resource_spans")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_DEEPEST = 12  # levels of an attribute
_ERRORS = {"2", "ERROR", "STATUS_CODE_ERROR"}
_LISTED = ("documents", "input_messages", "output_messages")  # attributes that are lists of objects


@dataclass(frozen=True, slots=True)
class Span:
    """One step of a trace.

    Parameters
    ----------
    trace, id : str
    parent : str or None
    start, end : datetime or None
    attributes : mapping of str to value
        By dotted name, such as ``retrieval.documents.0.document.id``.
    error : str or None
    events : sequence of mapping
        Each flat, with its ``name``.
    place : str
        File and line.
    """

    trace: str
    id: str
    parent: str | None
    start: dt.datetime | None
    end: dt.datetime | None
    attributes: Mapping[str, Any]
    error: str | None
    events: tuple[Mapping[str, Any], ...]
    place: str


def holds_spans(row: Mapping[str, Any]) -> bool:
    """Whether a row of a file is a span or a batch of them."""
    if any(name in row for name in _BATCHES):
        return True
    context = row.get("context")
    nested = isinstance(context, Mapping) and ("trace_id" in context or "span_id" in context)
    flat = any(name in row for name in ("context.trace_id", "context.span_id"))
    bare = ("traceId" in row and "spanId" in row) or ("trace_id" in row and "span_id" in row)
    kinds = "openinference.span.kind" in row or "attributes.openinference.span.kind" in row
    return nested or flat or kinds or (bare and _has_attributes(row))


def spans_of(path: Path, rows: Iterable[Row]) -> Iterator[Span]:
    """Yield the spans of a file's rows.

    Raises
    ------
    InputError
        A batch is no batch, a span has no object of attributes, or a row is no span.
    """
    for line, row in rows:
        place = f"{path}, line {line}"
        batch = next((row[name] for name in _BATCHES if name in row), None)
        if batch is not None:
            for span in _of_batch(path, line, batch):
                yield _span(path, line, span, place)
        elif holds_spans(row):
            yield _span(path, line, row, place)
        else:
            raise InputError(
                "this is no span, and the lines before it are; take it out, or give it as a file "
                "of its own",
                path=path,
                line=line,
            )


def _has_attributes(row: Mapping[str, Any]) -> bool:
    return "attributes" in row or any(name.startswith("attributes.") for name in row)


def _of_batch(path: Path, line: int | None, batch: Any) -> Iterator[Mapping[str, Any]]:
    scopes: Any
    for resource in _objects(path, line, batch, "resourceSpans"):
        scopes = next((resource[name] for name in _SCOPES if name in resource), [])
        for scope in _objects(path, line, scopes, "scopeSpans"):
            yield from _objects(path, line, scope.get("spans", []), "spans")


def _objects(path: Path, line: int | None, value: Any, field: str) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise InputError("this should be a list of objects", path=path, line=line, field=field)
    return value


def _span(path: Path, line: int | None, row: Mapping[str, Any], place: str) -> Span:
    given = row.get("attributes")
    if given is not None and not isinstance(given, Mapping | list):
        raise InputError("this should be an object", path=path, line=line, field="attributes")
    context = row.get("context")
    ids = {**row, **context} if isinstance(context, Mapping) else row
    flat = _flat(given) if given is not None else {}
    flat |= _flat(
        {name.removeprefix("attributes."): value for name, value in row.items()
         if name.startswith(("attributes.", "openinference.", "annotations"))}
    )  # fmt: skip
    if "span_kind" in row:
        flat.setdefault("openinference.span.kind", row["span_kind"])
    events = decoded(row.get("events"))
    listed = [one for one in events if isinstance(one, Mapping)] if isinstance(events, list) else []
    return Span(
        trace=_id(ids, "traceId", "trace_id", "context.trace_id") or place,
        id=_id(ids, "spanId", "span_id", "context.span_id") or place,
        parent=_id(row, "parentSpanId", "parent_span_id", "parent_id"),
        start=_time(row, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"),
        end=_time(row, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"),
        attributes=flat,
        error=_error(row, listed),
        events=tuple(
            {"name": one.get("name"), **_flat(one.get("attributes") or {})} for one in listed
        ),
        place=place,
    )


def _id(row: Mapping[str, Any], *names: str) -> str | None:
    found = next((row[name] for name in names if row.get(name)), None)
    return str(found).removeprefix("0x") if isinstance(found, str | int) else None


def _time(row: Mapping[str, Any], *names: str) -> dt.datetime | None:
    found = next((row[name] for name in names if row.get(name)), None)
    return None if found is None else moment(found)


def _error(row: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str | None:
    """What a span says of its failure, where its status is an error."""
    status = row.get("status")
    code: Any = row.get("status_code")
    message: Any = row.get("status_message")
    if isinstance(status, Mapping):
        code = status.get("code", status.get("status_code", code))
        message = status.get("message", status.get("description", message))
    elif isinstance(status, str):
        code = status
    if str(code).rpartition(".")[2].upper() not in _ERRORS:
        return None
    raised = [
        _flat(one.get("attributes") or {}) for one in events if one.get("name") == "exception"
    ]
    told = [each.get("exception.message") or each.get("exception.type") for each in raised]
    return str(message or next(filter(None, told), None) or "the span's status is an error")


def _flat(value: Any) -> dict[str, Any]:
    """Attributes by dotted name, from OTLP's list of keys and values or from objects."""
    found: dict[str, Any] = {}
    if isinstance(value, list):
        pairs = [
            one for one in value if isinstance(one, Mapping) and isinstance(one.get("key"), str)
        ]
        for one in pairs:
            _into(found, one["key"], _otlp(one.get("value"), _DEEPEST), _DEEPEST)
    elif isinstance(value, Mapping):
        for name, one in value.items():
            _into(found, str(name), one, _DEEPEST)
    return found


def _into(found: dict[str, Any], name: str, value: Any, levels: int) -> None:
    if name.endswith(_LISTED):
        value = decoded(value)
    if isinstance(value, Mapping) and levels:
        for key, one in value.items():
            _into(found, f"{name}.{key}", one, levels - 1)
    elif isinstance(value, list) and levels and any(isinstance(one, Mapping) for one in value):
        for number, one in enumerate(value):
            _into(found, f"{name}.{number}", one, levels - 1)
    elif value is not None:
        found[name] = value


def _otlp(value: Any, levels: int) -> Any:
    """A value as OTLP writes it: ``{"stringValue": "..."}``, whole numbers as text."""
    if not isinstance(value, Mapping) or not levels:
        return None
    for name in ("stringValue", "boolValue", "doubleValue", "bytesValue", "string_value"):
        if name in value:
            return value[name]
    whole = value.get("intValue", value.get("int_value"))
    if whole is not None:  # JSON has no room for 64 bits, so they are text
        return int(whole) if re.fullmatch(r"-?[0-9]{1,20}", str(whole)) else None
    inner = value.get("arrayValue", value.get("kvlistValue"))
    listed = inner.get("values") if isinstance(inner, Mapping) else None
    listed = listed if isinstance(listed, list) else []
    if "arrayValue" in value:
        return [_otlp(one, levels - 1) for one in listed]
    pairs = [one for one in listed if isinstance(one, Mapping)]
    return {str(one.get("key")): _otlp(one.get("value"), levels - 1) for one in pairs}
