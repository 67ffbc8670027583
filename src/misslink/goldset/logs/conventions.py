"""What the spans of one trace say of a request, by OpenInference's or OpenTelemetry's names.

Sources: https://arize-ai.github.io/openinference/spec/semantic_conventions.html;
https://github.com/open-telemetry/semantic-conventions-genai (gen_ai.*, in development).
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from misslink.goldset.logs.request import Log, Request
from misslink.goldset.logs.said import answered, asked, decoded, passages
from misslink.goldset.logs.spans import Span
from misslink.types import Passage

__all__ = ["of_spans"]

_KIND = "openinference.span.kind"
_OPERATION = "gen_ai.operation.name"
_SESSIONS = ("session.id", "gen_ai.conversation.id", "conversation.id", "langfuse.session.id")
_ASKED = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages")
_ANSWERED = ("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages")
_FEEDBACK = re.compile(r"(?:^|[._ ])(?:user[._ ]?)?(?:feedback|thumbs)(?:$|[._ ])", re.IGNORECASE)
_PLACE = re.compile(r"[0-9]{1,5}")  # in a list
_SAID = ("label", "score", "value", "result")
_BESIDE = ("explanation", "comment", "_id", ".id", "kind", "identifier")
_LATEST = dt.datetime.max.replace(tzinfo=dt.UTC)


def of_spans(spans: Iterable[Span]) -> Log:
    """Requests from spans, one a trace, in the order in which the traces began in the file.

    The question is what went into the root span, the answer what came out of it; where it says
    nothing, what the last person's message to a model was, what a retriever was asked, and what a
    model answered last. Retrieved are a reranker's documents, else those of the retrievers, each
    once in its first place.
    """
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    requests: list[Request] = []
    left: Counter[str] = Counter()
    for several in traces.values():
        ordered = sorted(several, key=lambda span: span.start or _LATEST)
        request = _request(ordered)
        if request is None:
            left["traces without a question"] += 1
        else:
            requests.append(request)
    return Log(tuple(requests), {}, dict(left))


def _request(spans: Sequence[Span]) -> Request | None:
    known = {span.id for span in spans}
    roots = [span for span in spans if span.parent is None or span.parent not in known]
    root = roots[0] if roots else spans[0]
    question = _question(root, spans)
    if question is None:
        return None
    ended = root.start is not None and root.end is not None and root.end >= root.start
    return Request(
        question=question,
        place=root.place,
        session=_session([root, *spans]),
        at=root.start,
        answer=_answer(root, spans),
        passages=_passages(spans),
        error=root.error,
        feedback=_feedback(spans),
        latency_s=(root.end - root.start).total_seconds()
        if ended and root.end and root.start
        else None,
    )


def _question(root: Span, spans: Sequence[Span]) -> str | None:
    if _kind(root) != "EMBEDDING" and (found := asked(root.attributes.get("input.value"))):
        return found
    for span in spans:
        for name in _ASKED:
            if found := asked(_messages(span.attributes, name)):
                return found
        if found := _of_events(span, ("gen_ai.user.message",), asked):
            return found
    for span in spans:
        if _retrieves(span):
            names = ("input.value", "gen_ai.retrieval.query.text", "reranker.query")
            found = next(filter(None, (asked(span.attributes.get(name)) for name in names)), None)
            if found:
                return found
    return None


def _answer(root: Span, spans: Sequence[Span]) -> str | None:
    if not _retrieves(root) and (found := answered(root.attributes.get("output.value"))):
        return found
    for span in reversed(spans):
        for name in _ANSWERED:
            if found := answered(_messages(span.attributes, name)):
                return found
        if found := _of_events(span, ("gen_ai.choice", "gen_ai.assistant.message"), answered):
            return found
    return None


def _of_events(span: Span, names: Sequence[str], read: Any) -> str | None:
    """What events of such names say, as versions of the conventions up to 1.36 have it."""
    for event in span.events:
        if event.get("name") in names:
            content = event.get(
                "content", event.get("gen_ai.event.content", event.get("message.content"))
            )
            found: str | None = read(content)
            if found:
                return found
    return None


def _messages(attributes: Mapping[str, Any], name: str) -> Any:
    """Messages under a name, whole or in numbered attributes."""
    if name in attributes:
        return decoded(attributes[name])
    return [_renamed(one) for one in _numbered(attributes, f"{name}.")] or None


def _renamed(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without the ``message.`` in front of its names, its parts put together."""
    plain = {name.removeprefix("message."): value for name, value in message.items()}
    if "content" not in plain and (parts := list(_numbered(plain, "contents."))):
        texts = [part.get("message_content.text") for part in parts]
        plain["content"] = "\n".join(text for text in texts if isinstance(text, str))
    if "content" not in plain and (parts := list(_numbered(plain, "parts."))):
        plain["parts"] = parts
    return plain


def _numbered(attributes: Mapping[str, Any], prefix: str) -> Iterator[dict[str, Any]]:
    """The objects of a list whose attributes are ``PREFIX0.name``, ``PREFIX1.name``."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            place, dot, rest = name.removeprefix(prefix).partition(".")
            if dot and _PLACE.fullmatch(place):
                found.setdefault(int(place), {})[rest] = value
    for number in sorted(found):
        yield found[number]


def _passages(spans: Sequence[Span]) -> tuple[Passage, ...] | None:
    """What was retrieved; None where no span is a retriever's."""
    for prefix, wanted in (("reranker.output_documents", "RERANKER"), ("retrieval.documents", "")):
        found: list[Any] = []
        any_list = False
        for span in spans:
            listed = list(_numbered(span.attributes, f"{prefix}."))
            whole = decoded(span.attributes.get(prefix, span.attributes.get(f"gen_ai.{prefix}")))
            if not listed and isinstance(whole, list):
                listed = whole
            listed = listed or list(_numbered(span.attributes, f"gen_ai.{prefix}."))
            found += listed
            any_list = any_list or bool(listed) or (not wanted and _kind(span) == "RETRIEVER")
        if any_list:
            return passages(found)
    return None


def _kind(span: Span) -> str:
    return str(span.attributes.get(_KIND, "")).upper()


def _retrieves(span: Span) -> bool:
    operation = str(span.attributes.get(_OPERATION, "")).casefold()
    return _kind(span) in {"RETRIEVER", "RERANKER"} or operation in {"retrieval", "retrieve"}


def _session(spans: Sequence[Span]) -> str | None:
    values = (span.attributes.get(name) for span in spans for name in _SESSIONS)
    return next(
        (str(value) for value in values if isinstance(value, str | int) and value != ""), None
    )


def _feedback(spans: Sequence[Span]) -> str | float | None:
    """What a user said, as an attribute, an annotation or an evaluation called so."""
    for span in spans:
        for event in span.events:
            if _FEEDBACK.search(str(event.get("gen_ai.evaluation.name", ""))):
                said = event.get(
                    "gen_ai.evaluation.score.label", event.get("gen_ai.evaluation.score.value")
                )
                if isinstance(said, str | int | float):
                    return said
        for name in sorted(filter(_FEEDBACK.search, span.attributes), key=_by_worth):
            value = span.attributes[name]
            if isinstance(value, bool):
                return "up" if value else "down"
            if isinstance(value, str | int | float) and not name.endswith(_BESIDE):
                return value
    return None


def _by_worth(name: str) -> int:
    """A plain name first, then its label, its score, its value."""
    last = name.rpartition(".")[2]
    return _SAID.index(last) + 1 if last in _SAID else 0
