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
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem
from misslink.io.label_sets import importer
from misslink.registry import importers
from misslink.types import Case

_NAME = "RAGTruth"
_EXPECTED_FILES = "its response.jsonl and source_info.jsonl"
_PASSAGE_MARK = re.compile(r"(?:\A|\n\s*)passage \d+:")
_DEFAULT_QUESTIONS = {"Summary": "Summarise the text.", "Data2txt": "Describe what the data say."}
_Offset = Annotated[importer.Whole, Field(ge=0, le=10_000_000)]  # as the set gives them


class _Span(BaseModel):
    start: _Offset
    end: _Offset
    text: str
    label_type: importer.Word = None
    implicit_true: Any = None

    @property
    def implicit(self) -> bool:
        return self.implicit_true is True

    @property
    def comment(self) -> str:
        implicit = " (true, though no passage says so)" if self.implicit else ""
        return f"{self.start}-{self.end} {self.label_type or 'marked'}{implicit}: {self.text}"


class _Answer(BaseModel):
    id: importer.Id
    source_id: importer.Id
    model: importer.Word = None
    split: importer.Word = None
    quality: importer.Word = None
    answer: str = Field(validation_alias=AliasChoices("response", "answer"))
    spans: list[_Span] = Field(validation_alias=AliasChoices("labels", "spans"))


class _ReducedAnswer(_Answer):
    question: importer.Text
    contexts: list[str]


def _parse_passages(value: Any) -> Any:
    """The passages of a list, or of one text that numbers them."""
    if not isinstance(value, str):
        return value
    return [
        part.strip() for part in _PASSAGE_MARK.split(importer.require_text(value)) if part.strip()
    ]


class _Question(BaseModel):
    question: importer.Text
    passages: Annotated[list[str], BeforeValidator(_parse_passages)]


class _SourceRow(BaseModel):
    source_id: importer.Id
    task_type: Literal["QA", "Summary", "Data2txt"]
    source: importer.Word = None
    source_info: Any
    prompt: importer.Word = None


class _Source(NamedTuple):
    """What answers were written from."""

    question: str
    contexts: list[str]
    task: str
    origin: str | None


_FORMS: dict[type[_Answer | _SourceRow], tuple[str, ...]] = {
    _Answer: ("response", "labels"),
    _ReducedAnswer: ("answer", "contexts", "spans"),
    _SourceRow: ("source_info",),
}


@importers.register("ragtruth")
def import_ragtruth(
    paths: Sequence[Path], options: importer.ImportOptions
) -> importer.ImportedLabelSet:
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
    options.require_support(_NAME, split=True, task=True)
    answers, sources = _read_files(paths)
    builder = importer.LabelSetBuilder(options, "ragtruth")
    implicit = 0
    for row, answer in answers:
        source = _find_source(row, answer, sources)
        if not builder.selects(answer.split, source.task):
            continue
        tags = {"model": answer.model, "split": answer.split, "quality": answer.quality}
        tags |= {"task": source.task, "source": source.origin}
        case = Case(
            id=answer.id,
            question=source.question,
            tags={name: value for name, value in tags.items() if value},
        )
        passages = importer.number_passages(answer.source_id, source.contexts)
        builder.add(row, case, passages, answer.answer)
        unstated = [span for span in answer.spans if span.implicit]
        implicit += bool(unstated) and unstated == answer.spans
        marked = len(answer.spans)
        marked -= len(unstated) if options.implicit_true == "faithful" else 0
        comment = "\n".join(span.comment for span in answer.spans)
        builder.label(case.id, "faithfulness", int(not marked), comment)
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
    )


def _read_files(
    paths: Sequence[Path],
) -> tuple[list[tuple[SourceItem, _Answer]], dict[str, _Source]]:
    answers: list[tuple[SourceItem, _Answer]] = []
    sources: dict[str, _Source] = {}
    for path in paths:
        for item, row in importer.read_rows_of(path, _NAME, _EXPECTED_FILES, _FORMS):
            if isinstance(row, _Answer):
                answers.append((item, row))
                continue
            if row.source_id in sources:
                raise item.error(
                    f"'{row.source_id}' occurs twice; name each file once", "source_id"
                )
            sources[row.source_id] = _parse_source(item, row)
    if not answers:
        raise InputError(
            "these are the sources without the answers; name response.jsonl too", path=paths[0]
        )
    return answers, sources


def _find_source(row: SourceItem, answer: _Answer, sources: Mapping[str, _Source]) -> _Source:
    if isinstance(answer, _ReducedAnswer):
        return _Source(answer.question, answer.contexts, "QA", None)
    if not sources:
        raise InputError(
            "these are the answers without their sources; name source_info.jsonl too", path=row.file
        )
    if answer.source_id not in sources:
        raise row.error(
            f"there is no source '{answer.source_id}'; give the source_info.jsonl of the same "
            "download",
            "source_id",
        )
    return sources[answer.source_id]


def _parse_source(item: SourceItem, row: _SourceRow) -> _Source:
    info, task = row.source_info, row.task_type
    if task == "QA":
        asked = item._replace(data=info).parse(_Question)
        return _Source(asked.question, asked.passages, task, row.source)
    if task == "Summary" and isinstance(info, str) and info.strip():
        text, start = info, info.strip()
    elif task == "Data2txt" and isinstance(info, dict):
        text, start = json.dumps(info, ensure_ascii=False), "{"
    else:
        raise item.error(f"this is not what a source of {task} has", "source_info")
    # The question is the instruction: the prompt up to the text.
    instruction, mark, _ = (row.prompt or "").partition(start)
    question = instruction.strip() if mark else ""
    return _Source(question or _DEFAULT_QUESTIONS[task], [text], task, row.source)
