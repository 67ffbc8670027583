"""Data sets of ragas, deepeval, LangSmith and Langfuse: JSON Lines, a JSON array, or CSV.

ragas: both 0.2 (``user_input, retrieved_contexts, reference_contexts, response, reference``) and
0.1 (``question, contexts, answer, ground_truth``); lists in CSV are Python's. LangSmith: examples
with inputs, outputs and metadata; columns of CSV may be prefixed with ``inputs.`` or ``input_``.
Langfuse: items with input, expected output and metadata, also as a page of the API
(``{"data": [...]}``).
Sources: https://docs.ragas.io (EvaluationDataset, SingleTurnSample);
https://docs.langchain.com/langsmith/example-data-format; https://deepeval.com/docs (Golden);
https://langfuse.com/docs (DatasetItem).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.goldset.formats.base import (
    CaseCollector,
    FormatOptions,
    ImportedGoldSet,
    count_unsupported_fields,
    count_unsupported_grades,
    fields_from_metadata,
    formats,
    metadata_of,
    read_rows_with,
    write_file,
)
from misslink.goldset.writer import objects_to_jsonl
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem
from misslink.io.trace_formats.printed import decode_json, parse_printed_list
from misslink.io.trace_formats.requests import (
    extract_answer,
    extract_question,
    first_value,
    read_log_rows,
)
from misslink.io.trace_formats.samples import (
    RAGAS_ANSWER,
    RAGAS_QUESTION,
    is_deepeval_row,
    is_ragas_row,
    parse_deepeval,
    parse_ragas,
)
from misslink.types import Case

_RAGAS_FIELDS = {"id", "question", "evidence", "references", "relevant"}
_TAGS = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")
_RAGAS_COLUMNS = (
    *RAGAS_QUESTION, *RAGAS_ANSWER, *_TAGS, "reference", "ground_truth", "ground_truths",
    "retrieved_contexts", "contexts", "reference_contexts",
    "reference_context_ids", "retrieved_context_ids", "rubrics", "rubric", "metadata",
    "episode_done", "id",
)  # fmt: skip


@formats.register("ragas")
class RagasFormat:
    """An EvaluationDataset."""

    def matches(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a row has names that only ragas uses."""
        return is_ragas_row(row or {})

    def read(self, source: Path, _options: FormatOptions) -> ImportedGoldSet:
        """Read cases, and traces where the app's answer or passages are present."""
        collector = CaseCollector(source)
        for item in read_rows_with(source, RAGAS_QUESTION, _RAGAS_COLUMNS):
            row = item.data
            fields, trace = parse_ragas(item)
            if fields["question"] is None:
                collector.left_out["rows without a question"] += 1
                continue
            is_conversation = isinstance(parse_printed_list(row.get("user_input")), list)
            collector.left_out["turns before a conversation's last question"] += is_conversation
            collector.left_out["rubrics"] += "rubrics" in row or "rubric" in row
            fields["tags"] = {name: str(row[name]) for name in _TAGS if name in row}
            collector.add(fields, item, trace)
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
        counts = count_unsupported_fields(gold.cases, _RAGAS_FIELDS)
        counts["id"] += sum(
            case.id != Case(question=case.question, id=None).id for case in gold.cases
        )
        counts["references beyond the first"] += sum(len(c.references) > 1 for c in gold.cases)
        counts["grades other than 1"] += count_unsupported_grades(gold.cases)
        return dict(+counts)


_DEEPEVAL_FIELDS = {"id", "question", "evidence", "references"}
_DEEPEVAL_CONTEXTS = {"context", "retrieval_context", "retrievalContext", "source_file"}
_DEEPEVAL_COLUMNS = (
    "input", "actual_output", "expected_output", "context", "retrieval_context", "name", "id",
    "source_file", "comments", "tools_called", "expected_tools", "additional_metadata",
    "custom_column_key_values", "actualOutput", "expectedOutput", "retrievalContext",
)  # fmt: skip


@formats.register("deepeval")
class DeepevalFormat:
    """Goldens or test cases: ``context`` has the relevant texts."""

    def matches(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a row has names that only deepeval uses."""
        fields = set(row or ())
        return "input" in fields and (
            is_deepeval_row(row or {}) or not fields.isdisjoint(_DEEPEVAL_CONTEXTS)
        )

    def read(self, source: Path, _options: FormatOptions) -> ImportedGoldSet:
        """Read cases, and traces where the app's answer is present."""
        collector = CaseCollector(source)
        for item in read_rows_with(source, ("input",), _DEEPEVAL_COLUMNS):
            fields, trace = parse_deepeval(item)
            if fields["question"] is None:
                collector.left_out["rows without a question"] += 1
            elif trace and not (trace.get("answer") or trace["retrieved"]):
                collector.add(fields, item)
            else:
                collector.add(fields, item, trace)
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: FormatOptions) -> dict[str, int]:
        """Write JSON Lines of goldens."""
        goldens = (
            {
                "name": case.id,
                "input": case.question,
                "expected_output": case.references[0] if case.references else None,
                "context": [text for text, grade in case.evidence.items() if grade] or None,
            }
            for case in gold.cases
        )
        write_file(target, objects_to_jsonl(goldens), options)
        counts = count_unsupported_fields(gold.cases, _DEEPEVAL_FIELDS)
        counts["references beyond the first"] += sum(len(c.references) > 1 for c in gold.cases)
        counts["grades other than 1"] += count_unsupported_grades(gold.cases)
        return dict(+counts)


