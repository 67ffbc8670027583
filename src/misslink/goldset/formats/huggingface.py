"""Hugging Face datasets: a folder written by `save_to_disk`, or a file of rows.

misslink reads Arrow itself: no network, and no package `datasets`.
Source: https://huggingface.co/docs/datasets (save_to_disk, about_arrow).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean, known_names
from misslink.goldset.formats import base
from misslink.io.atomic import atomic_path
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem, read_text
from misslink.io.trace_formats import printed, requests

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("id", "_id", "qid", "query_id", "question_id"),
    "question": ("question", "query", "user_input", "input", "prompt"),
    "references": (
        "references", "reference", "answers", "answer", "ground_truth", "ground_truths",
        "expected_output", "response",
    ),
    "evidence": ("evidence", "reference_contexts", "positive_passages", "context", "contexts"),
    "relevant": ("relevant", "positive_ids", "relevant_ids"),
    "category": ("category", "type", "topic"),
}  # fmt: skip
_STATE = "state.json"
_DICT = "dataset_dict.json"
_SHOWN_COLUMNS = 12


@base.formats.register("huggingface")
class HuggingFaceFormat:
    """A dataset with any column names."""

    def matches(self, source: Path, _row: Mapping[str, Any] | None) -> bool:
        """Return whether a folder was written by `save_to_disk`, or a file is parquet or Arrow."""
        if source.is_dir():
            return any((source / name).is_file() for name in (_STATE, _DICT))
        return source.suffix.casefold() in {".parquet", ".arrow"}

    def read(self, source: Path, options: base.FormatOptions) -> base.ImportedGoldSet:
        """Read a split; columns have the usual names, or those of `options`."""
        for field in options.columns:
            if field not in COLUMNS:
                hint = known_names(field, COLUMNS)
                raise InputError(f"--column: unknown field '{field}'; {hint}")
        names = COLUMNS | {field: (column,) for field, column in options.columns.items()}
        collector = base.CaseCollector(source)
        seen: dict[str, None] = {}
        for item in _dataset_rows(source, options.split):
            row = item.data
            seen |= dict.fromkeys(row)
            values = {
                field: printed.decode_json(requests.first_value(row, names[field]))
                for field in COLUMNS
            }
            for field in ("references", "evidence"):
                values[field] = _text_list(values[field])
            for field in ("id", "category"):
                value = values[field] if isinstance(values[field], str | int) else ""
                values[field] = str(value).strip() and str(value)
            values["question"] = requests.extract_question(values["question"])
            if values["question"] is None:
                collector.left_out["rows without a question"] += 1
                continue
            collector.add(values, item)
        listed = ", ".join(list(seen)[:_SHOWN_COLUMNS])
        for field, column in options.columns.items():
            if column not in seen:
                hint = did_you_mean(column, seen) or f"it has {listed}"
                raise InputError(f"There is no column '{column}' ({field}); {hint}", path=source)
        if "question" not in options.columns and not set(COLUMNS["question"]) & set(seen):
            raise InputError(
                "No column is named like a question. Add  --column question=NAME  (it has "
                f"{listed}).",
                path=source,
            )
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: base.FormatOptions) -> dict[str, int]:
        """Write a parquet file, which `load_dataset("parquet", data_files=...)` reads."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        base.refuse_existing_file(target, options)
        text, texts = pa.string(), pa.list_(pa.string())
        rows = [
            {
                "id": case.id,
                "question": case.question,
                "references": list(case.references),
                "evidence": [text for text, grade in case.evidence.items() if grade],
                "relevant": [name for name, grade in case.relevant.items() if grade],
                "category": case.category,
            }
            for case in gold.cases
        ]
        types = (text, text, texts, texts, texts, text)
        table = pa.Table.from_pylist(rows, pa.schema(list(zip(COLUMNS, types, strict=True))))
        with atomic_path(target) as part:
            pq.write_table(table, part)
        counts = base.count_unsupported_fields(gold.cases, COLUMNS)
        counts["grades other than 1"] += base.count_unsupported_grades(gold.cases)
        return dict(+counts)


def _text_list(value: Any) -> list[str]:
    """Texts from one, from several, or from SQuAD's ``{"text": [...]}``."""
    if isinstance(value, Mapping):
        keys = ("text", "value", "contexts", "aliases")
        value = next((value[key] for key in keys if key in value), None)
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list):
        texts = (item if isinstance(item, str) else requests.extract_answer(item) for item in value)
        return list(dict.fromkeys(text for text in texts if text and text.strip()))
    return []


def _dataset_rows(source: Path, split: str | None) -> Iterator[SourceItem]:
    if not source.is_dir():
        is_arrow = source.suffix == ".arrow"
        yield from _arrow_rows(source, [source]) if is_arrow else requests.read_log_rows(source)
        return
    folder = source
    if (source / _DICT).is_file():
        splits = _read_json_object(source / _DICT).get("splits", [])
        names = [str(name) for name in splits] if isinstance(splits, list) else []
        name = split or (names[0] if len(names) == 1 else "")
        if name not in names:
            hint = f"{did_you_mean(name, names)} " if name else ""
            raise InputError(
                f"The dataset has several splits. Name one with --split; {hint}it has "
                f"{', '.join(names)}",
                path=source,
            )
        folder = source / name
    if not (folder / _STATE).is_file():
        raise InputError(
            "This folder was not written by save_to_disk. Give one that was, or parquet, CSV or "
            "JSON Lines.",
            path=folder,
        )
    files = _read_json_object(folder / _STATE).get("_data_files", [])
    listed = files if isinstance(files, list) else []
    # Names alone: a state cannot make misslink read a file outside of the folder.
    paths = [folder / Path(str(f.get("filename"))).name for f in listed if isinstance(f, Mapping)]
    yield from _arrow_rows(folder, paths)


def _arrow_rows(source: Path, files: list[Path]) -> Iterator[SourceItem]:
    import pyarrow as pa

    number = 0
    for path in files:
        try:
            with pa.memory_map(str(path)) as file:
                try:
                    batches = iter(pa.ipc.open_stream(file))
                except pa.ArrowInvalid:
                    reader = pa.ipc.open_file(file)
                    batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
                for batch in batches:
                    for row in batch.to_pylist():
                        number += 1
                        fields = {str(n): v for n, v in row.items() if v is not None}
                        yield SourceItem(fields, str(path), number, in_row=True)
        except (pa.ArrowException, OSError) as problem:
            first = str(problem).partition("\n")[0]
            message = f"This Arrow file cannot be read ({first}). Save the dataset again."
            raise InputError(message, path=path) from None
    if not number:
        raise InputError("The dataset contains no rows.", path=source)


def _read_json_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError("This is not a JSON object. Save the dataset again.", path=path)
    return value
