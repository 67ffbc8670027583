"""Read runs of LangSmith and traces and observations of Langfuse as spans.

Sources: https://docs.langchain.com/langsmith (Run; list_runs and bulk export);
https://langfuse.com/docs (Trace and Observation of the public API, and exports of the UI).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from misslink.io.jsonl import SourceItem
from misslink.io.trace_formats.requests import decode_json, first_value, parse_time
from misslink.io.trace_formats.spans import KIND_KEY, OtelSpan

_DOCUMENT_KEYS = {"page_content", "pageContent"}  # a document as LangChain dumps it
_LANGFUSE_TRACE = {"id", "input", "output", "timestamp"}
_LANGFUSE_ONLY = {"observations", "htmlPath", "projectId", "sessionId"}


def is_langsmith_row(row: Mapping[str, Any]) -> bool:
    return {"run_type", "inputs"} <= row.keys()


def is_langfuse_row(row: Mapping[str, Any]) -> bool:
    is_observation = {"traceId", "type", "startTime"} <= row.keys()
    is_trace = row.keys() >= _LANGFUSE_TRACE and not _LANGFUSE_ONLY.isdisjoint(row)
    return is_observation or is_trace or _page(row) is not None


def _page(row: Mapping[str, Any]) -> list[Any] | None:
    """The objects of a page of Langfuse's API."""
    page = row.get("data")
    is_page = isinstance(page, list) and page and isinstance(page[0], Mapping)
    return page if is_page and "meta" in row else None


def langsmith_spans(item: SourceItem) -> Iterator[OtelSpan]:
    """A run, and the child runs in it."""
    run = item.data
    outputs = decode_json(run.get("outputs"))
    yield _span(
        item,
        trace=run.get("trace_id") or run.get("id"),
        parent=run.get("parent_run_id"),
        times=(run.get("start_time"), run.get("end_time")),
        kind=str(run["run_type"]),
        values=(decode_json(run["inputs"]), outputs),
        error=run.get("error"),
    )
    for child in run.get("child_runs") or ():
        yield from langsmith_spans(item._replace(data=child))


def langfuse_spans(item: SourceItem) -> Iterator[OtelSpan]:
    """An observation; a trace and the observations in it; a page of either."""
    row = item.data
    for part in _page(row) or ():
        yield from langfuse_spans(item._replace(data=part))
    if _page(row) is not None:
        return
    is_error = str(row.get("level")).upper() == "ERROR"
    yield _span(
        item,
        trace=row.get("traceId") or row.get("id"),
        parent=row.get("parentObservationId"),
        times=(first_value(row, ("startTime", "timestamp")), row.get("endTime")),
        kind=str(row.get("type") or "CHAIN"),
        values=(decode_json(row.get("input")), decode_json(row.get("output"))),
        error=(row.get("statusMessage") or "The observation is an error.") if is_error else None,
    )
    for part in row.get("observations") or ():
        if isinstance(part, Mapping):  # a list of traces has ids alone
            data = {"traceId": row.get("id"), **part}
            yield from langfuse_spans(item._replace(data=data))


def _span(
    item: SourceItem,
    *,
    trace: Any,
    parent: Any,
    times: tuple[Any, Any],
    kind: str,
    values: tuple[Any, Any],
    error: Any,
) -> OtelSpan:
    inputs, outputs = values
    documents = outputs
    if isinstance(outputs, Mapping):
        documents = decode_json(first_value(outputs, ("documents", "output", "results")))
    is_documents = isinstance(documents, list) and all(
        isinstance(part, Mapping) and not _DOCUMENT_KEYS.isdisjoint(part) for part in documents
    )
    attributes = {"input.value": inputs, "output.value": outputs, KIND_KEY: kind}
    if kind.upper() == "RETRIEVER" or (is_documents and documents):
        attributes[KIND_KEY] = "RETRIEVER"
        attributes["retrieval.documents"] = documents if isinstance(documents, list) else None
    start, end = (None if time is None else parse_time(time) for time in times)
    return OtelSpan(
        trace=str(trace or item.place),
        id=str(item.data.get("id") or item.place),
        parent=None if parent is None else str(parent),
        start=start,
        end=end,
        attributes={name: value for name, value in attributes.items() if value is not None},
        error=None if error is None else str(error),
        events=(),
        place=item.place,
    )
