"""RAGTruth: answers of six models with the spans that annotators marked as hallucinated.

The public files are ``response.jsonl`` and ``source_info.jsonl`` (ParticleMedia/RAGTruth on
GitHub). The reduced form has one line per answer with ``question, contexts, answer, spans``.

Source: Niu et al., RAGTruth, ACL 2024; MIT.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from misslink.errors import InputError
from misslink.io.jsonl import read_objects
from misslink.io.label_sets.importer import (
    CALIBRATE_COMMAND,
    EVALUATE_COMMAND,
    ImportedLabelSet,
    ImportOptions,
    LabelSetBuilder,
    SourceRow,
    number_passages,
    reject_unsupported_options,
)
from misslink.registry import importers
from misslink.types import Case

_NAME = "RAGTruth"
_EXPECTED_FILES = "its response.jsonl and source_info.jsonl"
_PASSAGE_MARK = re.compile(r"(?:\A|\n\s*)passage \d+:")
_TASKS = {"QA", "Summary", "Data2txt"}
_MAX_OFFSET = 10_000_000  # characters; offsets are kept as the set gives them
_DEFAULT_QUESTIONS = {"Summary": "Summarise the text.", "Data2txt": "Describe what the data say."}


class _AnswerSource(NamedTuple):
    """What answers were written from."""

    question: str
    texts: tuple[str, ...]
    task: str
    origin: str | None


@importers.register("ragtruth")
def import_ragtruth(paths: Sequence[Path], options: ImportOptions) -> ImportedLabelSet:
    """Read RAGTruth: response.jsonl and source_info.jsonl in any order, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        Each file is recognized by its fields.
    options : ImportOptions
        ``implicit_true`` sets the label of answers whose marked spans are all true, but not stated
        in a passage.

    Returns
    -------
    ImportedLabelSet
        A case per answer; its label is 0 if a span was marked, and the comment holds the spans.

    Raises
    ------
    InputError
        A file is something else or broken, one of the two is missing, an answer has no source, an
        id is repeated, or nothing is of the selected split and task.
    """
    reject_unsupported_options(options, _NAME, split=True, task=True)
    answers, sources = _read_files(paths)
    builder = LabelSetBuilder(options, "ragtruth")
    implicit = 0
    for row in answers:
        source = _find_source(row, sources)
        if not builder.selects(row.word("split"), source.task):
            continue
        case_id = row.id("id")
        if case_id in builder.cases:
            raise row.repeated("answer", case_id, "id")
        tags = {name: row.word(name) for name in ("model", "split", "quality")}
        tags |= {"task": source.task, "source": source.origin}
        case = Case(
            id=case_id,
            question=source.question,
            tags={name: value for name, value in tags.items() if value},
        )
        answer = row.text("response" if row.has("response") else "answer", blank=True)
        builder.add(case, number_passages(row.id("source_id"), source.texts), answer)
        spans = [
            _parse_span(span) for span in row.objects("labels" if row.has("labels") else "spans")
        ]
        true_spans = [span for span in spans if span["implicit"]]
        implicit += bool(spans) and spans == true_spans
        marked = len(spans) - (len(true_spans) if options.implicit_true == "faithful" else 0)
        comment = "\n".join(span["comment"] for span in spans)
        builder.label(case_id, "faithfulness", int(not marked), comment)
    return builder.finish(
        title="RAGTruth: answers with the spans that people marked as hallucinated",
        source="Niu et al., RAGTruth, ACL 2024, https://github.com/ParticleMedia/RAGTruth",
        licence="MIT",
        notes=(
            (
                "An answer is unfaithful if annotators marked a span of it; the comment of its "
                "label holds the spans, as characters of the answer."
            ),
            (
                f"In {implicit} answers every marked span is true, but not stated in a passage; they "
                f"count as {options.implicit_true} (--implicit-true)."
            ),
        ),
        commands=(EVALUATE_COMMAND, CALIBRATE_COMMAND),
    )


def _read_files(paths: Sequence[Path]) -> tuple[list[SourceRow], dict[str, _AnswerSource]]:
    """Answers and sources, told apart by their fields."""
    answers: list[SourceRow] = []
    sources: dict[str, _AnswerSource] = {}
    source_path: Path | None = None
    for path in paths:
        for line, entry in read_objects(path):
            row = SourceRow(entry, path, line)
            if row.has("response", "labels") or row.has("answer", "contexts", "spans"):
                answers.append(row)
            elif row.has("source_info"):
                source_path = path
                name = row.id("source_id")
                if name in sources:
                    raise row.repeated("source", name, "source_id")
                sources[name] = _parse_source(row)
            else:
                raise row.unknown(_NAME, _EXPECTED_FILES)
    if not answers:
        raise InputError(
            "these are the sources without the answers; name response.jsonl too", path=source_path
        )
    return answers, sources


def _find_source(row: SourceRow, sources: Mapping[str, _AnswerSource]) -> _AnswerSource:
    if row.has("contexts"):
        return _AnswerSource(row.text("question"), tuple(row.texts("contexts")), "QA", None)
    name = row.id("source_id")
    if not sources:
        raise InputError(
            "these are the answers without their sources; name source_info.jsonl too",
            path=row.path,
        )
    if name not in sources:
        raise row.wrong(
            f"there is no source '{name}'; give the source_info.jsonl of the same download",
            "source_id",
        )
    return sources[name]


def _parse_source(row: SourceRow) -> _AnswerSource:
    task, origin = row.text("task_type"), row.word("source")
    if task not in _TASKS:
        raise row.wrong(
            f"'{task[:40]}' is no task; known: {', '.join(sorted(_TASKS))}", "task_type"
        )
    if task == "QA":
        info = row.object("source_info")
        if isinstance(info.row.get("passages"), list):
            texts = info.texts("passages")
        else:  # one text that numbers them
            parts = _PASSAGE_MARK.split(info.text("passages"))
            texts = [part.strip() for part in parts if part.strip()]
        return _AnswerSource(info.text("question"), tuple(texts), task, origin)
    if task == "Summary":
        text = start = row.text("source_info")
    else:
        text, start = json.dumps(row.object("source_info").row, ensure_ascii=False), "{"
    # The question is the instruction: the prompt up to the text.
    instruction, mark, _ = (row.word("prompt") or "").partition(start.strip())
    question = instruction.strip() if mark else ""
    return _AnswerSource(question or _DEFAULT_QUESTIONS[task], (text,), task, origin)


def _parse_span(span: SourceRow) -> dict[str, Any]:
    start, end = span.whole("start", 0, _MAX_OFFSET), span.whole("end", 0, _MAX_OFFSET)
    implicit = span.row.get("implicit_true") is True
    return {
        "implicit": implicit,
        "comment": f"{start}-{end} {span.word('label_type') or 'marked'}"
        f"{' (true, though no passage says so)' if implicit else ''}: "
        f"{span.text('text', blank=True)}",
    }
