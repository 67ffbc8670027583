"""Read samples of ragas, deepeval and TREC RAG: a question, passages and an answer in one row.

Sources: https://docs.ragas.io (SingleTurnSample; 0.1 had question, contexts, answer, ground_truth);
https://deepeval.com/docs (LLMTestCase); https://trec-rag.github.io (RAG answers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from rapidfuzz.distance import DamerauLevenshtein

from misslink.io.jsonl import SourceItem
from misslink.io.trace_formats.printed import (
    check_closed,
    parse_printed_document,
    parse_printed_list,
)
from misslink.io.trace_formats.requests import (
    extract_history,
    extract_question,
    first_value,
    last_answer,
)
from misslink.io.values import document_fields
from misslink.text.normalization import content_id, valid_text

Fields = dict[str, Any]

RAGAS_QUESTION = ("user_input", "question")
RAGAS_ANSWER = ("response", "answer")
_RAGAS_CONTEXTS = ("retrieved_contexts", "contexts")
_RAGAS_REFERENCE = ("reference", "ground_truth", "ground_truths")
_RAGAS_ONLY = {
    "user_input", "reference_contexts", "retrieved_contexts", "ground_truth", "ground_truths",
}  # fmt: skip
_DEEPEVAL_ONLY = {"actual_output", "actualOutput", "retrieval_context", "retrievalContext"}
_DEEPEVAL_SEPARATOR = "|"  # between the contexts in its CSV and JSON Lines
_GROUPS = (  # names of one thing
    RAGAS_QUESTION, RAGAS_ANSWER, _RAGAS_CONTEXTS, _RAGAS_REFERENCE, ("retrieved_context_ids",),
    ("input",), ("actual_output", "actualOutput"), ("retrieval_context", "retrievalContext"),
    ("expected_output", "expectedOutput"),
)  # fmt: skip
_SLIPS = 2  # letters of a misspelt name
_TOPIC = ("topic", "narrative", "query", "question", "title")
_TOPIC_ID = ("topic_id", "narrative_id", "qid", "query_id", "id")
NOT_RECORDED = "the file does not say what was retrieved"


def is_ragas_row(row: Mapping[str, Any]) -> bool:
    """Whether a row has names that only ragas uses."""
    return not _RAGAS_ONLY.isdisjoint(row) or {"question", "contexts", "answer"} <= row.keys()


def is_deepeval_row(row: Mapping[str, Any]) -> bool:
    return not _DEEPEVAL_ONLY.isdisjoint(row)


def is_trec_rag_row(row: Mapping[str, Any]) -> bool:
    answer = row.get("answer")
    is_cited = isinstance(answer, list) and isinstance(row.get("references"), list)
    return is_cited and first_value(row, _TOPIC_ID) is not None


def check_names(item: SourceItem) -> None:
    """Refuse a name that is nearly one which the row lacks: its column would be left out silently.

    Raises
    ------
    InputError
        There is one.
    """
    row = item.data
    groups = (*_GROUPS, ("context",)) if is_deepeval_row(row) else _GROUPS
    lacking = [name for group in groups if row.keys().isdisjoint(group) for name in group]
    for name in row.keys() - set().union(*groups):
        for known in lacking:
            if 0 < DamerauLevenshtein.distance(str(name), known) <= _SLIPS < len(known) // 2:
                raise item.error(f"Did you mean '{known}'? Rename it.", str(name))


def parse_ragas(item: SourceItem) -> tuple[Fields, Fields | None]:
    """The fields of a case, and of its trace if there is an answer or what was retrieved.

    The question is that of the last user message of a conversation; None without one. What the
    assistant writes after it is the answer, where there is no ``response``.
    """
    row = item.data
    asked = parse_printed_list(first_value(row, RAGAS_QUESTION))
    case = {
        "id": row.get("id"),
        "question": extract_question(asked),
        "history": extract_history({"history": row.get("history")}) or extract_history(asked),
        "references": text_list(item, _RAGAS_REFERENCE),
        "evidence": text_list(item, ("reference_contexts",)),
        "relevant": text_list(item, ("reference_context_ids",)),
    }
    answer = first_value(row, RAGAS_ANSWER)
    texts, own_ids = _contexts(item, _RAGAS_CONTEXTS)
    if answer is None and isinstance(asked, list):
        answer = last_answer(asked)
    ids = text_list(item, ("retrieved_context_ids",), keep_blank=True)
    is_retrieval_known = bool(ids) or first_value(row, _RAGAS_CONTEXTS) is not None
    if answer is None and not is_retrieval_known:
        return case, None
    if ids and texts and len(ids) != len(texts):
        raise item.error(
            f"There are {len(ids)} ids for {len(texts)} retrieved contexts. Give each one an id.",
            "retrieved_context_ids",
        )
    return case, trace_fields(answer, texts if is_retrieval_known else None, ids or own_ids)


def parse_deepeval(item: SourceItem) -> tuple[Fields, Fields | None]:
    """A test case: ``context`` is what should have been retrieved, word for word."""
    row = {_snake_case(name): value for name, value in item.data.items()}
    for field in ("context", "retrieval_context"):
        value = parse_printed_list(row.get(field))
        if isinstance(value, str):
            check_closed(item, value, [field])
            row[field] = value.split(_DEEPEVAL_SEPARATOR)
    item = item._replace(data=row)
    case = {
        "id": row.get("id") or row.get("name"),
        "question": extract_question(row.get("input")),
        "references": text_list(item, ("expected_output",)),
        "evidence": text_list(item, ("context",)),
    }
    texts, ids = _contexts(item, ("retrieval_context",))
    contexts = None if row.get("retrieval_context") is None else texts
    return case, trace_fields(row.get("actual_output"), contexts, ids)


def parse_trec_rag(item: SourceItem) -> tuple[Fields, Fields | None]:
    """A run of the TREC RAG track: cited sentences, and the ids of the documents they cite."""
    row = item.data
    sentences = [part.get("text") if isinstance(part, Mapping) else part for part in row["answer"]]
    if not all(sentence is None or isinstance(sentence, str) for sentence in sentences):
        raise item.error("This must be a list of sentences with a text.", "answer")
    ids = text_list(item, ("references",))
    question = first_value(row, _TOPIC)
    case = {"id": first_value(row, _TOPIC_ID), "question": extract_question(question)}
    return case, trace_fields(" ".join(filter(None, sentences)), [], ids)


def trace_fields(
    answer: Any, texts: Sequence[str] | None, ids: Sequence[str] | None = None
) -> Fields:
    """The fields of a trace: each passage once; without texts it is not known what was retrieved."""
    passages: dict[str, Fields] = {}
    for given, text in zip_longest(ids or (), texts or (), fillvalue=""):
        if name := given.strip() or (content_id(text) if text.strip() else ""):
            new = {"id": name, "text": text, "rank": len(passages) + 1}
            passage = passages.setdefault(name, new)
            if text not in passage["text"]:  # another chunk of the same document
                passage["text"] += f"\n\n{text}"
    trace: Fields = {"retrieved": list(passages.values())}
    if isinstance(answer, str | int | float):
        trace["answer"] = valid_text(str(answer))
    if texts is None:
        trace["unmeasured"] = NOT_RECORDED
    return trace


def _contexts(item: SourceItem, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The retrieved texts, and their ids where they are documents; '' where one has none."""
    value = parse_printed_list(first_value(item.data, names))
    if isinstance(value, str) and isinstance(parse_printed_document(value), dict):
        value = [value]
    if isinstance(value, list):
        read = [parse_printed_document(part) if isinstance(part, str) else part for part in value]
        documents = [document_fields(part) if isinstance(part, Mapping) else None for part in read]
        if any(documents):
            texts = [
                part if document is None else document[1]
                for part, document in zip(read, documents, strict=True)
            ]
            field = next(name for name in names if item.data.get(name) is not None)
            item = item._replace(data={field: texts})
            ids = ["" if d is None or d[0] is None else str(d[0]) for d in documents]
            return text_list(item, names, keep_blank=True), ids
    return text_list(item, names, keep_blank=True), []


def text_list(item: SourceItem, names: Sequence[str], *, keep_blank: bool = False) -> list[str]:
    """The texts of the first of these fields that is there; none without one.

    Blank ones are left out, unless their places count.

    Raises
    ------
    InputError
        It is neither a text nor a list of texts.
    """
    value = parse_printed_list(first_value(item.data, names))
    if value is None or value == "":
        return []
    texts = [value] if isinstance(value, str | int) else value
    if keep_blank:  # what was retrieved: a reference may begin as a list does
        check_closed(item, value, names)
    if not isinstance(texts, Sequence) or not all(isinstance(text, str | int) for text in texts):
        field = next(name for name in names if item.data.get(name) is not None)
        raise item.error("This must be a text or a list of texts.", field)
    return [valid_text(str(text)) for text in texts if keep_blank or str(text).strip()]


def _snake_case(name: str) -> str:
    """``actualOutput`` as ``actual_output``."""
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)
