"""ragas datasets, as JSON Lines, a JSON array or CSV (whose lists are Python's).

Both ragas 0.2 (``user_input, retrieved_contexts, reference_contexts, response, reference``) and
0.1 (``question, contexts, answer, ground_truth``).
Source: https://docs.ragas.io (EvaluationDataset, SingleTurnSample).
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.goldset.formats.base import (
    CaseCollector,
    FormatOptions,
    ImportedGoldSet,
    count_unsupported_fields,
    count_unsupported_grades,
    formats,
    read_rows_with,
    write_file,
)
from misslink.goldset.writer import objects_to_jsonl
from misslink.io.goldset import GoldSet
from misslink.io.trace_formats.requests import decode_json, extract_question, first_value
from misslink.text.normalization import content_id
from misslink.types import Case

_SUPPORTED_FIELDS = {"id", "question", "evidence", "references", "relevant"}
_QUESTION = ("user_input", "question")
_REFERENCE = ("reference", "ground_truth", "ground_truths")
_RETRIEVED = ("retrieved_contexts", "contexts")
_ANSWER = ("response", "answer")
_TAGS = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")
_KNOWN = (
    *_QUESTION, *_REFERENCE, *_RETRIEVED, *_ANSWER, *_TAGS, "reference_contexts",
    "reference_context_ids", "retrieved_context_ids", "rubrics", "rubric", "metadata",
    "episode_done", "id",
)  # fmt: skip
_UNIQUE = {
    "user_input", "reference_contexts", "retrieved_contexts", "ground_truth", "ground_truths",
}  # fmt: skip


@formats.register("ragas")
class RagasFormat:
    """An EvaluationDataset."""

    title = "ragas dataset"

    def matches(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a row has names that only ragas uses."""
        return bool(_UNIQUE & set(row or ()))

    def read(self, source: Path, _options: FormatOptions) -> ImportedGoldSet:
        """Read cases, and traces where the app's answer or passages are present."""
        collector = CaseCollector(source)
        for line, row in read_rows_with(source, _QUESTION, _KNOWN):
            user_input = _parse_list(first_value(row, _QUESTION))
            question = extract_question(user_input)
            if question is None:
                collector.left_out["rows without a question"] += 1
                continue
            is_conversation = isinstance(user_input, list)
            collector.left_out["turns before a conversation's last question"] += is_conversation
            collector.left_out["rubrics"] += "rubrics" in row or "rubric" in row
            place = source, line
            fields = {
                "id": row.get("id"),
                "question": question,
                "references": _text_list(row, _REFERENCE, place),
                "evidence": _text_list(row, ("reference_contexts",), place),
                "relevant": _text_list(row, ("reference_context_ids",), place),
                "tags": {name: str(row[name]) for name in _TAGS if name in row},
            }
            collector.add(fields, line, _ragas_trace(row, place))
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: FormatOptions) -> dict[str, int]:
        """Write JSON Lines as ``EvaluationDataset.from_jsonl`` reads them."""
        samples = []
        for case in gold.cases:
            sample = {
                "reference": case.references[0] if case.references else None,
                "reference_contexts": [text for text, grade in case.evidence.items() if grade],
                "reference_context_ids": [name for name, grade in case.relevant.items() if grade],
            }
            filled = {name: value for name, value in sample.items() if value}
            samples.append({"user_input": case.question, **filled})
        write_file(target, objects_to_jsonl(samples), options)
        counts = count_unsupported_fields(gold.cases, _SUPPORTED_FIELDS)
        counts["id"] += sum(
            case.id != Case(question=case.question, id=None).id for case in gold.cases
        )
        counts["references beyond the first"] += sum(len(c.references) > 1 for c in gold.cases)
        counts["grades other than 1"] += count_unsupported_grades(gold.cases)
        return dict(+counts)


def _ragas_trace(row: Mapping[str, Any], place: tuple[Path, int | None]) -> dict[str, Any] | None:
    answer = first_value(row, _ANSWER)
    texts = _text_list(row, _RETRIEVED, place)
    ids = _text_list(row, ("retrieved_context_ids",), place)
    is_retrieval_known = bool(ids) or first_value(row, _RETRIEVED) is not None
    if answer is None and not is_retrieval_known:
        return None
    if ids and texts and len(ids) != len(texts):
        raise InputError(
            f"There are {len(ids)} ids for {len(texts)} retrieved contexts. Give each one an id.",
            path=place[0], line=place[1], field="retrieved_context_ids",
        )  # fmt: skip
    passages: dict[str, dict[str, Any]] = {}
    for index, name in enumerate(ids or map(content_id, texts)):
        text = texts[index] if texts else ""
        passages.setdefault(name, {"id": name, "text": text, "rank": len(passages) + 1})
    trace: dict[str, Any] = {"retrieved": list(passages.values())}
    if isinstance(answer, str):
        trace["answer"] = answer
    if not is_retrieval_known:
        trace["unmeasured"] = "The dataset does not say what was retrieved."
    return trace


def _parse_list(value: Any) -> Any:
    """Decode a list that a CSV file contains as Python prints it."""
    value = decode_json(value)
    if isinstance(value, str) and value.strip()[:1] == "[" and value.strip()[-1:] == "]":
        try:
            return ast.literal_eval(_insert_commas(value.strip()))
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            return value
    return value


def _insert_commas(printed: str) -> str:
    r"""Insert a comma between two texts, where pandas prints none and Python would join them.

    >>> _insert_commas("['one'\n 'two']")
    "[ 'one' , 'two' ]"
    """
    pieces: list[str] = []
    last = None
    for token in tokenize.generate_tokens(io.StringIO(printed).readline):
        if token.type in {tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}:
            continue
        if token.type == last == tokenize.STRING:
            pieces.append(",")
        pieces.append(token.string)
        last = token.type
    return " ".join(pieces)


def _text_list(
    row: Mapping[str, Any], names: Sequence[str], place: tuple[Path, int | None]
) -> list[str]:
    value = _parse_list(first_value(row, names))
    if value is None or value == "":
        return []
    texts = [value] if isinstance(value, str | int) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str | int) for text in texts):
        field = next(name for name in names if row.get(name) is not None)
        message = "This must be a text or a list of texts."
        raise InputError(message, path=place[0], line=place[1], field=field)
    return [str(text) for text in texts if str(text).strip()]
