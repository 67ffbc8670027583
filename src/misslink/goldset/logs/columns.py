"""Logs as tables: which column is the question, which the answer, and so on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean, known_names
from misslink.goldset.logs.request import Log, Request, moment, seconds
from misslink.goldset.logs.said import answered, asked, passages
from misslink.goldset.logs.source import Row

__all__ = ["FIELDS", "of_rows", "own_columns"]

# What each field is called in logs, the likeliest name first.
FIELDS: dict[str, tuple[str, ...]] = {
    "question": (
        "question", "query", "user_input", "user_query", "input", "inputs", "prompt",
        "search_query", "search", "message", "text", "q",
    ),
    "answer": ("answer", "output", "outputs", "response", "completion", "reply"),
    "session": (
        "session", "session_id", "session.id", "sessionid", "conversation_id", "conversation",
        "thread_id", "chat_id", "thread",
    ),
    "time": ("time", "timestamp", "asked_at", "created_at", "start_time", "date", "ts"),
    "passages": (
        "passages", "retrieved", "retrieved_contexts", "contexts", "documents", "context",
        "sources",
    ),
    "error": ("error", "exception", "error_message"),
    "feedback": ("feedback", "user_feedback", "thumbs", "rating", "vote", "feedback_score"),
    "latency": ("latency_s", "latency", "duration_s", "latency_ms", "duration_ms"),
    "category": ("category", "intent", "topic"),
}  # fmt: skip
_NO_ERROR = {"", "0", "false", "none", "null", "ok", "no", "success", "200", "[]", "{}", "unset"}
_SHOWN = 12  # columns that fit into a message


def own_columns(given: Iterable[str]) -> dict[str, str]:
    """Read ``--column question=query``: which column of the log holds a field.

    Raises
    ------
    InputError
        One has no equals sign, or names a field that there is not (the nearest one is told).
    """
    found: dict[str, str] = {}
    for each in given:
        name, equals, column = (part.strip() for part in each.partition("="))
        if not equals or not column:
            raise InputError(
                f"--column {each!r} says no column; write it as question=NAME_IN_THE_LOG"
            )
        if name not in FIELDS:
            raise InputError(f"--column knows no field '{name}'; {known_names(name, FIELDS)}")
        found[name] = column
    return found


def of_rows(path: Path, rows: Iterable[Row], own: Mapping[str, str]) -> Log:
    """Requests from rows.

    Parameters
    ----------
    path : Path
    rows : iterable of (line, row)
    own : mapping of str to str
        Field to column, where the names are not the usual ones; see `own_columns`. A name with
        dots leads into objects: ``inputs.question``.

    Raises
    ------
    InputError
        A column that is asked for is in no row, or no column looks like a question.
    """
    requests: list[Request] = []
    seen: dict[str, int] = {}
    used: dict[str, str] = {}
    left: Counter[str] = Counter()
    for line, row in rows:
        for name in row:
            seen.setdefault(name, len(seen))
        found = _picked(row, own)
        used |= {field: name for field, (name, _) in found.items()}
        question = asked(found["question"][1]) if "question" in found else None
        if question is None:
            left["rows without a question"] += 1
            continue
        requests.append(_request(question, found, f"{path}, line {line}", row))
    _check(path, own, used, list(seen))
    return Log(tuple(requests), used, dict(left))


def _request(
    question: str, found: Mapping[str, tuple[str, Any]], place: str, row: Mapping[str, Any]
) -> Request:
    values = {field: value for field, (_, value) in found.items()}
    in_millis = found.get("latency", ("",))[0].casefold().endswith("ms")
    session = values.get("session")
    category = values.get("category")
    return Request(
        question=question,
        place=place,
        session=str(session) if isinstance(session, str | int) else None,
        at=moment(values["time"]) if "time" in values else None,
        answer=answered(values.get("answer")),
        passages=passages(values.get("passages")) if "passages" in values else _numbered(row),
        error=_error(values.get("error")),
        feedback=_feedback(values.get("feedback")),
        latency_s=seconds(values.get("latency"), 1e-3 if in_millis else 1.0),
        category=str(category).strip() if isinstance(category, str | int) else None,
    )


def _picked(row: Mapping[str, Any], own: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """Each field's column in this row and what stands there."""
    plain = {_plain(name): name for name in reversed(list(row))}
    found: dict[str, tuple[str, Any]] = {}
    for field, names in FIELDS.items():
        if field in own:
            value = _at(row, own[field])
            if value is not None:
                found[field] = own[field], value
            continue
        name = next((plain[_plain(one)] for one in names if _plain(one) in plain), None)
        if name is not None and name not in own.values():
            found[field] = name, row[name]
    return found


def _at(row: Mapping[str, Any], name: str) -> Any:
    """What a name leads to: a column, or a path with dots into objects."""
    if name in row:
        return row[name]
    here: Any = row
    for part in name.split("."):
        if not isinstance(here, Mapping) or part not in here:
            return None
        here = here[part]
    return here


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _numbered(row: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Passages in columns of their own: ``context_1``, ``context_2``."""
    numbered = [
        (int(found[1]), row[name])
        for name in row
        if (found := re.fullmatch(r"(?:context|passage|document|chunk)[_ ]?(\d{1,3})", name))
    ]
    return (
        passages([text for _, text in sorted(numbered, key=lambda one: one[0])])
        if numbered
        else None
    )


def _error(value: Any) -> str | None:
    if value is None or value is False or str(value).strip().casefold() in _NO_ERROR:
        return None
    return "the log says that it failed" if value is True else str(value).strip()


def _feedback(value: Any) -> str | float | None:
    if isinstance(value, Mapping):
        value = next((value[n] for n in ("score", "value", "label", "rating") if n in value), None)
    if isinstance(value, bool):
        return "up" if value else "down"
    return value if isinstance(value, str | int | float) else None


def _check(
    path: Path, own: Mapping[str, str], used: Mapping[str, str], seen: Sequence[str]
) -> None:
    for field, column in own.items():
        if field not in used:
            hint = did_you_mean(column, seen) or f"its columns are {_told(seen)}"
            raise InputError(f"no row has the column '{column}' ({field}); {hint}", path=path)
    if "question" not in used:
        near = [(name, hint) for name in seen if (hint := did_you_mean(name, FIELDS["question"]))]
        name = near[0][0] if near else "NAME"
        raise InputError(
            f"no column is called as a question is; add  --column question={name}  (its columns "
            f"are {_told(seen)})",
            path=path,
        )


def _told(seen: Sequence[str]) -> str:
    more = ", ..." if len(seen) > _SHOWN else ""
    return ", ".join(seen[:_SHOWN]) + more
