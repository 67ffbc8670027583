"""The fields of a case as people write them, and the messages of a conversation."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from misslink.text.normalization import drop_invisible


class Message(BaseModel):
    """An earlier message of a conversation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Literal["user", "assistant"]
    content: str

    @field_validator("content")
    @classmethod
    def _has_text(cls, value: str) -> str:
        if is_blank(value):
            raise ValueError("the message is blank; write its text or remove it")
        return value


class EvidenceSpan(BaseModel):
    """A labelled stretch of a document: its place, and its text, which re-chunking does not change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str  # of the document
    start: int = Field(ge=0)
    end: int
    quote: str
    grade: int = Field(default=1, ge=0, le=(1 << 53) - 1)  # as of every label
    alternative: int = 0  # spans of one number are needed together; each number is sufficient

    @model_validator(mode="after")
    def _quote_fits(self) -> EvidenceSpan:
        if not self.id or is_blank(self.quote):
            raise ValueError("the document's id or the quote is blank; name it and quote its text")
        if len(self.quote) != self.end - self.start:
            raise ValueError(
                f"the quote has {len(self.quote)} characters, and {self.start} to {self.end} of "
                f"'{self.id}' are {self.end - self.start}; correct start, end or the quote"
            )
        return self


def read_spans(data: Any) -> Any:
    """Read evidence that is spans as spans, and their quotes as evidence."""
    evidence = data.get("evidence") if isinstance(data, Mapping) else None
    evidence = [evidence] if isinstance(evidence, Mapping) and "quote" in evidence else evidence
    if not isinstance(evidence, list | tuple) or not any(isinstance(e, Mapping) for e in evidence):
        return data
    if not all(isinstance(span, Mapping) for span in evidence):
        raise ValueError("evidence is texts or spans, not both; run goldset anchor")
    quotes: dict[Any, Any] = {}
    for span in evidence:
        quote, grade = span.get("quote"), span.get("grade", 1)
        if isinstance(quote, str) and isinstance(grade, int):  # else the span's own error says so
            quotes[quote] = max(grade, quotes.get(quote, 0))
    return {**data, "evidence": quotes, "spans": tuple(evidence)}


def check_spans(spans: tuple[EvidenceSpan, ...]) -> tuple[EvidenceSpan, ...]:
    """Refuse labels of one alternative that overlap: the shared text would count twice."""
    ordered = sorted(spans, key=lambda span: (span.alternative, span.id, span.start))
    for one, other in pairwise(ordered):
        if (one.alternative, one.id) == (other.alternative, other.id) and other.start < one.end:
            raise ValueError(
                f"the spans {one.start} to {one.end} and {other.start} to {other.end} of "
                f"'{one.id}' overlap; make them one"
            )
    return spans


def check_history(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Refuse messages that do not alternate, or that end with the user's."""
    for number, (one, other) in enumerate(pairwise(messages), 1):
        if one.role == other.role:
            raise ValueError(
                f"messages {number} and {number + 1} are both from the {one.role}; user and "
                "assistant must alternate"
            )
    if messages and messages[-1].role == "user":
        raise ValueError("the last message must be from the assistant; the question follows it")
    return messages


def conversation_turns(cases: Iterable[Any]) -> dict[str, tuple[str, int]]:
    """Return conversation and number of each case that is a turn of one, by case id.

    Cases of a ``group`` are one conversation if the questions of each begin those of the next: what
    the user asked in its history, then its own question. A conversation is named by its first case.
    """
    candidates: dict[tuple[str | None, str], list[tuple[list[str], Any]]] = {}
    for case in cases:
        questions = [message.content for message in case.history if message.role == "user"]
        asked = [text.strip() for text in (*questions, case.question)]
        key = (None, case.id) if case.group is None else (case.group, asked[0])
        candidates.setdefault(key, []).append((asked, case))
    turns: dict[str, tuple[str, int]] = {}
    for listed in candidates.values():
        listed.sort(key=lambda turn: len(turn[0]))
        is_one = len(listed) > 1 and all(
            len(before) < len(after) and after[: len(before)] == before
            for (before, _), (after, _) in pairwise(listed)
        )
        for asked, case in listed:
            if is_one or len(asked) > 1:
                turns[case.id] = listed[0][1].id if is_one else case.id, len(asked)
    return turns


def tag_turns(cases: Iterable[Any]) -> tuple[Any, ...]:
    """Return cases whose turns of conversations have their number as the tag ``turn``."""
    cases = tuple(cases)
    turns = conversation_turns(cases)
    return tuple(
        case.model_copy(update={"tags": {"turn": f"{turns[case.id][1]}", **case.tags}})
        if case.id in turns
        else case
        for case in cases
    )


def fill_missing_id(data: Any) -> Any:
    """Give a case without an id a hash of its question and history."""
    if not isinstance(data, Mapping) or data.get("id") is not None:
        return data
    question = data.get("question", data.get("query"))
    if not isinstance(question, str):
        return {**data, "id": "none"}  # the question's own error is the one to show
    text = "\n".join([question, *map(_message_line, _as_list(data.get("history") or []))])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return {**data, "id": f"q-{digest}"}


def _message_line(message: Any) -> str:
    fields = message if isinstance(message, Mapping) else getattr(message, "__dict__", {})
    return f"{fields.get('role')}: {fields.get('content')}"


def read_number_as_id(value: Any) -> Any:
    """Read a number as an id."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else value


_BRAILLE_BLANK = "\u2800"  # a symbol without ink


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing: only blanks, controls and invisible characters."""
    if any("!" <= sign <= "~" for sign in text):  # most texts, at their first letter
        return False
    return not any(
        unicodedata.category(sign)[0] in "LNPS" and sign != _BRAILLE_BLANK
        for sign in drop_invisible(text)
    )


def empty_if_blank(value: str | None) -> str | None:
    """Read an answer in which a reader would see nothing as an empty one."""
    return "" if value is not None and is_blank(value) else value


def check_question_text(value: str) -> str:
    """Refuse a blank question."""
    if is_blank(value):
        raise ValueError("the question is blank")
    return value


def read_grades(value: Any) -> Any:
    """Read ids or texts, one or several, as grade 1; an object of ids to grades stays."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {_as_id(name): grade for name, grade in value.items()}
    return {_as_id(item): 1 for item in _as_list(value)}


def check_evidence_text(value: dict[str, int]) -> dict[str, int]:
    """Refuse blank evidence."""
    if any(map(is_blank, value)):
        raise ValueError("an evidence text is empty; leave it out or quote the passage")
    return value


def read_one_or_many(value: Any) -> Any:
    """Read one text or several, without blank ones."""
    texts = () if value is None else _as_list(value)
    return tuple(text for text in texts if not isinstance(text, str) or not is_blank(text))


def read_id_sets(value: Any) -> Any:
    """Read a list of sets of ids; a single id is a set of one."""
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
    if isinstance(item, str) and not is_blank(item):
        return item
    raise ValueError('give ids or texts that are not empty, or an object such as {"id": 2}')
