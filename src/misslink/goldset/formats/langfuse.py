"""Datasets of Langfuse: items with input, expected output and metadata.

JSON Lines, a JSON array, a page of the API (``{"data": [...]}``), or CSV.

Source: https://langfuse.com/docs (DatasetItem of the public API).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.goldset import GoldSet
from misslink.goldset.formats.format import Brought, Collected, Options, formats
from misslink.goldset.formats.held import beside, restored
from misslink.goldset.formats.places import write_one
from misslink.goldset.formats.rowed import one_of, rows_with
from misslink.goldset.logs.said import answered, asked
from misslink.goldset.writing import objects_as_lines

__all__ = ["Langfuse"]

_EXPECTED = ("expectedOutput", "expected_output")
_TRACE = ("sourceTraceId", "source_trace_id")
_KNOWN = ("input", "expectedOutput", "metadata", "id", "status", "sourceTraceId", "datasetName")


@formats.register("langfuse")
class Langfuse:
    """Items of a dataset."""

    title = "Langfuse dataset"

    def is_it(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Whether a row has an input and Langfuse's names beside it."""
        if row is None:
            return False
        page = row.get("data", row.get("items"))
        if isinstance(page, list) and page and isinstance(page[0], Mapping):
            row = page[0]
        return "input" in row and bool(
            {*_EXPECTED, *_TRACE, "datasetId", "datasetName", "dataset_name", "metadata"} & set(row)
        )

    def bring(self, source: Path, _options: Options) -> Brought:
        """Read the active items."""
        found = Collected(source)
        for line, given in rows_with(source, ("input", "data", "items"), _KNOWN):
            page = given.get("data", given.get("items"))
            for row in page if isinstance(page, list) else [given]:
                if not isinstance(row, Mapping):
                    raise InputError("an item is an object", path=source, line=line)
                self._add(found, row, line)
        return found.brought()

    def _add(self, found: Collected, row: Mapping[str, Any], line: int | None) -> None:
        if str(row.get("status", "")).upper() == "ARCHIVED":
            found.left_out["archived items"] += 1
            return
        question = asked(row.get("input"))
        if question is None:
            found.left_out["items without a question"] += 1
            return
        kept = restored(row.get("metadata"))
        answer = answered(one_of(row, _EXPECTED))
        kept.setdefault("references", [answer] if answer else [])
        found.add({**kept, "id": row.get("id") or kept.get("id"), "question": question}, line)

    def take_out(self, gold: GoldSet, target: Path, options: Options) -> dict[str, int]:
        """Write JSON Lines; what Langfuse has no place for stands in the metadata."""
        items = (
            {
                "id": case.id,
                "input": {"question": case.question},
                "expectedOutput": {"answer": case.references[0]} if case.references else None,
                "metadata": beside(
                    case,
                    {"id", "question"} | ({"references"} if len(case.references) == 1 else set()),
                ),
            }
            for case in gold.cases
        )
        write_one(target, objects_as_lines(items), options)
        return {}
