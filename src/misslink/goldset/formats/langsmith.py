"""LangSmith datasets: downloaded examples with inputs, outputs and metadata.

JSON Lines, a JSON array, or CSV, whose columns may be prefixed with ``inputs.`` or ``input_``.
Source: https://docs.langchain.com/langsmith/example-data-format.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.goldset.formats.base import (
    CaseCollector,
    FormatOptions,
    ImportedGoldSet,
    fields_from_metadata,
    formats,
    metadata_of,
    read_rows_with,
    write_file,
)
from misslink.goldset.writer import objects_to_jsonl
from misslink.io.goldset import GoldSet
from misslink.io.trace_formats.requests import (
    decode_json,
    extract_answer,
    extract_question,
    read_log_rows,
)

_PREFIXES = {
    "inputs": ("inputs.", "inputs_", "input_", "input."),
    "outputs": ("outputs.", "outputs_", "output_", "output.", "reference_outputs."),
}
_KNOWN = ("inputs", "outputs", "metadata", "id", "split", "dataset_id", "created_at", "modified_at")


@formats.register("langsmith")
class LangSmithFormat:
    """Examples of a dataset."""

    title = "LangSmith dataset"

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
        for item in read_rows_with(source, ("inputs", *_input_columns(source)), _KNOWN):
            listed = item.data.get("examples")
            for example in listed if isinstance(listed, list) else [item.data]:
                if not isinstance(example, Mapping):
                    raise item.error("An example must be an object.")
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
                collector.add({**fields, "question": question}, item)
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: FormatOptions) -> dict[str, int]:
        """Write JSON Lines; the metadata contains what LangSmith does not support."""
        examples = (
            {
                "inputs": {"question": case.question},
                "outputs": {"answer": case.references[0]} if case.references else {},
                "metadata": metadata_of(
                    case, ["question", *["references"] * (len(case.references) == 1)]
                ),
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


def _input_columns(source: Path) -> tuple[str, ...]:
    """The columns of a CSV file that contain inputs, which depend on the file."""
    row = next(read_log_rows(source)).data
    if "examples" in row:
        return ("examples",)
    return tuple(name for name in row if name.startswith(_PREFIXES["inputs"]))
