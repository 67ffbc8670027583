"""Read requests from spans of OpenTelemetry with OpenInference or gen_ai attributes.

OTLP's JSON encoding (``resourceSpans``), the console exporters' output and Phoenix's tables.
Sources: opentelemetry-proto, ``opentelemetry/proto/trace/v1/trace.proto`` and its JSON mapping;
https://arize.com/docs/phoenix (exporting spans);
https://arize-ai.github.io/openinference/spec/semantic_conventions.html;
https://github.com/open-telemetry/semantic-conventions-genai (gen_ai.*, in development).
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from misslink.io.jsonl import SourceItem
from misslink.io.trace_formats.printed import decode_json, parse_printed_list
from misslink.io.trace_formats.requests import (
    LogRequest,
    RequestLog,
    extract_answer,
    extract_chunks,
    extract_history,
    extract_passages,
    extract_question,
    first_value,
    parse_time,
    tool_documents,
)
from misslink.text.prompt_matching import (
    ModelCall,
    PromptMatch,
    match_prompts,
    merge_rankings,
)
from misslink.types import Passage, RetrieverCall

_BATCH_KEYS = ("resourceSpans", "resource_spans")
_SCOPE_KEYS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_MAX_LEVELS = 12  # of an attribute
_ERROR_CODES = {"2", "ERROR", "STATUS_CODE_ERROR"}
_LIST_ATTRIBUTES = ("documents", "input_messages", "output_messages")  # lists of objects
KIND_KEY = "openinference.span.kind"
_OPERATION_KEY = "gen_ai.operation.name"
_SESSION_KEYS = ("session.id", "gen_ai.conversation.id", "conversation.id", "langfuse.session.id")
# What the SDKs of Langfuse and LangSmith call it where they send spans of OpenTelemetry.
_SDK_NAMES = {
    "langfuse.observation.type": KIND_KEY,
    "langfuse.observation.input": "input.value",
    "langfuse.observation.output": "output.value",
    "langsmith.span.kind": KIND_KEY,
}
_INPUT_KEYS = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages")
_OUTPUT_KEYS = ("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages")
# What models were given and gave: of attributes, of what is below them, and of events.
_PROMPT_KEYS = (
    *_INPUT_KEYS, "gen_ai.system_instructions", "llm.prompts",
    "gen_ai.system.message", "gen_ai.user.message", "gen_ai.tool.message",
    "gen_ai.assistant.message",
)  # fmt: skip
_REPLY_KEYS = (*_OUTPUT_KEYS, "gen_ai.choice")
_LABEL_KEYS = ("role", "type", "finish_reason", "id", "mime_type")  # of a message: no text
_CUT_LETTERS = 20  # of a passage, at the end of a prompt: fewer may be chance
_MODEL_KINDS = {"LLM", "GENERATION"}
_MODEL_OPERATIONS = {"chat", "text_completion", "generate_content"}
_QUERY_KEYS = (
    "input.value", "gen_ai.retrieval.query.text", "gen_ai.tool.call.arguments", "reranker.query",
)  # fmt: skip
_EVENT_KEYS = ("content", "gen_ai.event.content", "message.content")
_FEEDBACK_NAME = re.compile(
    r"(?:^|[._ ])(?:user[._ ]?)?(?:feedback|thumbs)(?:$|[._ ])", re.IGNORECASE
)
_FEEDBACK_FIELDS = ("label", "score", "value", "result")
_NO_FEEDBACK = ("explanation", "comment", "_id", ".id", "kind", "identifier")  # last parts of names
_OUTPUT_DOCUMENTS = ("documents", "source_documents", "context", "contexts", "retrieved_contexts")
# OTLP's JSON has ids in hexadecimal digits; protobuf's own JSON, of 16 and 8 bytes, in base64.
_BASE64_ID = re.compile(r"[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{11}=")
_LIST_INDEX = re.compile(r"[0-9]{1,5}")
_LATEST_TIME = dt.datetime.max.replace(tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class OtelSpan:
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

    @property
    def kind(self) -> str:
        """OpenInference's kind of span, in capitals; empty if unknown."""
        return str(self.attributes.get(KIND_KEY, "")).upper()

    @property
    def is_retrieval(self) -> bool:
        """Whether it is a retriever's or a reranker's."""
        operation = str(self.attributes.get(_OPERATION_KEY, "")).casefold()
        return self.kind in {"RETRIEVER", "RERANKER"} or operation in {"retrieval", "retrieve"}


