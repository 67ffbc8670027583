"""Datasets of ragas: what is asked, retrieved and answered, and the reference.

Of ragas 0.2 and later (``user_input, retrieved_contexts, reference_contexts, response,
reference``), and of 0.1 (``question, contexts, answer, ground_truth``), as JSON Lines, a JSON array
or CSV (whose lists are Python's).

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
from misslink.files.goldset import GoldSet
from misslink.goldset.formats.format import Brought, Collected, Options, formats
from misslink.goldset.formats.held import lost
from misslink.goldset.formats.places import write_one
from misslink.goldset.formats.rowed import one_of, rows_with
from misslink.goldset.logs.said import asked, decoded
from misslink.goldset.writing import objects_as_lines
from misslink.text import content_id
from misslink.types import Case

__all__ = ["Ragas"]

_HELD = {"question", "evidence", "references", "relevant"}
_QUESTION = ("user_input", "question")
_REFERENCE = ("reference", "ground_truth", "ground_truths")
_RETRIEVED = ("retrieved_contexts", "contexts")
_ANSWER = ("response", "answer")
_TAGS = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")
_OTHER = (
    "reference_contexts", "reference_context_ids", "retrieved_context_ids", "rubrics", "rubric",
    "metadata", "episode_done", "id",
)  # fmt: skip


@formats.register("ragas")
class Ragas:
    """An EvaluationDataset."""

    title = "ragas dataset"

    def is_it(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Whether a row has names that only ragas gives."""
        names = {
            "user_input",
            "reference_contexts",
            "retrieved_contexts",
            "ground_truth",
            "ground_truths",
        }
        return bool(row and names & set(row))

    def bring(self, source: Path, _options: Options) -> Brought:
        """Read cases, and traces where the app's answer or passages are there."""
        known = (*_QUESTION, *_REFERENCE, *_RETRIEVED, *_ANSWER, *_TAGS, *_OTHER)
        found = Collected(source)
        for line, row in rows_with(source, _QUESTION, known):
            given = one_of(row, _QUESTION)
            question = asked(_listed(given))
            if question is None:
                found.left_out["rows without a question"] += 1
                continue
            if not isinstance(given, str) or question != given.strip():
                found.left_out["turns before a conversation's last question"] += isinstance(
                    _listed(given), list
                )
            data = {
                "id": row.get("id"),
                "question": question,
                "references": _texts(one_of(row, _REFERENCE), source, line, "reference"),
                "evidence": _texts(
                    row.get("reference_contexts"), source, line, "reference_contexts"
                ),
                "relevant": _texts(
                    row.get("reference_context_ids"), source, line, "reference_context_ids"
                ),
                "tags": {name: str(row[name]) for name in _TAGS if name in row},
            }
            found.left_out["rubrics"] += "rubrics" in row or "rubric" in row
            found.add(data, line, _trace(row, source, line))
        return found.brought()

    def take_out(self, gold: GoldSet, target: Path, options: Options) -> dict[str, int]:
        """Write JSON Lines as ``EvaluationDataset.from_jsonl`` reads them."""
        text = objects_as_lines(_sample(case) for case in gold.cases)
        write_one(target, text, options)
        counts = lost(gold.cases, _HELD | {"id"})
        counts["id"] += sum(
            case.id != Case(question=case.question, id=None).id for case in gold.cases
        )
        counts["references beyond the first"] += sum(
            len(case.references) > 1 for case in gold.cases
        )
        counts["grades other than 1"] += sum(
            any(grade != 1 for grade in (*case.relevant.values(), *case.evidence.values()))
            for case in gold.cases
        )
        return dict(+counts)


def _sample(case: Case) -> dict[str, Any]:
    sample: dict[str, Any] = {"user_input": case.question}
    if case.references:
        sample["reference"] = case.references[0]
    if evidence := [text for text, grade in case.evidence.items() if grade]:
        sample["reference_contexts"] = evidence
    if relevant := [name for name, grade in case.relevant.items() if grade]:
        sample["reference_context_ids"] = relevant
    return sample


def _trace(row: Mapping[str, Any], path: Path, line: int | None) -> dict[str, Any] | None:
    answer = one_of(row, _ANSWER)
    contexts = one_of(row, _RETRIEVED)
    ids = _texts(row.get("retrieved_context_ids"), path, line, "retrieved_context_ids")
    if answer is None and contexts is None and not ids:
        return None
    texts = _texts(contexts, path, line, "retrieved_contexts")
    if ids and texts and len(ids) != len(texts):
        raise InputError(
            f"{len(ids)} ids of {len(texts)} retrieved contexts; give each one",
            path=path, line=line, field="retrieved_context_ids",
        )  # fmt: skip
    names = ids or [content_id(text) for text in texts]
    passages: dict[str, dict[str, Any]] = {}
    for at, name in enumerate(names):
        text = texts[at] if texts else ""
        passages.setdefault(name, {"id": name, "text": text, "rank": len(passages) + 1})
    trace: dict[str, Any] = {"retrieved": list(passages.values())}
    if isinstance(answer, str):
        trace["answer"] = answer
    if contexts is None and not ids:
        trace["unmeasured"] = "the dataset does not say what was retrieved"
    return trace


def _listed(value: Any) -> Any:
    """A list that a CSV file holds as Python wrote it."""
    value = decoded(value)
    if isinstance(value, str) and value.strip()[:1] == "[" and value.strip()[-1:] == "]":
        try:
            return ast.literal_eval(_with_commas(value.strip()))
        except (ValueError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
            return value
    return value


def _with_commas(written: str) -> str:
    r"""A list with a comma between two texts, where pandas writes none and Python would join them.

    >>> _with_commas("['one'\n 'two']")
    "[ 'one' , 'two' ]"
    """
    pieces: list[str] = []
    last = None
    for token in tokenize.generate_tokens(io.StringIO(written).readline):
        if token.type in {tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}:
            continue
        if token.type == last == tokenize.STRING:
            pieces.append(",")
        pieces.append(token.string)
        last = token.type
    return " ".join(pieces)


def _texts(value: Any, path: Path, line: int | None, field: str) -> list[str]:
    value = _listed(value)
    if value is None or value == "":
        return []
    several = [value] if isinstance(value, str | int) else value
    if not isinstance(several, Sequence) or not all(isinstance(one, str | int) for one in several):
        raise InputError(
            "this should be a text or a list of texts", path=path, line=line, field=field
        )
    return [str(one) for one in several if str(one).strip()]
