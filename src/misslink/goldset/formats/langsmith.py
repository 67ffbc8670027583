"""Datasets of LangSmith: examples with inputs, outputs and metadata, as they are downloaded.

JSON Lines, a JSON array, or CSV, whose columns are the names of inputs and outputs, with or without
``inputs.`` or ``input_`` in front.

Source: https://docs.langchain.com/langsmith/example-data-format.
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
from misslink.goldset.formats.rowed import rows_with
from misslink.goldset.logs.said import answered, asked, decoded
from misslink.goldset.logs.source import rows_of
from misslink.goldset.writing import objects_as_lines

__all__ = ["LangSmith"]

_HELD = {"question"}
_FRONTS = {
    "inputs": ("inputs.", "inputs_", "input_", "input."),
    "outputs": ("outputs.", "outputs_", "output_", "output.", "reference_outputs."),
}
_KNOWN = ("inputs", "outputs", "metadata", "id", "split", "dataset_id", "created_at", "modified_at")


@formats.register("langsmith")
class LangSmith:
    """Examples of a dataset."""

    title = "LangSmith dataset"

    def is_it(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Whether a row has inputs."""
        return row is not None and bool(_part(row, "inputs")) and "expectedOutput" not in row

    def bring(self, source: Path, _options: Options) -> Brought:
        """Read examples: the question of their inputs, the answer of their outputs."""
        found = Collected(source)
        for line, given in rows_with(source, (*_KNOWN[:1], *_names(source)), _KNOWN):
            listed = given.get("examples")
            rows = listed if isinstance(listed, list) else [given]
            for row in rows:
                if not isinstance(row, Mapping):
                    raise InputError("an example is an object", path=source, line=line)
                self._add(found, row, line)
        return found.brought()

    def _add(self, found: Collected, row: Mapping[str, Any], line: int | None) -> None:
        question = asked(_part(row, "inputs"))
        if question is None:
            found.left_out["examples without a question"] += 1
            return
        kept = restored(row.get("metadata"))
        answer = answered(_part(row, "outputs"))
        split = row.get("split", row.get("dataset_split"))
        if split and "tags" not in kept:
            several = split if isinstance(split, list) else [split]
            kept["tags"] = {"split": ",".join(map(str, several))}
        kept.setdefault("references", [answer] if answer else [])
        kept.setdefault("id", row.get("id"))
        found.add({**kept, "question": question}, line)

    def take_out(self, gold: GoldSet, target: Path, options: Options) -> dict[str, int]:
        """Write JSON Lines; what LangSmith has no place for stands in the metadata."""
        examples = (
            {
                "inputs": {"question": case.question},
                "outputs": {"answer": case.references[0]} if case.references else {},
                "metadata": beside(
                    case, _HELD | ({"references"} if len(case.references) == 1 else set())
                ),
            }
            for case in gold.cases
        )
        write_one(target, objects_as_lines(examples), options)
        return {}


def _part(row: Mapping[str, Any], which: str) -> Any:
    """The inputs or outputs: an object, or columns with their name in front."""
    whole = decoded(row.get(which))
    if whole is not None:
        return whole
    fronts = _FRONTS[which]
    named = {
        name[len(front) :]: value
        for name, value in row.items()
        for front in fronts
        if name.startswith(front)
    }
    return named or None


def _names(source: Path) -> tuple[str, ...]:
    """The columns of a CSV file that stand for inputs: they cannot be known before."""
    _, row = next(rows_of(source), (None, {}))
    if "examples" in row:
        return ("examples",)
    return tuple(name for name in row if name.startswith(_FRONTS["inputs"]))
