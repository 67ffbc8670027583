"""Read logs: tables by their columns, spans by their attributes."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean, known_names
from misslink.io.jsonl import SourceItem
from misslink.io.numbers import parse_number
from misslink.io.trace_formats.printed import check_closed, parse_printed_list
from misslink.io.trace_formats.requests import (
    LogRequest,
    RequestLog,
    extract_answer,
    extract_history,
    extract_passages,
    extract_question,
    parse_time,
    read_log_rows,
)
from misslink.io.trace_formats.spans import (
    OtelSpan,
    is_span_row,
    read_spans,
    requests_from_spans,
)

# Usual column names of each field, the most likely first.
COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "question": (
        "question", "query", "user_input", "user_query", "input", "inputs", "prompt",
        "search_query", "search", "message", "text", "q",
    ),
    "answer": ("answer", "output", "outputs", "response", "completion", "reply", "result"),
    "session": (
        "session", "session_id", "session.id", "sessionid", "conversation_id", "conversation",
        "thread_id", "chat_id", "thread",
    ),
    "time": ("time", "timestamp", "asked_at", "created_at", "start_time", "date", "ts"),
    "passages": (
        "passages", "retrieved", "retrieved_contexts", "contexts", "documents", "context",
        "sources", "source_documents",
    ),
    "error": ("error", "exception", "error_message"),
    "feedback": ("feedback", "user_feedback", "thumbs", "rating", "vote", "feedback_score"),
    "latency": ("latency_s", "latency", "duration_s", "latency_ms", "duration_ms"),
    "category": ("category", "intent", "topic"),
    "id": ("id", "case_id", "request_id", "trace_id"),
    "reference": ("reference", "ground_truth", "expected_answer", "expected_output"),
    "history": ("history", "chat_history"),
    "span": ("span_id",),
    "reply": ("response_id",),
}  # fmt: skip
_NO_ERROR_VALUES = {
    "", "0", "false", "none", "null", "ok", "no", "success", "200", "[]", "{}", "unset",
}  # fmt: skip
_NUMBERED_COLUMN = re.compile(
    r"(?:retrieved)?(?:context|passage|document|doc|chunk|source)(\d{1,3})"  # normalized
)
_TEXT_FIELDS = {"question", "answer", "passages", "reference"}  # where a number is a text
_SHOWN_COLUMNS = 12


def read_logs(paths: Iterable[Path], columns: Mapping[str, str] | None = None) -> RequestLog:
    """Read logs of a live app. Nothing is masked yet.

    Parameters
    ----------
    paths : iterable of Path
        CSV, JSON Lines, a JSON array, parquet, or OpenTelemetry spans (OTLP's JSON, the SDKs'
        console output, Phoenix's tables) with OpenInference or gen_ai attributes; also gzipped.
        Spans of one trace may be in several files.
    columns : mapping of str to str, optional
        Field to column of tables; see `parse_columns`.

    Raises
    ------
    InputError
        A file cannot be read, a line is malformed, or no file contains a question.
    """
    logs: list[RequestLog] = []
    spans: list[OtelSpan] = []
    for path in paths:
        rows = read_log_rows(path)
        first = next(rows)
        rows = itertools.chain([first], rows)
        if is_span_row(first.data):
            spans += read_spans(rows)
        else:
            logs.append(requests_from_rows(str(path), rows, columns or {}))
    if spans:
        logs.append(requests_from_spans(spans))
    requests = tuple(request for log in logs for request in log.requests)
    used = {field: column for log in logs for field, column in log.columns.items()}
    left_out: Counter[str] = Counter()
    for log in logs:
        left_out.update(log.left_out)
    if not requests:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        raise InputError(
            f"The logs contain no question{reasons and f' ({reasons})'}. "
            "Name its column: --column question=NAME."
        )
    return RequestLog(requests, used, dict(left_out))


def parse_columns(
    options: Iterable[str], fields: Collection[str] = tuple(COLUMN_NAMES)
) -> dict[str, str]:
    """Parse ``--column question=query`` options: field, one of `fields`, to column of a table.

    Raises
    ------
    InputError
        An option names no column, or an unknown field.
    """
    columns: dict[str, str] = {}
    for option in options:
        field, equals, column = (part.strip() for part in option.partition("="))
        if not equals or not column:
            raise InputError(f"--column {option!r} names no column. Write it as question=NAME.")
        if field not in fields:
            raise InputError(f"--column: unknown field '{field}'; {known_names(field, fields)}")
        columns[field] = column
    return columns


def requests_from_rows(
    path: str, rows: Iterable[SourceItem], columns: Mapping[str, str]
) -> RequestLog:
    """Return the requests of a table.

    Parameters
    ----------
    path : str
        For messages.
    rows : iterable of SourceItem
    columns : mapping of str to str
        Field to column where it has an unusual name. A dotted name is a path into objects:
        ``inputs.question``.

    Raises
    ------
    InputError
        No row has a column of `columns`, or no column looks like a question.
    """
    requests: list[LogRequest] = []
    seen: dict[str, None] = {}
    used: dict[str, str] = {}
    without_question = 0
    for item in rows:
        row = {str(name): value for name, value in item.data.items() if value not in (None, "")}
        seen |= dict.fromkeys(row)
        matched = {
            field: (name, str(value) if field in _TEXT_FIELDS and _is_scalar(value) else value)
            for field, (name, value) in _matched_columns(row, columns).items()
        }
        used |= {field: name for field, (name, _) in matched.items()}
        question = extract_question(matched.get("question", ("", None))[1])
        if question is None:
            without_question += 1
            continue
        if "passages" in matched:
            name, given = matched["passages"]
            given = parse_printed_list(given)
            check_closed(item, given, [name])
            # A text is one passage, unless it is an object whose documents are in a field.
            matched["passages"] = name, [given] if isinstance(given, str) else given
        requests.append(_row_request(question, matched, item.place, row))
    _check_columns(path, columns, used, list(seen))
    left_out = {"rows without a question": without_question} if without_question else {}
    return RequestLog(tuple(requests), used, left_out)


def _row_request(
    question: str, matched: Mapping[str, tuple[str, Any]], place: str, row: Mapping[str, Any]
) -> LogRequest:
    values = {field: value for field, (_, value) in matched.items()}
    passages = values.get("passages") if "passages" in values else _numbered_passages(row)
    latency = parse_number(values.get("latency"))
    if latency is not None and matched["latency"][0].casefold().endswith("ms"):
        latency *= 1e-3
    session, category = values.get("session"), values.get("category")
    return LogRequest(
        question=question,
        place=place,
        session=str(session) if isinstance(session, str | int) else None,
        at=parse_time(values["time"]) if "time" in values else None,
        answer=extract_answer(values.get("answer")),
        passages=extract_passages(passages),
        error=_row_error(values.get("error")),
        feedback=_row_feedback(values.get("feedback")),
        latency_s=latency if latency is not None and latency >= 0 else None,
        category=str(category).strip() if isinstance(category, str | int) else None,
        id=None if (name := values.get("id")) is None else str(name),
        reference=extract_answer(values.get("reference")),
        history=extract_history({"history": values.get("history")}),
        trace_id=str(row["trace_id"]) if "trace_id" in row else None,
        span_id=None if (span := values.get("span")) is None else str(span),
        response_id=None if (reply := values.get("reply")) is None else str(reply),
    )


def _matched_columns(
    row: Mapping[str, Any], columns: Mapping[str, str]
) -> dict[str, tuple[str, Any]]:
    """The column of each field in this row, with its value."""
    by_name = {_normalize_name(name): name for name in reversed(list(row))}
    matched: dict[str, tuple[str, Any]] = {}
    for field, names in COLUMN_NAMES.items():
        if field in columns:
            value = _lookup(row, columns[field])
            if value is not None:
                matched[field] = columns[field], value
            continue
        normalized = (_normalize_name(name) for name in names)
        name = next((by_name[name] for name in normalized if name in by_name), None)
        if name is not None and name not in columns.values():
            matched[field] = name, row[name]
    return matched


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _lookup(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column, or at a dotted path into objects."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _normalize_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _numbered_passages(row: Mapping[str, Any]) -> list[Any] | None:
    """Passages in separate columns: ``context_1``, ``context_2``."""
    numbered = [
        (int(match[1]), name)
        for name in row
        if (match := _NUMBERED_COLUMN.fullmatch(_normalize_name(name)))
    ]
    return [row[name] for _, name in sorted(numbered, key=lambda column: column[0])] or None


def _row_error(value: Any) -> str | None:
    if value is None or value is False or str(value).strip().casefold() in _NO_ERROR_VALUES:
        return None
    return "The log says that it failed." if value is True else str(value).strip()


def _row_feedback(value: Any) -> str | float | None:
    if isinstance(value, Mapping):
        keys = ("score", "value", "label", "rating")
        value = next((value[key] for key in keys if key in value), None)
    if isinstance(value, bool):
        return "up" if value else "down"
    return value if isinstance(value, str | int | float) else None


def _check_columns(
    path: str, columns: Mapping[str, str], used: Mapping[str, str], seen: Sequence[str]
) -> None:
    listed = ", ".join(seen[:_SHOWN_COLUMNS]) + (", ..." if len(seen) > _SHOWN_COLUMNS else "")
    for field, column in columns.items():
        if field not in used:
            hint = did_you_mean(column, seen) or f"its columns are {listed}"
            raise InputError(f"No row has the column '{column}' ({field}); {hint}", path=path)
    if "question" not in used:
        near = (name for name in seen if did_you_mean(name, COLUMN_NAMES["question"]))
        raise InputError(
            f"No column is named like a question. Add  --column question={next(near, 'NAME')}  "
            f"(its columns are {listed}).",
            path=path,
        )
