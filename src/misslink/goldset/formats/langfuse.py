"""Langfuse datasets: items with input, expected output and metadata.

JSON Lines, a JSON array, a page of the API (``{"data": [...]}``), or CSV.
Source: https://langfuse.com/docs (DatasetItem of the public API).
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
from misslink.io.trace_formats.requests import extract_answer, extract_question, first_value

_EXPECTED = ("expectedOutput", "expected_output")
_ITEM_KEYS = {
    *_EXPECTED, "sourceTraceId", "source_trace_id", "datasetId", "datasetName", "dataset_name",
    "metadata",
}  # fmt: skip
_KNOWN = ("input", "expectedOutput", "metadata", "id", "status", "sourceTraceId", "datasetName")


@formats.register("langfuse")
class LangfuseFormat:
    """Items of a dataset."""

    title = "Langfuse dataset"

    def matches(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a row has an input and other names of Langfuse."""
        if row is None:
            return False
        page = row.get("data", row.get("items"))
        if isinstance(page, list) and page and isinstance(page[0], Mapping):
            row = page[0]
        return "input" in row and bool(_ITEM_KEYS & set(row))

    def read(self, source: Path, _options: FormatOptions) -> ImportedGoldSet:
        """Read the active items."""
        collector = CaseCollector(source)
        for row in read_rows_with(source, ("input", "data", "items"), _KNOWN):
            page = row.data.get("data", row.data.get("items"))
            for item in page if isinstance(page, list) else [row.data]:
                if not isinstance(item, Mapping):
                    raise row.error("An item must be an object.")
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
                "metadata": metadata_of(
                    case, ["id", "question", *["references"] * (len(case.references) == 1)]
                ),
            }
            for case in gold.cases
        )
        write_file(target, objects_to_jsonl(items), options)
        return {}
