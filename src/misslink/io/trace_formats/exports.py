"""Read runs of LangSmith, traces and observations of Langfuse, and traces of MLflow as spans.

Sources: https://docs.langchain.com/langsmith (Run; list_runs and bulk export);
https://langfuse.com/docs (Trace and Observation of the public API, exports of the UI, and fields of
the blob storage export); what `Trace.to_json` and `search_traces` of mlflow 3 give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from misslink.io.jsonl import SourceItem
from misslink.io.trace_formats.printed import decode_json
from misslink.io.trace_formats.requests import first_value, parse_time
from misslink.io.trace_formats.spans import KIND_KEY, OtelSpan

_DOCUMENT_KEYS = {"page_content", "pageContent"}  # a document as LangChain dumps it
_LANGFUSE_TRACE = {"id", "input", "output", "timestamp"}
_LANGFUSE_ONLY = {"observations", "htmlPath", "projectId", "sessionId"}
_LANGFUSE_STORED = {"project_id", "parent_observation_id"}  # in files of its blob storage
_IS_ERROR = "The observation is an error."


def is_langsmith_row(row: Mapping[str, Any]) -> bool:
    return {"run_type", "inputs"} <= row.keys()


def is_langfuse_row(row: Mapping[str, Any]) -> bool:
    is_observation = {"traceId", "type", "startTime"} <= row.keys()
    is_trace = row.keys() >= _LANGFUSE_TRACE and not _LANGFUSE_ONLY.isdisjoint(row)
    is_stored = {"trace_id", "type", "start_time"} <= row.keys()
    return is_observation or is_trace or (is_stored and not _LANGFUSE_STORED.isdisjoint(row))


def langsmith_spans(item: SourceItem) -> Iterator[OtelSpan]:
    """A run, and the child runs in it."""
    run = item.data
    yield _exported_span(
        item,
        ids=(run.get("trace_id") or run.get("id"), run.get("parent_run_id")),
        times=(run.get("start_time"), run.get("end_time")),
        kind=str(run["run_type"]),
        values=(run["inputs"], run.get("outputs")),
        error=run.get("error"),
    )
    children = run.get("child_runs") or ()
    for child in children if isinstance(children, list) else ():
        if isinstance(child, Mapping) and is_langsmith_row(child):
            yield from langsmith_spans(item._replace(data=child))


def langfuse_spans(item: SourceItem) -> Iterator[OtelSpan]:
    """An observation; a trace and the observations in it."""
    row = item.data
    is_error = str(row.get("level")).upper() == "ERROR"
    yield _exported_span(
        item,
        ids=(
            first_value(row, ("traceId", "trace_id", "id")),
            first_value(row, ("parentObservationId", "parent_observation_id")),
        ),
        times=(
            first_value(row, ("startTime", "start_time", "timestamp")),
            first_value(row, ("endTime", "end_time")),
        ),
        kind=str(row.get("type") or "CHAIN"),
        values=(row.get("input"), row.get("output")),
        error=(first_value(row, ("statusMessage", "status_message")) or _IS_ERROR)
        if is_error
        else None,
    )
    parts = row.get("observations")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, Mapping):  # a list of traces has ids alone
            data = {"traceId": row.get("id"), **part}
            yield from langfuse_spans(item._replace(data=data))


def is_mlflow_row(row: Mapping[str, Any]) -> bool:
    return bool(_mlflow_span_rows(row))


def mlflow_spans(item: SourceItem) -> Iterator[OtelSpan]:
    """The spans of a trace, whose attributes are JSON texts."""
    for row in _mlflow_span_rows(item.data):
        said = {name: decode_json(text, '{["') for name, text in row["attributes"].items()}
        kind = str(said.get("mlflow.spanType") or "CHAIN")
        status = row.get("status") or {}
        failed = isinstance(status, Mapping) and status.get("code") == "STATUS_CODE_ERROR"
        yield _exported_span(
            item._replace(data={"id": row.get("span_id")}),
            ids=(
                said.get("mlflow.traceRequestId") or row.get("trace_id"),
                row.get("parent_span_id"),
            ),
            times=(row.get("start_time_unix_nano"), row.get("end_time_unix_nano")),
            kind="LLM" if kind == "CHAT_MODEL" else kind,
            values=(said.get("mlflow.spanInputs"), said.get("mlflow.spanOutputs")),
            error=(status.get("message") or _IS_ERROR) if failed else None,
        )


def _mlflow_span_rows(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The spans of `Trace.to_json`, or of a row of `search_traces`; none where it is neither."""
    data = row.get("data") if "info" in row else row
    spans = decode_json(data.get("spans")) if isinstance(data, Mapping) else None
    return [
        span
        for span in (spans if isinstance(spans, list) else ())
        if isinstance(span, Mapping)
        and isinstance(span.get("attributes"), Mapping)
        and "mlflow.spanType" in span["attributes"]
    ]


def _exported_span(
    item: SourceItem,
    *,
    ids: tuple[Any, Any],
    times: tuple[Any, Any],
    kind: str,
    values: tuple[Any, Any],
    error: Any,
) -> OtelSpan:
    """A span of a tool, by the ids of its trace and parent, its start and end, input and output."""
    trace, parent = ids
    inputs, outputs = (decode_json(value, '{["') for value in values)
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