def _read_items(
    source: Path, pages: Sequence[str], needed: Sequence[str], columns: Sequence[str], kind: str
) -> Iterator[tuple[SourceItem, Mapping[str, Any]]]:
    """The rows of a file with their items; a row may be a page, which lists several."""
    for row in read_rows_with(source, (*needed, *pages), columns):
        page = next((row.data[key] for key in pages if key in row.data), None)
        for item in page if isinstance(page, list) else [row.data]:
            if not isinstance(item, Mapping):
                raise row.error(f"An {kind} must be an object.")
            yield row, item


def _metadata(case: Case, *supported: str) -> dict[str, Any]:
    """What the fields of an item do not support; they hold a single reference."""
    return metadata_of(case, [*supported, *["references"] * (len(case.references) == 1)])


_PREFIXES = {
    "inputs": ("inputs.", "inputs_", "input_", "input."),
    "outputs": ("outputs.", "outputs_", "output_", "output.", "reference_outputs."),
}
_LANGSMITH_COLUMNS = (
    "inputs",
    "outputs",
    "metadata",
    "id",
    "split",
    "dataset_id",
    "created_at",
    "modified_at",
)


@formats.register("langsmith")
class LangSmithFormat:
    """Examples of a dataset."""

    def matches(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a row has inputs."""
        return (
            row is not None
            and bool(_inputs_or_outputs(row, "inputs"))
            and "expectedOutput" not in row
        )

    def read(self, source: Path, _options: FormatOptions) -> ImportedGoldSet:
        """Read examples: the question of their inputs, the answer of their outputs."""
        collector = CaseCollector(source)
        first = next(read_log_rows(source)).data
        prefixed = tuple(name for name in first if name.startswith(_PREFIXES["inputs"]))
        needed = ("inputs", *prefixed)
        for row, example in _read_items(
            source, ("examples",), needed, _LANGSMITH_COLUMNS, "example"
        ):
            question = extract_question(_inputs_or_outputs(example, "inputs"))
            if question is None:
                collector.left_out["examples without a question"] += 1
                continue
            fields = fields_from_metadata(example.get("metadata"))
            split = example.get("split", example.get("dataset_split"))
            if split and "tags" not in fields:
                splits = split if isinstance(split, list) else [split]
                fields["tags"] = {"split": ",".join(map(str, splits))}
            answer = extract_answer(_inputs_or_outputs(example, "outputs"))
            fields.setdefault("references", [answer] if answer else [])
            fields.setdefault("id", example.get("id"))
            collector.add({**fields, "question": question}, row)
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: FormatOptions) -> dict[str, int]:
        """Write JSON Lines; the metadata contains what LangSmith does not support."""
        examples = (
            {
                "inputs": {"question": case.question},
                "outputs": {"answer": case.references[0]} if case.references else {},
                "metadata": _metadata(case, "question"),
            }
            for case in gold.cases
        )
        write_file(target, objects_to_jsonl(examples), options)
        return {}


def _inputs_or_outputs(row: Mapping[str, Any], key: str) -> Any:
    """The inputs or outputs: an object, or columns with a prefix."""
    whole = decode_json(row.get(key))
    if whole is not None:
        return whole
    columns = {
        name[len(prefix) :]: value
        for name, value in row.items()
        for prefix in _PREFIXES[key]
        if name.startswith(prefix)
    }
    return columns or None


_EXPECTED = ("expectedOutput", "expected_output")
_ITEM_KEYS = {
    *_EXPECTED, "sourceTraceId", "source_trace_id", "datasetId", "datasetName", "dataset_name",
    "metadata",
}  # fmt: skip
_LANGFUSE_COLUMNS = (
    "input",
    "expectedOutput",
    "metadata",
    "id",
    "status",
    "sourceTraceId",
    "datasetName",
)


@formats.register("langfuse")
class LangfuseFormat:
    """Items of a dataset."""

    def matches(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a row has an input and other names of Langfuse."""
        if row is None or is_deepeval_row(row):
            return False
        page = row.get("data", row.get("items"))
        if isinstance(page, list) and page and isinstance(page[0], Mapping):
            row = page[0]
        return "input" in row and bool(_ITEM_KEYS & set(row))

    def read(self, source: Path, _options: FormatOptions) -> ImportedGoldSet:
        """Read the active items."""
        collector = CaseCollector(source)
        for row, item in _read_items(
            source, ("data", "items"), ("input",), _LANGFUSE_COLUMNS, "item"
        ):
            question = extract_question(item.get("input"))
            if str(item.get("status", "")).upper() == "ARCHIVED":
                collector.left_out["archived items"] += 1
            elif question is None:
                collector.left_out["items without a question"] += 1
            else:
                fields = fields_from_metadata(item.get("metadata"))
                answer = extract_answer(first_value(item, _EXPECTED))
                fields.setdefault("references", [answer] if answer else [])
                fields |= {"id": item.get("id") or fields.get("id"), "question": question}
                collector.add(fields, row)
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: FormatOptions) -> dict[str, int]:
        """Write JSON Lines; the metadata contains what Langfuse does not support."""
        items = (
            {
                "id": case.id,
                "input": {"question": case.question},
                "expectedOutput": {"answer": case.references[0]} if case.references else None,
                "metadata": _metadata(case, "id", "question"),
            }
            for case in gold.cases
        )
        write_file(target, objects_to_jsonl(items), options)
        return {}