def is_span_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row of a file is a span or a batch of spans."""
    keys = {*_BATCH_KEYS, "context.trace_id", "context.span_id", KIND_KEY}
    if keys & set(row) or f"attributes.{KIND_KEY}" in row:
        return True
    if {"trace_id", "span_id"} & set(_as_object(row.get("context"))):
        return True
    has_attributes = any(f"{name}.".startswith("attributes.") for name in row)
    has_ids = {"traceId", "spanId"} <= set(row) or {"trace_id", "span_id"} <= set(row)
    return has_ids and has_attributes


def read_spans(items: Iterable[SourceItem]) -> Iterator[OtelSpan]:
    """Yield the spans of rows.

    Raises
    ------
    InputError
        A batch is malformed, a span's attributes are not an object, or a row is not a span.
    """
    for item in items:
        batch = first_value(item.data, _BATCH_KEYS)
        if batch is not None:
            for resource in _checked_objects(item, batch, "resourceSpans"):
                scopes = first_value(resource, _SCOPE_KEYS) or []
                for scope in _checked_objects(item, scopes, "scopeSpans"):
                    for span in _checked_objects(item, scope.get("spans", []), "spans"):
                        yield _parse_span(item, span)
        elif is_span_row(item.data):
            yield _parse_span(item, item.data)
        else:
            raise item.error(
                "This row is not a span, but the rows before it are. Remove it, or put it in a "
                "separate file."
            )


def _checked_objects(item: SourceItem, value: Any, field: str) -> Sequence[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(part, Mapping) for part in value):
        raise item.error("This must be a list of objects.", field)
    return value


def _parse_span(item: SourceItem, row: Mapping[str, Any]) -> OtelSpan:
    attributes = row.get("attributes")
    if attributes is not None and not isinstance(attributes, Mapping | list):
        raise item.error("This must be an object.", "attributes")
    ids = {**row, **_as_object(row.get("context"))}
    flat = _flatten_attributes(attributes)
    prefixes = ("attributes.", "openinference.", "annotations")
    columns = {name: value for name, value in row.items() if name.startswith(prefixes)}
    flat |= _flatten_attributes(
        {name.removeprefix("attributes."): value for name, value in columns.items()}
    )
    for name, plain in _SDK_NAMES.items():
        if name in flat:
            flat.setdefault(plain, flat[name])
    if "span_kind" in row:
        flat.setdefault(KIND_KEY, row["span_kind"])
    flat_events = tuple(
        {"name": event.get("name"), **_flatten_attributes(event.get("attributes"))}
        for event in _object_items(decode_json(row.get("events")))
    )
    return OtelSpan(
        trace=_span_id(ids, "traceId", "trace_id", "context.trace_id") or item.place,
        id=_span_id(ids, "spanId", "span_id", "context.span_id") or item.place,
        parent=_span_id(row, "parentSpanId", "parent_span_id", "parent_id"),
        start=_span_time(
            row, "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"
        ),
        end=_span_time(row, "endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"),
        attributes=flat,
        error=_span_error(row, flat_events),
        events=flat_events,
        place=item.place,
    )


def _span_id(row: Mapping[str, Any], *names: str) -> str | None:
    value = next((row[name] for name in names if row.get(name)), None)
    if not isinstance(value, str | int):
        return None
    text = str(value).removeprefix("0x")
    return base64.b64decode(text).hex() if _BASE64_ID.fullmatch(text) else text


def _span_time(row: Mapping[str, Any], *names: str) -> dt.datetime | None:
    value = next((row[name] for name in names if row.get(name)), None)
    return None if value is None else parse_time(value)


def _span_error(row: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> str | None:
    """The message of a span whose status is an error."""
    status = row.get("status")
    code: Any = row.get("status_code")
    message: Any = row.get("status_message")
    if isinstance(status, Mapping):
        code = status.get("code", status.get("status_code", code))
        message = status.get("message", status.get("description", message))
    elif isinstance(status, str):
        code = status
    if str(code).rpartition(".")[2].upper() not in _ERROR_CODES:
        return None
    raised = (
        event.get("exception.message") or event.get("exception.type")
        for event in events
        if event.get("name") == "exception"
    )
    return str(message or next(filter(None, raised), None) or "The span's status is an error.")


def _flatten_attributes(value: Any) -> dict[str, object]:
    """Attributes by dotted name, from OTLP's list of keys and values or from objects."""
    flat: dict[str, Any] = {}
    if isinstance(value, list):
        for item in _object_items(value):
            if isinstance(item.get("key"), str):
                _flatten_into(flat, item["key"], _otlp_value(item.get("value"), _MAX_LEVELS))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _flatten_into(flat, str(name), item)
    return flat


def _flatten_into(flat: dict[str, Any], name: str, value: Any, levels: int = _MAX_LEVELS) -> None:
    if name.endswith(_LIST_ATTRIBUTES):
        value = parse_printed_list(value)
    if isinstance(value, Mapping) and levels:
        for key, item in value.items():
            _flatten_into(flat, f"{name}.{key}", item, levels - 1)
    elif isinstance(value, list) and levels and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            _flatten_into(flat, f"{name}.{index}", item, levels - 1)
    elif value is not None:
        flat[name] = value


def _otlp_value(value: Any, levels: int) -> Any:
    """Decode OTLP's ``{"stringValue": "..."}``."""
    if not isinstance(value, Mapping) or not levels:
        return None
    for name in ("stringValue", "boolValue", "doubleValue", "bytesValue", "string_value"):
        if name in value:
            return value[name]
    whole = value.get("intValue", value.get("int_value"))
    if whole is not None:  # 64-bit integers are texts in JSON
        return int(whole) if re.fullmatch(r"-?[0-9]{1,20}", str(whole)) else None
    listed = _as_object(value.get("arrayValue", value.get("kvlistValue"))).get("values")
    if "arrayValue" in value:
        items = listed if isinstance(listed, list) else []
        return [_otlp_value(item, levels - 1) for item in items]
    pairs = _object_items(listed)
    return {str(pair.get("key")): _otlp_value(pair.get("value"), levels - 1) for pair in pairs}


def _as_object(value: Any) -> Mapping[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def _object_items(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none of anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _by_trace(spans: Iterable[OtelSpan]) -> Collection[list[OtelSpan]]:
    traces: dict[str, list[OtelSpan]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    return traces.values()


def requests_from_spans(spans: Iterable[OtelSpan]) -> RequestLog:
    """Return one request a trace, in the order in which the traces begin in the file.

    The question is the input of the root span, and the answer its output. Without these, the
    question is the last user message to a model or a retriever's query, and the answer a model's
    last output. Retrieved are a reranker's documents, else the retrievers', each once.
    """
    requests = [
        _trace_request(sorted(trace, key=lambda span: span.start or _LATEST_TIME))
        for trace in _by_trace(map(_tool_as_search, spans))
    ]
    known = tuple(request for request in requests if request is not None)
    missing = len(requests) - len(known)
    return RequestLog(known, {}, {"traces without a question": missing} if missing else {})


def _tool_as_search(span: OtelSpan) -> OtelSpan:
    """A tool that returned documents is a search."""
    is_tool = span.kind == "TOOL" or span.attributes.get(_OPERATION_KEY) == "execute_tool"
    output = first_value(span.attributes, ("output.value", "gen_ai.tool.call.result"))
    if not is_tool or not (documents := tool_documents(output)):
        return span
    found = {KIND_KEY: "RETRIEVER", "retrieval.documents": documents}
    return replace(span, attributes={**span.attributes, **found})


def find_orphan(spans: Iterable[OtelSpan]) -> OtelSpan | None:
    """A span whose parent is missing in a trace that also has another root: a part of it is lost.

    A single root may have a parent elsewhere, such as the server that called the app.
    """
    for trace in _by_trace(spans):
        ids = {span.id for span in trace}
        orphans = [span for span in trace if span.parent is not None and span.parent not in ids]
        has_root = any(span.parent is None for span in trace)
        if orphans and (has_root or len(orphans) > 1):
            return orphans[0]
    return None


def _trace_request(spans: Sequence[OtelSpan]) -> LogRequest | None:
    ids = {span.id for span in spans}
    root = next((span for span in spans if span.parent is None or span.parent not in ids), spans[0])
    question = _trace_question(root, spans)
    if question is None:
        return None
    answer, chunks = _trace_answer(root, spans), _trace_chunks(root, spans)
    prompt = _match_prompts(chunks or (), spans, question, answer)
    passages = None if chunks is None else merge_rankings([chunks])
    latency = (root.end - root.start).total_seconds() if root.start and root.end else None
    replies = (span.attributes.get("gen_ai.response.id") for span in reversed(spans))
    sessions = (span.attributes.get(name) for span in (root, *spans) for name in _SESSION_KEYS)
    return LogRequest(
        question=question,
        id=root.trace,
        place=root.place,
        session=next((str(s) for s in sessions if isinstance(s, str | int) and s != ""), None),
        at=root.start,
        answer=answer,
        passages=passages,
        error=root.error,
        feedback=_trace_feedback(spans),
        latency_s=latency if latency is not None and latency >= 0 else None,
        # Without an id of its own, a span is named by its place in the file.
        trace_id=None if root.trace == root.place else root.trace,
        span_id=None if root.id == root.place else root.id,
        response_id=next((str(s) for s in replies if isinstance(s, str) and s), None),
        history=next(filter(None, map(extract_history, _root_inputs(root))), ()),
        calls=tuple(_retriever_calls(spans)),
        prompt=prompt,
    )


def _match_prompts(
    chunks: Sequence[Passage], spans: Sequence[OtelSpan], question: str, answer: str | None
) -> PromptMatch | None:
    """The passages in the prompts of the trace's models.

    None where a prompt is hidden or was cut by the exporter's limit of length, or where none has a
    text of any passage: then it is not known.
    """
    texts = (value for span in spans for value in span.attributes.values())
    # A longer text elsewhere shows that the exporter did not cut this one: the app did.
    longest = max((len(text) for text in texts if isinstance(text, str)), default=0)
    calls = []
    for span in spans:
        if span.kind in _MODEL_KINDS or span.attributes.get(_OPERATION_KEY) in _MODEL_OPERATIONS:
            prompt = _texts(span, _PROMPT_KEYS) or _texts(span, ("input.value",))
            reply = _texts(span, _REPLY_KEYS) or _texts(span, ("output.value",))
            if not prompt or any(len(text) >= longest and _is_cut(text, chunks) for text in prompt):
                return None
            calls.append(ModelCall("\n".join(prompt), "\n".join(reply)))
    match = match_prompts(chunks, calls, answer, [question])
    return match if match.shown or match.graded else None


def _is_cut(text: str, chunks: Sequence[Passage]) -> bool:
    """Whether a text ends within a passage that begins in it, or is JSON that cannot be read."""
    if text.startswith(('[{"', '{"')):
        return True
    end = text[-_CUT_LETTERS:]
    for chunk in chunks:
        place = chunk.text.find(end)
        begun = chunk.text[: place + len(end)]
        is_part = place >= 0 and len(begun) < len(chunk.text.rstrip())
        if is_part and len(end) == _CUT_LETTERS and text.endswith(begun):
            return True
    return False


def _texts(span: OtelSpan, names: tuple[str, ...]) -> list[str]:
    """The texts of a span's attributes and events with these names, and of what is below them."""
    texts = [
        text
        for name, value in span.attributes.items()
        if name.startswith(names) and not name.endswith(_LABEL_KEYS)
        for text in _all_texts(value)
    ]
    for event in span.events:
        if event.get("name") in names:
            texts += _all_texts({name: event[name] for name in event if name != "name"})
    return texts


def _all_texts(value: Any, levels: int = _MAX_LEVELS) -> Iterator[str]:
    value = decode_json(value)
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, list) and levels:
        for item in value:
            yield from _all_texts(item, levels - 1)
    elif isinstance(value, Mapping) and levels:
        for name, item in value.items():
            if name not in _LABEL_KEYS:
                yield from _all_texts(item, levels - 1)


def _retriever_calls(spans: Sequence[OtelSpan]) -> Iterator[RetrieverCall]:
    for span in _without_nested(spans):
        if span.is_retrieval and span.kind != "RERANKER":
            asked = (extract_question(span.attributes.get(name)) for name in _QUERY_KEYS)
            query = next(filter(None, asked), "")
            found = extract_passages(_span_documents(span, "retrieval.documents")) or ()
            tool = str(first_value(span.attributes, ("tool.name", "gen_ai.tool.name")) or "")
            ids = tuple(passage.id for passage in found)
            yield RetrieverCall(query=query, passages=ids, tool=tool)


def _root_inputs(root: OtelSpan) -> Iterator[Any]:
    """What the app was called with; prompts of models inside of it hold passages too."""
    for name in ("input.value", *_INPUT_KEYS):
        yield root.attributes.get(name) or [
            _normalize_message(message) for message in _indexed_objects(root.attributes, f"{name}.")
        ]


def _trace_question(root: OtelSpan, spans: Sequence[OtelSpan]) -> str | None:
    if root.kind != "EMBEDDING" and (text := extract_question(root.attributes.get("input.value"))):
        return text
    for span in spans:
        if text := _span_text(span, _INPUT_KEYS, ("gen_ai.user.message",), extract_question):
            return text
    queries = (
        extract_question(span.attributes.get(name))
        for span in spans
        if span.is_retrieval
        for name in _QUERY_KEYS
    )
    return next(filter(None, queries), None)


def _trace_answer(root: OtelSpan, spans: Sequence[OtelSpan]) -> str | None:
    if not root.is_retrieval and (text := extract_answer(root.attributes.get("output.value"))):
        return text
    events = ("gen_ai.choice", "gen_ai.assistant.message")
    texts = (_span_text(span, _OUTPUT_KEYS, events, extract_answer) for span in reversed(spans))
    return next(filter(None, texts), None)


def _span_text(
    span: OtelSpan,
    names: Sequence[str],
    events: Sequence[str],
    extract: Callable[[Any], str | None],
) -> str | None:
    """The text of messages in attributes, or in events (conventions up to 1.36)."""
    for name in names:
        messages = (
            decode_json(span.attributes[name])
            if name in span.attributes
            else [_normalize_message(m) for m in _indexed_objects(span.attributes, f"{name}.")]
        )
        if text := extract(messages):
            return text
    for event in span.events:
        if event.get("name") in events and (text := extract(first_value(event, _EVENT_KEYS))):
            return text
    return None


def _normalize_message(message: Mapping[str, Any]) -> dict[str, object]:
    """A message without the prefix ``message.`` of its keys, and with its parts joined."""
    plain = {name.removeprefix("message."): value for name, value in message.items()}
    if "content" not in plain and (parts := list(_indexed_objects(plain, "contents."))):
        texts = [part.get("message_content.text") for part in parts]
        plain["content"] = "\n".join(text for text in texts if isinstance(text, str))
    if "content" not in plain and (parts := list(_indexed_objects(plain, "parts."))):
        plain["parts"] = parts
    return plain


def _indexed_objects(attributes: Mapping[str, Any], prefix: str) -> Iterator[dict[str, Any]]:
    """The objects of a list with attributes ``PREFIX0.name``, ``PREFIX1.name``."""
    objects: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            index, dot, key = name.removeprefix(prefix).partition(".")
            if dot and _LIST_INDEX.fullmatch(index):
                objects.setdefault(int(index), {})[key] = value
    yield from (objects[index] for index in sorted(objects))


def _trace_chunks(root: OtelSpan, spans: Sequence[OtelSpan]) -> Sequence[Passage] | None:
    """The retrieved passages; None where no span lists them, not even as none.

    Without a retriever's span, those that the app returns beside its answer.
    """
    outermost = _without_nested(spans)
    for prefix in ("reranker.output_documents", "retrieval.documents"):
        documents: list[Any] = []
        for span in outermost:
            documents += _span_documents(span, prefix)
        if documents:
            return extract_chunks(documents)
    retrievers = [span for span in outermost if span.is_retrieval and span.kind != "RERANKER"]
    if not retrievers:
        returned = decode_json(first_value(_output(root), _OUTPUT_DOCUMENTS))
        return extract_chunks(returned) if isinstance(returned, list) else None
    return () if all(map(_lists_none, retrievers)) else None


def _output(span: OtelSpan) -> Mapping[str, Any]:
    """What a span returned, if it is an object."""
    return _as_object(
        decode_json(first_value(span.attributes, ("output.value", "gen_ai.completion")))
    )


def _span_documents(span: OtelSpan, prefix: str) -> list[Any]:
    whole = decode_json(first_value(span.attributes, (prefix, f"gen_ai.{prefix}")))
    documents = (
        list(_indexed_objects(span.attributes, f"{prefix}."))
        or (whole if isinstance(whole, list) else [])
        or list(_indexed_objects(span.attributes, f"gen_ai.{prefix}."))
        or (_returned_documents(span) if span.kind == "RETRIEVER" else [])
    )
    return _with_ids(span, documents)


def _returned_documents(span: OtelSpan) -> list[Any]:
    """The documents that a retriever returned, where no attribute lists them."""
    output = decode_json(span.attributes.get("output.value"))
    documents = output if isinstance(output, list) else decode_json(_output(span).get("documents"))
    return _object_items(documents)


def _lists_none(span: OtelSpan) -> bool:
    """Whether a span says that nothing was found; a hidden output does not."""
    output = decode_json(span.attributes.get("output.value"))
    names = ("retrieval.documents", "gen_ai.retrieval.documents")
    listed = decode_json(first_value(span.attributes, names))
    return [] in (listed, output, _as_object(output).get("documents"))


def _without_nested(spans: Sequence[OtelSpan]) -> list[OtelSpan]:
    """Spans that are not inside a retriever's, such as the parts of an ensemble."""
    by_id = {span.id: span for span in spans}
    outermost = []
    for span in spans:
        parent, steps = by_id.get(span.parent or ""), 0
        while parent is not None and not parent.is_retrieval and steps < len(spans):
            parent, steps = by_id.get(parent.parent or ""), steps + 1
        if parent is None or span.kind == "RERANKER":
            outermost.append(span)
    return outermost


def _with_ids(span: OtelSpan, documents: list[Any]) -> list[Any]:
    """Documents with the ids that openinference's LangChain instrumentation has in the output only."""
    output = decode_json(span.attributes.get("output.value"))
    listed = _object_items(_as_object(output).get("documents"))
    if len(listed) != len(documents):
        return documents
    return [
        {"id": same.get("id"), **document} if isinstance(document, Mapping) else document
        for same, document in zip(listed, documents, strict=True)
    ]


def _trace_feedback(spans: Sequence[OtelSpan]) -> str | float | None:
    """A user's feedback: an attribute, an annotation or an evaluation with such a name."""
    for span in spans:
        for event in span.events:
            if _FEEDBACK_NAME.search(str(event.get("gen_ai.evaluation.name", ""))):
                prefix = "gen_ai.evaluation.score."
                score = event.get(f"{prefix}label", event.get(f"{prefix}value"))
                if isinstance(score, str | int | float):
                    return score
        for name in sorted(filter(_FEEDBACK_NAME.search, span.attributes), key=_feedback_rank):
            value = span.attributes[name]
            if isinstance(value, bool):
                return "up" if value else "down"
            if isinstance(value, str | int | float) and not name.endswith(_NO_FEEDBACK):
                return value
    return None


def _feedback_rank(name: str) -> int:
    """A plain name first, then its label, its score, its value."""
    last = name.rpartition(".")[2]
    return _FEEDBACK_FIELDS.index(last) + 1 if last in _FEEDBACK_FIELDS else 0
